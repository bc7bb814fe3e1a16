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
	"hearth/internal/grammar"
	"hearth/internal/tokenizer"
)

// reply is what the choices of a request share.
type reply struct {
	m        *prompter
	r        *chat.Request
	p        *prompt
	seqs     []sequence // one for each choice
	repaired func(dialect.Repair)
	ends     bool      // runaway choices are ended
	form     *heldForm // what the text is held to; nil: nothing
	bound    *heldForm // what calls are held to; nil: nothing
	outcome  chat.Outcome

	unpredicted string // why the request's prediction is not used; "": it is, or there is none
}

// sequence is the tokens of a choice and what guides them.
type sequence struct {
	Stream
	guide *answer // nil: the reply is free
}

// choice turns the tokens of one sequence into events.
//
// Stop strings count in the answer's text alone, not in reasoning or in the arguments of calls. Special tokens are not
// text, except those that mark reasoning and calls, which the parser has to see.
type choice struct {
	*reply
	*sequence
	index int
	yield func(chat.Event, error) bool
	reading
	calls   ownCalls
	circles circles
	end     ending
	ids     []int32 // that were generated
	told    retold
	step    together
	usage   chat.Usage
}

// together is what the tokens of a step have brought, of those that come together.
type together struct {
	on    bool // more of them come
	has   bool // there is an event
	event chat.Event
}

// reading turns ids into text and text into pieces.
type reading struct {
	dec    *tokenizer.Decoder
	parser dialect.Parser
	answer *answer         // decides where the text begins that is held to a form, which no parser reads; nil: there is none
	pieces []dialect.Piece // read last
	speech speech
	stop   *stopper
	tape   *tape // nil: nobody asks for logprobs
}

// ending is why a choice ends before the model ends it.
type ending struct {
	gone    bool   // the caller wants no more events
	hit     string // the stop string found
	enough  bool   // all calls that are wanted are complete
	looping bool   // it goes round in circles; what is held back still goes out
}

// maxMended bounds how many mended calls of a choice are told of in the log.
const maxMended = 16

func newChoice(re *reply, index int, yield func(chat.Event, error) bool) *choice {
	m, r, p := re.m, re.r, re.p
	var c *choice
	options := p.options
	options.Repaired = re.repaired
	options.Mended = func(call string) {
		if len(c.usage.Mended) < maxMended {
			c.usage.Mended = append(c.usage.Mended, call)
		}
	}
	parse, stops, markers := dialect.Parser(plainParser{}), r.Stop, []string(nil)
	if !p.raw {
		parse, stops, markers = m.family.New(options), slices.Concat(r.Stop, m.endTexts), m.family.Markers
	}
	c = &choice{reply: re, sequence: &re.seqs[index], index: index, yield: yield,
		reading: reading{dec: m.tok.NewDecoder(false), parser: parse, stop: newStopper(stops)},
		calls:   ownCalls{reply: re, open: p.forced != ""},
		circles: newCircles(m.cfg.Loop, re.ends, p.text),
		usage:   chat.Usage{Prompt: len(p.tokens), Short: p.short, Spliced: p.encoded.Spliced, Replayed: p.printed, Images: p.seenImages()}}
	if re.form != nil {
		c.answer = re.form.newAnswer(1)
		c.answer.parser, c.stop = parse, newStopper(r.Stop)
	}
	var held []byte
	if p.raw { // the reply goes on in the middle of a text, perhaps of a character
		held = m.prime(c.dec, p.tokens)
	}
	if r.Logprobs {
		c.tape = &tape{markers: markers}
		c.tape.prime(held)
	}
	return c
}

// run reads the choice's stream to its end and reports whether the caller wants more. What was cached is asked of the first
// stream: for the others all of the prompt was cached by then.
func (c *choice) run() bool {
	s := c.Stream
	defer s.Close()
	defer func() { c.p.remember(c.m.history, c.ids, !c.end.enough) }() // not whole: the last call was ended before what closes it
	if c.p.forced != "" {
		if c.tape != nil {
			c.tape.opening(c.p.forced)
		}
		c.text(c.p.forced)
	}
	for !c.ended() && !c.end.looping {
		t, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			c.told.remember(c.m.history, c.p)
			c.giveOut()
			c.yield(c.broken(err), engineError(err))
			return false
		}
		c.step.on = c.step.on || t.More
		if c.token(t); !t.More {
			c.step.on = false
			c.giveOut()
		}
	}
	c.step.on = false
	c.giveOut()
	c.rest(s.Finish() == engine.Stop)
	c.told.remember(c.m.history, c.p)
	if c.end.gone {
		return false
	}
	reason := s.Finish()
	s.Close() // its time ends here, too, where a stop string or a loop ends it
	c.m.cached(&c.usage, c.p, c.r, c.seqs[0].Usage())
	c.predicted(s.Usage())
	return c.finish(reason)
}

