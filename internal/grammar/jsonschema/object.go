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
	expr     *grammar.Expr // all of it, without a comma
	required bool
}

// mostPatterns is how many patterns of an object's members are told apart in all their combinations.
const mostPatterns = 4

// object is the objects of a form.
func (c *compiler) object(f *form) *grammar.Expr {
	o := &objects{compiler: c, f: f}
	o.least, o.most = f.count(func(s *rule) (int, int) { return s.object.min, s.object.max })
	if o.least == 0 && f.excludesEmpty(schema.Object) {
		o.least = 1
	}
	o.declare()
	o.undeclared()
	required := 0
	for _, m := range o.members {
		if m.required {
			required++
		}
	}
	lo, hi := max(o.least-required, 0), o.most
	if hi != none {
		if hi -= required; hi < 0 {
			return c.b.Never()
		}
	}
	var body *grammar.Expr
	if optional := len(o.members) - required; len(o.dependent) > 0 || optional > 0 && (lo > 0 || hi != none && (hi < optional || o.extra != c.b.Never())) {
		if body = o.counted(); body == nil {
			for _, s := range f.rules {
				for keyword, there := range map[string]bool{"minProperties": s.object.min > 0, "maxProperties": s.object.max != none, "dependentRequired": s.object.dependent != nil} {
					if there {
						c.lacks(s.at, keyword, "so many optional members are not counted")
					}
				}
			}
			lo, hi = 0, none
		}
	}
	if body == nil {
		body = o.ordered(lo, hi)
	}
	return c.b.Seq(c.b.Literal("{"), body, c.b.Literal("}"))
}

