package generate

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/engine"
	"hearth/internal/grammar"
	"hearth/internal/grammar/jsonschema"
	"hearth/internal/sample"
)

// answerForms has what the forms of all requests share.
type answerForms struct {
	*output
	forms    forms
	vocab    func() *grammar.Vocab    // special tokens are no text in it, but marks
	marks    func() *strings.Replacer // see literal
	openings [openings]func() *opening
}

// opening is what may stand where an answer begins, as grammars; nil: nothing.
type opening struct {
	reasons *grammar.Grammar // up to the beginning of reasoning
	calls   *grammar.Grammar // up to the beginning of a call
	leads   *grammar.Grammar // before the text of the answer
}

// Where answers begin.
const (
	atOnce = iota // in a turn that the prompt has begun
	atMark        // before the family's mark of an answer
	behind        // reasoning
	openings
)

func newAnswerForms(o *output) *answerForms {
	a := &answerForms{output: o, marks: sync.OnceValue(o.newMarks)}
	text := o.tokenText(func(id int32) []byte { return []byte(grammar.Mark(id)) })
	a.vocab = sync.OnceValue(func() *grammar.Vocab {
		v := grammar.NewVocab(o.tok.Size(), text)
		jsonschema.Warm(v)
		return v
	})
	for i := range a.openings {
		a.openings[i] = sync.OnceValue(func() *opening { return a.opening(i) })
	}
	return a
}

// tokenText gives what tokens stand for in a vocabulary, special those that are special. Those that end a reply are no text.
func (o *output) tokenText(special func(id int32) []byte) func(id int32) []byte {
	return func(id int32) []byte {
		switch {
		case slices.Contains(o.stopIDs, id):
			return nil
		case o.tok.Special(id):
			return special(id)
		}
		return o.tok.Bytes(id)
	}
}

func (a *answerForms) opening(at int) *opening {
	f := a.family
	compiled := func(build func(b *grammar.Builder) *grammar.Expr) *grammar.Grammar {
		b := grammar.NewBuilder()
		root := b.Rule("opening")
		b.Define(root, build(b))
		g, err := b.Compile(root)
		if err != nil { // of some short texts
			panic(err)
		}
		return g
	}
	resumes := len(f.Resume) > 0
	before := func(b *grammar.Builder) *grammar.Expr { // what stands between reasoning and what follows it
		switch {
		case at != behind:
			return b.Empty()
		case resumes:
			return b.Literal(a.literal(f.Resume[0]))
		}
		_, blanks, _ := strings.Cut(f.Leave, f.Close)
		return b.Optional(b.Literal(a.literal(blanks)))
	}
	o := &opening{}
	if f.Open != "" && (at == atMark || at == atOnce && !resumes || at == behind && len(f.Resume) > 1) {
		o.reasons = compiled(func(b *grammar.Builder) *grammar.Expr { return b.Seq(before(b), b.Literal(a.literal(f.Opening()))) })
	}
	if openers, told := f.CallOpeners(); told && len(openers) > 0 {
		o.calls = compiled(func(b *grammar.Builder) *grammar.Expr {
			var all []*grammar.Expr
			for _, text := range openers {
				all = append(all, b.Literal(a.literal(text)))
			}
			return b.Seq(before(b), b.Or(all...))
		})
	}
	o.leads = compiled(func(b *grammar.Builder) *grammar.Expr {
		if len(f.Resume) > 1 && at != atOnce {
			return b.Seq(before(b), b.Literal(a.literal(f.Resume[1])))
		}
		all := []*grammar.Expr{b.Empty()}
		for _, text := range f.Around() {
			all = append(all, b.Literal(a.literal(text)))
		}
		return b.Seq(before(b), b.Or(all...))
	})
	return o
}

// literal is a text of the family's as a grammar asks for it: special tokens by their marks, and those that end a reply not
// at all.
func (a *answerForms) literal(text string) string { return a.marks().Replace(text) }

// newMarks replaces the family's markers that are special tokens.
func (o *output) newMarks() *strings.Replacer {
	markers := slices.Clone(o.family.Markers)
	slices.SortFunc(markers, func(x, y string) int { return cmp.Or(cmp.Compare(len(y), len(x)), strings.Compare(x, y)) })
	var pairs []string
	for _, m := range markers {
		switch id, ok := o.tok.ID(m); {
		case !ok:
		case slices.Contains(o.stopIDs, id):
			pairs = append(pairs, m, "")
		case o.tok.Special(id):
			pairs = append(pairs, m, grammar.Mark(id))
		}
	}
	return strings.NewReplacer(pairs...)
}

