package generate

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/engine"
	"hearth/internal/tokenizer"
)

// reply is what the choices of a request share.
type reply struct {
	m        *prompter
	r        *chat.Request
	p        *prompt
	streams  []Stream
	guides   []*guide // nil: that choice is free
	repaired func(dialect.Repair)
	ends     bool // one that does not end by itself is ended: see runaway
}

// choice turns the tokens of one sequence into events.
//
// Stop strings count in the answer's text alone, not in reasoning or in the arguments of calls. Special tokens are not
// text, except those that mark reasoning and calls, which the parser has to see.
type choice struct {
	*reply
	index int
	yield func(chat.Event, error) bool

	dec    *tokenizer.Decoder
	parser dialect.Parser
	stop   *stopper
	pieces []dialect.Piece
	speech speech

	usage    chat.Usage
	ids      []int32         // that were generated
	calls    int             // started so far
	known    map[string]bool // ids of the calls of the conversation and of this reply; nil: not looked at
	complete int             // of those, with an end
	calling  bool            // in a call that has its name, or that was begun
	name     string
	id       string // of the call being read, as the client is told; "": whatever the API gives it
	args     []byte
	tape     *tape  // nil: nobody asks for logprobs
	guide    *guide // nil: the reply is free
	gone     bool   // the caller wants no more events
	hit      string // the stop string found
	repeats  repeats
	runaway  *runaway // nil: nobody looks for that
	looping  bool     // the reply goes round in circles
	enough   bool     // all calls that are wanted are complete
}

func newChoice(re *reply, index int, yield func(chat.Event, error) bool) *choice {
	m, r, p := re.m, re.r, re.p
	options := p.options
	options.Repaired = re.repaired
	parse, stops, markers := dialect.Parser(plainParser{}), r.Stop, []string(nil)
	if !p.raw {
		parse, stops, markers = m.family.New(options), slices.Concat(r.Stop, m.endTexts), m.family.Markers
	}
	c := &choice{reply: re, index: index, yield: yield, guide: re.guides[index],
		dec: m.tok.NewDecoder(false), parser: parse, stop: newStopper(stops), calling: p.forced != "",
		usage: chat.Usage{Prompt: len(p.tokens), Short: p.short, Spliced: p.encoded.Spliced}}
	c.repeats.longest = m.cfg.Loop.MaxSize
	if re.ends {
		c.runaway = &runaway{prompt: p.text, asked: -1}
		c.repeats.longest = max(c.repeats.longest, runawayRun)
	}
	var held []byte
	if p.raw { // text goes on from text: a character that the prompt begins, and the blank before its first word
		held = m.prime(c.dec, p.tokens)
	}
	if r.Logprobs {
		c.tape = newTape(markers)
		c.tape.prime(held)
	}
	return c
}

// run reads the choice's stream to its end and reports whether the caller wants more. The first stream says how much of the prompt
// was cached: for the others all of it was, by then.
func (c *choice) run() bool {
	s := c.streams[c.index]
	defer s.Close()
	defer func() { c.p.remember(c.m.history, c.ids, !c.enough) }() // else the last call lacks what closes it
	if c.p.forced != "" {
		if c.tape != nil {
			c.tape.opening(c.p.forced)
		}
		c.text(c.p.forced)
	}
	for !c.ended() && !c.looping {
		t, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			c.yield(c.broken(err), engineError(err))
			return false
		}
		c.token(t)
	}
	if !c.ended() {
		var rest string
		if s.Finish() == engine.Stop {
			rest = c.dec.Flush()
		} else {
			rest = c.dec.Cut()
			c.parser.Cut()
		}
		if c.tape != nil {
			c.tape.decoded(rest)
		}
		c.text(rest)
		c.read(c.parser.Finish(c.pieces[:0]), s.Finish() != engine.Stop)
	}
	if !c.ended() {
		c.emitText(c.stop.flush())
	}
	c.release(true)
	if c.gone {
		return false
	}
	reason := s.Finish()
	s.Close() // its time ends here, too, where a stop string or a loop ends it
	c.m.cached(&c.usage, c.p, c.r, c.streams[0].Usage())
	return c.finish(reason)
}

// broken says what was generated before an error, here and for the choices whose turn to be told has not come.
func (c *choice) broken(err error) chat.Event {
	e := chat.Event{Kind: chat.EventFinish, Choice: c.index, Usage: &c.usage, Finish: chat.FinishError}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, chat.ErrCut) || errors.Is(err, engine.ErrClosed) {
		e.Finish = chat.FinishCancelled
	}
	told := c.usage.Output
	c.usage.Output = 0
	for _, s := range c.streams[c.index:] {
		s.Close() // the engine knows of tokens that nobody has read
		c.usage.Output += s.Usage().Generated
	}
	c.usage.Output = max(c.usage.Output, told)
	c.m.cached(&c.usage, c.p, c.r, c.streams[0].Usage())
	c.guide.note(&c.usage, c.name)
	return e
}

func (c *choice) ended() bool { return c.gone || c.hit != "" || c.enough }

func (c *choice) token(t engine.Token) {
	c.usage.Output++
	c.ids = append(c.ids, t.ID)
	c.repeats.add(c.ids)
	before := c.parser.InReasoning()
	if c.m.visible(t.ID) {
		text := c.dec.Add(t.ID)
		if c.tape != nil {
			c.tape.add(c.m.logprob(t), c.m.tok.Bytes(t.ID), text)
		}
		c.text(text)
	}
	if before || c.parser.InReasoning() {
		c.usage.Reasoning++
	}
	if c.calling || c.r.Form { // what repeats itself there is data
		return
	}
	if c.looping = c.m.cfg.Loop.found(&c.repeats) || c.runaway.found(c.m.tok, &c.repeats, c.ids); c.looping {
		c.usage.Bounds = append(c.usage.Bounds, chat.BoundRunaway)
	}
}

