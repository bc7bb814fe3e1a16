package jsonschema

import (
	"context"
	"hash/maphash"
	"math"
	"slices"
	"unicode/utf8"

	"hearth/internal/grammar"
	"hearth/internal/grammar/regex"
	"hearth/internal/schema"
)

// Bounds of the work of a Checker, or of all the checks that compiling takes. A step is worth about 50 ns of a processor.
const (
	checkSteps = 5_000_000
	checkDepth = 2000 // of values, references and combinations within each other
)

// What the work of patterns counts.
const (
	workPerStep  = 10  // steps of a Builder
	patternSteps = 100 // for each byte of a pattern, and before its first
	textPerLook  = 1 << 6
)

// Verdict is what came out of a check.
type Verdict uint8

const (
	Valid Verdict = iota
	Invalid
	Unchecked // it would have taken too much work, nobody waits for it any more, or a pattern is not supported
)

// Checker compares values with a schema. All its checks share the bound of their work, and what is made of patterns and enums. It
// belongs to one goroutine.
//
// Each part of a value is compared with each rule once, and equal values are found by their hashes. Whatever grows with the
// schema or the value is counted in steps.
type Checker struct {
	*reader
	of       *rule // that values are checked against
	formats  bool  // they are compared with
	left     int   // steps
	looked   int   // at ctx, when so many steps were left
	spent    bool
	seed     maphash.Seed
	hashes   map[*schema.Node]uint64
	enums    map[*schema.Node]set // by their first value
	known    map[pair]state
	patterns *grammar.Builder
	exprs    map[string]*grammar.Expr // of patterns and formats; nil: a pattern is not supported
	untried  bool                     // such a one was asked for
}

// pair is a rule and a part of a value.
type pair struct {
	rule  *rule
	value *schema.Node
}

type state uint8

const (
	fits state = iota + 1
	differs
)

// Checker is one that has done nothing yet. Unless formats is set they are annotations to it.
func (s *Schema) Checker(formats bool) *Checker {
	r := *s.reader // the rules are shared, what is found out about values is not
	c := newChecker(&r)
	c.of, c.formats = s.root, formats
	return c
}

func newChecker(r *reader) *Checker {
	return &Checker{reader: r, formats: true, left: checkSteps, looked: checkSteps, seed: maphash.MakeSeed(),
		hashes: map[*schema.Node]uint64{}, enums: map[*schema.Node]set{}, known: map[pair]state{},
		patterns: grammar.NewBuilder(), exprs: map[string]*grammar.Expr{}}
}

// checker is the one of a grammar that is being made.
func (r *reader) checker() *Checker {
	if r.checks == nil {
		r.checks = newChecker(r)
	}
	return r.checks
}

// Continue gives c what last has left of its bound: checks of several schemas then share one.
func (c *Checker) Continue(last *Checker) {
	c.left, c.looked, c.spent = last.left, last.left, last.spent
}

// Check compares a value with the schema.
func (c *Checker) Check(ctx context.Context, v *schema.Node) (verdict Verdict) {
	var err error
	defer func() {
		if err != nil {
			verdict = Unchecked
		}
	}()
	defer caught(&err)
	c.ctx, c.known, c.untried = ctx, map[pair]state{}, false
	ok := c.valid(c.of, v, 0)
	switch {
	case c.spent || c.untried:
		return Unchecked
	case ok:
		return Valid
	}
	return Invalid
}

// spend counts work before it is done and tells whether it may be.
func (c *Checker) spend(n int) bool {
	const stepsPerLook = 1024
	if c.left -= n; c.left <= 0 {
		c.spent = true
	}
	if c.looked-c.left >= stepsPerLook {
		c.looked = c.left
		c.spent = c.spent || c.ctx.Err() != nil
	}
	return !c.spent
}

