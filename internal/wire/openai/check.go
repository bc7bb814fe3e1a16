package openai

import (
	"context"
	"hash/maphash"
	"io"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode/utf8"

	"hearth/internal/schema"
)

// Bounds of the work that checking one reply takes, all its choices together. A step is worth about 50 ns of a processor. A
// schema that takes more leaves the reply unchecked.
const (
	checkSteps = 5_000_000
	// checkDepth is how deep values, references and combinations may nest into one another.
	checkDepth = 2000
	// maxPattern bounds a regular expression in bytes, maxProgram in what they expand to.
	maxPattern = 4096
	maxProgram = 10_000
)

// checker compares values with one JSON Schema, 2020-12 or a predecessor: all keywords about types, values, objects and arrays,
// with references inside the document. Keywords that only annotate, among them format, are passed over, and so are patterns
// that Go's syntax lacks.
//
// Each part of a value is compared with each part of the schema once, references, enums and patterns are prepared once, and
// equal values are found by their hashes. Whatever grows with the schema or the value is counted in steps.
type checker struct {
	ctx      context.Context
	left     int // steps
	looked   int // at ctx, when so many steps were left
	spent    bool
	endless  bool // the schema refers to itself without going on in the value
	seed     maphash.Seed
	document *schema.Node
	refs     map[*schema.Node]*schema.Node // what a $ref leads to
	enums    map[*schema.Node]set
	patterns map[string]*pattern
	hashes   map[*schema.Node]uint64 // of the parts of values
	known    map[pair]state
}

// pair is a part of the schema and one of the value.
type pair struct{ rule, value *schema.Node }

type state uint8

const (
	open state = iota + 1 // it is being compared
	fits
	differs
)

func newChecker(document *schema.Node) *checker {
	return &checker{left: checkSteps, looked: checkSteps, seed: maphash.MakeSeed(), document: document,
		refs: map[*schema.Node]*schema.Node{}, enums: map[*schema.Node]set{}, patterns: map[string]*pattern{},
		hashes: map[*schema.Node]uint64{}}
}

// check compares one value.
func (c *checker) check(ctx context.Context, v *schema.Node) verdict {
	c.ctx, c.known = ctx, map[pair]state{}
	c.weigh(v)
	ok := !c.spent && c.valid(c.document, v, 0)
	switch {
	case c.endless:
		return unmet
	case c.spent:
		return unchecked
	case ok:
		return met
	}
	return unmet
}

// stepsPerLook is how many steps go by between two looks at the context.
const stepsPerLook = 1024

// spend counts work before it is done and tells whether it may be.
func (c *checker) spend(n int) bool {
	if c.left -= n; c.left <= 0 {
		c.spent = true
	}
	if c.looked-c.left >= stepsPerLook {
		c.looked = c.left
		c.spent = c.spent || c.ctx.Err() != nil
	}
	return !c.spent
}

// weigh hashes what a value and each part of it say, and counts them.
func (c *checker) weigh(v *schema.Node) (hash uint64) {
	if !c.spend(4) {
		return 0
	}
	mix := func(h, x uint64) uint64 { return (h ^ x) * 0x9E3779B97F4A7C15 }
	hash = uint64(v.Kind())
	switch v.Kind() {
	case schema.Bool:
		hash = mix(hash, uint64(len(v.Text)))
	case schema.Number:
		x, _ := v.Float()
		hash = mix(hash, math.Float64bits(x+0)) // no -0
	case schema.String:
		c.spend(len(v.Text) >> 7)
		hash = mix(hash, maphash.String(c.seed, v.Text))
	}
	for i := range v.Items {
		item := &v.Items[i]
		if v.Kind() == schema.Object {
			if !c.spend(4 + len(item.Key)>>6) {
				break
			}
			hash += mix(maphash.String(c.seed, item.Key), c.weigh(item))
		} else if hash = mix(hash+7, c.weigh(item)); c.spent {
			break
		}
	}
	c.hashes[v] = hash
	return hash
}

