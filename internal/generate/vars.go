package generate

import (
	"fmt"

	"hearth/internal/chat"
	"hearth/internal/jinja"
)

// object makes a dict of alternating keys and values.
func object(kv ...any) *jinja.Dict {
	d := jinja.NewDict()
	for i := 0; i < len(kv); i += 2 {
		d.Set(kv[i].(string), kv[i+1])
	}
	return d
}

// messages converts the conversation to what chat templates expect: the shape of OpenAI's messages, with arguments of
// calls as objects and every tool result as a message of its own. No key is ever null: like the reference, what is
// missing is left out; only content is always there.
func (g *Generator) messages(r *chat.Request) (*jinja.List, error) {
	out := jinja.NewList()
	names := map[string]string{} // of the tools called, by call id
	for i := range r.Messages {
		m := &r.Messages[i]
		at := fmt.Sprintf("messages[%d]", i)
		if m.Role == chat.Assistant {
			d, err := g.assistant(m, at, names)
			if err != nil {
				return nil, err
			}
			out.Items = append(out.Items, d)
			continue
		}
		// A user's turn may mix tool results with text: each run of other parts is one message, each result another.
		start := 0
		for j := range m.Parts {
			if m.Parts[j].Kind != chat.PartToolResult {
				continue
			}
			if err := g.appendPlain(out, m, m.Parts[start:j], at); err != nil {
				return nil, err
			}
			start = j + 1
			d, err := g.toolResult(m.Parts[j].Result, at, names)
			if err != nil {
				return nil, err
			}
			out.Items = append(out.Items, d)
		}
		if start == 0 || start < len(m.Parts) {
			if err := g.appendPlain(out, m, m.Parts[start:], at); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (g *Generator) appendPlain(out *jinja.List, m *chat.Message, parts []chat.Part, at string) error {
	if len(parts) == 0 && len(m.Parts) > 0 {
		return nil
	}
	content, err := g.content(parts, at)
	if err != nil {
		return err
	}
	d := object("role", string(m.Role), "content", content)
	if m.Name != "" {
		d.Set("name", m.Name)
	}
	out.Items = append(out.Items, d)
	return nil
}

// content joins the text of parts, as a string or, where the template wants it, as a list of one text part.
func (g *Generator) content(parts []chat.Part, at string) (jinja.Value, error) {
	for i := range parts {
		if parts[i].Kind == chat.PartImage {
			return nil, chat.Invalidf(at+".content", "this model cannot see images")
		}
	}
	text := chat.Text(parts)
	if g.asList {
		return jinja.NewList(object("type", "text", "text", text)), nil
	}
	return text, nil
}

func (g *Generator) toolResult(t *chat.ToolResult, at string, names map[string]string) (*jinja.Dict, error) {
	content, err := g.content(withoutImages(t.Parts), at)
	if err != nil {
		return nil, err
	}
	d := object("role", "tool", "content", content)
	if t.CallID != "" {
		d.Set("tool_call_id", t.CallID)
	}
	if name := names[t.CallID]; name != "" {
		d.Set("name", name)
	}
	return d, nil
}

// withoutImages puts a note in the place of images. A tool may return one to an agent at any time, and the result stays
// in the conversation for good: refusing it would end that conversation. What a person attaches is refused instead.
func withoutImages(parts []chat.Part) []chat.Part {
	out := make([]chat.Part, 0, len(parts))
	for _, p := range parts {
		if p.Kind == chat.PartImage {
			p = chat.Part{Kind: chat.PartText, Text: "[image: this model cannot see images]"}
		}
		out = append(out, p)
	}
	return out
}

func (g *Generator) assistant(m *chat.Message, at string, names map[string]string) (*jinja.Dict, error) {
	content, err := g.content(m.Parts, at)
	if err != nil {
		return nil, err
	}
	d := object("role", "assistant", "content", content)
	if m.Name != "" {
		d.Set("name", m.Name)
	}
	reasoning, calls := "", jinja.NewList()
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
		case chat.PartReasoning:
			reasoning += p.Text
		case chat.PartToolCall:
			names[p.Call.ID] = p.Call.Name
			calls.Items = append(calls.Items, toolCall(p.Call))
		}
	}
	if reasoning != "" { // the name most templates read, and that of gpt-oss
		d.Set("reasoning_content", reasoning)
		d.Set("thinking", reasoning)
	}
	if len(calls.Items) > 0 {
		d.Set("tool_calls", calls)
	}
	return d, nil
}

// toolCall gives the arguments as an object in the order of their keys. Arguments that are no JSON stay text: a call
// that went wrong once must not break the conversation.
func toolCall(c *chat.ToolCall) *jinja.Dict {
	args, err := jinja.FromJSON(c.Arguments)
	switch {
	case len(c.Arguments) == 0:
		args = jinja.NewDict()
	case err != nil:
		args = string(c.Arguments)
	}
	d := object("id", c.ID, "type", "function", "function", object("name", c.Name, "arguments", args))
	if c.ID == "" {
		d.Delete("id")
	}
	return d
}

// tools converts the declared tools to OpenAI's function objects; nil when there are none or none may be called.
func tools(r *chat.Request) (jinja.Value, error) {
	if len(r.Tools) == 0 || r.Choice.Kind == chat.ChoiceNone {
		return nil, nil
	}
	out := jinja.NewList()
	for i, t := range r.Tools {
		if t.Deferred { // its schema stands where the client loaded it
			continue
		}
		f := object("name", t.Name)
		if t.Description != "" {
			f.Set("description", t.Description)
		}
		if len(t.Parameters) > 0 {
			schema, err := jinja.FromJSON(t.Parameters)
			if err != nil {
				return nil, chat.Invalidf(fmt.Sprintf("tools[%d].parameters", i), "not JSON: %v", err)
			}
			f.Set("parameters", schema)
		}
		if t.Strict {
			f.Set("strict", true)
		}
		out.Items = append(out.Items, object("type", "function", "function", f))
	}
	if len(out.Items) == 0 {
		return nil, nil
	}
	return out, nil
}

// variables are all a template sees. What the client sets in TemplateArgs wins over everything.
func (g *Generator) variables(r *chat.Request) (*jinja.Dict, error) {
	msgs, err := g.messages(r)
	if err != nil {
		return nil, err
	}
	ts, err := tools(r)
	if err != nil {
		return nil, err
	}
	vars := g.cfg.Template.tokens.Clone()
	vars.Set("messages", msgs)
	vars.Set("tools", ts)
	vars.Set("documents", nil)
	vars.Set("add_generation_prompt", true)
	mode := r.Thinking.Mode
	if mode == chat.Default {
		mode = g.cfg.Thinking
	}
	if mode != chat.Default {
		vars.Set("enable_thinking", mode == chat.On)
		vars.Set("thinking", mode == chat.On)
	}
	if r.Thinking.Effort != "" {
		vars.Set("reasoning_effort", r.Thinking.Effort)
	}
	for name, raw := range r.TemplateArgs {
		v, err := jinja.FromJSON(raw)
		if err != nil {
			return nil, chat.Invalidf("chat_template_kwargs."+name, "not JSON: %v", err)
		}
		vars.Set(name, v)
	}
	return vars, nil
}
