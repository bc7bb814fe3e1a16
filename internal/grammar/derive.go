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
	case isText:
		d := t.behind(e, 1)
		t.charge(u)
		return d
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
	t.charge(u)
	if u.spend(deriveSteps / 4 * len(d.args)); !u.Spent() { // else parts of it may be missing
		t.slopes[key] = d
	}
	return d
}

// charge takes the expressions that are there since it did so before from a budget.
func (t *table) charge(u *Budget) {
	u.spend(exprSteps * (t.all.n - t.charged))
	t.charged = t.all.n
}

// call is a rule that an expression may begin with, and what follows it.
type call struct {
	rule *Rule
	then *Expr
}

// calls are those that an expression may begin with.
func (t *table) calls(e *Expr, u *Budget) []call {
	if !e.calling {
		return nil
	}
	if e.state.calls == nil {
		var list []call
		if t.addCalls(e, t.empty, map[call]bool{}, u, &list); u.Spent() { // some may be missing
			return nil
		}
		e.state.calls = &list
	}
	return *e.state.calls
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

// classes are those of the bytes of expressions of a table.
func (t *table) classes(list ...*Expr) (p partition) {
	var in [256]uint64 // the sets that a byte is in, as a sum of what stands for each: they are keyed hashes
	var single Set
	sets, look := map[Set]bool{}, t.look()
	for _, e := range list {
		e.parts(look, func(e *Expr) bool {
			if e.kind == isByte && !sets[e.first] {
				sets[e.first] = true
				e.first.each(func(b byte) { in[b] += e.digest[0] })
			}
			for i := range len(e.text) {
				single.Add(e.text[i], e.text[i])
			}
			return true
		})
	}
	classes := make(map[uint64]uint8, 16)
	for b, sum := range in {
		c, ok := classes[sum]
		if !ok || single.Has(byte(b)) {
			c = uint8(len(p.reps))
			p.reps = append(p.reps, byte(b))
		}
		if p.of[b] = c; !single.Has(byte(b)) {
			classes[sum] = c
		}
	}
	return p
}

// look begins to look through expressions, each of which is met once.
func (t *table) look() uint32 {
	t.marks++
	return t.marks
}

// met tells whether an expression was met, which it is now.
func (e *Expr) met(look uint32) bool {
	was := e.state.mark == look
	e.state.mark = look
	return was
}

// parts calls f for an expression and those that it is made of, each once, until f reports false.
func (e *Expr) parts(look uint32, f func(*Expr) bool) bool {
	for !e.met(look) {
		if !f(e) {
			return false
		}
		switch e.kind {
		case isCat:
			if !e.a.parts(look, f) {
				return false
			}
			e = e.b
		case isText:
			e = e.b
		case isNot, isRepeat:
			e = e.a
		case isOr, isAnd:
			for _, a := range e.args {
				if !a.parts(look, f) {
					return false
				}
			}
		case isMembers, isMore:
			all := e.family.between.parts(look, f)
			e.each(func(_ int, m *Expr) { all = all && m.parts(look, f) })
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
	var list []reached
	met := map[*Expr]bool{}
	reach := func(e *Expr, from int) (ends bool) {
		met[e] = true
		list = append(list, reached{e, from})
		if e.state.fate != alive && !e.nullable && e.boolean {
			return false
		}
		for i, more := len(list)-1, t.shortest(e); i >= 0; i, more = list[i].from, more+1 {
			if s := &list[i].e.state; s.fate == unknown {
				s.fate, s.rest = alive, more
			}
		}
		return true
	}
	if reach(e, -1) {
		return true
	}
	for i := 0; i < len(list); i++ {
		for _, c := range p.reps {
			u.spend(1)
			if d := t.derive(list[i].e, c, u); d != t.never && d.state.fate != dead && !met[d] {
				if u.spend(exprSteps); reach(d, i) && !u.Spent() {
					return true
				}
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
