package grammar

import (
	"errors"
	"math/bits"
	"slices"
	"strings"
)

// Bounds of Without.
const (
	mostBeginnings = 64 // beginnings of words that are told apart
	mostTurns      = 16 // times that something is repeated that is written out, where they differ
)

// Lacks are words that a text does not hold, anywhere, at its beginning and at its end.
type Lacks struct{ Words, Begins, Ends []string }

// atStart stands before a text: a byte that no UTF-8 has.
const atStart = "\xfe"

// Without matches the texts of an expression that lack some words. Unlike And it takes references to rules, which are defined: it
// makes a rule anew for each beginning of a word that may stand before it, and each that it may end in. It does not take Members.
func (b *Builder) Without(e *Expr, l Lacks) *Expr {
	any, words, start := b.t.any, slices.Clone(l.Words), ""
	for _, begin := range l.Begins {
		words, start = append(words, atStart+begin), atStart
	}
	w := &avoider{Builder: b, clean: b.Not(b.Seq(any, b.Choice(words...), any)), leads: map[[2]int]*Expr{}, bytes: map[*Expr]Set{},
		runs: map[*Expr][]*Expr{}, flows: map[from]places64{}, known: map[from]exits{}, rules: map[passage]*Rule{}, users: map[from]map[from]bool{}}
	for _, word := range slices.Concat(words, l.Ends) {
		for i := range word {
			w.within.Add(word[i], word[i])
			if w.beginnings = append(w.beginnings, word[:i]); i == 0 {
				w.first.Add(word[0], word[0])
			}
		}
	}
	w.beginnings = slices.Compact(slices.Sorted(slices.Values(append(append(w.beginnings, l.Ends...), ""))))
	if len(w.beginnings) > mostBeginnings {
		return b.fail(&LimitError{"beginnings of words that no text may hold", mostBeginnings})
	}
	in := slices.Index(w.beginnings, start)
	for w.flow(e, in); len(w.due) > 0 && b.err == nil; {
		at := w.due[len(w.due)-1]
		w.due = w.due[:len(w.due)-1]
		w.at = at
		if out := w.flows[at] | w.flow(at.e.rule.body, at.in); out != w.flows[at] {
			w.flows[at] = out
			for user := range w.users[at] {
				w.due = append(w.due, user)
			}
		}
	}
	var all []*Expr
	for out, x := range w.eval(e, in) {
		if x != nil && !slices.ContainsFunc(l.Ends, func(end string) bool { return strings.HasSuffix(w.beginnings[out], end) }) {
			all = append(all, x)
		}
	}
	for i := 0; i < len(w.todo) && b.err == nil; i++ {
		p := w.todo[i]
		b.Define(w.rules[p], w.body(p))
	}
	return b.Or(all...)
}

// Bytes are those that texts of a regular expression may have: some of them none does, where there are intersections.
func (b *Builder) Bytes(e *Expr) Set { return b.held(e, map[*Expr]Set{}) }

func (b *Builder) held(e *Expr, known map[*Expr]Set) (s Set) {
	if s, ok := known[e]; ok {
		return s
	}
	b.budget.spend(1)
	switch e.kind {
	case isNever, isEmpty:
	case isByte:
		s = e.first
	case isText:
		for i := range len(e.text) {
			s.Add(e.text[i], e.text[i])
		}
		s = s.Or(b.held(e.b, known))
	case isCat:
		s = b.held(e.a, known).Or(b.held(e.b, known))
	case isOr:
		for _, a := range e.args {
			s = s.Or(b.held(a, known))
		}
	case isAnd:
		s = allBytes
		for _, a := range e.args {
			s = s.And(b.held(a, known))
		}
	case isRepeat:
		s = b.held(e.a, known)
	default:
		s = allBytes
	}
	known[e] = s
	return s
}