// heldForm is the form of a request, ready for its choices.
type heldForm struct {
	*answerForms
	vocab  *grammar.Vocab // made before the reply begins: it takes longer than a step
	form   *madeForm
	path   string // of the form, for errors
	raw    bool
	begun  string // of the text, by the prompt
	begins place
	lazy   bool       // the form is that of a whole reply, and free but for calls
	loose  bool       // nobody asked for that: where it takes too much work the rest of the reply is free
	calls  *heldForm  // is such a form, for where this one does not hold; nil: all is free there
	others sample.Set // the tokens that end no reply: those of reasoning, which an answer follows
	prompt *prompt
}

// place is where an answer begins, and with what besides the text.
type place struct {
	at     int  // see openings
	thinks bool // it may be reasoning
	calls  bool // or a call
}

// newHeldForm makes the form of a request; nil if it has none, or none that a reply can be held to. That is an error where the
// request wants it held, as is a form that is wrong wherever it comes.
func (a *answerForms) newHeldForm(ctx context.Context, m *prompter, r *chat.Request, p *prompt) (*heldForm, error) {
	if r.Form == nil {
		return nil, nil
	}
	form, err := a.forms.of(ctx, r.Form)
	if err != nil {
		return nil, err
	}
	if r.Form.Strict && len(form.unheld) > 0 {
		return nil, chat.Invalidf(r.Form.Path, "a strict schema has to be held in all it says, and this is not: %s; leave it out, or send strict: false to have it checked afterwards", form.unheld[0])
	}
	if m.cfg.Unforced || r.Choice.Demands() && !p.raw {
		return nil, nil
	}
	k := &heldForm{answerForms: a, vocab: a.vocab(), form: form, path: r.Form.Path, prompt: p, raw: p.raw}
	if why := k.place(m, r, p); why != "" {
		return nil, unheld(r.Form, why)
	}
	if k.begins.thinks || p.options.InReasoning {
		k.others = slices.Repeat(sample.Set{^uint64(0)}, (k.tok.Size()+63)/64)
		for _, id := range p.stopIDs {
			k.others[id/64] &^= 1 << (id % 64)
		}
	}
	return k, nil
}

// unheld is the error of a form that a reply cannot be held to, nil where it can be checked afterwards.
func unheld(f *chat.Form, why string) error {
	if f.JSON() && !f.Strict {
		return nil
	}
	return chat.Invalidf(f.Path, "the reply cannot be held to this form: %s", why)
}

// place finds out where the answer begins, or why that is not known.
func (k *heldForm) place(m *prompter, r *chat.Request, p *prompt) (why string) {
	f := k.family
	k.begins.calls = len(p.options.Tools) > 0
	_, told := f.CallOpeners()
	switch {
	case len(p.stopIDs) == 0:
		return "no token ends a reply of this model"
	case k.raw:
	case p.options.Continued && !p.options.InReasoning:
		k.begun, k.begins.calls, k.raw = chat.Text(r.Messages[len(r.Messages)-1].Parts), false, true
		if !strings.HasSuffix(p.text, k.begun) {
			return "the reply continues a message that the chat template changes"
		}
		if x := k.newAnswer(1); x == nil {
			return "the message that it continues is not of this form"
		}
	case k.begins.calls && !told:
		return "there are tools, and calls of this model can begin as an answer does"
	case !f.Plain():
		return "answers of this model stand behind a header"
	case p.options.InReasoning || len(f.Resume) == 0:
	case strings.HasSuffix(p.text, strings.Join(f.Resume[:min(len(f.Resume), 2)], "")):
	case len(f.Resume) > 1 && strings.HasSuffix(p.text, f.Resume[0]):
		k.begins.at = atMark
	default:
		return "the chat template does not begin an answer"
	}
	k.begins.thinks = !k.raw && p.thinks && (k.begins.at == atMark || f.Unopen(p.text) == p.text)
	return ""
}

// answer follows a reply that is held to a form. Where that is of the text of its answer, reasoning is the model's own, and so
// are calls unless they have a form, too (beside). One that guides a reply follows all of it; one that reads it only what decides
// where the text begins.
type answer struct {
	*heldForm
	budget *grammar.Budget
	parser dialect.Parser // of what is no text of the form
	state  answerState
	ways   []way
	held   string  // text since the answer began, while it is not decided what it is
	beside *answer // of heldForm.calls, until the text is of the form
	noCall bool    // what was written so far is none that fits
	mask   sample.Set
	met    sample.Set   // see meet
	spent  *atomic.Bool // a loose form took too much work
	ahead  stretcher    // of one that guides
}

