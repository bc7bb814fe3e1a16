package lark

import (
	"fmt"
	"math/bits"
	"slices"

	"hearth/internal/grammar"
)

// Bounds of a grammar; the Builder has its own for what it expands to.
const (
	maxLexemes  = 1 << 10 // different strings, patterns and terminals
	maxWork     = 1 << 25 // steps to find what may follow what
	mostStates  = 12      // sets of bytes that may not come next; more are one
	mostWritten = 8       // times that something is repeated that is written out, where such sets differ; else they are one
)

// lexeme is what the lexer would take as a whole: a string, a pattern, a range or a terminal.
type lexeme struct {
	e        *grammar.Expr // what it matches, never the empty text
	plain    bool          // it is one text
	priority int
	next     set         // the lexemes that may follow
	rivals   set         // those that may stand in its place
	first    grammar.Set // the bytes that it may begin with
	state    int         // what may not come behind it
}

// set is a set of lexemes.
type set []uint64

func (s set) each(f func(n int)) {
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			f(i*64 + bits.TrailingZeros64(w))
		}
	}
}

// ends are the lexemes that something may begin and end with, and whether it may be empty.
type ends struct {
	first, last set
	empty       bool
}

// lexer finds what would be read otherwise than it was written.
type lexer struct {
	all     []lexeme
	skipped []int // lexemes that are ignored
	known   map[string]ends
	work    int
}

func (c *compiler) newSet() set { return make(set, (len(c.all)+63)/64) }

// spend counts steps.
func (c *compiler) spend(n int) {
	c.Step()
	if c.work += n; c.work > maxWork {
		c.Stop(&grammar.LimitError{What: "steps to find what may follow what", Limit: maxWork})
	}
}

// join adds a set to another, and tells whether that changed it.
func (c *compiler) join(to, from set) (changed bool) {
	c.spend(len(from))
	for i, w := range from {
		if w&^to[i] != 0 {
			to[i] |= w
			changed = true
		}
	}
	return changed
}

// follow finds for each lexeme those that may follow it and those that may stand in its place.
func (c *compiler) follow() {
	for i := range c.all {
		c.all[i].next, c.all[i].rivals = c.newSet(), c.newSet()
	}
	c.known = map[string]ends{}
	for _, name := range c.order {
		c.known[name] = ends{first: c.newSet(), last: c.newSet()}
	}
	for changed := true; changed; {
		changed = false
		for _, name := range slices.Backward(c.order) {
			k, e := c.known[name], c.ends(c.rules[name])
			first, last := c.join(k.first, e.first), c.join(k.last, e.last)
			changed = changed || first || last || e.empty && !k.empty
			k.empty = k.empty || e.empty
			c.known[name] = k
		}
	}
	skipped := c.newSet()
	for _, n := range c.skipped {
		skipped[n/64] |= 1 << (n % 64)
	}
	places := []set{c.known["start"].first}
	for i := range c.all {
		places = append(places, c.all[i].next)
	}
	for _, place := range places {
		place.each(func(n int) { c.join(c.all[n].rivals, place) })
		for _, n := range c.skipped { // which may come anywhere
			c.join(c.all[n].rivals, place)
		}
	}
	for i := range c.all {
		c.join(c.all[i].rivals, skipped)
		c.all[i].rivals[i/64] |= 1 << (i % 64)
		c.join(c.all[i].next, skipped)
	}
	for _, n := range c.skipped {
		for i := range c.all {
			c.all[n].next[i/64] |= 1 << (i % 64)
		}
	}
}

func (c *compiler) ends(n *node) ends {
	switch n.op {
	case opLexeme:
		e := ends{first: c.newSet()}
		e.first[n.lexeme/64] |= 1 << (n.lexeme % 64)
		e.last = e.first
		return e
	case opRule:
		return c.known[n.text]
	case opRepeat:
		e := c.ends(n.parts[0])
		if n.most < 0 || n.most > 1 {
			e.last.each(func(l int) { c.join(c.all[l].next, e.first) })
		}
		e.empty = e.empty || n.least == 0
		return e
	}
	out := ends{first: c.newSet(), last: c.newSet(), empty: n.op == opSeq}
	for _, p := range n.parts {
		e := c.ends(p)
		if n.op == opAlt {
			c.join(out.first, e.first)
			c.join(out.last, e.last)
			out.empty = out.empty || e.empty
			continue
		}
		out.last.each(func(l int) { c.join(c.all[l].next, e.first) })
		if out.empty {
			c.join(out.first, e.first)
		}
		if !e.empty {
			out.last = c.newSet()
		}
		c.join(out.last, e.last)
		out.empty = out.empty && e.empty
	}
	return out
}

// separate takes from lexemes what is read as their rivals, and finds what may not come behind them.
func (c *compiler) separate() {
	c.states = []grammar.Set{{}}
	before := make([]*grammar.Expr, len(c.all))
	var anywhere grammar.Set
	for i := range c.all {
		before[i] = c.all[i].e
		c.all[i].first = c.b.Next(c.b.Empty(), before[i])
		anywhere = anywhere.Or(c.all[i].first)
	}
	type place struct {
		rivals   string
		priority int
	}
	longer := map[place]*grammar.Expr{} // what those match that a lexeme may not be the beginning of
	for i := range c.all {
		c.Step()
		l := &c.all[i]
		at := place{fmt.Sprint(l.rivals), l.priority}
		if longer[at] == nil {
			var all []*grammar.Expr
			l.rivals.each(func(n int) {
				if c.all[n].priority >= l.priority {
					all = append(all, before[n])
				}
			})
			longer[at] = c.b.Or(all...)
		}
		var taken []*grammar.Expr
		l.rivals.each(func(n int) {
			switch r := &c.all[n]; {
			case r.priority > l.priority:
				taken = append(taken, c.b.Seq(before[n], c.b.Any()))
			case r.priority == l.priority && r.plain && !l.plain:
				taken = append(taken, before[n])
			}
		})
		if taken := c.b.Or(taken...); !c.b.IsNever(c.b.And(l.e, taken)) {
			l.e = c.b.Except(l.e, taken)
		}
		behind := c.b.Next(l.e, longer[at])
		var first grammar.Set
		l.next.each(func(n int) { first = first.Or(c.all[n].first) })
		if behind.And(first) != (grammar.Set{}) {
			l.state = c.stateOf(behind.And(anywhere))
		}
		if err := c.b.Err(); err != nil {
			c.Stop(err)
		}
	}
}