// hash is that of what a value says.
func (c *Checker) hash(v *schema.Node) uint64 {
	if h, ok := c.hashes[v]; ok || !c.spend(4) {
		return h
	}
	mix := func(h, x uint64) uint64 { return (h ^ x) * 0x9E3779B97F4A7C15 }
	h := uint64(v.Kind())
	switch v.Kind() {
	case schema.Bool:
		h = mix(h, uint64(len(v.Text)))
	case schema.Number:
		x, _ := v.Float()
		h = mix(h, math.Float64bits(x+0)) // no -0
	case schema.String:
		c.spend(len(v.Text) >> 7)
		h = mix(h, maphash.String(c.seed, v.Text))
	}
	for i := range v.Items {
		item := &v.Items[i]
		if v.Kind() == schema.Object {
			if !c.spend(4 + len(item.Key)>>6) {
				break
			}
			h += mix(maphash.String(c.seed, item.Key), c.hash(item))
		} else if h = mix(h+7, c.hash(item)); c.spent {
			break
		}
	}
	c.hashes[v] = h
	return h
}

// equal compares two values. Values that differ nearly always have different hashes, so this rarely goes further.
func (c *Checker) equal(a, b *schema.Node) bool {
	if a == b || a.Kind() != b.Kind() || c.hash(a) != c.hash(b) || !c.spend(1+len(a.Text)>>7) {
		return a == b
	}
	if a.Kind() == schema.Number {
		x, _ := newDecimal(a.Text)
		y, _ := newDecimal(b.Text)
		return a.Text == b.Text || x == y
	}
	if a.Text != b.Text || len(a.Items) != len(b.Items) {
		return false
	}
	for i := range a.Items {
		if a.Items[i].Key != b.Items[i].Key || !c.equal(&a.Items[i], &b.Items[i]) {
			return false
		}
	}
	return true
}

// set is values by their hashes.
type set map[uint64][]*schema.Node

func (c *Checker) add(s set, v *schema.Node) { s[c.hash(v)] = append(s[c.hash(v)], v) }

func (c *Checker) has(s set, v *schema.Node) bool {
	return slices.ContainsFunc(s[c.hash(v)], func(e *schema.Node) bool { return c.equal(e, v) })
}

// among tells whether a value is one of several.
func (c *Checker) among(values []*schema.Node, v *schema.Node) bool {
	if len(values) < 8 {
		return slices.ContainsFunc(values, func(e *schema.Node) bool { return c.spend(1) && c.equal(e, v) })
	}
	s, ok := c.enums[values[0]]
	if !ok {
		s = set{}
		for _, e := range values {
			if c.spent {
				break
			}
			c.add(s, e)
		}
		c.enums[values[0]] = s
	}
	return c.has(s, v)
}

// need counts work that there is no going on without.
func (c *Checker) need(steps int) {
	if c.spend(steps) {
		return
	}
	if err := c.ctx.Err(); err != nil {
		panic(stop{err})
	}
	panic(stop{&grammar.LimitError{What: "steps to compare values", Limit: checkSteps}})
}

// work lets the Builder do something, in as many steps as there are left, and counts it.
func (c *Checker) work(do func(*grammar.Builder)) {
	c.patterns.Allow(workPerStep * c.left)
	do(c.patterns)
	c.need(c.left - c.patterns.Left()/workPerStep)
	if err := c.patterns.Err(); err != nil {
		panic(stop{err})
	}
}

// matches tells whether a pattern is in a text. One that can't be tried is, and that is remembered.
func (c *Checker) matches(p, text string) bool {
	e, ok := c.exprs[p]
	if !ok {
		c.need(patternSteps * (1 + len(p)))
		c.work(func(b *grammar.Builder) {
			var err error
			if e, err = regex.Compile(b, p, regex.Options{Search: true}); err != nil {
				if _, lacks := err.(*regex.UnsupportedError); !lacks {
					panic(stop{err})
				}
			}
		})
		c.exprs[p] = e
	}
	if e == nil {
		c.untried = true
		return true
	}
	return c.tries(e, text)
}

// tries tells whether a text matches an expression.
func (c *Checker) tries(e *grammar.Expr, text string) (ok bool) {
	for more := true; more; more = text != "" {
		n := min(len(text), textPerLook)
		c.need(4 + n)
		c.work(func(b *grammar.Builder) {
			e = b.After(e, text[:n])
			ok = b.Matches(e, "")
		})
		text = text[n:]
	}
	return ok
}

