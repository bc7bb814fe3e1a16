package jsonschema

import (
	"fmt"
	"slices"

	"hearth/internal/grammar"
	"hearth/internal/schema"
)

// declared is a member that a form names.
type declared struct {
	name     string
	key      *grammar.Expr // the name and a colon
	value    *grammar.Expr // Never where there can be no such member
	required bool
}

// member is one and what follows it, where a comma belongs before it if others do. It is made at once, because each expression
// that is made counts: there may be ten thousand members.
func (o *objects) member(comma bool, m *declared, value *grammar.Expr, then ...*grammar.Expr) *grammar.Expr {
	if value == o.b.Never() {
		return value
	}
	parts := o.scratch[:0]
	if comma {
		parts = append(parts, o.comma)
	}
	o.scratch = append(append(parts, m.key, value), then...)
	return o.b.Seq(o.scratch...)
}

// mostPatterns is how many patterns of an object's members are told apart in all their combinations.
const mostPatterns = 4

// mostSome is how many members of some names and values an object is asked for.
const mostSome = 3

// object is the objects of a form.
func (c *compiler) object(f *form) *grammar.Expr {
	return c.between("{", "}", c.members(f))
}

// members is what is in them.
func (c *compiler) members(f *form) *grammar.Expr {
	o := &objects{compiler: c, f: f}
	o.span = f.count(members)
	if o.min == 0 && f.excludesEmpty(schema.Object) {
		o.min = 1
	}
	for _, s := range f.rules {
		if o.some = append(o.some, s.object.some...); len(o.some) > mostSome {
			c.lacks(s.at, "not", "so many members at once are not asked for")
			o.some = o.some[:mostSome]
		}
	}
	o.declare()
	if o.extra = c.b.Never(); !c.o.Declared || !o.namesAll() {
		o.extra = o.undeclared(nil)
	}
	required := 0
	for _, m := range o.members {
		if m.required {
			required++
		}
	}
	n := o.behind(required)
	if n.empty() {
		return c.b.Never()
	}
	var body *grammar.Expr
	if optional := len(o.members) - required; len(o.dependent)+len(o.some) > 0 || optional > 0 && (n.min > 0 || n.max != none && (n.max < optional || o.extra != c.b.Never())) {
		if body = o.counted(); body == nil {
			for _, s := range f.rules {
				for keyword, there := range map[string]bool{"not": s.object.some != nil, "minProperties": s.object.min > 0, "maxProperties": s.object.max != none, "dependentRequired": s.object.dependent != nil} {
					if there {
						c.lacks(s.at, keyword, "so many optional members are not counted")
					}
				}
			}
			n = anyMany
		}
	}
	switch {
	case body != nil:
	case c.each == nil && c.o.AnyOrder && n == anyMany:
		body = o.unordered()
	default:
		body = o.ordered(c.fewer(n))
	}
	return body
}

// objects makes the members of one form's objects: those that are declared in their order, then others.
type objects struct {
	*compiler
	f *form
	span
	members   []declared
	extra     *grammar.Expr // a member that is not declared
	dependent []dependency
	some      []some
	scratch   []*grammar.Expr
}

// declaredNames are all that the form names, in the order of its schemas.
func (o *objects) declaredNames() (names []string, required map[string]bool) {
	seen := map[string]bool{}
	required = map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for _, s := range o.f.rules {
		for _, p := range s.object.props {
			add(p.name)
		}
	}
	for _, s := range o.f.rules {
		for _, name := range s.object.required {
			add(name)
			required[name] = true
		}
		for _, d := range s.object.dependent {
			o.dependent = append(o.dependent, d)
			add(d.name)
			for _, name := range d.required {
				add(name)
			}
		}
	}
	return names, required
}

// namesAll tells whether a schema of the form names members and none says what others there are, nor are more of them wanted.
func (o *objects) namesAll() bool {
	saysOthers := func(s *rule) bool {
		p := &s.object
		return p.additional != nil || p.patterns != nil || p.names != nil || p.left != nil || p.some != nil
	}
	return o.min <= len(o.members) && slices.ContainsFunc(o.f.rules, func(s *rule) bool { return s.object.props != nil }) &&
		!slices.ContainsFunc(o.f.rules, saysOthers)
}

func (o *objects) declare() {
	names, required := o.declaredNames()
	check := o.checker()
	for _, name := range names {
		m := declared{name: name, value: o.b.Never(), required: required[name]}
		named := !slices.ContainsFunc(o.f.rules, func(s *rule) bool {
			return s.object.names != nil && !check.valid(s.object.names, schema.NewString(name), 0)
		})
		if named && o.o.allowsName(o.b, name) {
			m.key, m.value = o.compiler.declared(name, o.memberRules(o.f, name))
		}
		o.members = append(o.members, m)
	}
}

