package grammar

import "slices"

// slope is an expression and a byte by which it is derived.
type slope struct {
	of *Expr
	by byte
}

// What a derivative costs that is not known yet, and an expression that is not there yet.
const (
	deriveSteps = 192
	rangeSteps  = 64 // for a range of characters, which may be several rows of bytes
	exprSteps   = 192
)

// derive is what may follow a byte that is part of the expression itself, not of a rule that it refers to.
func (t *table) derive(e *Expr, c byte, u *Budget) *Expr {
	if !e.first.Has(c) {
		return t.never
	}
	switch e.kind {
	case isByte:
		return t.empty
	case isRef:
		return t.never
	case isCat:
		if e.a.kind == isByte {
			return e.b
		}
	}
	key := slope{e, c}
	if d := t.slopes[key]; d != nil {
		return d
	}
	u.spend(deriveSteps + 4*len(e.args))
	if u.Spent() {
		return t.never
	}
	d := t.never
	switch e.kind {
	case isCat:
		if d = t.cat(t.derive(e.a, c, u), e.b); e.a.nullable {
			rest := t.derive(e.b, c, u)
			if u.Spent() {
				return t.never
			}
			d = t.or(d, rest)
		}
	case isOr, isAnd:
		parts := make([]*Expr, 0, len(e.args))
		for _, a := range e.args {
			if p := t.derive(a, c, u); p != t.never || e.kind == isAnd {
				parts = append(parts, p)
			}
		}
		u.spend(deriveSteps / 3 * len(parts))
		if e.kind == isOr {
			d = t.or(parts...)
		} else {
			d = t.and(parts...)
		}
	case isNot:
		d = t.not(t.derive(e.a, c, u))
	case isRepeat:
		d = t.cat(t.derive(e.a, c, u), t.less(e))
	case isMembers:
		var parts []*Expr
		e.each(func(i int, m *Expr) {
			if u.spend(len(e.family.list)); !u.Spent() && m.first.Has(c) {
				parts = append(parts, t.cat(t.derive(m, c, u), t.then(e, i)))
			}
		})
		d = t.or(parts...)
	case isMore:
		d = t.cat(t.derive(e.family.between, c, u), t.members(e.family, e.left))
	}
	u.spend(exprSteps * (len(t.all) - t.charged))
	t.charged = len(t.all)
	if u.spend(deriveSteps / 4 * len(d.args)); !u.Spent() { // else parts of it may be missing
		t.slopes[key] = d
	}
	return d
}

// call is a rule that an expression may begin with, and what follows it.
type call struct {
	rule *Rule
	then *Expr
}

// calls are those that an expression may begin with.
func (t *table) calls(e *Expr, u *Budget) []call {
	if e.calling && e.state.calls == nil {
		var list []call
		if t.addCalls(e, t.empty, map[call]bool{}, u, &list); u.Spent() { // some may be missing
			return nil
		}
		e.state.calls = list
	}
	return e.state.calls
}

func (t *table) addCalls(e, then *Expr, met map[call]bool, u *Budget, dst *[]call) {
	if u.spend(deriveSteps); !e.calling || u.Spent() {
		return
	}
	switch e.kind {
	case isRef:
		if c := (call{e.rule, then}); !met[c] {
			met[c] = true
			*dst = append(*dst, c)
		}
	case isCat:
		if t.addCalls(e.a, t.cat(e.b, then), met, u, dst); e.a.nullable {
			t.addCalls(e.b, then, met, u, dst)
		}
	case isOr:
		for _, a := range e.args {
			t.addCalls(a, then, met, u, dst)
		}
	case isRepeat:
		t.addCalls(e.a, t.cat(t.less(e), then), met, u, dst)
	case isMembers:
		e.each(func(i int, m *Expr) { t.addCalls(m, t.cat(t.then(e, i), then), met, u, dst) })
	case isMore:
		t.addCalls(e.family.between, t.cat(t.members(e.family, e.left), then), met, u, dst)
	}
}

// less is what follows one of a repetition.
func (t *table) less(e *Expr) *Expr {
	most := maxOf(e.max)
	if most > 0 {
		most--
	}
	return t.repeat(e.a, max(int(e.min)-1, 0), most)
}