// valid compares a value with a rule.
func (c *Checker) valid(s *rule, v *schema.Node, depth int) bool {
	if s.never || s.plain && !s.inner {
		return !s.never
	}
	at := pair{s, v}
	switch c.known[at] {
	case fits:
		return c.spend(1)
	case differs:
		c.spend(1)
		return false
	}
	if depth > checkDepth {
		c.spent = true
	}
	if !c.spend(8) {
		return false
	}
	ok := (s.plain || c.says(s, v, depth)) && (!s.inner || c.combined(s, v, depth)) && c.leaves(s, v, depth)
	if c.known[at] = differs; ok {
		c.known[at] = fits
	}
	return ok && !c.spent
}

// own compares a value with a rule's own assertions, not with rules for the same value in it.
func (c *Checker) own(s *rule, v *schema.Node) bool { return !s.never && (s.plain || c.says(s, v, 0)) }

func kindOf(v *schema.Node) kinds {
	switch v.Kind() {
	case schema.Null:
		return null
	case schema.Bool:
		return boolean
	case schema.Number:
		if d, _ := newDecimal(v.Text); !d.isInteger() {
			return fraction
		}
		return integer
	case schema.String:
		return text
	case schema.Array:
		return array
	}
	return object
}

func (c *Checker) says(s *rule, v *schema.Node, depth int) bool {
	if v.Kind() == schema.Number && !c.spend(len(v.Text)>>6) {
		return false
	}
	kind := kindOf(v)
	if s.kinds&kind == 0 || len(s.not) > 0 && c.among(s.not, v) {
		return false
	}
	for _, values := range s.enums {
		if !c.among(values, v) {
			return false
		}
	}
	switch kind {
	case integer, fraction:
		if s.number.free() {
			return true
		}
		x, _ := newDecimal(v.Text)
		return s.number.takes(x)
	case text:
		return c.text(&s.text, v.Text)
	case array:
		return c.array(&s.array, v, depth)
	case object:
		return c.object(&s.object, v, depth)
	}
	return true
}

func (n *numberRule) takes(x decimal) bool {
	if n.min != nil {
		if c := x.compare(n.min.decimal); c < 0 || c == 0 && n.min.exclusive {
			return false
		}
	}
	if n.max != nil {
		if c := x.compare(n.max.decimal); c > 0 || c == 0 && n.max.exclusive {
			return false
		}
	}
	return !slices.ContainsFunc(n.steps, func(step decimal) bool { return !x.multipleOf(step) })
}

func within(n, least, most int) bool { return n >= least && (most == none || n <= most) }

func (c *Checker) text(t *textRule, s string) bool {
	if !c.spend(1+len(s)>>6) || !within(utf8.RuneCountInString(s), t.min, t.max) {
		return false
	}
	for _, p := range t.patterns {
		if c.matches(p.text, s) == p.not {
			return false
		}
	}
	if !c.formats {
		return true
	}
	for _, p := range t.formats {
		if c.ofFormat(p.text, s) == p.not {
			return false
		}
	}
	return true
}

// combined applies the rules for the same value.
func (c *Checker) combined(s *rule, v *schema.Node, depth int) bool {
	valid := func(s *rule) bool { return c.spend(1) && c.valid(s, v, depth+1) }
	for _, a := range s.allOf {
		if !valid(a) {
			return false
		}
	}
	for _, list := range s.anyOf {
		if !slices.ContainsFunc(list, valid) {
			return false
		}
	}
	for _, list := range s.oneOf {
		n := 0
		for _, a := range list {
			if valid(a) {
				n++
			}
		}
		if n != 1 {
			return false
		}
	}
	if slices.ContainsFunc(s.nots, valid) {
		return false
	}
	if s.cond != nil {
		then := s.els
		if valid(s.cond) {
			then = s.then
		}
		return then == nil || valid(then)
	}
	return !c.spent
}

// leaves compares what no other rule evaluates.
func (c *Checker) leaves(s *rule, v *schema.Node, depth int) bool {
	left := s.object.left
	if v.Kind() == schema.Array {
		left = s.array.left
	}
	if left == nil || len(v.Items) == 0 || v.Kind() == schema.String {
		return true
	}
	done := make([]bool, len(v.Items))
	c.evaluated(done, s, v, depth, false)
	for i := range v.Items {
		if !done[i] && !c.valid(left, &v.Items[i], depth+1) {
			return false
		}
	}
	return true
}