type answerState uint8

const (
	answerReasons answerState = iota
	answerBegins              // it may be several things yet
	answerWrites              // the text of the form
	answerCalls               // a call, or what follows one
)

// way is one thing that an answer may be.
type way struct {
	kind wayKind
	from int // where it begins in what is held
	*grammar.Matcher
}

type wayKind uint8

const (
	wayWrites wayKind = iota
	wayLeads
	wayReasons
	wayCalls
)

// newAnswer begins one of n replies; nil if what the prompt has begun is not of the form.
func (k *heldForm) newAnswer(n int) *answer {
	x := &answer{heldForm: k, budget: grammar.NewBudget(n), spent: new(atomic.Bool)}
	if k.raw {
		x.state, x.ways = answerWrites, []way{{Matcher: k.vocab.Matcher(k.form.Grammar, x.budget)}}
		if !x.ways[0].AcceptBytes([]byte(k.begun)) {
			return nil
		}
		return x
	}
	if !k.prompt.options.InReasoning {
		x.begin(k.begins.at)
	}
	return x
}

// begin is where an answer begins.
func (x *answer) begin(at int) {
	x.state, x.held, x.ways = answerBegins, "", x.ways[:0]
	o := x.openings[at]()
	start := func(kind wayKind, g *grammar.Grammar) {
		if g != nil {
			x.ways = append(x.ways, way{kind: kind, Matcher: x.vocab.Matcher(g, x.budget)})
		}
	}
	start(wayLeads, o.leads)
	if x.begins.thinks {
		start(wayReasons, o.reasons)
	}
	if x.begins.calls && !x.noCall {
		start(wayCalls, o.calls)
	}
	x.settle(nil)
}

// take takes a token with its text and appends the pieces that become certain. It reports whether the token fits.
func (x *answer) take(dst []dialect.Piece, id int32, text string) (pieces []dialect.Piece, ok bool) {
	switch x.state {
	case answerWrites:
		if text != "" {
			dst = append(dst, dialect.Piece{Kind: dialect.Text, Text: text})
		}
		return dst, true
	case answerCalls:
		return x.parser.Feed(dst, text), true
	case answerReasons:
		return x.reason(dst, text)
	}
	x.ways = slices.DeleteFunc(x.ways, func(w way) bool { return !w.Accept(id) })
	x.held += text
	return x.fitting(dst)
}

// fitting settles what fits; what does not is text all the same, for who reads it.
func (x *answer) fitting(dst []dialect.Piece) (pieces []dialect.Piece, ok bool) {
	if len(x.ways) > 0 {
		return x.settle(dst), true
	}
	x.state = answerWrites
	return append(dst, dialect.Piece{Kind: dialect.Text, Text: x.held}), false
}

// reason takes text of reasoning, byte by byte as it may end within.
func (x *answer) reason(dst []dialect.Piece, text string) (pieces []dialect.Piece, ok bool) {
	for i := range len(text) {
		n := len(dst)
		dst = x.parser.Feed(dst, text[i:i+1])
		for _, p := range dst[n:] {
			if p.Kind == dialect.ToolStart {
				x.state = answerCalls
				return x.parser.Feed(dst, text[i+1:]), true
			}
		}
		if n > 0 && len(dst) > n && dst[n].Kind == dst[n-1].Kind {
			dst[n-1].Text += dst[n].Text
			dst = slices.Delete(dst, n, n+1)
		}
		if !x.parser.InReasoning() {
			x.begin(behind)
			rest := text[i+1:]
			if rest != "" {
				x.ways = slices.DeleteFunc(x.ways, func(w way) bool { return !w.AcceptBytes([]byte(rest)) })
				x.held = rest
			}
			return x.fitting(dst)
		}
	}
	return dst, true
}

// settle looks at which ways have come to their end, and whether one alone is left.
func (x *answer) settle(dst []dialect.Piece) []dialect.Piece {
	for _, w := range x.ways {
		switch {
		case w.kind == wayCalls && w.Done():
			x.state = answerCalls
			return x.parser.Feed(dst, x.held)
		case w.kind == wayReasons && w.Done():
			dst = x.parser.Feed(dst, x.held)
			if x.parser.InReasoning() {
				x.state = answerReasons
			}
			return dst
		}
	}
	writes := slices.ContainsFunc(x.ways, func(w way) bool { return w.kind == wayWrites })
	if !writes && slices.ContainsFunc(x.ways, func(w way) bool { return w.kind == wayLeads && w.Done() }) {
		x.ways = append(x.ways, way{wayWrites, len(x.held), x.vocab.Matcher(x.form.Grammar, x.budget)})
	}
	if len(x.ways) == 1 && x.ways[0].kind == wayWrites && len(x.held) > x.ways[0].from {
		x.state = answerWrites
		dst = append(dst, dialect.Piece{Kind: dialect.Text, Text: x.held[x.ways[0].from:]})
	}
	return dst
}

