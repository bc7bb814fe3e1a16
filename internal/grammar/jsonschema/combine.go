package jsonschema

import (
	"encoding/binary"
	"slices"

	"hearth/internal/grammar"
	"hearth/internal/schema"
)

// form is rules that hold for a value all at once, without alternatives: what allOf, $ref, anyOf, oneOf, not and if come to when
// one alternative of each is taken.
type form struct {
	rules   []*rule // those with assertions of their own
	kinds   kinds
	seen    []*rule
	pending []choice // alternatives of which one is still to be taken
	never   bool
}

// choice is alternatives of which one holds, each of several rules.
type choice [][]*rule

// Bounds of what schemas combine to.
const (
	maxForms    = 1 << 12 // alternatives of one value
	maxAllForms = 1 << 16 // of all values
	mostProof   = 3       // levels of members that are looked at to prove that no value follows
)

// add makes a rule hold.
func (r *reader) add(f *form, s *rule) {
	if f.never = f.never || s.never; f.never {
		return
	}
	if slices.Contains(f.seen, s) || s.plain && !s.inner {
		return
	}
	f.seen = append(f.seen, s)
	if !s.plain {
		f.rules = append(f.rules, s)
		if f.kinds &= s.kinds; f.kinds == 0 {
			f.never = true
			return
		}
	}
	if !s.inner {
		return
	}
	for _, a := range s.allOf {
		r.add(f, a)
	}
	pend := func(alts [][]*rule) {
		if len(alts) == 1 {
			for _, a := range alts[0] {
				r.add(f, a)
			}
			return
		}
		f.pending = append(f.pending, alts)
	}
	for _, n := range s.nots {
		if alts, ok := r.negate(n); ok {
			pend(each(alts))
		} else {
			r.lacks(s.at, "not", "it is held for type, enum, const, required, properties, bounds, patterns and what these are combined to")
		}
	}
	for _, list := range s.anyOf {
		pend(r.any(s, list))
	}
	for _, list := range s.oneOf {
		pend(r.oneOf(s, list))
	}
	if s.cond != nil && (s.then != nil || s.els != nil || r.hasLeft) {
		if not := r.opposite(s.cond); not != nil {
			yes, no := []*rule{s.cond}, []*rule{not}
			if s.then != nil {
				yes = append(yes, s.then)
			}
			if s.els != nil {
				no = append(no, s.els)
			}
			pend([][]*rule{yes, no})
		} else {
			r.lacks(s.at, "if", "it is held where it asks for what not is held for")
		}
	}
}

func each(list []*rule) [][]*rule {
	out := make([][]*rule, len(list))
	for i, s := range list {
		out[i] = []*rule{s}
	}
	return out
}

// mostTogether is the most schemas of an anyOf of which several are taken at once, where it counts what they evaluate.
const mostTogether = 4

// any is the alternatives of an anyOf. Where somebody asks for what is left, several may hold at once.
func (r *reader) any(s *rule, list []*rule) [][]*rule {
	if !r.hasLeft || len(list) == 1 {
		return each(list)
	}
	if len(list) > mostTogether {
		r.lacks(s.at, "anyOf", "several of its schemas at once are not held beside unevaluatedProperties and unevaluatedItems")
		return each(list)
	}
	var out [][]*rule
	for set := 1; set < 1<<len(list); set++ {
		out = append(out, picked(list, set))
	}
	return out
}

// picked are the elements of a list whose bits are set.
func picked[E any](list []E, set int) (out []E) {
	for i, e := range list {
		if set>>i&1 == 1 {
			out = append(out, e)
		}
	}
	return out
}

// below is the rules for the same value that a rule is made of, itself among them.
func (r *reader) below(s *rule) map[*rule]bool {
	all := r.reached[s]
	if all == nil {
		all = map[*rule]bool{}
		r.reached[s] = all
		var add func(s *rule)
		add = func(s *rule) {
			if all[s] {
				return
			}
			all[s] = true
			for _, o := range s.same() {
				if !slices.Contains(s.nots, o) {
					add(o)
				}
			}
		}
		add(s)
	}
	return all
}

// left appends the rules about what no other rule evaluates: of is such a rule, and does tells whether another one evaluates it.
func (r *reader) left(f *form, out []*rule, of func(s *rule) *rule, does func(s *rule) bool) []*rule {
	if !r.hasLeft {
		return out
	}
	for _, s := range f.rules {
		if left := of(s); left != nil {
			below := r.below(s)
			if !slices.ContainsFunc(f.rules, func(o *rule) bool { return below[o] && (does(o) || o != s && of(o) != nil) }) {
				out = append(out, left)
			}
		}
	}
	return out
}

func leftMember(s *rule) *rule  { return s.object.left }
func leftElement(s *rule) *rule { return s.array.left }

// mostBranches is the most schemas of a oneOf of which each is held against all others.
const mostBranches = 128

