package lark

import (
	"math/bits"
	"slices"

	"hearth/internal/grammar"
)

// builder makes rules of a grammar. A state is what may not come next, which the lexeme before decides about; so a rule is made
// once for each state that it begins in and each that it ends in.
type builder struct {
	states  []grammar.Set    // the first is none
	flows   map[entry]states // the states that rules may end in
	entries []entry          // of them, as they came up
	made    map[exit]*grammar.Rule
	steps   map[step]*grammar.Expr
	skips   [mostStates]exprs // what is ignored, from each state to each
}

// states is a set of states.
type states uint32

// exprs is what leads to each state, nil where nothing does.
type exprs [mostStates]*grammar.Expr

type entry struct {
	rule string
	in   int
}

type exit struct {
	entry
	out int
}

type step struct{ lexeme, in int }

// each calls f with each of the states.
func (s states) each(f func(state int)) {
	for ; s != 0; s &= s - 1 {
		f(bits.TrailingZeros32(uint32(s)))
	}
}

// stateOf gives the number of a state. Where there are too many the last one is all of them: less may follow, never more.
func (b *builder) stateOf(s grammar.Set) int {
	for i, o := range b.states {
		if o == s {
			return i
		}
	}
	if len(b.states) < mostStates {
		b.states = append(b.states, s)
		return len(b.states) - 1
	}
	last := len(b.states) - 1
	b.states[last] = b.states[last].Or(s)
	return last
}

// joined is a state in which nothing may come that one of several forbids.
func (b *builder) joined(all states) int {
	if all&(all-1) == 0 {
		return bits.TrailingZeros32(uint32(all))
	}
	var s grammar.Set
	all.each(func(state int) { s = s.Or(b.states[state]) })
	return b.stateOf(s)
}

// flow is the states that a part may end in. Those of rules are what is known of them.
func (c *compiler) flow(n *node, in int) (out states) {
	c.spend(1)
	switch n.op {
	case opLexeme:
		return 1 << c.all[n.lexeme].state
	case opRule:
		at := entry{n.text, in}
		if _, met := c.flows[at]; !met {
			c.flows[at] = 0
			c.entries = append(c.entries, at)
		}
		return c.flows[at]
	case opAlt:
		for _, p := range n.parts {
			out |= c.flow(p, in)
		}
		return out
	case opSeq:
		out = 1 << in
		for _, p := range n.parts {
			out = c.flowAll(p, out)
		}
		return out
	}
	if n.least == 0 {
		out = 1 << in
	}
	all := c.several(n, in)
	switch {
	case n.counts(all) && n.written() != nil:
		return c.flow(n.written(), in)
	case n.counts(all):
		u := c.joined(all)
		c.flow(n.parts[0], u)
		return out | 1<<u
	}
	return out | all
}

func (c *compiler) flowAll(n *node, in states) (out states) {
	in.each(func(state int) { out |= c.flow(n, state) })
	return out
}

// several is the states in which what is repeated may end, the first time or a later one.
func (c *compiler) several(n *node, in int) (all states) {
	for more := c.flow(n.parts[0], in); more != 0; {
		all |= more
		if n.most == 1 {
			break
		}
		more = c.flowAll(n.parts[0], more) &^ all
	}
	return all
}

// counts tells whether something is repeated so often, from several states, that only one which joins them can be counted in.
func (n *node) counts(all states) bool { return (n.least > 1 || n.most > 1) && all&(all-1) != 0 }

// written is a repetition that is written out, nil for one of more than a few times.
func (n *node) written() *node {
	if max(n.least, n.most) > mostWritten {
		return nil
	}
	out := &node{op: opSeq}
	if n.most < 0 {
		out.parts = append(out.parts, &node{op: opRepeat, parts: n.parts, most: -1})
	}
	for times := n.most; times > n.least; times-- {
		out = &node{op: opRepeat, most: 1, parts: []*node{{op: opSeq, parts: []*node{n.parts[0], out}}}}
	}
	for range n.least {
		out = &node{op: opSeq, parts: []*node{n.parts[0], out}}
	}
	return out
}

// build makes the rules, and what whole texts are.
func (c *compiler) build() *grammar.Expr {
	c.flows, c.made, c.steps = map[entry]states{}, map[exit]*grammar.Rule{}, map[step]*grammar.Expr{}
	start := &node{op: opRule, text: "start"}
	c.flow(start, 0)
	for changed := true; changed; {
		changed = false
		again := func(at entry) {
			if out := c.flows[at] | c.flow(c.rules[at.rule], at.in); out != c.flows[at] {
				c.flows[at], changed = out, true
			}
		}
		for i := 0; i < len(c.entries); i++ { // which finds more of them
			again(c.entries[i])
		}
		for _, at := range slices.Backward(c.entries) { // as rules mostly ask for later ones
			again(at)
		}
	}
	var skip [mostStates]exprs
	for in := range c.states {
		for _, n := range c.skipped {
			skip[in].or(c, c.all[n].state, c.restricted(n, in))
		}
	}
	c.skips = c.closed(skip)
	for _, at := range c.entries {
		c.flows[at].each(func(out int) { c.made[exit{at, out}] = c.b.Rule(at.rule) })
	}
	for _, at := range c.entries {
		body := c.eval(c.rules[at.rule], at.in)
		c.flows[at].each(func(out int) {
			if body[out] == nil {
				body[out] = c.b.Never()
			}
			c.b.Define(c.made[exit{at, out}], body[out])
		})
		if err := c.b.Err(); err != nil {
			c.Stop(err)
		}
	}
	whole := c.b.Never()
	for out, e := range c.eval(start, 0) {
		for _, after := range c.skips[out] {
			if e != nil && after != nil {
				whole = c.b.Or(whole, c.b.Seq(e, after))
			}
		}
	}
	return whole
}