// rest gives out what was held back; whole says that the model has ended the reply.
func (c *choice) rest(whole bool) {
	if !c.ended() {
		var text string
		if whole {
			text = c.dec.Flush()
		} else {
			text = c.dec.Cut()
			c.parser.Cut()
		}
		if c.tape != nil {
			c.tape.decoded(text)
		}
		if c.answer != nil {
			c.read(c.answer.finish(c.pieces[:0], text), !whole)
		} else {
			c.text(text)
			c.read(c.parser.Finish(c.pieces[:0]), !whole)
		}
	}
	if !c.ended() {
		c.emitText(c.stop.flush())
	}
	c.release(true)
}

// broken is the event that ends a reply with an error. It counts the tokens of this choice and of those after it.
func (c *choice) broken(err error) chat.Event {
	e := chat.Event{Kind: chat.EventFinish, Choice: c.index, Usage: &c.usage, Finish: chat.FinishError}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, chat.ErrCut) || errors.Is(err, engine.ErrClosed) {
		e.Finish = chat.FinishCancelled
	}
	told := c.usage.Output
	c.usage.Output = 0
	for _, s := range c.seqs[c.index:] {
		s.Close() // then Usage counts tokens that were not read, too
		c.usage.Output += s.Usage().Generated
	}
	c.usage.Output = max(c.usage.Output, told)
	c.m.cached(&c.usage, c.p, c.r, c.seqs[0].Usage())
	c.predicted(c.seqs[c.index].Usage())
	c.guide.note(&c.usage, c.calls.name)
	return e
}

// predicted tells what was run ahead of the choice, and what came of a prediction.
func (c *choice) predicted(u engine.Usage) {
	c.usage.Drafted, c.usage.Accepted = u.Drafted, u.Accepted
	if c.r.Prediction != nil {
		c.usage.Prediction = &chat.Prediction{Accepted: u.Accepted, Rejected: u.Drafted - u.Accepted, Ignored: c.unpredicted}
	}
}

// ended tells whether nothing more is wanted.
func (c *choice) ended() bool { return c.end.gone || c.end.hit != "" || c.end.enough }