// avoider makes expressions whose texts hold no word. It tells places in a text apart by the longest beginning of a word that
// stands before them.
type avoider struct {
	*Builder
	clean         *Expr    // texts that hold no word
	beginnings    []string // the first is empty
	first, within Set      // bytes that words begin with, and that are in them

	leads map[[2]int]*Expr
	bytes map[*Expr]Set
	runs  map[*Expr][]*Expr
	flows map[from]places64 // of references
	at    from              // the reference whose flow is looked for
	users map[from]map[from]bool
	due   []from // those to be looked at, again where what they refer to has changed
	known map[from]exits
	rules map[passage]*Rule
	todo  []passage // rules to be defined
}

// places64 are beginnings, by their numbers.
type places64 uint64

// exits are the texts of an expression by the beginning that they end in, nil where none do.
type exits [mostBeginnings]*Expr

// from is an expression behind a beginning.
type from struct {
	e  *Expr
	in int
}

// passage is one that ends in a beginning: a reference, or a repetition without bounds.
type passage struct {
	from
	out int
}

func (s places64) each(f func(i int)) {
	for ; s != 0; s &= s - 1 {
		f(bits.TrailingZeros64(uint64(s)))
	}
}

// spend counts a step, and tells whether there may be more.
func (w *avoider) spend() bool {
	w.budget.spend(exprSteps)
	w.worked()
	return w.err == nil
}

// lead is what leads from one beginning to another, with no word in it.
func (w *avoider) lead(in, out int) *Expr {
	at := [2]int{in, out}
	if w.leads[at] == nil {
		ends := func(text string) *Expr { return w.Seq(w.t.any, w.Literal(text)) }
		var longer []*Expr
		for _, s := range w.beginnings {
			if len(s) > len(w.beginnings[out]) && strings.HasSuffix(s, w.beginnings[out]) {
				longer = append(longer, ends(s))
			}
		}
		w.leads[at] = w.After(w.And(w.clean, w.Except(ends(w.beginnings[out]), longer...)), w.beginnings[in])
	}
	return w.leads[at]
}

// leaf is eval of a regular expression.
func (w *avoider) leaf(e *Expr, in int) (out exits) {
	words := w.within
	if in == 0 {
		words = w.first
	}
	if w.held(e, w.bytes).And(words) == (Set{}) && (in == 0 || !e.nullable) {
		out[0] = e
		return out
	}
	some, last := 0, 0
	for to := range w.beginnings {
		if x := w.And(e, w.lead(in, to)); !w.IsNever(x) {
			out[to], last = x, to
			some++
		}
	}
	if some == 1 && w.IsNever(w.Except(e, out[last])) {
		out[last] = e
	}
	return out
}

// together are the parts of a sequence, neighbours that are regular as one.
func (w *avoider) together(e *Expr) (list []*Expr) {
	if w.runs[e] == nil {
		all := w.parts(e)
		for len(all) > 0 {
			n := 1
			for all[0].regular && n < len(all) && all[n].regular {
				n++
			}
			list, all = append(list, w.Seq(all[:n]...)), all[n:]
		}
		w.runs[e] = list
	}
	return w.runs[e]
}

// flow are the beginnings that an expression may end in, with what is known of rules.
func (w *avoider) flow(e *Expr, in int) (out places64) {
	if !w.spend() {
		return 0
	}
	switch {
	case e.regular:
		for to, x := range w.eval(e, in) {
			if x != nil {
				out |= 1 << to
			}
		}
	case e.kind == isRef:
		at := from{e, in}
		if _, met := w.flows[at]; !met && e.rule.body != nil {
			w.flows[at], w.users[at] = 0, map[from]bool{}
			w.due = append(w.due, at)
		}
		if w.at.e != nil && w.users[at] != nil {
			w.users[at][w.at] = true
		}
		return w.flows[at]
	case e.kind == isCat, e.kind == isText:
		out = 1 << in
		for _, p := range w.together(e) {
			out = w.flowAll(p, out)
		}
	case e.kind == isOr:
		for _, a := range e.args {
			out |= w.flow(a, in)
		}
	case e.kind == isRepeat:
		for more := w.flow(e.a, in); more != 0; more = w.flowAll(e.a, more) &^ out {
			out |= more
		}
		if e.min == 0 {
			out |= 1 << in
		}
	default:
		w.fail(errors.New("members in any order may hold any word"))
	}
	return out
}

