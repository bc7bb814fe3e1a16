package grammar

import "encoding/binary"

// family is members that come in any order, each at most once, with something between them: as those of an object in JSON. Which
// came is part of the state (group.left), so the orders need not be told apart beforehand.
type family struct {
	between  *Expr
	others   *Expr   // come any number of times
	list     []*Expr // required ones first
	required int
	digest   digest
}

// group is the members of a family that did not come yet.
type group struct {
	family *family
	left   bitset
}

// bitset is a set of members, by their place.
type bitset []uint64

func (s bitset) has(i int) bool { return s[i/64]>>(i%64)&1 != 0 }

func (s bitset) without(i int) bitset {
	t := append(bitset(nil), s...)
	t[i/64] &^= 1 << (i % 64)
	return t
}

// newFamily makes a family, and the set of all in it. It is nil if a required one is never there.
func (t *table) newFamily(between, others *Expr, required, optional []*Expr) (*family, bitset) {
	f := &family{between: between, others: others}
	f.list = unique(append(f.list, required...))
	f.required = len(f.list)
	for _, m := range unique(append([]*Expr(nil), optional...)) {
		if m != t.never {
			f.list = append(f.list, m)
		}
	}
	s := binary.LittleEndian.AppendUint32([]byte("family"), uint32(f.required))
	all := make(bitset, (len(f.list)+63)/64)
	for i, m := range f.list {
		s = m.digest.append(s)
		if all[i/64] |= 1 << (i % 64); i < f.required && m == t.never {
			return nil, nil
		}
	}
	f.digest = digestOf(between.digest.append(others.digest.append(s)))
	return f, all
}

// members is one or more of those that are left, among them all that are required.
func (t *table) members(f *family, left bitset) *Expr {
	e := content{kind: isMembers, group: &group{f, left}}
	some := false
	if f != nil {
		e.each(func(int, *Expr) { some = true })
	}
	if !some {
		return t.never
	}
	return t.intern(e)
}

// more is what follows a member: nothing, if all are there that must, or further ones.
func (t *table) more(f *family, left bitset) *Expr {
	e := content{kind: isMore, group: &group{f, left}}
	switch next := t.members(f, left); {
	case next == t.never:
		return t.empty
	case f.between != t.empty:
		return t.intern(e)
	case e.requires():
		return next
	default:
		return t.or(next, t.empty)
	}
}

// then is what follows member i, -1 of the others, of those that are left.
func (t *table) then(e *Expr, i int) *Expr {
	if i < 0 {
		return t.more(e.family, e.left)
	}
	return t.more(e.family, e.left.without(i))
}

// each calls f with each member that may come, and its place, -1 of the others.
func (e *content) each(f func(i int, m *Expr)) {
	for i, m := range e.family.list {
		if e.left.has(i) {
			f(i, m)
		}
	}
	if e.family.others.kind != isNever {
		f(-1, e.family.others)
	}
}

// requires tells whether a required member is left.
func (e *content) requires() bool {
	for i := range e.family.required {
		if e.left.has(i) {
			return true
		}
	}
	return false
}

// describeMembers is describe.
func (e *content) describeMembers() {
	f := e.family
	parts, least := []*Expr{f.between}, int32(longestRest)
	e.each(func(i int, m *Expr) {
		parts = append(parts, m)
		if least = min(least, m.short); i >= 0 && i < f.required {
			e.short = min(e.short+m.short+f.between.short, longestRest)
		}
		if e.kind == isMembers {
			e.first, e.calling = e.first.Or(m.first), e.calling || m.calling
		}
	})
	if e.kind == isMembers {
		e.short = max(e.short, least)
	} else {
		e.first, e.calling, e.nullable = f.between.first, f.between.calling, !e.requires()
	}
	e.inherit(parts...)
}
