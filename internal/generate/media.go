package generate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hearth/internal/chat"
)

// media is what becomes of files in messages.
type media struct {
	seen   *pictures
	refuse bool // what is not seen is an error, but in results of tools
}

// text joins the texts of a message that is no tool's, with what stands for images that the model sees. What it cannot take in
// becomes a note, or is refused where the server is set to.
func (b *media) text(parts []chat.Part) (string, error) {
	i := slices.IndexFunc(parts, func(p chat.Part) bool { return p.Kind == chat.PartMedia && b.seen.holder(p.Media) == "" })
	switch {
	case i < 0:
		return b.joined(parts, false), nil
	case b.refuse:
		m := parts[i].Media
		return "", chat.Invalidf(m.Path, "%s", m.Refusal)
	}
	return b.joined(parts, true), nil
}

// joined joins texts, notes and images: with apart, texts and notes on lines of their own. A tool may return a picture at any
// time, and a session may have begun with a model that sees: what is in the conversation stays there for good, so refusing it
// would end that conversation.
func (b *media) joined(parts []chat.Part, apart bool) string {
	var out strings.Builder
	glue := true // nothing, or an image, came before
	for i := range parts {
		var text, image string
		switch p := &parts[i]; p.Kind {
		case chat.PartText:
			if len(parts) == 1 {
				return p.Text
			}
			text = p.Text
		case chat.PartMedia:
			if image = b.seen.holder(p.Media); image == "" {
				text = b.seen.note(p.Media)
			}
		default:
			continue
		}
		if s := out.String(); image == "" && apart && !glue && s != "" && !strings.HasSuffix(s, "\n") {
			out.WriteByte('\n')
		}
		out.WriteString(cmp.Or(image, text))
		glue = image != ""
	}
	return out.String()
}

// note is that of a file that the model does not see, which is no image or cannot be read.
func (p *pictures) note(m *chat.Media) string {
	if p == nil || p.faults[m] == nil {
		return note(m, "")
	}
	return note(m, "this image "+p.faults[m].Error())
}

// note stands in the prompt for what the model cannot take in. It depends on nothing else, so the same conversation has the
// same prompt later; two files with the same note are the same to the model. Why says so where it is not the model.
func note(m *chat.Media, why string) string {
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
	return "[" + name + ": " + cmp.Or(why, "this model cannot "+sense+" it") + ".]"
}