func (w *avoider) flowAll(e *Expr, in places64) (out places64) {
	in.each(func(i int) { out |= w.flow(e, i) })
	return out
}

// eval is what an expression matches behind a beginning.
func (w *avoider) eval(e *Expr, in int) (out exits) {
	at := from{e, in}
	if out, ok := w.known[at]; ok || !w.spend() {
		return out
	}
	w.budget.spend(3 * exprSteps) // exits are larger than expressions
	switch {
	case e.regular:
		out = w.leaf(e, in)
	case e.kind == isRef:
		w.flows[at].each(func(to int) { out[to] = w.ref(passage{at, to}) })
	case e.kind == isCat, e.kind == isText:
		out = w.sequence(w.together(e), in)
	case e.kind == isOr:
		var all [mostBeginnings][]*Expr
		for _, a := range e.args {
			for to, x := range w.eval(a, in) {
				if x != nil {
					all[to] = append(all[to], x)
				}
			}
		}
		out = w.joined(&all)
	case e.kind == isRepeat:
		out = w.times(e, in)
	}
	w.known[at] = out
	return out
}

func (w *avoider) joined(all *[mostBeginnings][]*Expr) (out exits) {
	for to, list := range all {
		if len(list) > 0 {
			out[to] = w.Or(list...)
		}
	}
	return out
}

// then is what several exits go on with.
func (w *avoider) then(first exits, rest func(in int) exits) exits {
	var all [mostBeginnings][]*Expr
	for via, x := range first {
		if x == nil {
			continue
		}
		for to, after := range rest(via) {
			if after != nil {
				all[to] = append(all[to], w.Seq(x, after))
			}
		}
	}
	return w.joined(&all)
}

func (w *avoider) sequence(parts []*Expr, in int) (out exits) {
	if len(parts) == 1 {
		return w.eval(parts[0], in)
	}
	known := map[int]exits{}
	return w.then(w.eval(parts[0], in), func(in int) exits {
		if _, ok := known[in]; !ok {
			known[in] = w.sequence(parts[1:], in)
		}
		return known[in]
	})
}

// times is a repetition.
func (w *avoider) times(e *Expr, in int) (out exits) {
	least, most := int(e.min), maxOf(e.max)
	switch {
	case w.flow(e.a, in)&^(1<<in) == 0:
		once := w.eval(e.a, in)[in]
		if once == nil {
			once = w.t.never
		}
		out[in] = w.Repeat(once, least, most)
		return out
	case max(least, most) > mostTurns:
		w.fail(&LimitError{"repetitions of what may end in the middle of a word that no text may hold", mostTurns})
		return out
	case most < 0 && least == 0:
		w.flow(e, in).each(func(to int) { out[to] = w.ref(passage{from{e, in}, to}) })
		return out
	}
	rest := w.Repeat(e.a, max(least-1, 0), max(most-1, -1))
	out = w.then(w.eval(e.a, in), func(in int) exits { return w.eval(rest, in) })
	if least == 0 {
		out[in] = w.optional(out[in])
	}
	return out
}

// optional is an expression that may be nil, or nothing.
func (w *avoider) optional(e *Expr) *Expr {
	if e == nil {
		return w.t.empty
	}
	return w.Optional(e)
}

func (w *avoider) ref(p passage) *Expr {
	r := w.rules[p]
	if r == nil {
		name := "repeated"
		if p.e.kind == isRef {
			name = p.e.rule.name
		}
		r = w.Rule(name)
		w.rules[p], w.todo = r, append(w.todo, p)
	}
	return w.Ref(r)
}

// body is what the rule of a passage matches.
func (w *avoider) body(p passage) *Expr {
	var e *Expr
	if p.e.kind == isRef {
		e = w.eval(p.e.rule.body, p.in)[p.out]
	} else {
		e = w.then(w.eval(p.e.a, p.in), func(in int) (out exits) {
			if w.flow(p.e, in)>>p.out&1 != 0 {
				out[p.out] = w.ref(passage{from{p.e, in}, p.out})
			}
			return out
		})[p.out]
		if p.in == p.out {
			e = w.optional(e)
		}
	}
	if e == nil {
		e = w.t.never
	}
	return e
}