// undeclared is a member that no name is declared for, one of those that are asked for.
func (o *objects) undeclared(asked []some) *grammar.Expr {
	b := o.b
	var patterns []string
	var exprs []*grammar.Expr
	keys := b.Repeat(o.char, 0, -1)
	for _, s := range o.f.rules {
		for _, p := range s.object.patterns {
			e := o.patternOr(s, p.name, b.Never()) // it can't be told which names it has
			if !slices.Contains(patterns, p.name) {
				patterns, exprs = append(patterns, p.name), append(exprs, e)
			}
		}
		if s.object.names != nil {
			keys = b.And(keys, o.compiler.names([]*rule{s.object.names}))
		}
	}
	var known []string
	for _, m := range o.members {
		known = append(known, o.o.spelled(m.name))
	}
	if len(known) > 0 {
		keys = b.Except(keys, b.Choice(known...))
	}
	var more []*rule
	for _, one := range asked {
		keys = b.And(keys, o.about(one))
		if one.rule != nil {
			more = append(more, one.rule)
		}
	}
	var alts []*grammar.Expr
	for _, in := range o.combinations(keys, patterns, exprs) {
		rules, never := o.undeclaredRules(in)
		if never {
			continue
		}
		has, hasNot := []*grammar.Expr{keys}, []*grammar.Expr(nil)
		for i, e := range exprs {
			if slices.Contains(in, patterns[i]) {
				has = append(has, e)
			} else {
				hasNot = append(hasNot, e)
			}
		}
		k := b.Except(b.And(has...), hasNot...)
		if len(patterns) > 0 && b.IsNever(k) {
			continue
		}
		alts = append(alts, o.compiler.undeclared(k, append(rules, more...)))
	}
	return b.Or(alts...)
}

// patternOr is a pattern of names, or something else if that can't be held, which is told.
func (o *objects) patternOr(s *rule, pattern string, otherwise *grammar.Expr) *grammar.Expr {
	if e := o.compiled(s, "patternProperties", pattern); e != nil {
		return e
	}
	return otherwise
}

// about is the names that are asked for.
func (o *objects) about(one some) *grammar.Expr {
	b := o.b
	e := b.Any()
	if one.pattern != nil {
		e = o.patternOr(o.f.rules[0], *one.pattern, e)
	}
	if one.names != nil {
		e = b.And(e, o.compiler.names([]*rule{one.names}))
	}
	if one.outside != nil {
		var known []string
		for _, p := range one.outside.props {
			known = append(known, o.o.spelled(p.name))
		}
		e = b.Except(e, b.Choice(known...))
		for _, p := range one.outside.patterns {
			e = b.Except(e, o.patternOr(o.f.rules[0], p.name, b.Never()))
		}
	}
	return e
}

// combinations are the sets of patterns that a name may have at once.
func (o *objects) combinations(keys *grammar.Expr, patterns []string, exprs []*grammar.Expr) (out [][]string) {
	if len(patterns) <= mostPatterns {
		for set := range 1 << len(patterns) {
			out = append(out, picked(patterns, set))
		}
		return out
	}
	out = append(out, nil)
	for i, p := range patterns {
		out = append(out, []string{p})
		for j := range i {
			meet := !o.b.IsNever(o.b.And(keys, exprs[i], exprs[j]))
			if err := o.b.Err(); err != nil { // then it knows nothing
				panic(stop{err})
			}
			if meet {
				panic(stop{&grammar.LimitError{What: fmt.Sprintf("patterns of members that may hold at once at %s", o.f.rules[0].at), Limit: mostPatterns}})
			}
		}
	}
	return out
}

// undeclaredRules are those of a member whose name has these patterns.
func (o *objects) undeclaredRules(in []string) (rules []*rule, never bool) {
	for _, s := range o.f.rules {
		found := false
		for _, p := range s.object.patterns {
			if slices.Contains(in, p.name) {
				found, rules = true, append(rules, p.rule)
			}
		}
		if !found && s.object.additional != nil {
			rules = append(rules, s.object.additional)
		}
	}
	rules = o.left(o.f, rules, leftMember, func(s *rule) bool {
		return s.object.additional != nil || slices.ContainsFunc(s.object.patterns, func(p member) bool { return slices.Contains(in, p.name) })
	})
	return rules, slices.ContainsFunc(rules, func(s *rule) bool { return s.never })
}

// ordered is the members in their order, and n others behind them.
func (o *objects) ordered(n span) *grammar.Expr {
	b := o.b
	first := slices.IndexFunc(o.members, func(m declared) bool { return m.required })
	tail := o.more(o.extra, n)
	for i := len(o.members) - 1; i > first && first >= 0; i-- {
		if m := &o.members[i]; m.required {
			tail = o.member(true, m, m.value, tail)
		} else {
			tail = b.Seq(b.Optional(o.member(true, m, m.value)), tail)
		}
	}
	if first >= 0 {
		tail = o.member(false, &o.members[first], o.members[first].value, tail)
		for i := first - 1; i >= 0; i-- {
			tail = b.Seq(b.Optional(o.member(false, &o.members[i], o.members[i].value, o.comma)), tail)
		}
		return tail
	}
	alts := []*grammar.Expr{o.list(o.extra, n)}
	for i := len(o.members) - 1; i >= 0; i-- { // the first one that is there
		m := &o.members[i]
		alts = append(alts, o.member(false, m, m.value, tail))
		tail = b.Seq(b.Optional(o.member(true, m, m.value)), tail)
	}
	return b.Or(alts...)
}

