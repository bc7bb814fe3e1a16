package generate

import (
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"hearth/internal/chat"
	"hearth/internal/jinja"
	"hearth/internal/parser"
)

// prompt is a request made ready for the engine.
type prompt struct {
	text    string  // as rendered, with a forced opening
	tokens  []int32 // of text
	forced  string  // the opening of a call that text ends with; the parser hears it as if the model had said it
	options parser.Options
}

// continueMark stands where an unfinished message is cut off; its last blank shows whether the template trims.
const continueMark = "\uE012hearth-continues-here "

// prompt renders and encodes a request.
func (g *Generator) prompt(r *chat.Request) (*prompt, error) {
	if len(r.Messages) == 0 {
		return nil, chat.Invalidf("messages", "at least one message is needed")
	}
	if r.Choice.Kind == chat.ChoiceNamed && !slices.ContainsFunc(r.Tools, func(t chat.Tool) bool { return t.Name == r.Choice.Name }) {
		return nil, chat.Invalidf("tool_choice", "there is no tool named %q", r.Choice.Name)
	}
	vars, err := g.variables(r)
	if err != nil {
		return nil, err
	}
	force := g.forcedOpening(r)
	if force != "" { // a model that must call has no room to think first
		vars.Set("enable_thinking", false)
		vars.Set("thinking", false)
	}
	marked := g.guard.mark(vars)
	text, continued, err := g.render(r, vars)
	if err != nil {
		return nil, err
	}
	p := &prompt{}
	p.encode(g, text, marked)
	p.options = parser.Options{InReasoning: g.insideReasoning(p.tokens), Continued: continued}
	if r.Choice.Kind != chat.ChoiceNone {
		for _, t := range r.Tools {
			p.options.Tools = append(p.options.Tools, parser.Tool{Name: t.Name, Parameters: t.Parameters})
		}
	}
	if force != "" {
		if p.options.InReasoning {
			text += "\n" + g.family.Close + "\n\n"
			p.options.InReasoning = false
		}
		p.forced = force
		p.encode(g, text+force, marked)
	}
	return p, nil
}

func (p *prompt) encode(g *Generator, text string, marked bool) {
	if marked {
		p.tokens, p.text = g.guard.encode(text), g.guard.unmark(text)
		return
	}
	p.tokens, p.text = g.guard.plain(text), text
}

// forcedOpening is the start of a call to continue the prompt with, when the request demands a call. What follows it,
// the arguments and for "required" the name too, stays the model's: nothing but the opening is enforced. Formats
// without such an opening, and requests that continue a message, get none.
func (g *Generator) forcedOpening(r *chat.Request) string {
	if g.family.Force == nil || len(r.Tools) == 0 || r.Messages[len(r.Messages)-1].Role == chat.Assistant {
		return ""
	}
	switch r.Choice.Kind {
	case chat.ChoiceRequired:
		if len(r.Tools) == 1 {
			return g.family.Force(r.Tools[0].Name)
		}
		return g.family.Force("")
	case chat.ChoiceNamed:
		return g.family.Force(r.Choice.Name)
	}
	return ""
}

// render runs the template. An assistant message at the end is continued, not answered: the text then ends where that
// message does, without the marks that would close the turn.
func (g *Generator) render(r *chat.Request, vars *jinja.Dict) (text string, continued bool, err error) {
	tmpl := g.cfg.Template.forRequest(len(r.Tools) > 0 && r.Choice.Kind != chat.ChoiceNone)
	field := continueField(vars)
	if field != "" {
		vars.Set("add_generation_prompt", false)
	}
	limits := g.cfg.Limits
	if limits.Time == 0 { // some templates look at every message for every message
		limits.Time = 80*time.Millisecond + time.Duration(len(r.Messages))*time.Millisecond
	}
	text, err = tmpl.Render(vars, limits)
	if err != nil {
		if moved := foldSystem(vars); moved {
			text, err = tmpl.Render(vars, limits)
		}
	}
	if err != nil {
		return "", false, renderError(err)
	}
	if field == "" {
		return text, false, nil
	}
	at := strings.LastIndex(text, strings.TrimSpace(continueMark))
	if at < 0 {
		return "", false, chat.Invalidf("messages", "the last message cannot be continued: the model's chat template leaves out or changes its %s", field)
	}
	if !strings.HasPrefix(text[at:], continueMark) { // the template trims, so what it would have trimmed goes too
		return strings.TrimRightFunc(text[:at], unicode.IsSpace), true, nil
	}
	return text[:at], true, nil
}