// finish is where the reply ends, cut off or by itself, with what the decoder held of its text.
func (x *answer) finish(dst []dialect.Piece, text string) []dialect.Piece {
	switch x.state {
	case answerWrites:
	case answerBegins:
		text = x.held + text
		at := slices.IndexFunc(x.ways, func(w way) bool { return w.kind == wayWrites })
		if at < 0 {
			return dst
		}
		text = text[x.ways[at].from:]
	default:
		return x.parser.Finish(x.parser.Feed(dst, text))
	}
	if text != "" {
		dst = append(dst, dialect.Piece{Kind: dialect.Text, Text: text})
	}
	return dst
}

// guide begins the guide of one of n replies, nil where there is nothing to hold to.
func (k *heldForm) guide(n int) *answer {
	if k == nil {
		return nil
	}
	x := k.newAnswer(n)
	x.parser = x.family.New(x.prompt.options)
	x.ahead = newStretcher(x.tok, k.begun)
	if k.calls != nil {
		x.beside = k.calls.guide(n)
		x.beside.spent = x.spent
	}
	return x
}

// enforced tells whether the reply is held to all of the form.
func (k *heldForm) enforced() bool {
	return k != nil && len(k.form.unheld)+len(k.form.calls.unheld) == 0
}

// formOutcome tells what is known of the form that a request asks for before the reply begins.
func formOutcome(r *chat.Request, p *prompt, text, calls *heldForm) chat.Outcome {
	held, asked := text.enforced(), r.Form != nil
	switch {
	case p.raw:
	case r.Choice.Demands():
		held, asked = calls.enforced() && !calls.lazy, true
	case r.Choice.Kind != chat.ChoiceNone && slices.ContainsFunc(r.Tools, func(t chat.Tool) bool { return t.Strict }):
		held, asked = calls != nil && (held || !asked), true // strict tools are held to all of their schemas, or refused
	}
	switch {
	case !asked:
		return ""
	case held:
		return chat.Enforced
	}
	return chat.Unchecked
}

// first is what the reply may begin with, nil for anything.
func (x *answer) first() (only sample.Set, err error) {
	if ids := x.stretch(); len(ids) > 0 {
		only = make(sample.Set, (x.tok.Size()+63)/64)
		only.Add(ids[0])
		return only, nil
	}
	return x.only()
}

// accept takes note of a token.
func (x *answer) accept(id int32) error {
	x.budget.Token()
	x.ahead.note(id)
	var ok bool
	if x.beside != nil && x.state != answerWrites {
		if err := x.beside.accept(id); err != nil {
			if x.state != answerBegins {
				return err
			}
			x.beside, x.noCall = nil, true // it is no call, but it may be of the form
			x.ways = slices.DeleteFunc(x.ways, func(w way) bool { return w.kind == wayCalls })
		}
	}
	if x.state == answerWrites {
		ok = len(x.ways) > 0 && (x.ways[0].Accept(id) || x.lazy && x.ways[0].Done()) // one without a text may come beside calls
	} else {
		text := ""
		if x.visible(id) {
			text = string(x.tok.Bytes(id))
		}
		_, ok = x.take(nil, id, text)
	}
	switch {
	case ok || x.budget.Spent():
	case x.loose:
		x.leave()
	default:
		return chat.Invalidf(x.path, "the reply cannot be held to this form: %q came where it does not fit", x.tok.Bytes(id))
	}
	return nil
}

// leave lets the rest of the reply be free.
func (x *answer) leave() { x.state, x.ways = answerCalls, nil }

// follow says what may come now.
func (x *answer) follow() (c engine.Constraint) {
	if c.Forced = x.stretch(); len(c.Forced) == 0 {
		c.Mask, c.Err = x.only()
	}
	return c
}

// stretch is what has to follow, where it is no choice of the model's.
func (x *answer) stretch() []int32 {
	switch {
	case x.state == answerCalls && x.beside != nil:
		return x.beside.stretch()
	case x.state == answerReasons || x.state == answerCalls || len(x.ways) == 0:
		return nil
	}
	going := 0
	if len(x.ways) > 1 { // all but one may have come to their ends
		going = -1
		for i, w := range x.ways {
			switch {
			case w.kind == wayWrites && w.Done():
				return nil
			case w.Allowed() == nil:
			case going >= 0:
				return nil
			default:
				going = i
			}
		}
	}
	if going < 0 {
		return nil
	}
	return x.ahead.next(x.ways[going].Matcher)
}