// objects makes the members of one form's objects: those that are declared in their order, then others.
type objects struct {
	*compiler
	f           *form
	least, most int
	members     []declared
	extra       *grammar.Expr // a member that is not declared
	dependent   []dependency
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

func (o *objects) declare() {
	names, required := o.declaredNames()
	check := o.checker()
	for _, name := range names {
		m := declared{name: name, expr: o.b.Never(), required: required[name]}
		named := !slices.ContainsFunc(o.f.rules, func(s *rule) bool {
			return s.object.names != nil && !check.valid(s.object.names, schema.NewString(name), 0)
		})
		if named {
			m.expr = o.b.Seq(o.b.Literal(`"`+spelled(name)+`"`), o.colon, o.value(o.memberRules(o.f, name)))
		}
		o.members = append(o.members, m)
	}
}

// undeclared makes the members that no name is declared for.
func (o *objects) undeclared() {
	b := o.b
	var patterns []string
	keys := b.Repeat(o.char, 0, -1)
	for _, s := range o.f.rules {
		for _, p := range s.object.patterns {
			if !slices.Contains(patterns, p.name) {
				patterns = append(patterns, p.name)
			}
		}
		if s.object.names != nil {
			keys = b.And(keys, o.compiler.names([]*rule{s.object.names}))
		}
	}
	var known []string
	for _, m := range o.members {
		known = append(known, spelled(m.name))
	}
	if len(known) > 0 {
		keys = b.Except(keys, b.Choice(known...))
	}
	exprs := make([]*grammar.Expr, len(patterns))
	for i, p := range patterns {
		for _, s := range o.f.rules {
			if slices.ContainsFunc(s.object.patterns, func(m member) bool { return m.name == p }) {
				exprs[i] = o.compiled(s, "patternProperties", p)
			}
		}
		if exprs[i] == nil { // it can't be told which names it has
			exprs[i] = b.Never()
		}
	}
	var alts []*grammar.Expr
	for _, in := range o.combinations(keys, exprs) {
		rules, never := o.undeclaredRules(patterns, in)
		if never {
			continue
		}
		k := keys
		if len(patterns) > 0 {
			for i, e := range exprs {
				if slices.Contains(in, i) {
					k = b.And(k, e)
				} else {
					k = b.Except(k, e)
				}
			}
			if b.IsNever(k) {
				continue
			}
		}
		alts = append(alts, b.Seq(o.quoted(k), o.colon, o.value(rules)))
	}
	o.extra = b.Or(alts...)
}

// combinations are the sets of patterns, by their index, that a name may have at once.
func (o *objects) combinations(keys *grammar.Expr, exprs []*grammar.Expr) (out [][]int) {
	if len(exprs) <= mostPatterns {
		for set := range 1 << len(exprs) {
			var in []int
			for i := range exprs {
				if set>>i&1 == 1 {
					in = append(in, i)
				}
			}
			out = append(out, in)
		}
		return out
	}
	out = append(out, nil)
	for i := range exprs {
		out = append(out, []int{i})
		for j := range i {
			if !o.b.IsNever(o.b.And(keys, exprs[i], exprs[j])) {
				panic(stop{&grammar.LimitError{What: fmt.Sprintf("patterns of members that may hold at once at %s", o.f.rules[0].at), Limit: mostPatterns}})
			}
		}
	}
	return out
}

// undeclaredRules are those of a member whose name has some of the patterns.
func (o *objects) undeclaredRules(patterns []string, in []int) (rules []*rule, never bool) {
	for _, s := range o.f.rules {
		found := false
		for _, p := range s.object.patterns {
			if i := slices.Index(patterns, p.name); slices.Contains(in, i) {
				found, rules = true, append(rules, p.rule)
			}
		}
		if !found && s.object.additional != nil {
			rules = append(rules, s.object.additional)
		}
	}
	return rules, slices.ContainsFunc(rules, func(s *rule) bool { return s.never })
}

// ordered is the members in their order, and from lo to hi others behind them.
func (o *objects) ordered(lo, hi int) *grammar.Expr {
	b := o.b
	first := slices.IndexFunc(o.members, func(m declared) bool { return m.required })
	tail := o.more(o.extra, lo, hi)
	if o.extra == b.Never() {
		tail = b.Empty()
		if lo > 0 {
			tail = b.Never()
		}
	}
	if first >= 0 {
		for i := len(o.members) - 1; i > first; i-- {
			m := o.members[i]
			e := b.Seq(o.comma, m.expr)
			if !m.required {
				e = b.Optional(e)
			}
			tail = b.Seq(e, tail)
		}
		tail = b.Seq(o.members[first].expr, tail)
		for i := first - 1; i >= 0; i-- {
			tail = b.Seq(b.Optional(b.Seq(o.members[i].expr, o.comma)), tail)
		}
		return tail
	}
	alts := []*grammar.Expr{o.list(o.extra, lo, hi)}
	if len(o.members) > 0 && lo == 0 {
		alts = append(alts, b.Empty())
	}
	for i := len(o.members) - 1; i >= 0; i-- { // the first one that is there
		alts = append(alts, b.Seq(o.members[i].expr, tail))
		tail = b.Seq(b.Optional(b.Seq(o.comma, o.members[i].expr)), tail)
	}
	return b.Or(alts...)
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
	if t.enough = o.least; o.most != none {
		t.enough = o.most
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
	m := t.members[s.at]
	var alts []*grammar.Expr
	if t.most == none || s.count < t.most {
		next := presenceState{s.at + 1, min(s.count+1, t.enough), s.there | t.bit[m.name]}
		e := b.Seq(m.expr, t.tail(next))
		if s.count > 0 {
			e = b.Seq(t.comma, e)
		}
		alts = append(alts, e)
	}
	if !m.required {
		alts = append(alts, t.tail(presenceState{s.at + 1, s.count, s.there}))
	}
	e := b.Or(alts...)
	t.known[s] = e
	return e
}

// end is what may follow the last declared member.
func (t *presence) end(s presenceState) *grammar.Expr {
	for _, d := range t.dependent {
		if s.there&t.bit[d.name] != 0 && slices.ContainsFunc(d.required, func(name string) bool { return s.there&t.bit[name] == 0 }) {
			return t.b.Never()
		}
	}
	lo, hi := max(t.least-s.count, 0), none
	if t.most != none {
		hi = t.most - s.count
	}
	if t.extra == t.b.Never() {
		if lo > 0 {
			return t.b.Never()
		}
		return t.b.Empty()
	}
	if s.count == 0 {
		return t.list(t.extra, lo, hi)
	}
	return t.more(t.extra, lo, hi)
}