// continueField marks the end of an assistant message that ends the conversation and returns the field it is in, "" if
// there is nothing to continue. An empty message is dropped: to continue nothing is to answer.
func continueField(vars *jinja.Dict) string {
	v, _ := vars.Get("messages")
	msgs, ok := v.(*jinja.List)
	if !ok || len(msgs.Items) == 0 {
		return ""
	}
	last, ok := msgs.Items[len(msgs.Items)-1].(*jinja.Dict)
	if !ok {
		return ""
	}
	if role, _ := last.Get("role"); role != "assistant" {
		return ""
	}
	if _, calls := last.Get("tool_calls"); calls {
		return ""
	}
	content, _ := last.Get("content")
	if list, ok := content.(*jinja.List); ok {
		part := list.Items[len(list.Items)-1].(*jinja.Dict)
		if text, _ := part.Get("text"); text != "" {
			part.Set("text", text.(string)+continueMark)
			return "content"
		}
	} else if text, _ := content.(string); text != "" {
		last.Set("content", text+continueMark)
		return "content"
	}
	if reasoning, _ := last.Get("reasoning_content"); reasoning != nil {
		last.Set("reasoning_content", reasoning.(string)+continueMark)
		last.Set("thinking", reasoning.(string)+continueMark)
		return "reasoning_content"
	}
	msgs.Items = msgs.Items[:len(msgs.Items)-1]
	return ""
}

// foldSystem rewrites system messages for templates that refuse them after the start: those at the start are joined,
// later ones become part of the conversation as a reminder in a user's turn. It reports whether anything changed.
func foldSystem(vars *jinja.Dict) bool {
	v, _ := vars.Get("messages")
	msgs, ok := v.(*jinja.List)
	if !ok {
		return false
	}
	var out []jinja.Value
	changed := false
	for i, item := range msgs.Items {
		m, _ := item.(*jinja.Dict)
		if v, _ := m.Get("content"); !isString(v) {
			return false
		}
		role, text := stringField(m, "role"), stringField(m, "content")
		var prev *jinja.Dict
		if len(out) > 0 {
			prev, _ = out[len(out)-1].(*jinja.Dict)
		}
		prevText := stringField(prev, "content")
		switch {
		case i == 0 || role != "system" && (!changed || role != "user" || stringField(prev, "role") != "user"):
			out = append(out, item)
			continue
		case role == "user": // after a reminder: one turn
		case stringField(prev, "role") == "system":
		default:
			text = "<system-reminder>\n" + text + "\n</system-reminder>"
			if stringField(prev, "role") != "user" {
				out = append(out, object("role", "user", "content", text))
				changed = true
				continue
			}
		}
		joined := prev.Clone()
		joined.Set("content", prevText+"\n\n"+text)
		out[len(out)-1] = joined
		changed = true
	}
	if changed {
		vars.Set("messages", jinja.NewList(out...))
	}
	return changed
}

func isString(v jinja.Value) bool { _, ok := v.(string); return ok }

func stringField(m *jinja.Dict, name string) string {
	v, _ := m.Get(name)
	s, _ := v.(string)
	return s
}

// renderError turns a template's failure into the client's error: a refusal is the conversation's fault, so are
// reached limits; anything else is a template that cannot handle this kind of conversation.
func renderError(err error) error {
	var e *jinja.Error
	if !errors.As(err, &e) {
		return chat.AsError(err)
	}
	switch e.Kind {
	case jinja.Raised:
		return &chat.Error{Kind: chat.Invalid, Param: "messages", Code: "template_refused", Err: err,
			Msg: "the model's chat template refuses this conversation: " + e.Msg}
	case jinja.Limit:
		return &chat.Error{Kind: chat.Invalid, Param: "messages", Code: "template_limit", Err: err,
			Msg: "the model's chat template cannot render this conversation: " + e.Msg}
	}
	return &chat.Error{Kind: chat.Invalid, Param: "messages", Code: "template_failed", Err: err,
		Msg: "the model's chat template fails on this conversation: " + e.Error()}
}

// insideReasoning tells whether the model goes on in a reasoning block. Only what follows the last special token
// counts, which is the template's own: a user can write tags but not special tokens.
func (g *Generator) insideReasoning(tokens []int32) bool {
	if g.family.Open == "" {
		return false
	}
	tok := g.cfg.Tokenizer
	start := len(tokens)
	for start > 0 {
		id := tokens[start-1]
		if name, _ := tok.Token(id); tok.Special(id) && !slices.Contains(g.family.Markers, name) {
			break
		}
		start--
	}
	tail := tok.Decode(tokens[start:], false)
	return strings.LastIndex(tail, g.family.Open) > strings.LastIndex(tail, g.family.Close)
}
