package generate

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/engine"
	"hearth/internal/grammar"
	"hearth/internal/sample"
	"hearth/internal/tokenizer"
)

// calls has what guides of all requests share: the vocabulary as package grammar wants it, and the token that opens a call.
// There is none for formats in which a call is not one JSON object.
type calls struct {
	*output
	open  int32                     // -1: a call is opened by several tokens at the beginning of a line
	vocab func() *grammar.CallVocab // made when a request first has tools
}

// newCalls is nil where calls are not guided.
func newCalls(o *output, guided bool) *calls {
	if !guided || o.family.CallOpen == "" {
		return nil
	}
	open, ok := o.tok.ID(o.family.CallOpen)
	if !ok || string(o.tok.Bytes(open)) != o.family.CallOpen {
		open = -1
	}
	text := o.tokenText(func(id int32) []byte {
		if !o.visible(id) {
			return nil
		}
		return o.tok.Bytes(id)
	})
	return &calls{o, open, sync.OnceValue(func() *grammar.CallVocab { return grammar.NewCallVocab(o.tok.Size(), text) })}
}

// guide follows one reply and tells, within a call, which tokens may come. After a token that may not come (one that a budget
// of reasoning forced, or any where none may) the rest of that call is free.
type guide struct {
	calls    *calls
	vocab    *grammar.CallVocab
	form     *grammar.Form
	budget   *grammar.Budget
	match    *grammar.CallMatcher // nil outside of calls
	opening  int                  // bytes of the opening that the line has so far; -1: the line began otherwise
	demanded bool                 // the request demands a call, and it is not complete
	spent    atomic.Bool          // the budget is spent, and the reply goes on free
}

// newForm is the grammar of the calls that a request allows, nil where nothing is guided. It is an error to demand a call that
// no arguments fit.
func (c *calls) newForm(r *chat.Request, p *prompt) (*grammar.Form, error) {
	inputs := slices.ContainsFunc(r.Tools, func(t chat.Tool) bool { return t.Input != nil })
	if c == nil || p.raw || len(p.options.Tools) == 0 || inputs && r.Choice.Demands() { // see newCalls
		return nil, nil
	}
	tools := make([]grammar.Tool, len(p.options.Tools))
	for i, t := range p.options.Tools {
		tools[i] = grammar.Tool(t)
	}
	form := grammar.Call(tools, c.family.CallClose)
	switch kind := r.Choice.Kind; {
	case kind == chat.ChoiceNamed && !form.Finite(r.Choice.Name):
		return nil, chat.Boundf(chat.BoundEndless, "tools", "no arguments follow the schema of %q, which tool_choice asks for: each value needs another one within it, without end", r.Choice.Name)
	case kind == chat.ChoiceRequired && !form.Finite(""):
		return nil, chat.Boundf(chat.BoundEndless, "tools", "tool_choice asks for a call, and no arguments follow the schema of any tool: each value needs another one within it, without end")
	}
	return form, nil
}

// newGuide makes the guide of one choice, nil where there is no form.
func (c *calls) newGuide(r *chat.Request, p *prompt, form *grammar.Form) *guide {
	if form == nil {
		return nil
	}
	u := &guide{calls: c, vocab: c.vocab(), form: form, budget: grammar.NewBudget(r.N)}
	if _, begun, ok := strings.Cut(p.forced, c.family.CallOpen); ok {
		u.demanded = true
		u.match = u.vocab.Matcher(&form.CallGrammar, u.budget)
		u.accept([]byte(begun))
	}
	return u
}

// next takes note of a token and says what may follow.
func (u *guide) next(id int32) (sample.Set, error) {
	if u.spent.Load() {
		return nil, nil
	}
	u.budget.Token()
	inside := u.match != nil
	if inside {
		u.accept(u.calls.tok.Bytes(id))
	}
	switch {
	case id == u.calls.open && u.match == nil: // else it is part of a text
		u.match = u.vocab.Matcher(&u.form.CallGrammar, u.budget)
	case !inside && u.calls.open < 0 && u.calls.visible(id):
		written := u.calls.tok.Bytes(id)
		if n := u.opened(written); n >= 0 {
			u.match = u.vocab.Matcher(&u.form.CallGrammar, u.budget)
			u.accept(written[n:])
		}
	}
	return u.only()
}

// opened looks for a call's opening where that is text, and gives the place after it in what was written, -1 if there is none.
// Within a line the model only mentions it.
func (u *guide) opened(written []byte) int {
	open := u.calls.family.CallOpen
	for i, b := range written {
		switch {
		case b == '\n':
			u.opening = 0
		case u.opening < 0 || u.opening == 0 && (b == ' ' || b == '\t' || b == '\r'):
		case b != open[u.opening]:
			u.opening = -1
		default:
			if u.opening++; u.opening == len(open) {
				u.opening = -1
				return i + 1
			}
		}
	}
	return -1
}