// oneOf is alternatives that exclude each other: each is one schema and not those others that may hold beside it.
func (r *reader) oneOf(s *rule, list []*rule) [][]*rule {
	if known := r.ones[s]; known != nil {
		return known
	}
	r.ones[s] = each(list) // what it is taken for until it is known: proofs about recursive schemas come back here
	out, exact := each(list), len(list) <= mostBranches
	for i := 0; exact && i < len(list); i++ {
		whole := kinds(0) // types of which another schema takes all values
		for j, other := range list {
			if j == i {
				continue
			}
			full := r.full(other)
			if whole |= full; r.disjoint(list[i], other, full) {
				continue
			}
			not := r.opposite(other)
			if not == nil {
				exact = false
				break
			}
			out[i] = append(out[i], not)
		}
		if whole != 0 {
			not := r.make(s.at)
			not.kinds, not.plain = all&^whole, false
			out[i] = append(out[i], not)
		}
	}
	if !exact {
		out = each(list)
		r.lacks(s.at, "oneOf", "several of its schemas may hold at once, so it is held as anyOf is")
	}
	r.ones[s] = out
	return out
}

// full is the types of which a rule takes all values, as far as that is easily told.
func (r *reader) full(s *rule) kinds {
	k, known := r.fulls[s]
	if known {
		return k
	}
	if k = s.kinds; s.never || len(s.enums)+len(s.not)+len(s.oneOf)+len(s.nots) > 0 || s.cond != nil {
		k = 0
	}
	if !s.number.free() {
		k &^= number
	}
	if !s.text.free() {
		k &^= text
	}
	if !s.array.free() {
		k &^= array
	}
	if !s.object.free() {
		k &^= object
	}
	for _, a := range s.allOf {
		k &= r.full(a)
	}
	for _, list := range s.anyOf {
		any := kinds(0)
		for _, a := range list {
			any |= r.full(a)
		}
		k &= any
	}
	r.fulls[s] = k
	return k
}

// opposite is a rule that holds where s does not, nil if there is none.
func (r *reader) opposite(s *rule) *rule {
	if _, ok := r.negate(s); !ok {
		return nil
	}
	if n := r.opposites[s]; n != nil {
		return n
	}
	n := r.make(s.at)
	n.nots, n.inner = []*rule{s}, true
	r.opposites[s] = n
	return n
}

// negation is rules of which one holds where another rule does not.
type negation struct {
	alts []*rule
	ok   bool
}

// negate gives rules of which one holds exactly where s does not. It reports false if no rules say so.
func (r *reader) negate(s *rule) ([]*rule, bool) {
	n, known := r.negations[s]
	if !known {
		n = &negation{ok: true} // which it is taken for where a recursive schema comes back to it
		r.negations[s] = n
		r.negated(n, s)
	}
	return n.alts, n.ok
}

func (r *reader) negated(n *negation, s *rule) {
	add := func(of kinds, set func(a *rule)) {
		a := r.make(s.at)
		a.kinds, a.plain = of, false
		set(a)
		n.alts = append(n.alts, a)
	}
	opposite := func(x *rule) *rule {
		o := r.opposite(x)
		if o == nil {
			n.ok = false
			o = r.make(s.at)
		}
		return o
	}
	inner := func(set func(a *rule)) {
		a := r.make(s.at)
		a.inner = true
		set(a)
		n.alts = append(n.alts, a)
	}
	if s.never {
		n.alts = []*rule{r.make(s.at)}
		return
	}
	if s.kinds != all {
		add(all&^s.kinds, func(*rule) {})
	}
	for _, values := range s.enums {
		add(all, func(a *rule) { a.not = values })
	}
	if len(s.not) > 0 {
		add(all, func(a *rule) { a.enums = [][]*schema.Node{s.not} })
	}
	if m := s.number.min; m != nil {
		add(number, func(a *rule) { a.number.max = &bound{m.decimal, !m.exclusive} })
	}
	if m := s.number.max; m != nil {
		add(number, func(a *rule) { a.number.min = &bound{m.decimal, !m.exclusive} })
	}
	counted := func(of kinds, count func(s *rule) *span) {
		if m := count(s).min; m > 0 {
			add(of, func(a *rule) { count(a).max = m - 1 })
		}
		if m := count(s).max; m != none {
			add(of, func(a *rule) { count(a).min = m + 1 })
		}
	}
	counted(text, characters)
	counted(array, elements)
	counted(object, members)
	for _, p := range s.text.patterns {
		add(text, func(a *rule) { a.text.patterns = []pattern{{p.text, !p.not}} })
	}
	for _, p := range s.text.formats {
		add(text, func(a *rule) { a.text.formats = []pattern{{p.text, !p.not}} })
	}
	r.negatedArray(n, &s.array, add, opposite)
	r.negatedObject(n, &s.object, add, opposite)
	for _, x := range s.allOf {
		n.alts = append(n.alts, opposite(x))
	}
	for _, list := range s.anyOf {
		inner(func(a *rule) {
			for _, x := range list {
				a.allOf = append(a.allOf, opposite(x))
			}
		})
	}
	n.alts = append(n.alts, s.nots...)
	if s.cond != nil && s.then != nil {
		inner(func(a *rule) { a.allOf = []*rule{s.cond, opposite(s.then)} })
	}
	if s.cond != nil && s.els != nil {
		inner(func(a *rule) { a.allOf = []*rule{opposite(s.cond), opposite(s.els)} })
	}
	n.ok = n.ok && len(s.number.steps)+len(s.oneOf) == 0
	if n.alts == nil {
		n.alts = []*rule{r.never(s.at)}
	}
}