// or adds what leads to a state.
func (x *exprs) or(c *compiler, to int, e *grammar.Expr) {
	switch {
	case e == c.b.Never():
	case x[to] == nil:
		x[to] = e
	default:
		x[to] = c.b.Or(x[to], e)
	}
}

// closed is what leads from each state to each by any number of steps.
func (c *compiler) closed(once [mostStates]exprs) [mostStates]exprs {
	all := once
	for k := range c.states {
		round := c.b.Empty()
		if all[k][k] != nil {
			round = c.b.Repeat(all[k][k], 0, -1)
		}
		before := all
		for i := range c.states {
			for j := range c.states {
				if from, to := before[i][k], before[k][j]; from != nil && to != nil {
					all[i].or(c, j, c.b.Seq(from, round, to))
				}
			}
		}
	}
	for i := range c.states {
		all[i].or(c, i, c.b.Empty())
	}
	return all
}

// restricted is what a lexeme matches in a state.
func (c *compiler) restricted(lexeme, in int) *grammar.Expr {
	l := &c.all[lexeme]
	if not := c.states[in]; not.And(l.first) != (grammar.Set{}) {
		return c.b.And(l.e, c.b.Seq(c.b.Byte(not.Not()), c.b.Any()))
	}
	return l.e
}

// step is a lexeme, with what is ignored before it.
func (c *compiler) step(lexeme, in int) *grammar.Expr {
	at := step{lexeme, in}
	if c.steps[at] == nil {
		var all []*grammar.Expr
		for state, before := range c.skips[in] {
			if before != nil {
				all = append(all, c.b.Seq(before, c.restricted(lexeme, state)))
			}
		}
		c.steps[at] = c.b.Or(all...)
	}
	return c.steps[at]
}

// eval is what a part matches that begins in a state, by the state that it ends in.
func (c *compiler) eval(n *node, in int) (out exprs) {
	c.spend(1)
	switch n.op {
	case opLexeme:
		out.or(c, c.all[n.lexeme].state, c.step(n.lexeme, in))
	case opRule:
		at := entry{n.text, in}
		c.flows[at].each(func(to int) { out.or(c, to, c.b.Ref(c.made[exit{at, to}])) })
	case opAlt:
		var all [mostStates][]*grammar.Expr
		for _, p := range n.parts {
			for to, e := range c.eval(p, in) {
				if e != nil {
					all[to] = append(all[to], e)
				}
			}
		}
		for to, parts := range all {
			out.or(c, to, c.b.Or(parts...))
		}
	case opSeq:
		return c.sequenced(n.parts, in)
	case opRepeat:
		return c.repeatedly(n, in)
	}
	return out
}

// sequenced goes through parts from the last one on, so that each is put before what is there.
func (c *compiler) sequenced(parts []*node, in int) exprs {
	reached := []states{1 << in}
	for i, p := range parts {
		reached = append(reached, c.flowAll(p, reached[i]))
	}
	var rest [mostStates]exprs
	reached[len(parts)].each(func(state int) { rest[state][state] = c.b.Empty() })
	for i, p := range slices.Backward(parts) {
		var all [mostStates]exprs
		reached[i].each(func(from int) {
			for via, e := range c.eval(p, from) {
				for to, after := range rest[via] {
					if e != nil && after != nil {
						all[from].or(c, to, c.b.Seq(e, after))
					}
				}
			}
		})
		rest = all
	}
	return rest[in]
}

func (c *compiler) repeatedly(n *node, in int) (out exprs) {
	if n.least == 0 {
		out[in] = c.b.Empty()
	}
	body := n.parts[0]
	first := c.eval(body, in)
	all := c.several(n, in)
	if all == 0 { // it never ends
		return out
	}
	rest := -1
	if n.most > 0 {
		rest = n.most - 1
	}
	if all == 1<<in && first[in] != nil {
		out[in] = c.b.Repeat(first[in], n.least, n.most)
		return out
	}
	again := [mostStates]exprs{}
	switch {
	case n.most == 1:
		for to := range c.states {
			again[to][to] = c.b.Empty()
		}
	case n.counts(all) && n.written() != nil:
		return c.eval(n.written(), in)
	case n.counts(all), all&(all-1) == 0: // in one state
		u := c.joined(all)
		out.or(c, u, c.b.Seq(c.any(first), c.b.Repeat(c.any(c.eval(body, u)), max(n.least-1, 0), rest)))
		return out
	default:
		all.each(func(state int) { again[state] = c.eval(body, state) })
		again = c.closed(again)
	}
	for via, e := range first {
		for to, after := range again[via] {
			if e != nil && after != nil {
				out.or(c, to, c.b.Seq(e, after))
			}
		}
	}
	return out
}

// any is what leads to whichever state.
func (c *compiler) any(x exprs) *grammar.Expr {
	var all []*grammar.Expr
	for _, e := range x {
		if e != nil {
			all = append(all, e)
		}
	}
	return c.b.Or(all...)
}
