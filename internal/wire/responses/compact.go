package responses

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"math"
	"net/http"
	"slices"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// compactionTrigger is the item at the end of an input whose answer is a summary of the conversation before it.
const compactionTrigger = "compaction_trigger"

const (
	maxSummary     = 4096 // tokens of a summary, and of the reasoning before it
	summaryThought = 1024 // of those, reasoning
)

// summaryRequest asks for a summary. It stands behind the conversation, so that the prompt begins as the last one did.
const summaryRequest = "Stop here: do not go on with the task, and call no tools. What was said above will be replaced by what you write now. " +
	"Write a summary from which someone who has seen nothing of it can go on. It says what the user wants, with every wish and limit; " +
	"what was done and decided, and why; what was found out, with the names of files, commands, numbers and errors that are still " +
	"needed; how things stand; and what comes next. Write the summary alone, as plain text, and no longer than it has to be."

// summaryPreface stands before a summary where the model reads it.
const summaryPreface = "The conversation up to here was summed up to save room. What the user said may still stand above. Of all else that was said " +
	"and done, this is what is needed to go on:\n\n"

// errNoSummary is what a client is told where the model does something else.
var errNoSummary = &chat.Error{Kind: chat.Internal, Msg: "the model wrote no summary of the conversation: try again, or send a shorter one"}

// compactionItem is a summary as clients get it and send it back.
type compactionItem struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Encrypted string `json:"encrypted_content"`
}

// summary is that of the messages so far, where the input has one.
type summary struct {
	text string
	upTo int // how many messages it sums up
}

// compaction reads the summary of what stands before it. One that was made elsewhere says nothing here.
func (d *decoder) compaction(item wire.Value) {
	if text, ok := decrypted(sealedSummary, d.OptString(item.Get("encrypted_content"))); ok && text != "" {
		d.endTurn()
		d.summary = summary{text, len(d.r.Messages)}
	}
}

// sumUp puts the last summary of the input in the place of what the model said and did before it. What the user and the system
// said stays, as in the answers of the route for compaction.
func (d *decoder) sumUp() {
	if d.summary.text != "" {
		d.r.summed = 1 + len(d.r.Messages) - d.summary.upTo
		d.r.Messages = summedUp(d.r.Messages, d.summary, -1)
	}
}

// summedUp is a conversation with a summary; earlier is where the one before that stands.
func summedUp(messages []chat.Message, s summary, earlier int) []chat.Message {
	var all []chat.Message
	for i, m := range messages[:s.upTo] {
		if i != earlier && (m.Role == chat.System || m.Role == chat.User) {
			all = append(all, m)
		}
	}
	all = append(all, chat.Message{Role: chat.User, Parts: wire.TextParts(summaryPreface + s.text)})
	return append(all, messages[s.upTo:]...)
}

// compactBody reads what the route for compaction has of its own: a model must be named, and nothing is stored.
func (d *decoder) compactBody(body wire.Value) {
	if _, deployed := chat.Deployment(d.past.ctx); !deployed && body.Get("model").Kind() == wire.Missing {
		d.Fail(body.Get("model"), "is required")
	}
	d.r.store = false
}

// keepsItems tells whether the input is needed as it came.
func (d *decoder) keepsItems() bool { return d.r.kept || d.compact }

// management reads when the conversation is summed up before it is answered. One that is summed up in any case must be there.
func (d *decoder) management(body wire.Value) {
	for _, v := range d.ItemsWithin(body.Get("context_management"), chat.BoundTools, wire.MaxTools, "entries") {
		if !d.Want(v, wire.Object) {
			return
		}
		if kind := d.String(v.Get("type")); kind != "compaction" {
			d.Fail(v.Get("type"), "unknown type %s: must be compaction", wire.Quote(kind))
		}
		d.r.threshold = math.MaxInt // as the model allows
		if n := d.Int(v.Get("compact_threshold"), 1, math.MaxInt); n != nil {
			d.r.threshold = *n
		}
	}
	d.r.compacts = d.r.compacts || d.compact
	if d.r.compacts && !slices.ContainsFunc(d.r.Messages, func(m chat.Message) bool { return m.Role != chat.System }) {
		d.Fail(body.Get("input"), "has no conversation to compact")
	}
}

