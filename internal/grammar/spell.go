package grammar

import "strings"

// Spelled matches the texts of an expression with each byte written as spell has it. What stands for a byte is not empty and
// begins nothing that stands for another one, so that what is written can be read back: what an expression leaves out is then
// left out of what is written too. The rules that it refers to are defined.
func (b *Builder) Spelled(e *Expr, spell func(c byte) string) *Expr {
	var spelling [256]string
	for c := range spelling {
		spelling[c] = spell(byte(c))
	}
	class := func(set Set) *Expr {
		var same Set
		var others []string
		set.each(func(c byte) {
			if s := spelling[c]; s == string([]byte{c}) {
				same.Add(c, c)
			} else {
				others = append(others, s)
			}
		})
		return b.Or(b.Byte(same), b.Choice(others...))
	}
	rules := map[*Rule]*Rule{}
	var todo []*Rule
	m := &mapper{Builder: b, known: map[*Expr]*Expr{}, leaf: func(e *Expr) *Expr {
		switch e.kind {
		case isByte:
			return class(e.first)
		case isText:
			if e.b == b.t.empty {
				var text strings.Builder
				for i := range len(e.text) {
					text.WriteString(spelling[e.text[i]])
				}
				return b.Literal(text.String())
			}
		case isRef:
			r := rules[e.rule]
			if r == nil {
				r = b.Rule(e.rule.name)
				rules[e.rule], todo = r, append(todo, e.rule)
			}
			return b.Ref(r)
		}
		return nil
	}}
	out := m.expr(e)
	for i := 0; i < len(todo) && b.err == nil; i++ {
		if r := todo[i]; r.body != nil { // else Compile says so
			b.Define(rules[r], m.expr(r.body))
		}
	}
	return out
}

// mapper makes expressions of others by what stands for some of their parts.
type mapper struct {
	*Builder
	known map[*Expr]*Expr
	leaf  func(e *Expr) *Expr // nil of one that is made of its parts
}

func (m *mapper) expr(e *Expr) *Expr {
	if n := m.known[e]; n != nil {
		return n
	}
	m.budget.spend(exprSteps)
	if m.worked(); m.err != nil {
		return m.t.never
	}
	n := m.leaf(e)
	if n == nil {
		n = m.of(e)
	}
	m.known[e] = n
	return n
}

// parts are those of a sequence, texts apart from what follows them.
func (b *Builder) parts(e *Expr) (list []*Expr) {
	for ; e.kind == isCat || e.kind == isText; e = e.b {
		if e.kind == isCat {
			list = append(list, e.a)
		} else {
			list = append(list, b.t.text(e.text, b.t.empty))
		}
	}
	if e != b.t.empty {
		list = append(list, e)
	}
	return list
}

func (m *mapper) all(list []*Expr) []*Expr {
	out := make([]*Expr, len(list))
	for i, e := range list {
		out[i] = m.expr(e)
	}
	return out
}

// of makes an expression of its parts.
func (m *mapper) of(e *Expr) *Expr {
	switch e.kind {
	case isCat, isText:
		if parts := m.parts(e); len(parts) > 1 {
			return m.Seq(m.all(parts)...)
		}
	case isOr:
		return m.Or(m.all(e.args)...)
	case isAnd:
		return m.and(e.args)
	case isNot:
		return m.and([]*Expr{e})
	case isRepeat:
		return m.Repeat(m.expr(e.a), int(e.min), maxOf(e.max))
	case isMembers, isMore:
		return m.members(e)
	}
	return e
}

// and is an intersection. What is complemented is left out of the others, or of what can be written at all.
func (m *mapper) and(args []*Expr) *Expr {
	var in, out []*Expr
	for _, a := range args {
		if a.kind == isNot {
			out = append(out, m.expr(a.a))
		} else {
			in = append(in, m.expr(a))
		}
	}
	if len(in) == 0 {
		in = append(in, m.expr(m.t.any))
	}
	return m.Except(m.And(in...), out...)
}

func (m *mapper) members(e *Expr) *Expr {
	others := m.t.never
	var required, optional []*Expr
	e.each(func(i int, member *Expr) {
		switch n := m.expr(member); {
		case i < 0:
			others = n
		case i < e.family.required:
			required = append(required, n)
		default:
			optional = append(optional, n)
		}
	})
	f, all := m.t.newFamily(m.expr(e.family.between), others, required, optional)
	if f == nil || e.kind == isMembers {
		return m.made(m.t.members(f, all), len(e.family.list))
	}
	return m.made(m.t.more(f, all), len(e.family.list))
}

// mostFlat bounds the expressions that putting rules in the place of references makes.
const mostFlat = 1 << 14

// Flat is an expression with rules in the place of references to them, so that it is regular. Where a rule is in itself, or that
// would become large, it is the expression as it was.
func (b *Builder) Flat(e *Expr) *Expr {
	flat, before, within := true, b.t.all.n, map[*Rule]bool{}
	m := &mapper{Builder: b, known: map[*Expr]*Expr{}}
	m.leaf = func(e *Expr) *Expr {
		switch {
		case e.regular || !flat:
			return e
		case e.kind != isRef:
			return nil
		case e.rule.body == nil || within[e.rule]:
			flat = false
			return e
		}
		within[e.rule] = true
		n := m.expr(e.rule.body)
		delete(within, e.rule)
		if b.t.all.n-before > mostFlat {
			flat = false
			return e
		}
		return n
	}
	if n := m.expr(e); flat {
		return n
	}
	return e
}
