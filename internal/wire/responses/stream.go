package responses

import (
	"bytes"
	"strconv"

	"hearth/internal/chat"
	"hearth/internal/wire"
	"hearth/internal/wire/openai"
)

// streamEncoder ends a stream with one event, whatever happened.
type streamEncoder struct{ *reply }

// Done tells how the response ended. What went wrong stands in the response, under a code that Codex knows.
func (s streamEncoder) Done(err *chat.Error) {
	r := s.reply
	if err == nil {
		err = r.Keep()
	}
	if err != nil {
		if r.sequence == 0 {
			r.tell("response.created", "response", &r.body)
		}
		r.fail(err)
		_ = r.settle() // the client is told of a failure already
	}
	r.tell(r.last(), "response", &r.body)
}

// last is the kind of event that ends the stream.
func (r *reply) last() string {
	if r.body.Status == cancelled {
		return "response." + unfinished // there is no event of that name
	}
	return "response." + r.body.Status
}

// fail ends the response by an error.
func (r *reply) fail(err *chat.Error) {
	r.end(unfinished)
	r.endLost()
	if err.Code == errCancelled.Code {
		r.body.Status = cancelled
		return
	}
	d := openai.NewErrorDetail(err)
	code := "server_error"
	if d.Code != nil {
		code = *d.Code
	}
	r.body.Status, r.body.CompletedAt, r.body.Error = failed, nil, &failure{code, d.Message}
}

// tell sends an event with fields, their names and values in turn, where there is a stream.
func (r *reply) tell(kind string, fields ...any) {
	if r.out == nil {
		return
	}
	r.send(kind, newEvent(kind, fields...))
}

// newEvent makes an event that lacks its number.
func newEvent(kind string, fields ...any) []byte {
	b := append(append([]byte(eventHead), kind...), '"')
	for i := 0; i < len(fields); i += 2 {
		b = append(append(append(b, `,"`...), fields[i].(string)...), `":`...)
		b = append(b, wire.Marshal(fields[i+1])...)
	}
	return b
}

// numbered completes an event by its number, which tells clients that none is missing.
func numbered(b []byte, n int) []byte {
	b = append(b, `,"sequence_number":`...)
	return append(strconv.AppendInt(b, int64(n), 10), '}')
}

// eventHead begins an event; its kind is next.
const eventHead = `{"type":"`

// kindOf is the kind of an event.
func kindOf(b []byte) string {
	kind, _, _ := bytes.Cut(bytes.TrimPrefix(b, []byte(eventHead)), []byte(`"`))
	return string(kind)
}

// send sends an event that lacks its number.
func (r *reply) send(kind string, b []byte) {
	b = numbered(b, r.sequence)
	r.sequence++
	r.out.Event(kind, b)
}

// partEvents are what events call a kind of item's text: its part, what says where in the item that stands, and the text itself.
type partEvents struct{ part, index, text string }

var (
	textEvents    = partEvents{"content_part", "content_index", "output_text"}
	thoughtEvents = partEvents{"content_part", "content_index", "reasoning_text"}
	summaryEvents = partEvents{"reasoning_summary_part", "summary_index", "reasoning_summary_text"}
	callEvents    = partEvents{text: "function_call_arguments"}
	customEvents  = partEvents{text: "custom_tool_call_input"}
	mcpEvents     = partEvents{text: "mcp_call_arguments"}
)

// events are those of an item's text; none is told of reasoning that is not shown, nor of what has no text.
func (r *reply) events(i *item) *partEvents {
	switch i.kind {
	case messageKind:
		return &textEvents
	case callKind:
		return &callEvents
	case customKind:
		return &customEvents
	case mcpKind:
		return &mcpEvents
	case reasoningKind:
		switch {
		case r.shown && r.req.summary:
			return &summaryEvents
		case r.shown:
			return &thoughtEvents
		}
	}
	return nil
}

// at are the fields that say where the text of an item stands.
func (i *item) at(p *partEvents) []any {
	fields := []any{"item_id", i.id, "output_index", i.index}
	if p.index != "" {
		fields = append(fields, p.index, 0)
	}
	return fields
}

// added tells that an item begins.
func (r *reply) added(i *item) {
	if r.out == nil {
		return
	}
	r.tell("response.output_item.added", "output_index", i.index, "item", r.body.Output[i.index])
	if p := r.events(i); p != nil && p.part != "" {
		r.tell("response."+p.part+".added", append(i.at(p), "part", r.part(i, ""))...)
	}
}

// done tells that an item ends. A call or a summary that was cut off is not told to be done: clients carry out what is.
func (r *reply) done(i *item, status string) {
	if r.out == nil || i.kind >= compactionKind && status != completed {
		return
	}
	text := i.text.String()
	switch p := r.events(i); {
	case p == nil:
	case i.kind == customKind:
		r.tell("response."+p.text+".done", append(i.at(p), "input", text)...)
	case i.kind == callKind:
		r.tell("response."+p.text+".done", append(i.at(p), "name", i.tool.name, "arguments", text)...)
	default:
		fields := append(i.at(p), "text", text)
		if i.kind == messageKind {
			fields = append(fields, "logprobs", i.tokens())
		}
		r.tell("response."+p.text+".done", fields...)
		r.tell("response."+p.part+".done", append(i.at(p), "part", r.part(i, text))...)
	}
	r.tell("response.output_item.done", "output_index", i.index, "item", r.body.Output[i.index])
}

// fragment takes more of the text of the item under way.
func (r *reply) fragment(e *chat.Event) {
	i := r.open
	i.text.WriteString(e.Text)
	var logprobs []openai.Logprob
	if r.req.Logprobs && i.kind == messageKind {
		logprobs = openai.Logprobs(e.Logprobs)
		i.logprobs = append(i.logprobs, logprobs...)
	}
	p := r.events(i)
	if r.out != nil && i.kind == compactionKind {
		r.tell("response.compaction.compacting", i.at(&partEvents{})...)
	}
	if r.out == nil || p == nil {
		return
	}
	kind := "response." + p.text + ".delta"
	if i.short == nil { // the same for all fragments
		i.short = append(newEvent(kind, i.at(p)...), `,"delta":`...)
		i.head = len(i.short)
	}
	b := wire.AppendString(i.short[:i.head], e.Text)
	switch {
	case i.kind == messageKind && logprobs != nil:
		b = append(append(b, `,"logprobs":`...), wire.Marshal(logprobs)...)
	case i.kind == messageKind:
		b = append(b, `,"logprobs":[]`...)
	}
	i.short = b
	r.send(kind, b)
}
