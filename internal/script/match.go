package script

import (
	"fmt"
	"strings"

	"hearth/internal/chat"
)

// view is what conditions and templates see of a request.
type view struct {
	Last  string   // text of what came after the model's last message, system messages left out
	Turn  int      // 1, and one more for every message of the model's
	Tools []string // names of the tools offered
	Tool  string   // of those, the first that if_tool matched
}

func newView(r *chat.Request) view {
	v := view{Turn: 1, Tools: []string{}} // of none, json spells a list too
	var last []string
	if r.Prompt != nil {
		last = append(last, r.Prompt.Text)
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		switch m.Role {
		case chat.Assistant:
			v.Turn++
			last = last[:0]
		case chat.System:
		default:
			last = append(last, text(m.Parts))
		}
	}
	v.Last = strings.Join(last, "\n")
	for i := range r.Tools {
		v.Tools = append(v.Tools, r.Tools[i].Name)
	}
	return v
}

// text joins the texts of parts, those inside tool results included.
func text(parts []chat.Part) string {
	var b strings.Builder
	for i := range parts {
		switch p := &parts[i]; p.Kind {
		case chat.PartText:
			b.WriteString(p.Text)
		case chat.PartToolResult:
			b.WriteString(text(p.Result.Parts))
		}
	}
	return b.String()
}

// matches reports whether the rule's conditions hold, and completes the view with the tool that did.
func (r *rule) matches(v *view) bool {
	if r.turn != 0 && r.turn != v.Turn || r.last != nil && !r.last.MatchString(v.Last) {
		return false
	}
	v.Tool = ""
	if r.tool == nil {
		return true
	}
	for _, name := range v.Tools {
		if r.tool.MatchString(name) {
			v.Tool = name
			return true
		}
	}
	return false
}

// find returns the first rule with uses left that matches, nil if there is none. With use, one is used up.
func (s *Script) find(v *view, use bool) *rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range s.rules {
		if s.left[i] == 0 || !r.matches(v) {
			continue
		}
		if use && s.left[i] > 0 {
			s.left[i]--
		}
		return r
	}
	return nil
}

// say executes the raw text of a rule.
func (r *rule) say(v view) (string, error) {
	if r.raw.Tree == nil { // a fault alone
		return "", nil
	}
	var b strings.Builder
	if err := r.raw.Execute(&b, v); err != nil {
		return "", &chat.Error{Kind: chat.Invalid, Code: "script_failed", Err: err,
			Msg: fmt.Sprintf("the script cannot answer this: line %d: raw: %v", r.line, err)}
	}
	return b.String(), nil
}

// noAnswer says what no rule matched. It is the client's error, so that no client tries again.
func noAnswer(v view) *chat.Error {
	return &chat.Error{Kind: chat.Invalid, Code: "script_no_answer",
		Msg: fmt.Sprintf("no line of the script answers this request: turn %d, %d tools, last message %q", v.Turn, len(v.Tools), clip(v.Last))}
}

func clip(s string) string {
	const most = 120
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