// mostGuessed bounds the steps of a draft: some tens of microseconds.
const mostGuessed = 1 << 14

// draft is what may well come behind forced tokens: of looked what fits, and what then has to follow as the tokenizer writes it.
// Where the reply is free, or may be several things yet, it is looked.
func (x *answer) draft(forced, looked []int32, most int) []int32 {
	ids := append([]int32{}, looked...)
	at := x.alone()
	if at == nil {
		return ids
	}
	m, all, n := at.ways[0].Matcher, slices.Concat(forced, looked), 0
	m.On(grammar.Steps(mostGuessed), func() {
		for n < len(all) && m.Accept(all[n]) {
			n++
		}
		ids = ids[:max(n-len(forced), 0)]
		switch {
		case n < len(forced):
		case n < len(all) && m.Done() && at.lazy:
			ids = append(ids, all[n:]...)
		case n < len(all) && m.Done() && slices.Contains(x.prompt.stopIDs, all[n]):
			ids = append(ids, all[n])
		case len(ids) < most:
			ids = append(ids, at.ahead.likely(m, all[:n])...)
		}
		m.Rollback(n)
	})
	return ids[:min(len(ids), most)]
}

// alone is the answer, this one or that of its calls, that has one way to go on; nil: none has.
func (x *answer) alone() *answer {
	switch {
	case x.state == answerCalls && x.beside != nil:
		return x.beside.alone()
	case x.state == answerReasons || x.state == answerCalls || len(x.ways) != 1:
		return nil
	}
	return x
}

// within tells whether the reply is in a call that it is held to.
func (x *answer) within() bool {
	return x.state == answerWrites && x.lazy && !x.ways[0].Done() || x.beside != nil && x.state != answerWrites && x.beside.within()
}

// meet is what of some tokens calls let through.
func (x *answer) meet(some sample.Set) (sample.Set, error) {
	if x.beside == nil || some == nil {
		return some, nil
	}
	only, err := x.beside.only()
	if only == nil {
		return some, err
	}
	x.met = append(x.met[:0], some...)
	for i, word := range only {
		x.met[i] &= word
	}
	return x.met, err
}

// only is what may come now, nil for anything.
func (x *answer) only() (only sample.Set, err error) {
	switch x.state {
	case answerReasons:
		return x.meet(x.others)
	case answerCalls:
		if x.beside == nil {
			return nil, nil
		}
		return x.beside.only()
	}
	first, done := true, false
	for _, w := range x.ways {
		may := sample.Set(w.Allowed())
		if w.kind == wayCalls {
			if may, err = x.meet(may); err != nil {
				return nil, err
			}
		}
		done = done || w.kind == wayWrites && w.Done()
		switch {
		case may == nil:
		case first:
			only, first = may, false
		default:
			x.mask = append(x.mask[:0], only...)
			for i, word := range may {
				x.mask[i] |= word
			}
			only = x.mask
		}
	}
	switch {
	case x.budget.Spent() && x.loose:
		x.leave()
		x.spent.Store(true)
		return nil, nil
	case x.budget.Spent():
		return nil, chat.Boundf(chat.BoundForm, x.path, "holding the reply to this form takes too much work: it leaves open too many ways at once to read what was written; use a simpler one")
	}
	if done && x.lazy && x.vocab.All(only) {
		return nil, nil
	}
	if done {
		x.mask = append(x.mask[:0], only...)
		for n := (x.tok.Size() + 63) / 64; len(x.mask) < n; {
			x.mask = append(x.mask, 0)
		}
		for _, id := range x.prompt.stopIDs {
			x.mask.Add(id)
		}
		only = x.mask
	}
	if only == nil {
		return nil, chat.Invalidf(x.path, "the reply cannot be held to this form: no token of the vocabulary goes on with it")
	}
	return only, nil
}

// note tells of calls that were not kept to their tools since that took too much work. name is the tool that was called last.
func (x *answer) note(usage *chat.Usage, name string) {
	if x == nil || !x.spent.Load() {
		return
	}
	if usage.Bounds = append(usage.Bounds, chat.BoundForm); name != "" && !slices.Contains(usage.Loose, name) {
		usage.Loose = append(usage.Loose, name)
	}
}