func (u *guide) accept(written []byte) {
	switch {
	case !u.match.Accept(written):
		u.match = nil
	case u.match.Done():
		u.match, u.demanded, u.opening = nil, false, 0 // what follows is the model's own
	}
}

// only is what may come now, nil for all. A reply whose budget is spent goes on free, unless the call was demanded.
func (u *guide) only() (only sample.Set, err error) {
	if u.match != nil {
		only = u.match.Allowed()
	}
	if !u.budget.Spent() {
		return only, nil
	}
	if u.match = nil; u.demanded {
		return nil, chat.Boundf(chat.BoundForm, "tools", "keeping the call to the schemas of the tools takes too much work: they leave open too many ways at once to read what was written; use simpler ones")
	}
	u.spent.Store(true)
	return nil, nil
}

// note reports calls that could not be kept to their schemas. name is the tool that was called last.
func (u *guide) note(usage *chat.Usage, name string) {
	if u == nil {
		return
	}
	if usage.Loose = u.form.Loose(); len(usage.Loose) > 0 {
		usage.Bounds = append(usage.Bounds, chat.BoundEndless)
	}
	if u.spent.Load() {
		usage.Bounds = append(usage.Bounds, chat.BoundForm)
		if name != "" {
			usage.Loose = append(usage.Loose, name)
		}
	}
}

// constrain is the engine's hook for a choice, and what its first token must be of: a budget of reasoning, a text that is held to
// a form, and calls that are kept to the request's tools. The hook is nil where there is none, as it keeps the engine from
// working ahead.
func constrain(limit func(id int32, held bool) []int32, text *answer, calls *guide) (hook func(int32) engine.Constraint, first sample.Set, err error) {
	if limit == nil && text == nil && calls == nil {
		return nil, nil, nil
	}
	free := true
	if text != nil {
		first, free, err = text.first()
	}
	if calls != nil && free {
		var only sample.Set
		if only, err = calls.only(); only != nil {
			first = only
		}
	}
	if err != nil {
		return nil, nil, err
	}
	coming := 0 // forced tokens that are on their way
	return func(id int32) (c engine.Constraint) {
		coming = max(coming-1, 0)
		free, held := true, false
		if text != nil {
			c.Err = text.accept(id)
			held = c.Err == nil && text.within()
		}
		var closing []int32
		if limit != nil {
			closing = limit(id, held)
		}
		switch {
		case c.Err != nil:
			return c
		case text != nil:
			c, free = text.follow(coming+len(closing) > 0)
		}
		if len(closing) > 0 {
			c.Forced = closing
		}
		coming += len(c.Forced)
		if calls != nil && (text == nil || text.state != answerWrites) {
			if only, err := calls.next(id); free {
				c.Err = err
				if only != nil {
					c.Mask = only
				}
			}
		}
		return c
	}, first, nil
}

// budget ends reasoning that has reached its limit: it has the engine continue with the ids that close the block, as if
// the model had written them. It sees what the reply's parser will see, token by token, and depends on nothing else.
type budget struct {
	out     *output
	dec     *tokenizer.Decoder
	parser  dialect.Parser
	pieces  []dialect.Piece
	left    int // tokens of reasoning
	close   []int32
	closing int // of close, those still on their way
}

// newBudget gives the part of a choice's hook that limits reasoning, nil where there is nothing to limit.
func (m *prompter) newBudget(p *prompt) func(id int32, held bool) []int32 {
	if p.budget <= 0 || m.family.Open == "" {
		return nil
	}
	b := &budget{out: &m.output, dec: m.tok.NewDecoder(false), parser: m.family.New(p.options), left: p.budget}
	end, answer := m.family.LeaveReasoning()
	b.close = m.guard.Plain(end + answer)
	if p.forced != "" {
		b.feed(p.forced)
	}
	return b.next
}

// next takes note of a token and returns what has to follow it. A call that is held goes on to its end.
func (b *budget) next(id int32, held bool) []int32 {
	before := b.parser.InReasoning()
	text := "" // none of special tokens that are no markup
	if b.out.visible(id) {
		text = b.dec.Add(id)
	}
	b.feed(text)
	inside := b.parser.InReasoning()
	switch {
	case b.closing > 0:
		b.closing--
		return nil
	case !before && !inside:
		return nil
	}
	b.left--
	if b.left > 0 || !inside || held || text == "" && b.left > -utf8.UTFMax { // a character may be incomplete
		return nil
	}
	b.closing = len(b.close)
	return b.close
}

func (b *budget) feed(text string) {
	if text != "" {
		b.pieces = b.parser.Feed(b.pieces[:0], text)
	}
}