func (r *reader) negatedArray(n *negation, a *arrayRule, add func(kinds, func(*rule)), opposite func(*rule) *rule) {
	for i, p := range a.prefix {
		add(array, func(o *rule) {
			o.array.min = i + 1
			for range i {
				o.array.prefix = append(o.array.prefix, r.make(p.at))
			}
			o.array.prefix = append(o.array.prefix, opposite(p))
		})
	}
	if a.items != nil {
		if n.ok = n.ok && len(a.prefix) == 0; n.ok {
			add(array, func(o *rule) { o.array.contains = []contains{{opposite(a.items), span{1, none}}} })
		}
	}
	for _, c := range a.contains {
		if c.min == 1 {
			add(array, func(o *rule) { o.array.items = opposite(c.rule) })
		}
		n.ok = n.ok && c.min <= 1 && c.max == none
	}
	n.ok = n.ok && !a.unique && a.left == nil
}

func (r *reader) negatedObject(n *negation, o *objectRule, add func(kinds, func(*rule)), opposite func(*rule) *rule) {
	for _, p := range o.props {
		add(object, func(a *rule) {
			a.object.required = []string{p.name}
			a.object.props = []member{{p.name, opposite(p.rule)}}
		})
	}
	for _, name := range o.required {
		add(object, func(a *rule) { a.object.props = []member{{name, r.never(a.at)}} })
	}
	for _, d := range o.dependent {
		for _, name := range d.required {
			add(object, func(a *rule) {
				a.object.required = []string{d.name}
				if name == d.name {
					a.never = true
				}
				a.object.props = []member{{name, r.never(a.at)}}
			})
		}
	}
	for _, p := range o.patterns {
		add(object, func(a *rule) { a.object.some = []some{{pattern: &p.name, rule: opposite(p.rule)}} })
	}
	if o.additional != nil {
		add(object, func(a *rule) { a.object.some = []some{{outside: o, rule: opposite(o.additional)}} })
	}
	if o.names != nil {
		add(object, func(a *rule) { a.object.some = []some{{names: opposite(o.names)}} })
	}
	n.ok = n.ok && len(o.some) == 0 && o.left == nil
}

// key stands for a list of rules.
func key(kind byte, rules []*rule) string {
	b := []byte{kind}
	for _, s := range rules {
		b = binary.AppendUvarint(b, uint64(s.id))
	}
	return string(b)
}

// forms are the alternatives of what several rules take.
func (r *reader) forms(rules []*rule) []*form {
	k := key('f', rules)
	if known, ok := r.known[k]; ok {
		return known
	}
	f := &form{kinds: all}
	for _, s := range rules {
		r.add(f, s)
	}
	out := r.resolve(nil, f)
	r.known[k] = out
	return out
}

// resolve appends the forms that taking alternatives leads to.
func (r *reader) resolve(out []*form, f *form) []*form {
	if r.formed++; r.formed > maxAllForms {
		panic(stop{&grammar.LimitError{What: "alternatives that its schemas combine to", Limit: maxAllForms}})
	}
	if r.formed%256 == 0 && r.ctx.Err() != nil {
		panic(stop{r.ctx.Err()})
	}
	if f.never || len(f.rules) > 1 && r.empty(f, mostProof) {
		return out
	}
	if len(f.pending) == 0 {
		if len(out) >= maxForms {
			panic(stop{&grammar.LimitError{What: "alternatives that its schemas combine to for one value", Limit: maxForms}})
		}
		return append(out, f)
	}
	for _, alt := range f.pending[0] {
		next := &form{rules: slices.Clip(f.rules), kinds: f.kinds, seen: slices.Clip(f.seen), pending: slices.Clip(f.pending[1:])}
		for _, s := range alt {
			r.add(next, s)
		}
		out = r.resolve(out, next)
	}
	return out
}

// both are two rules, and types that are left out.
type both struct {
	a, b *rule
	but  kinds
}

