package generate

import (
	"bytes"
	"cmp"
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
	d := transcript.Draft{Text: out.text, Messages: len(messages), Spans: make([]transcript.Span, 0, n)}
	ids := out.callIDs()
	for _, tag := range slices.Sorted(maps.Keys(ids)) {
		d.CallIDs = append(d.CallIDs, ids[tag]...)
	}
	for m, s := range longest {
		if s.Tag > 0 {
			d.Spans = append(d.Spans, transcript.Span{Message: m, From: s.From, To: min(s.To, len(out.text)),
				Answer: messages[m].Role == chat.Assistant, CallIDs: ids[s.Tag]})
		}
	}
	slices.SortFunc(d.Spans, func(a, b transcript.Span) int { return cmp.Or(a.From-b.From, b.To-a.To) })
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
	return func(text string, inReasoning bool) ([]transcript.Statement, bool) {
		names := make([]dialect.Tool, len(tools))
		for i, t := range tools {
			names[i].Name = t.Name
		}
		return meaning(m.family.New(dialect.Options{InReasoning: inReasoning, Tools: names}), text)
	}
}

// meaning is what a parser reads from an answer; false if it breaks off in a call.
func meaning(p dialect.Parser, text string) (all []transcript.Statement, whole bool) {
	var said []byte // text, reasoning or arguments of the last one
	open := false   // the last one is a call, not complete
	end := func() {
		if n := len(all); n > 0 && all[n-1].Kind != transcript.Call {
			if all[n-1].Text = strings.TrimSpace(string(said)); all[n-1].Text == "" {
				all = all[:n-1]
			}
		}
		said = said[:0]
	}
	for _, x := range p.Finish(p.Feed(nil, text)) {
		if open && x.Kind != dialect.ToolArgs && x.Kind != dialect.ToolEnd {
			return nil, false
		}
		switch x.Kind {
		case dialect.ToolStart:
			end()
			all, open = append(all, transcript.Statement{Kind: transcript.Call, Text: x.Text}), true
		case dialect.ToolEnd:
			d := json.NewDecoder(bytes.NewReader(said))
			d.UseNumber()
			if !open || d.Decode(&all[len(all)-1].Args) != nil {
				return nil, false
			}
			open = false
			said = said[:0]
		case dialect.Text, dialect.Reasoning:
			kind := transcript.Text
			if x.Kind == dialect.Reasoning {
				kind = transcript.Reasoning
			}
			if n := len(all); n == 0 || all[n-1].Kind != kind {
				end()
				all = append(all, transcript.Statement{Kind: kind})
			}
			fallthrough
		case dialect.ToolArgs:
			said = append(said, x.Text...)
		}
	}
	end()
	return all, !open
}