// evaluated marks the members or elements of a value that a rule, which it follows, evaluates.
func (c *Checker) evaluated(done []bool, s *rule, v *schema.Node, depth int, whole bool) {
	c.spend(1 + len(done))
	o, a := &s.object, &s.array
	for i := range v.Items {
		e := &v.Items[i]
		if v.Kind() == schema.Object {
			done[i] = done[i] || o.additional != nil || o.prop(e.Key) != nil || whole && o.left != nil ||
				slices.ContainsFunc(o.patterns, func(p member) bool { return c.matches(p.name, e.Key) })
		} else {
			done[i] = done[i] || i < len(a.prefix) || a.items != nil || whole && a.left != nil ||
				slices.ContainsFunc(a.contains, func(k contains) bool { return c.valid(k.rule, e, depth+1) })
		}
	}
	if c.spent || !s.inner {
		return
	}
	valid := func(o *rule) bool {
		ok := c.valid(o, v, depth+1)
		if ok {
			c.evaluated(done, o, v, depth+1, true)
		}
		return ok
	}
	for _, list := range slices.Concat([][]*rule{s.allOf}, s.anyOf, s.oneOf) {
		for _, o := range list {
			valid(o)
		}
	}
	if s.cond != nil {
		then := s.els
		if valid(s.cond) {
			then = s.then
		}
		if then != nil {
			valid(then)
		}
	}
}

func (c *Checker) object(o *objectRule, v *schema.Node, depth int) bool {
	if !within(len(v.Items), o.min, o.max) {
		return false
	}
	for _, name := range o.required {
		if !c.spend(1) || v.Member(name) == nil {
			return false
		}
	}
	for _, d := range o.dependent {
		if c.spend(1+len(d.required)) && v.Member(d.name) != nil && slices.ContainsFunc(d.required, func(name string) bool { return v.Member(name) == nil }) {
			return false
		}
	}
	for _, one := range o.some {
		found := false
		for i := 0; i < len(v.Items) && !found; i++ {
			e := &v.Items[i]
			found = c.spend(2) && c.about(one, e.Key) && (one.rule == nil || c.valid(one.rule, e, depth+1))
		}
		if !found {
			return false
		}
	}
	for i := range v.Items {
		if !c.spend(2) {
			return false
		}
		e := &v.Items[i]
		sub := o.prop(e.Key)
		known := sub != nil
		if known && !c.valid(sub, e, depth+1) {
			return false
		}
		for _, p := range o.patterns {
			if c.matches(p.name, e.Key) {
				if known = true; !c.valid(p.rule, e, depth+1) {
					return false
				}
			}
		}
		if !known && o.additional != nil && !c.valid(o.additional, e, depth+1) {
			return false
		}
		if o.names != nil && !c.valid(o.names, schema.NewString(e.Key), depth+1) {
			return false
		}
	}
	return !c.spent
}

// about tells whether a member of that name is one that is asked for.
func (c *Checker) about(one some, name string) bool {
	if one.pattern != nil && !c.matches(*one.pattern, name) || one.names != nil && !c.valid(one.names, schema.NewString(name), 0) {
		return false
	}
	return one.outside == nil || one.outside.prop(name) == nil &&
		!slices.ContainsFunc(one.outside.patterns, func(p member) bool { return c.matches(p.name, name) })
}

func (c *Checker) array(a *arrayRule, v *schema.Node, depth int) bool {
	if !within(len(v.Items), a.min, a.max) {
		return false
	}
	seen := set{}
	for i := range v.Items {
		if !c.spend(2) {
			return false
		}
		e, sub := &v.Items[i], a.items
		if i < len(a.prefix) {
			sub = a.prefix[i]
		}
		if sub != nil && !c.valid(sub, e, depth+1) {
			return false
		}
		if a.unique {
			if c.has(seen, e) {
				return false
			}
			c.add(seen, e)
		}
	}
	for _, k := range a.contains {
		n := 0
		for i := range v.Items {
			if c.spend(1) && c.valid(k.rule, &v.Items[i], depth+1) {
				n++
			}
		}
		if !within(n, k.min, k.max) {
			return false
		}
	}
	return !c.spent
}