// equal compares two values. Values that differ nearly always have different hashes, so this rarely goes further.
func (c *checker) equal(a, b *schema.Node) bool {
	if a == b || c.hashes[a] != c.hashes[b] || a.Kind() != b.Kind() || !c.spend(1+len(a.Text)>>7) {
		return a == b
	}
	if a.Kind() == schema.Number {
		x, _ := a.Float()
		y, _ := b.Float()
		return x == y
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

func (c *checker) add(s set, v *schema.Node) { s[c.hashes[v]] = append(s[c.hashes[v]], v) }

func (c *checker) has(s set, v *schema.Node) bool {
	return slices.ContainsFunc(s[c.hashes[v]], func(e *schema.Node) bool { return c.equal(e, v) })
}

// among tells whether a value is one of those of an enum.
func (c *checker) among(enum, v *schema.Node) bool {
	s, ok := c.enums[enum]
	if !ok {
		s = set{}
		for i := range enum.Items {
			if c.spent {
				break
			}
			c.weigh(&enum.Items[i])
			c.add(s, &enum.Items[i])
		}
		c.enums[enum] = s
	}
	return c.has(s, v)
}

// same tells whether a value is a const.
func (c *checker) same(want, v *schema.Node) bool {
	if _, ok := c.hashes[want]; !ok {
		c.weigh(want)
	}
	return c.equal(want, v)
}

// referred is what a $ref leads to, nil if that is nowhere.
func (c *checker) referred(ref *schema.Node) *schema.Node {
	to, ok := c.refs[ref]
	if !ok && c.spend(8+len(ref.Text)) {
		to = c.document.Local(ref.Text)
		c.refs[ref] = to
	}
	return to
}

// pattern is a regular expression, compiled when it is first needed.
type pattern struct {
	text string
	done bool
	re   *regexp.Regexp // nil once done: Go's syntax lacks it, it matches everything
	size int            // of its program
}

func (c *checker) patternOf(text string) *pattern {
	p := c.patterns[text]
	if p == nil {
		p = &pattern{text: text}
		c.patterns[text] = p
	}
	return p
}

// matches tells whether a pattern is in a text. It costs at most the text's length times the program's size, because every
// instruction may be active at every place of the text.
func (c *checker) matches(p *pattern, text string) bool {
	if !p.done && !c.compilePattern(p) {
		return false
	}
	if p.re == nil {
		return true
	}
	const little = 1 << 14 // steps that need no look in between
	if n := 4 + (1+len(text))*p.size/8; n <= little {
		return c.spend(n) && p.re.MatchString(text)
	}
	ok := p.re.MatchReader(&counted{c: c, text: text, size: p.size})
	return ok && !c.spent
}

func (c *checker) compilePattern(p *pattern) bool {
	if len(p.text) > maxPattern {
		c.spent = true
	}
	if !c.spend(100 + 32*len(p.text)) {
		return false
	}
	p.done = true
	tree, err := syntax.Parse(p.text, syntax.Perl)
	if err != nil {
		return true
	}
	if p.size = programSize(tree); p.size > maxProgram {
		c.spent = true
	}
	if !c.spend(8 * p.size) {
		return false
	}
	p.re, _ = regexp.Compile(p.text)
	return true
}

// programSize is about how many instructions an expression is compiled to.
func programSize(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += programSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1) + 1
	}
	return min(n, 2*maxProgram)
}

// counted reads a text for a pattern of some size and ends it where the checker's steps do.
type counted struct {
	c    *checker
	text string
	size int
	owed int // steps times 8
}

func (r *counted) ReadRune() (rune, int, error) {
	if r.owed += r.size; r.owed >= 1<<10 {
		r.c.spend(r.owed >> 3)
		r.owed &= 7
	}
	if r.text == "" || r.c.spent {
		return 0, 0, io.EOF
	}
	c, n := utf8.DecodeRuneInString(r.text)
	r.text = r.text[n:]
	return c, n, nil
}

// valid compares a value with a part of the schema. What is neither an object nor false takes everything.
func (c *checker) valid(rule, v *schema.Node, depth int) bool {
	if rule.Kind() != schema.Object {
		return !rule.Is(false)
	}
	at := pair{rule, v}
	switch c.known[at] {
	case fits:
		return c.spend(1)
	case differs:
		c.spend(1)
		return false
	case open:
		c.endless, c.spent = true, true
		return false
	}
	if depth > checkDepth {
		c.spent = true
	}
	if !c.spend(8) {
		return false
	}
	c.known[at] = open
	ok := c.says(rule, v, depth) && c.combined(rule, v, depth) && c.shape(rule, v, depth)
	if c.known[at] = differs; ok {
		c.known[at] = fits
	}
	return ok && !c.spent
}

// says compares the value itself.
func (c *checker) says(rule, v *schema.Node, depth int) bool {
	if ref := rule.Member("$ref"); ref.Kind() == schema.String {
		to := c.referred(ref)
		if to == nil || !c.spend(1) || !c.valid(to, v, depth+1) {
			return false
		}
	}
	if want := rule.Member("const"); want != nil && !(c.spend(9) && c.same(want, v)) {
		return false
	}
	if types := rule.Member("type"); types.Kind() == schema.String && !c.isType(types, v) || len(types.Elements()) > 0 &&
		!slices.ContainsFunc(types.Items, func(name schema.Node) bool { return c.isType(&name, v) }) {
		return false
	}
	if enum := rule.Member("enum"); enum.Kind() == schema.Array && !c.among(enum, v) {
		return false
	}
	if text, ok := v.Str(); ok {
		if rule.Member("minLength") != nil || rule.Member("maxLength") != nil {
			c.spend(len(text) >> 6)
			if !within(rule, "minLength", "maxLength", utf8.RuneCountInString(text)) {
				return false
			}
		}
		p, ok := rule.Member("pattern").Str()
		return !ok || c.spend(1+len(p)>>7) && c.matches(c.patternOf(p), text)
	}
	x, ok := v.Float()
	return !ok || inRange(rule, x)
}