// partition is bytes put into classes: no set of bytes that it was made of tells those of a class apart.
type partition struct {
	of   [256]uint8 // the class of a byte
	reps []byte     // a byte of each class
}

// split tells the bytes of a set from others.
func (p *partition) split(s *Set) {
	const none = -1
	var to [256]int // the new class of those of a class that are in the set
	var out [256]bool
	for i := range to {
		to[i] = none
	}
	for b := range 256 {
		if !s.Has(byte(b)) {
			out[p.of[b]] = true
		}
	}
	s.each(func(b byte) {
		c := p.of[b]
		if !out[c] { // all of it
			return
		}
		if to[c] == none {
			to[c] = len(p.reps)
			p.reps = append(p.reps, b)
		}
		p.of[b] = uint8(to[c])
	})
	for b := 255; b >= 0; b-- {
		p.reps[p.of[b]] = byte(b)
	}
}

// classes are those of the bytes of expressions.
func classes(list ...*Expr) partition {
	p, met, sets := partition{reps: []byte{0}}, map[*Expr]bool{}, map[Set]bool{}
	for _, e := range list {
		e.parts(met, func(e *Expr) bool {
			if e.kind == isByte && !sets[e.first] {
				sets[e.first] = true
				p.split(&e.first)
			}
			return true
		})
	}
	return p
}

// parts calls f for an expression and those that it is made of, each once, until f reports false.
func (e *Expr) parts(met map[*Expr]bool, f func(*Expr) bool) bool {
	for !met[e] {
		if met[e] = true; !f(e) {
			return false
		}
		switch e.kind {
		case isCat:
			if !e.a.parts(met, f) {
				return false
			}
			e = e.b
		case isNot, isRepeat:
			e = e.a
		case isOr, isAnd:
			for _, a := range e.args {
				if !a.parts(met, f) {
					return false
				}
			}
		case isMembers, isMore:
			all := e.family.between.parts(met, f)
			e.each(func(_ int, m *Expr) { all = all && m.parts(met, f) })
			return all
		}
	}
	return true
}

// fate tells whether texts match a regular expression.
type fate uint8

const (
	unknown fate = iota
	alive
	dead
)

// live is an expression without alternatives that no text matches, of which only intersections and complements need looking at.
// If the budget is spent it may be any.
func (t *table) live(e *Expr, p *partition, u *Budget) *Expr {
	if !e.boolean {
		return e
	}
	switch e.kind {
	case isAnd, isNot:
		if !t.matched(e, p, u) {
			return t.never
		}
	case isCat:
		if a := t.live(e.a, p, u); a != e.a {
			return t.cat(a, e.b)
		}
	case isOr:
		parts := make([]*Expr, len(e.args))
		for i, a := range e.args {
			parts[i] = t.live(a, p, u)
		}
		if !slices.Equal(parts, e.args) {
			return t.or(parts...)
		}
	}
	return e
}

// matched tells whether a text matches a regular expression: it looks for a short one. What it learns on the way is kept.
func (t *table) matched(e *Expr, p *partition, u *Budget) bool {
	if f := e.state.fate; f != unknown {
		return f == alive
	}
	type reached struct {
		e    *Expr
		from int // of the list
	}
	list, met := []reached{{e, -1}}, map[*Expr]bool{e: true}
	for i := 0; i < len(list); i++ {
		at := list[i].e
		if at.state.fate == alive || at.nullable || !at.boolean {
			for more := t.shortest(at); i >= 0; i, more = list[i].from, more+1 {
				if s := &list[i].e.state; s.fate == unknown {
					s.fate, s.rest = alive, more
				}
			}
			return true
		}
		for _, c := range p.reps {
			u.spend(1)
			if d := t.derive(at, c, u); d != t.never && d.state.fate != dead && !met[d] {
				met[d] = true
				list = append(list, reached{d, i})
				u.spend(exprSteps)
			}
			if u.Spent() {
				return true
			}
		}
	}
	for _, r := range list {
		r.e.state.fate = dead
	}
	return false
}

// shortest is the length of a text that an expression matches, as short as is known.
func (t *table) shortest(e *Expr) int32 {
	if e.state.fate == alive {
		return e.state.rest
	}
	return e.short
}

// longestRest is the length of texts that is not told from larger ones.
const longestRest = 1 << 24