// token takes the next token.
func (c *choice) token(t engine.Token) {
	c.usage.Output++
	c.ids = append(c.ids, t.ID)
	c.circles.repeats.add(c.ids)
	before := c.parser.InReasoning()
	if c.m.visible(t.ID) {
		text := c.dec.Add(t.ID)
		if c.tape != nil {
			c.tape.add(c.m.logprob(t), c.m.tok.Bytes(t.ID), text)
		}
		if c.answer != nil {
			c.answers(t.ID, text)
		} else {
			c.text(text)
		}
	}
	reasons := before || c.parser.InReasoning()
	if reasons {
		c.usage.Reasoning++
	}
	if c.calls.open || c.r.Form != nil && !reasons { // what repeats itself there is data
		return
	}
	if c.end.looping = c.circles.found(c.m.tok, c.ids); c.end.looping {
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

// answers takes a token of a reply whose text is held to a form.
func (c *choice) answers(id int32, text string) {
	before := c.answer.state
	pieces, _ := c.answer.take(c.pieces[:0], id, text)
	if c.answer.state == answerCalls && before != answerCalls { // what ends turns counts again
		c.stop = newStopper(slices.Concat(c.r.Stop, c.m.endTexts))
	}
	c.read(pieces, false)
}

// read takes what was parsed; cut is as own takes it.
func (c *choice) read(pieces []dialect.Piece, cut bool) {
	c.pieces = c.own(pieces, cut)
	for i, p := range c.pieces {
		switch {
		case c.ended():
		case p.Kind == dialect.Text, p.Kind == dialect.Reasoning:
			c.said(p, i == len(c.pieces)-1)
		default:
			c.called(p)
		}
	}
	c.end.enough = c.end.enough || c.speech.over
}

// said takes text or reasoning; last says that no other piece was read with it.
func (c *choice) said(p dialect.Piece, last bool) {
	c.calls.open = false
	c.circles.runaway.quiet = 0
	if c.tape != nil {
		c.tape.piece(p.Text, last, p.Kind == dialect.Text)
	}
	if p.Kind == dialect.Text {
		var out string
		out, c.end.hit = c.stop.feed(p.Text)
		c.emitText(out)
		return
	}
	c.emitHeld()
	c.emit(chat.Event{Kind: chat.EventReasoning, Text: p.Text})
}

// called takes a piece of a call.
func (c *choice) called(p dialect.Piece) {
	if c.tape != nil {
		c.tape.passed()
	}
	c.emitHeld()
	k := &c.calls
	switch p.Kind {
	case dialect.ToolStart:
		k.start(p)
		c.loose(k.name)
		c.emit(chat.Event{Kind: chat.EventToolStart, Tool: k.started - 1, Call: &chat.ToolCall{ID: k.id, Name: k.name}})
	case dialect.ToolArgs:
		k.args = append(k.args, p.Text...)
		c.emit(chat.Event{Kind: chat.EventToolArgs, Tool: k.started - 1, Text: p.Text})
	case dialect.ToolEnd:
		k.complete++
		k.open = false
		k.rememberID(p.ID)
		c.emit(chat.Event{Kind: chat.EventToolEnd, Tool: k.started - 1,
			Call: &chat.ToolCall{ID: k.id, Name: k.name, Arguments: json.RawMessage(k.args)}})
		c.end.enough = c.r.Choice.Single || (c.p.calls || c.m.cfg.Unforced) && c.r.Choice.Kind == chat.ChoiceNamed
	}
}

// loose takes note of a call that is not kept to its schema.
func (c *choice) loose(tool string) {
	if c.bound == nil || c.bound.form.calls.any[tool] == nil || slices.Contains(c.usage.Loose, tool) {
		return
	}
	c.usage.Loose = append(c.usage.Loose, tool)
	var limit *grammar.LimitError
	switch why := c.bound.form.calls.any[tool]; {
	case errors.As(why, &limit):
		c.usage.Bounds = append(c.usage.Bounds, chat.BoundForm)
	case errors.Is(why, grammar.ErrNothing):
		c.usage.Bounds = append(c.usage.Bounds, chat.BoundEndless)
	}
}

// emitHeld gives out the text before something that is none.
func (c *choice) emitHeld() {
	c.emitText(c.stop.flush())
	c.release(true)
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
	if c.end.hit != "" {
		c.tape.truncate()
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
	if c.p.replays {
		c.told.add(&e)
	}
	s := &c.step
	if s.has && s.event.Fragment() && s.event.Same(&e) {
		s.event.Join(&e)
		return
	}
	c.giveOut()
	if s.on {
		s.has, s.event = true, e
	} else {
		c.send(e)
	}
}

// giveOut sends what a step has brought so far.
func (c *choice) giveOut() {
	if c.step.has {
		c.step.has = false
		c.send(c.step.event)
	}
}

func (c *choice) send(e chat.Event) {
	if !c.end.gone {
		c.end.gone = !c.yield(e, nil)
	}
}

// full reports whether the context ran out before the tokens that were asked for.
func (c *choice) full() bool {
	return c.usage.Prompt+c.usage.Output >= c.m.cfg.Engine.Context() && (c.r.MaxTokens == 0 || c.usage.Output < c.r.MaxTokens)
}

// finish says why the choice ended. A call that was cut short is not a reason to call tools.
func (c *choice) finish(r engine.Reason) bool {
	e := chat.Event{Kind: chat.EventFinish, Usage: &c.usage, Finish: chat.FinishStop}
	if r == engine.Stop && c.end.hit == "" && !c.end.enough {
		c.usage.Output++ // the stop id, which is generated but not given out
	}
	switch {
	case c.end.hit != "" && (c.p.raw || slices.Contains(c.r.Stop, c.end.hit)):
		e.Finish, e.Stop = chat.FinishStopText, c.end.hit
	case c.end.hit != "" && c.calls.complete == 0: // the template's
	case r == engine.Length && !c.end.looping && !c.end.enough && c.end.hit == "" && c.full():
		e.Finish = chat.FinishContext
	case c.end.looping || r == engine.Length && !c.end.enough && c.end.hit == "":
		e.Finish = chat.FinishLength
	case c.calls.complete > 0:
		e.Finish = chat.FinishToolCalls
	}
	c.guide.note(&c.usage, c.calls.name)
	c.emit(e)
	return !c.end.gone
}
