package generate

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/jinja"
	"hearth/internal/transcript"
)

// draft makes the draft of a rendering, with the spans of its messages.
func (out *rendering) draft(messages []chat.Message) transcript.Draft {
	longest := make([]jinja.Span, len(messages)) // of each message; without a tag where there is none
	n := 0
	for _, s := range out.spans {
		if s.Tag < 1 || s.Tag > len(messages) || s.From >= len(out.text) {
			continue
		}
		l := &longest[s.Tag-1]
		if l.Tag == 0 {
			n++
		}
		if l.Tag == 0 || s.To-s.From > l.To-l.From {
			*l = s
		}
	}
	d := transcript.Draft{Text: out.text, Messages: len(messages)}
	ids := out.callIDs()
	for _, tag := range slices.Sorted(maps.Keys(ids)) {
		d.CallIDs = append(d.CallIDs, ids[tag]...)
	}
	d.Spans = make([]transcript.Span, 0, n)
	for m, s := range longest {
		if s.Tag > 0 {
			d.Spans = append(d.Spans, transcript.Span{Message: m, From: s.From, To: min(s.To, len(out.text)),
				Answer: messages[m].Role == chat.Assistant, CallIDs: ids[s.Tag]})
		}
	}
	slices.SortFunc(d.Spans, func(a, b transcript.Span) int {
		if a.From != b.From {
			return a.From - b.From
		}
		return b.To - a.To
	})
	return d
}

// callIDs are the ids of the calls of each message, as the template has seen them.
func (out *rendering) callIDs() map[int][]string {
	ids := map[int][]string{}
	if out.messages == nil {
		return ids
	}
	for _, item := range out.messages.Items {
		m, _ := item.(*jinja.Dict)
		v, _ := m.Get("tool_calls")
		calls, ok := v.(*jinja.List)
		if !ok {
			continue
		}
		for _, c := range calls.Items {
			if call, ok := c.(*jinja.Dict); ok {
				if id, _ := call.Get("id"); id != nil {
					s, _ := id.(string)
					ids[m.Tag] = append(ids[m.Tag], s)
				}
			}
		}
	}
	return ids
}

// says reads answers for transcript.Draft, as the parser of the model's own output does: text but for white space around
// it, reasoning, and calls. It knows the tools by name alone: a number that a client turned into a text is another argument.
func (m *prompter) says(tools []dialect.Tool) func(text string, inReasoning bool) ([]transcript.Statement, bool) {
	var names []dialect.Tool
	for _, t := range tools {
		names = append(names, dialect.Tool{Name: t.Name})
	}
	return func(text string, inReasoning bool) ([]transcript.Statement, bool) {
		return meaning(m.family.New(dialect.Options{InReasoning: inReasoning, Tools: names}), text)
	}
}

// meaning is what a parser reads from an answer; false if it breaks off in a call.
func meaning(p dialect.Parser, text string) ([]transcript.Statement, bool) {
	pieces := p.Feed(nil, text)
	pieces = p.Finish(pieces)
	var all []transcript.Statement
	var args, said []byte // of the last one
	spell := func() {
		if n := len(all); n > 0 && len(said) > 0 {
			all[n-1].Text += string(said)
		}
		said = said[:0]
	}
	for _, x := range pieces {
		last := len(all) - 1
		switch {
		case x.Kind == dialect.ToolStart:
			spell()
			all, args = append(all, transcript.Statement{Kind: int(x.Kind), Text: x.Text}), args[:0]
		case x.Kind == dialect.ToolArgs:
			args = append(args, x.Text...)
		case x.Kind == dialect.ToolEnd:
			d := json.NewDecoder(bytes.NewReader(args))
			d.UseNumber()
			if last < 0 || d.Decode(&all[last].Args) != nil {
				return nil, false
			}
			all[last].Kind = int(x.Kind)
		case last >= 0 && all[last].Kind == int(x.Kind):
			said = append(said, x.Text...)
		default:
			spell()
			all = append(all, transcript.Statement{Kind: int(x.Kind), Text: x.Text})
		}
	}
	spell()
	for i := range all {
		switch dialect.Kind(all[i].Kind) {
		case dialect.ToolStart:
			return nil, false
		case dialect.Text, dialect.Reasoning:
			all[i].Text = strings.TrimSpace(all[i].Text)
		}
	}
	return slices.DeleteFunc(all, func(s transcript.Statement) bool { return s.Kind <= int(dialect.Reasoning) && s.Text == "" }), true
}