// managing is chat.Models whose replies are to conversations that were summed up or cut before, as the request says.
type managing struct {
	chat.Models
	reply *reply
}

func (m managing) Open(ctx context.Context, name string) (chat.Generator, error) {
	g, err := m.Models.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return managed{g, m.reply}, nil
}

type managed struct {
	chat.Generator
	reply *reply
}

func (m managed) Generate(ctx context.Context, r *chat.Request) (iter.Seq2[chat.Event, error], error) {
	req := m.reply.req
	switch {
	case req.compacts:
		m.reply.summary = summaryDue
		return m.summarise(ctx, r)
	case req.threshold > 0 && slices.ContainsFunc(r.Messages, func(m chat.Message) bool { return m.Role == chat.Assistant }):
		n, err := m.Count(ctx, r)
		switch {
		case err != nil:
			return nil, err
		case n > min(req.threshold, m.Model().Context*3/4):
			m.reply.summary = summaryDue
			return m.summariseFirst(ctx, r)
		}
	}
	return m.answer(ctx, r)
}

// answer answers the conversation itself, or so much of it as fits where the request allows that.
func (m managed) answer(ctx context.Context, r *chat.Request) (iter.Seq2[chat.Event, error], error) {
	if m.reply.req.body.Truncation != truncationAuto {
		return m.Generator.Generate(ctx, r)
	}
	return generateFitting(ctx, m.Generator, r, turnCuts(r.Messages))
}

// summarise writes a summary of a conversation. What does not fit is left out, oldest first. The model may think about it as the
// request says, because to switch that off changes the beginning of some prompts.
func (m managed) summarise(ctx context.Context, r *chat.Request) (iter.Seq2[chat.Event, error], error) {
	s := *r
	s.Messages = askedToSumUp(r.Messages)
	s.MaxTokens, s.ClampMaxTokens = min(cmp.Or(r.MaxTokens, maxSummary), maxSummary), true
	s.Thinking.Budget = min(cmp.Or(r.Thinking.Budget, summaryThought), summaryThought)
	s.Stop, s.Form, s.Logprobs, s.TopLogprobs = nil, nil, false, 0
	if s.Choice.Demands() {
		s.Choice = chat.ToolChoice{}
	}
	events, err := generateFitting(ctx, m.Generator, &s, stepCuts(s.Messages))
	if err != nil || len(s.Tools) == 0 || s.Choice.Kind == chat.ChoiceNone {
		return events, err
	}
	// A small model may call a tool all the same, until it knows of none. What it says before that is no summary.
	wrote, called := false, false
	see := func(e *chat.Event) { wrote, called = wrote || isText(e), called || e.Kind == chat.EventToolStart }
	return chained(events, see, func() (iter.Seq2[chat.Event, error], error) {
		if wrote && !called {
			return nil, nil
		}
		s.Choice.Kind = chat.ChoiceNone
		return generateFitting(ctx, m.Generator, &s, stepCuts(s.Messages))
	}), nil
}

// askedToSumUp is a conversation with the request for a summary behind it. Behind a tool's result it is a part of that: a message
// would end the turn, and many templates drop the reasoning of a turn that has ended, so that all of it would be computed anew.
func askedToSumUp(messages []chat.Message) []chat.Message {
	last := len(messages) - 1
	m := messages[last]
	if m.Role != chat.ToolRole {
		return append(slices.Clip(messages), chat.Message{Role: chat.User, Parts: wire.TextParts(summaryRequest)})
	}
	result := *m.Parts[0].Result
	result.Parts = append(slices.Clip(result.Parts), wire.TextParts("\n\n"+summaryRequest)...)
	m.Parts = []chat.Part{{Kind: chat.PartToolResult, Result: &result}}
	return append(slices.Clone(messages[:last]), m)
}

// isText tells an event with text that can be seen.
func isText(e *chat.Event) bool {
	return e.Kind == chat.EventText && strings.TrimSpace(e.Text) != ""
}