func (c *checker) isType(of, v *schema.Node) bool {
	c.spend(1)
	name, _ := of.Str()
	x, number := v.Float()
	return name == v.Kind().String() || name == "integer" && number && x == math.Trunc(x)
}

// within compares n with two bounds, either of which may be missing.
func within(rule *schema.Node, least, most string, n int) bool {
	lo, hasLo := rule.Member(least).Float()
	hi, hasHi := rule.Member(most).Float()
	return (!hasLo || float64(n) >= lo) && (!hasHi || float64(n) <= hi)
}

func inRange(rule *schema.Node, x float64) bool {
	bound := func(key string, ok func(b float64) bool) bool {
		b, there := rule.Member(key).Float()
		return !there || ok(b)
	}
	return bound("minimum", func(b float64) bool { return x >= b }) &&
		bound("exclusiveMinimum", func(b float64) bool { return x > b }) &&
		bound("maximum", func(b float64) bool { return x <= b }) &&
		bound("exclusiveMaximum", func(b float64) bool { return x < b }) &&
		bound("multipleOf", func(b float64) bool {
			n := x / b
			return b <= 0 || math.Abs(n-math.Round(n)) < 1e-9*max(1, math.Abs(n))
		})
}

// combined applies the keywords that hold schemas for the same value.
func (c *checker) combined(rule, v *schema.Node, depth int) bool {
	// count is how many of a list take the value, up to the first one after whose verdict to stop.
	count := func(key string, stop func(ok bool) bool) (n, of int) {
		list := rule.Member(key).Elements()
		for i := range list {
			ok := c.spend(1) && c.valid(&list[i], v, depth+1)
			if ok {
				n++
			}
			if stop(ok) {
				break
			}
		}
		return n, len(list)
	}
	if n, of := count("allOf", func(ok bool) bool { return !ok }); n < of {
		return false
	}
	if n, of := count("anyOf", func(ok bool) bool { return ok }); of > 0 && n == 0 {
		return false
	}
	if n, of := count("oneOf", func(bool) bool { return false }); of > 0 && n != 1 {
		return false
	}
	if not := rule.Member("not"); not != nil && c.valid(not, v, depth+1) {
		return false
	}
	if cond := rule.Member("if"); cond != nil {
		then := "else"
		if c.valid(cond, v, depth+1) {
			then = "then"
		}
		return c.valid(rule.Member(then), v, depth+1)
	}
	return true
}

// shape applies the keywords about what is inside objects and arrays.
func (c *checker) shape(rule, v *schema.Node, depth int) bool {
	switch v.Kind() {
	case schema.Object:
		return c.object(rule, v, depth)
	case schema.Array:
		return c.array(rule, v, depth)
	}
	return true
}

func (c *checker) object(rule, v *schema.Node, depth int) bool {
	if !within(rule, "minProperties", "maxProperties", len(v.Items)) {
		return false
	}
	required := rule.Member("required").Elements()
	for i := range required {
		if name, ok := required[i].Str(); !c.spend(1) || ok && v.Member(name) == nil {
			return false
		}
	}
	properties, rest, names := rule.Member("properties"), rule.Member("additionalProperties"), rule.Member("propertyNames")
	patterns := rule.Member("patternProperties").Members()
	for i := range v.Items {
		if !c.spend(2) {
			return false
		}
		e := &v.Items[i]
		sub := properties.Member(e.Key)
		known := sub != nil
		if known && !c.valid(sub, e, depth+1) {
			return false
		}
		for j := range patterns {
			if c.spend(1+len(patterns[j].Key)>>7) && c.matches(c.patternOf(patterns[j].Key), e.Key) {
				if known = true; !c.valid(&patterns[j], e, depth+1) {
					return false
				}
			}
		}
		if !known && !c.valid(rest, e, depth+1) {
			return false
		}
		if names.Given() {
			name := schema.NewString(e.Key)
			if c.weigh(name); !c.valid(names, name, depth+1) {
				return false
			}
		}
	}
	return true
}

func (c *checker) array(rule, v *schema.Node, depth int) bool {
	if !within(rule, "minItems", "maxItems", len(v.Items)) {
		return false
	}
	first, rest := rule.Member("prefixItems").Elements(), rule.Member("items")
	if rest.Kind() == schema.Array { // before 2020-12
		first, rest = rest.Items, rule.Member("additionalItems")
	}
	contains, unique := rule.Member("contains"), rule.Member("uniqueItems").Is(true)
	found := 0
	seen := set{}
	for i := range v.Items {
		if !c.spend(2) {
			return false
		}
		e := &v.Items[i]
		sub := rest
		if i < len(first) {
			sub = &first[i]
		}
		if !c.valid(sub, e, depth+1) {
			return false
		}
		if contains.Given() && c.valid(contains, e, depth+1) {
			found++
		}
		if unique {
			if c.has(seen, e) {
				return false
			}
			c.add(seen, e)
		}
	}
	return !contains.Given() || found > 0
}
