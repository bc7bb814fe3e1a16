package generate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hearth/internal/chat"
)

// text joins the texts of a message that is no tool's. What the model cannot take in becomes a note, or is refused where the
// server is set to.
func (b *turnBuilder) text(parts []chat.Part) (string, error) {
	i := slices.IndexFunc(parts, func(p chat.Part) bool { return p.Kind == chat.PartMedia })
	switch {
	case i < 0:
		return chat.Text(parts), nil
	case b.refuse:
		m := parts[i].Media
		return "", chat.Invalidf(m.Path, "%s", m.Refusal)
	}
	return lines(parts), nil
}

// lines joins texts and notes, each on lines of its own. A tool may return a picture at any time, and a session may have begun
// with a model that sees: what is in the conversation stays there for good, so refusing it would end that conversation.
func lines(parts []chat.Part) string {
	var b strings.Builder
	for i := range parts {
		var text string
		switch p := &parts[i]; p.Kind {
		case chat.PartText:
			text = p.Text
		case chat.PartMedia:
			text = note(p.Media)
		default:
			continue
		}
		if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") {
			b.WriteByte('\n')
		}
		b.WriteString(text)
	}
	return b.String()
}

// note stands in the prompt for what the model cannot take in. It depends on nothing else, so the same conversation has the
// same prompt later; two files with the same note are the same to the model.
func note(m *chat.Media) string {
	kind := string(m.Kind)
	name, sense := strings.ToUpper(kind[:1])+kind[1:], "see"
	if m.Kind == chat.Audio {
		sense = "hear"
	}
	if m.Name != "" {
		name += " " + strconv.Quote(m.Name)
	}
	var known []string
	if m.Type != "" {
		known = append(known, m.Type)
	}
	switch {
	case m.By != "":
		known = append(known, "by "+m.By)
	case m.Width > 0:
		known = append(known, fmt.Sprintf("%d x %d pixels", m.Width, m.Height))
	case m.Bytes > 0:
		known = append(known, fmt.Sprintf("%d bytes", m.Bytes))
	}
	if known != nil {
		name += " (" + strings.Join(known, ", ") + ")"
	}
	return "[" + name + ": this model cannot " + sense + " it.]"
}
