package grammar

import (
	"slices"
	"sync/atomic"
)

// state is an expression as a state of the automaton that a grammar is: what is left of a rule. What is found out about it is
// kept, for all who use the grammar.
type state struct {
	fate  fate
	yes   bool                                   // an answer, with mark
	mark  uint32                                 // of the last one who looked for something and met it, see table.look
	rest  int32                                  // of an expression that is alive, see table.shortest
	stays atomic.Uint32                          // charKinds, see findStays; 0 is not known
	calls *[]call                                // see table.calls
	made  *Expr                                  // see compiler.expr
	as    step                                   // the one that leads here and calls nothing
	next  atomic.Pointer[[]atomic.Pointer[step]] // by Grammar.class
	masks atomic.Pointer[masks]
}

// step is where a byte leads: to another state of the same rule, and into rules that it calls. It does not change.
type step struct {
	next *Expr    // nil for nowhere
	into *calling // nil for none
}

// calling is the rules that a step enters.
type calling struct {
	called []called // in no order, as rules may call each other
	tops   []top
}

// called is a rule that a step enters.
type called struct {
	rule *Rule
	back []link // what follows it, in a rule of called or, -1, in the one that the step leaves
}

// link is what follows a rule: a state of the activation that called it.
type link struct {
	then *Expr
	in   int32
}

// top is the state of a called rule behind the byte.
type top struct {
	at *Expr
	in int32 // of called
}

var nowhere step

// step is where a byte leads from a state.
func (g *Grammar) step(e *Expr, c byte, u *Budget) *step {
	switch {
	case !e.first.Has(c):
		return &nowhere
	case e.kind == isCat && e.a.kind == isByte, e.kind == isText && len(e.text) == 1:
		return &e.b.state.as
	}
	if next := e.state.next.Load(); next != nil {
		if s := (*next)[g.class(e, c)].Load(); s != nil {
			return s
		}
	}
	return g.find(e, c, u)
}

// mostLearned bounds the memory of what is found out about a grammar while it is used. When there is more, it is all forgotten.
const mostLearned = 32 << 20

// learned is about the bytes that were taken since the grammar was made.
func (g *Grammar) learned() int {
	return 224*(g.t.all.n-g.least) + 64*len(g.t.slopes) + 8*g.steps
}

// find makes a step.
func (g *Grammar) find(e *Expr, c byte, u *Budget) *step {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.learned() > mostLearned {
		g.forget()
	}
	if e.kind != isText {
		c = g.classes.reps[g.classes.of[c]]
	}
	d := g.t.live(g.t.derive(e, c, u), &g.classes, u)
	s := &nowhere
	if d != g.t.never {
		s = &d.state.as
	}
	if e.calling {
		s = g.enter(e, c, s, u)
	}
	if u.Spent() {
		return &nowhere
	}
	next := e.state.next.Load()
	if next == nil {
		n := len(g.classes.reps)
		if e.kind == isText {
			n = 1
		}
		list := make([]atomic.Pointer[step], n)
		next = &list
		e.state.next.Store(next)
		g.steps += n
	}
	(*next)[g.class(e, c)].Store(s)
	return s
}

// class is where the steps of a state have that of a byte. A text goes on with one.
func (g *Grammar) class(e *Expr, c byte) uint8 {
	if e.kind == isText {
		return 0
	}
	return g.classes.of[c]
}

// forget leaves of the expressions those of the rules. Maps are new ones, as those that are cleared stay as large as they were.
func (g *Grammar) forget() {
	g.t.all, g.t.slopes, g.horizons = exprs{}, map[slope]*Expr{}, map[horizon]seen{}
	kept := []*Expr{g.t.never, g.t.empty, g.t.any, g.beyond}
	for _, r := range g.rules {
		kept = append(kept, r.body)
	}
	look := g.t.look()
	for _, e := range kept {
		e.parts(look, func(e *Expr) bool {
			g.t.all.put(e)
			e.state.next.Store(nil)
			e.state.calls = nil
			return true
		})
	}
	g.least, g.t.charged, g.steps = g.t.all.n, g.t.all.n, 0
}

// enter adds to a step what it calls.
func (g *Grammar) enter(e *Expr, c byte, s *step, u *Budget) *step {
	var list []called
	at := map[*Rule]int{}
	type back struct {
		of int
		link
	}
	met := map[back]bool{}
	call := func(e *Expr, in int32) {
		for _, k := range g.t.calls(e, u) {
			if u.spend(deriveSteps / 4); !k.rule.first.Has(c) {
				continue
			}
			i, ok := at[k.rule]
			if !ok {
				i, list = len(list), append(list, called{rule: k.rule})
				at[k.rule] = i
			}
			if l := (back{i, link{k.then, in}}); !met[l] {
				met[l] = true
				list[i].back = append(list[i].back, l.link)
			}
		}
	}
	call(e, -1)
	for i := 0; i < len(list) && !u.Spent(); i++ {
		call(list[i].rule.body, int32(i))
	}
	var tops []top
	for i, f := range list {
		if u.Spent() {
			return s
		}
		if d := g.t.live(g.t.derive(f.rule.body, c, u), &g.classes, u); d != g.t.never {
			tops = append(tops, top{d, int32(i)})
		}
	}
	if len(tops) == 0 {
		return s
	}
	called, tops := g.shorten(list, tops, u)
	return &step{s.next, &calling{called, tops}}
}

// shorten leaves out rules that no top returns to. Where nothing is left of a rule, what it called returns to where that rule
// does: the stack does not grow when a rule ends with another.
func (g *Grammar) shorten(list []called, tops []top, u *Budget) ([]called, []top) {
	short := make([]called, len(list))
	for i, f := range list {
		short[i].rule = f.rule
		met := map[int32]bool{}
		var follow func(back []link)
		follow = func(back []link) {
			for _, l := range back {
				if u.Spent() {
					return
				}
				switch u.spend(1 + len(short[i].back)/4); {
				case l.then != g.t.empty || l.in < 0:
					if !slices.Contains(short[i].back, l) {
						short[i].back = append(short[i].back, l)
					}
				case !met[l.in]:
					met[l.in] = true
					follow(list[l.in].back)
				}
			}
		}
		follow(f.back)
	}
	place := make([]int32, len(list))
	for i := range place {
		place[i] = -1
	}
	var kept []called
	var keep func(i int32) int32
	keep = func(i int32) int32 {
		switch {
		case i < 0:
			return i
		case place[i] >= 0:
			return place[i]
		}
		at := int32(len(kept))
		place[i] = at
		kept = append(kept, called{rule: short[i].rule})
		back := slices.Clone(short[i].back)
		for j := range back {
			back[j].in = keep(back[j].in)
		}
		kept[at].back = back
		return at
	}
	for i := range tops {
		tops[i].in = keep(tops[i].in)
	}
	return kept, tops
}