// summariseFirst writes a summary and then the answer to what the summary leaves of the conversation.
func (m managed) summariseFirst(ctx context.Context, r *chat.Request) (iter.Seq2[chat.Event, error], error) {
	events, err := m.summarise(ctx, r)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	note := func(e *chat.Event) {
		switch e.Kind {
		case chat.EventStart:
			text.Reset()
		case chat.EventText:
			text.WriteString(e.Text)
		}
	}
	return chained(events, note, func() (iter.Seq2[chat.Event, error], error) {
		m.reply.summary = summaryEnds
		after := *r
		if s := strings.TrimSpace(text.String()); s != "" {
			n := len(r.Messages)
			after.Messages = summedUp(r.Messages, summary{s, n}, n-m.reply.req.summed)
		}
		return m.answer(ctx, &after)
	}), nil
}

// chained are the events of a reply and then those of another, which next makes; where it makes none they end with the first.
// Both are one reply to whoever takes them. see is shown those of the first.
func chained(first iter.Seq2[chat.Event, error], see func(*chat.Event), next func() (iter.Seq2[chat.Event, error], error)) iter.Seq2[chat.Event, error] {
	return func(yield func(chat.Event, error) bool) {
		finish := chat.Event{Kind: chat.EventFinish}
		for e, err := range first {
			if err == nil && e.Kind == chat.EventFinish {
				finish = e
				continue
			}
			see(&e)
			if !yield(e, err) || err != nil {
				return
			}
		}
		spent := chat.Usage{}
		if finish.Usage != nil {
			spent = *finish.Usage
		}
		second, err := next()
		switch {
		case err != nil:
			yield(chat.Event{Finish: chat.FinishError, Usage: &spent}, err)
			return
		case second == nil:
			yield(finish, nil)
			return
		}
		for e, err := range second {
			if e.Kind == chat.EventStart && e.Usage != nil {
				u := *e.Usage
				u.Output, u.Reasoning = u.Output+spent.Output, u.Reasoning+spent.Reasoning
				e.Usage = &u
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// summaryState is how far a reply is with a summary.
type summaryState uint8

const (
	noSummary summaryState = iota
	summaryDue
	summaryComes
	summaryEnds // the answer is next
)

// sumUp takes the next event of a summary; false: the event is like others. The text becomes an item that says nothing until it
// is whole, and nothing else of it is told.
func (r *reply) sumUp(e *chat.Event) bool {
	switch e.Kind {
	case chat.EventStart:
		switch r.summary {
		case summaryDue:
			r.summary = summaryComes
			return false
		case summaryComes: // anew
			if r.open != nil {
				r.open.text.Reset()
			}
		case summaryEnds:
			r.end(completed)
			r.summary = noSummary
		}
		r.count(e.Usage)
	case chat.EventText:
		if r.open != nil || isText(e) {
			r.in(compactionKind)
			r.fragment(e)
		}
	case chat.EventFinish: // also one that was cut at its limit is of use
		r.count(e.Usage)
		r.end(completed)
	}
	return true
}

// compact answers with the next window of a conversation: what the user said, and a summary.
func (h handler) compact(w http.ResponseWriter, r *http.Request) {
	d := h.decoder(r)
	d.compact = true
	req, body := h.read(w, r, d)
	if body == nil {
		return
	}
	defer body.Close()
	h.Queued, h.Again = body.Close, true
	rep := newReply(h, req)
	h.Models = managing{h.Models, rep}
	h.Collect(w, r, &req.Request, h.WriteError, compacted{rep})
}

// compacted makes the answer of the route for compaction.
type compacted struct{ *reply }

func (c compacted) Body() any {
	output := []json.RawMessage{}
	for _, i := range c.req.input {
		var head struct{ Type, Role string }
		if json.Unmarshal(i.Body, &head) == nil && head.Type == "message" && head.Role == string(chat.User) {
			output = append(output, i.Body)
		}
	}
	return struct {
		ID        string            `json:"id"`
		Object    string            `json:"object"`
		CreatedAt int64             `json:"created_at"`
		Output    []json.RawMessage `json:"output"`
		Usage     *usage            `json:"usage"`
	}{c.body.ID, "response.compaction", c.body.CreatedAt, append(output, wire.Marshal(c.body.Output[0])), c.body.Usage}
}