// unordered is the members in any order.
func (o *objects) unordered() *grammar.Expr {
	var required, optional []*grammar.Expr
	for i := range o.members {
		m := &o.members[i]
		if e := o.member(false, m, m.value); m.required {
			required = append(required, e)
		} else {
			optional = append(optional, e)
		}
	}
	return o.b.Members(o.comma, required, optional, o.extra)
}

// counted is the members in their order where it matters which of them are there. It is nil if that takes too many states.
func (o *objects) counted() *grammar.Expr {
	t := &presence{objects: o, known: map[presenceState]*grammar.Expr{}, bit: map[string]uint64{}}
	for _, d := range o.dependent {
		for _, name := range append([]string{d.name}, d.required...) {
			if t.bit[name] == 0 {
				if len(t.bit) == 64 {
					return nil
				}
				t.bit[name] = 1 << len(t.bit)
			}
		}
	}
	if t.enough = o.min; o.max != none {
		t.enough = o.max
	}
	t.enough = max(t.enough, 1)
	e := t.tail(presenceState{})
	if len(t.known) > mostCounts {
		return nil
	}
	return e
}

// presence makes the members of objects for each set of those that are there before.
type presence struct {
	*objects
	enough int // members are counted up to here
	known  map[presenceState]*grammar.Expr
	bit    map[string]uint64
}

type presenceState struct {
	at, count int
	there     uint64 // of the members that dependencies are about
	asked     int    // of some, those that were met
}

func (t *presence) tail(s presenceState) *grammar.Expr {
	if e := t.known[s]; e != nil {
		return e
	}
	b := t.b
	if len(t.known) > mostCounts {
		return b.Never()
	}
	if s.at == len(t.members) {
		return t.end(s)
	}
	m := &t.members[s.at]
	var alts []*grammar.Expr
	if s.count != t.max {
		t.eachAsked(s.asked, func(met int, asked []some) {
			value := m.value
			if met != 0 {
				value = t.asked(m, asked)
			}
			next := presenceState{s.at + 1, min(s.count+1, t.enough), s.there | t.bit[m.name], s.asked | met}
			alts = append(alts, t.member(s.count > 0, m, value, t.tail(next)))
		})
	}
	if !m.required {
		alts = append(alts, t.tail(presenceState{s.at + 1, s.count, s.there, s.asked}))
	}
	e := b.Or(alts...)
	t.known[s] = e
	return e
}

// eachAsked calls f for every set of those that are asked for and were not met, the empty one first.
func (t *presence) eachAsked(met int, f func(met int, asked []some)) {
	for set := range 1 << len(t.some) {
		if set&met != 0 {
			continue
		}
		f(set, picked(t.some, set))
	}
}

// asked is a member's value where it is one that is asked for.
func (t *presence) asked(m *declared, asked []some) *grammar.Expr {
	rules := t.memberRules(t.f, m.name)
	for _, one := range asked {
		if m.value == t.b.Never() || !t.checker().about(one, m.name) {
			return t.b.Never()
		}
		if one.rule != nil {
			rules = append(rules, one.rule)
		}
	}
	return t.value(rules)
}

// end is what may follow the last declared member.
func (t *presence) end(s presenceState) *grammar.Expr {
	for _, d := range t.dependent {
		if s.there&t.bit[d.name] != 0 && slices.ContainsFunc(d.required, func(name string) bool { return s.there&t.bit[name] == 0 }) {
			return t.b.Never()
		}
	}
	if s.asked != 1<<len(t.some)-1 {
		if t.each != nil { // nobody could tell that these are not the same
			return t.b.Never()
		}
		return t.askedEnd(s)
	}
	n := t.fewer(t.behind(s.count))
	if s.count == 0 {
		return t.list(t.extra, n)
	}
	return t.more(t.extra, n)
}

// askedEnd is others behind the last declared member, with those that are still asked for. Where members are counted these come
// first.
func (t *presence) askedEnd(s presenceState) *grammar.Expr {
	b := t.b
	var alts []*grammar.Expr
	t.eachAsked(s.asked, func(met int, asked []some) {
		if met == 0 || s.count == t.max {
			return
		}
		e := t.undeclared(asked)
		if s.count > 0 {
			e = b.Seq(t.comma, e)
		}
		next := s
		next.count, next.asked = min(s.count+1, t.enough), s.asked|met
		alts = append(alts, b.Seq(e, t.end(next)))
	})
	e := b.Or(alts...)
	switch {
	case t.span != anyMany:
	case s.count > 0:
		e = b.Seq(t.more(t.extra, anyMany), e)
	default:
		next := s
		next.count = 1
		e = b.Or(e, b.Seq(t.extra, t.askedEnd(next)))
	}
	return e
}