// disjoint tells whether no value can follow both of two rules, but for values of some types, as far as that is easily proved.
func (r *reader) disjoint(a, b *rule, but kinds) bool {
	k := both{a, b, but}
	known, ok := r.apart[k]
	if !ok {
		f := &form{kinds: all &^ but}
		r.add(f, a)
		r.add(f, b)
		known = r.empty(f, mostProof)
		for i := 0; !known && i < len(f.pending); i++ { // all alternatives of one choice are empty
			known = !slices.ContainsFunc(f.pending[i], func(alt []*rule) bool {
				next := &form{rules: slices.Clip(f.rules), kinds: f.kinds, seen: slices.Clip(f.seen)}
				for _, s := range alt {
					r.add(next, s)
				}
				return !r.empty(next, mostProof)
			})
		}
		r.apart[k] = known
	}
	return known
}

// empty tells whether no value can follow a form, as far as that is easily proved.
func (r *reader) empty(f *form, level int) bool {
	if f.never {
		return true
	}
	if values, ok := r.values(f); ok {
		return len(values) == 0
	}
	left := f.kinds
	n := f.numbers()
	if n.min != nil && n.max != nil {
		if c := n.min.compare(n.max.decimal); c > 0 || c == 0 && (n.min.exclusive || n.max.exclusive) {
			left &^= number
		}
	}
	if f.count(characters).empty() {
		left &^= text
	}
	if f.count(elements).empty() {
		left &^= array
	}
	if left&object != 0 && level > 0 && r.emptyObject(f, level) {
		left &^= object
	}
	return left == 0
}

func (r *reader) emptyObject(f *form, level int) bool {
	if f.count(members).empty() {
		return true
	}
	for _, s := range f.rules {
		for _, name := range s.object.required {
			rules := r.memberRules(f, name)
			if len(rules) < 2 && !(len(rules) == 1 && rules[0].never) {
				continue
			}
			k := key(byte(level), rules)
			is, known := r.empties[k]
			if !known {
				m := &form{kinds: all}
				for _, s := range rules {
					r.add(m, s)
				}
				is = r.empty(m, level-1)
				r.empties[k] = is
			}
			if is {
				return true
			}
		}
	}
	return false
}

func characters(s *rule) *span { return &s.text.span }
func elements(s *rule) *span   { return &s.array.span }
func members(s *rule) *span    { return &s.object.span }

// count is the tighter of all bounds.
func (f *form) count(of func(s *rule) *span) span {
	all := anyMany
	for _, s := range f.rules {
		one := of(s)
		all.min = max(all.min, one.min)
		if one.max != none && (all.max == none || one.max < all.max) {
			all.max = one.max
		}
	}
	return all
}

// numbers are all bounds of numbers.
func (f *form) numbers() (n numberRule) {
	for _, s := range f.rules {
		n.min, n.max = tighter(n.min, s.number.min, 1), tighter(n.max, s.number.max, -1)
		n.steps = append(n.steps, s.number.steps...)
	}
	return n
}

// memberRules are those of an object's member of that name.
func (r *reader) memberRules(f *form, name string) (out []*rule) {
	for _, s := range f.rules {
		o := &s.object
		found := false
		if p := o.prop(name); p != nil {
			found, out = true, append(out, p)
		}
		for _, p := range o.patterns {
			if r.checker().matches(p.name, name) {
				found, out = true, append(out, p.rule)
			}
		}
		if !found && o.additional != nil {
			out = append(out, o.additional)
		}
	}
	return r.left(f, out, leftMember, func(s *rule) bool {
		o := &s.object
		return o.additional != nil || o.prop(name) != nil || slices.ContainsFunc(o.patterns, func(p member) bool { return r.checker().matches(p.name, name) })
	})
}

// elementRules are those of an array's element.
func (r *reader) elementRules(f *form, i int) (out []*rule) {
	for _, s := range f.rules {
		if a := &s.array; i < len(a.prefix) {
			out = append(out, a.prefix[i])
		} else if a.items != nil {
			out = append(out, a.items)
		}
	}
	return r.left(f, out, leftElement, func(s *rule) bool {
		a := &s.array
		return i < len(a.prefix) || a.items != nil || len(a.contains) > 0 // of these not all do, which is told
	})
}

// values are all that a form can be, if an enum says so.
func (r *reader) values(f *form) ([]*schema.Node, bool) {
	i := slices.IndexFunc(f.rules, func(s *rule) bool { return len(s.enums) > 0 })
	if i < 0 {
		return nil, false
	}
	var out []*schema.Node
	c := r.checker()
	for _, v := range f.rules[i].enums[0] {
		if !slices.ContainsFunc(f.rules, func(s *rule) bool { return !c.own(s, v) }) {
			out = append(out, v)
		}
	}
	if err := r.ctx.Err(); err != nil {
		panic(stop{err})
	}
	c.need(0)
	return out, true
}