// text hands decoded text to the parser and what comes out to the caller.
func (c *choice) text(s string) {
	if s == "" {
		return
	}
	c.read(c.parser.Feed(c.pieces[:0], s), false)
}

// read takes what was parsed; cut is as own takes it.
func (c *choice) read(pieces []dialect.Piece, cut bool) {
	c.pieces = c.own(pieces, cut)
	c.emitPieces()
	c.enough = c.enough || c.speech.over
}

func (c *choice) emitPieces() {
	for i, p := range c.pieces {
		if c.ended() {
			return
		}
		if p.Kind == dialect.Text || p.Kind == dialect.Reasoning {
			c.calling = false
			if c.runaway != nil {
				c.runaway.quiet = 0
			}
			if c.tape != nil {
				c.tape.piece(p.Text, i == len(c.pieces)-1, p.Kind == dialect.Text)
			}
		} else if c.tape != nil {
			c.tape.passed()
		}
		if p.Kind == dialect.Text {
			var out string
			out, c.hit = c.stop.feed(p.Text)
			c.emitText(out)
			continue
		}
		c.emitText(c.stop.flush())
		c.release(true)
		switch p.Kind {
		case dialect.Reasoning:
			c.emit(chat.Event{Kind: chat.EventReasoning, Text: p.Text})
		case dialect.ToolStart:
			c.name, c.args, c.calling = p.Text, nil, true
			c.calls++
			c.id = c.callID(p.ID)
			c.emit(chat.Event{Kind: chat.EventToolStart, Tool: c.calls - 1, Call: &chat.ToolCall{ID: c.id, Name: c.name}})
		case dialect.ToolArgs:
			c.args = append(c.args, p.Text...)
			c.emit(chat.Event{Kind: chat.EventToolArgs, Tool: c.calls - 1, Text: p.Text})
		case dialect.ToolEnd:
			c.complete++
			c.calling = false
			c.rememberID(p.ID)
			c.emit(chat.Event{Kind: chat.EventToolEnd, Tool: c.calls - 1,
				Call: &chat.ToolCall{ID: c.id, Name: c.name, Arguments: json.RawMessage(c.args)}})
			c.enough = c.r.Choice.Single || (c.p.forced != "" || c.m.cfg.Unforced) && c.r.Choice.Kind == chat.ChoiceNamed
		}
	}
}

// callID is the client's id of a call that the model has given an id of its own, if any. The model's own is best: it comes
// back in the next turn even if nothing is remembered. Where that cannot be, or may still come behind the arguments, it is
// remembered under another.
func (c *choice) callID(own string) string {
	form := &c.m.forms[0]
	if !form.has(callsWithID) {
		return ""
	}
	if form.ids.forClients(own, c.name) && !c.taken(own) {
		c.known[own] = true
		return own
	}
	c.id = newCallID()
	c.rememberID(own)
	return c.id
}

// taken tells whether a call of the conversation or this reply has an id.
func (c *choice) taken(id string) bool {
	if c.known == nil {
		c.known = map[string]bool{}
		for i := range c.r.Messages {
			for _, p := range c.r.Messages[i].Parts {
				if p.Kind == chat.PartToolCall {
					c.known[p.Call.ID] = true
				}
			}
		}
	}
	return c.known[id]
}

// rememberID notes what the model calls the call being read.
func (c *choice) rememberID(own string) {
	if c.id != "" && own != "" {
		c.m.history.RememberCall(c.p.salt, c.id, own)
	}
}

// emitText takes text that no stop string can be part of any more.
func (c *choice) emitText(s string) {
	if c.tape == nil {
		if s != "" {
			c.emit(chat.Event{Kind: chat.EventText, Text: s})
		}
		return
	}
	c.tape.emit(len(s))
	if c.hit != "" {
		c.tape.cut()
	}
	c.release(false)
}

// release gives out text with its logprobs: all there is, or as much as is whole tokens.
func (c *choice) release(all bool) {
	if c.tape == nil {
		return
	}
	if text, lps := c.tape.take(all); text != "" {
		c.emit(chat.Event{Kind: chat.EventText, Text: text, Logprobs: lps})
	}
}

func (c *choice) emit(e chat.Event) {
	e.Choice = c.index
	if !c.gone {
		c.gone = !c.yield(e, nil)
	}
}

// full reports whether the context ran out before the tokens that were asked for.
func (c *choice) full() bool {
	return c.usage.Prompt+c.usage.Output >= c.m.cfg.Engine.Context() && (c.r.MaxTokens == 0 || c.usage.Output < c.r.MaxTokens)
}

// finish says why the choice ended. A call that was cut short is not a reason to call tools.
func (c *choice) finish(r engine.Reason) bool {
	e := chat.Event{Kind: chat.EventFinish, Usage: &c.usage, Finish: chat.FinishStop}
	if r == engine.Stop && c.hit == "" && !c.enough {
		c.usage.Output++ // the stop id, which is generated but not given out
	}
	switch {
	case c.hit != "" && (c.p.raw || slices.Contains(c.r.Stop, c.hit)):
		e.Finish, e.Stop = chat.FinishStopText, c.hit
	case c.hit != "" && c.complete == 0: // the template's
	case r == engine.Length && !c.looping && !c.enough && c.hit == "" && c.full():
		e.Finish = chat.FinishContext
	case c.looping || r == engine.Length && !c.enough && c.hit == "":
		e.Finish = chat.FinishLength
	case c.complete > 0:
		e.Finish = chat.FinishToolCalls
	}
	c.guide.note(&c.usage, c.name)
	c.emit(e)
	return !c.gone
}
