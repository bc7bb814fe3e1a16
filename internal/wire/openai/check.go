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
// Everything is compiled once, each part of a value is compared with each part of the schema once, and equal values are found
// by their hashes. Whatever grows with the schema or the value is counted in steps.
type checker struct {
	ctx      context.Context
	left     int // steps
	looked   int // at ctx, when so many steps were left
	spent    bool
	endless  bool // the schema refers to itself without going on in the value
	seed     maphash.Seed
	document *schema.Node
	root     *rule
	rules    map[*schema.Node]*rule
	todo     []*rule // are not compiled yet
	patterns map[string]*pattern
	hashes   map[*schema.Node]uint64 // of the parts of values
	known    map[pair]state
}

// pair is a part of the schema and one of the value.
type pair struct {
	rule  *rule
	value *schema.Node
}

type state uint8

const (
	open state = iota + 1 // it is being compared
	fits
	differs
)

func newChecker(document *schema.Node) *checker {
	return &checker{left: checkSteps, looked: checkSteps, seed: maphash.MakeSeed(), document: document,
		rules: map[*schema.Node]*rule{}, patterns: map[string]*pattern{}, hashes: map[*schema.Node]uint64{}}
}

// check compares one value.
func (c *checker) check(ctx context.Context, v *schema.Node) verdict {
	c.ctx, c.known = ctx, map[pair]state{}
	if c.root == nil {
		c.root = c.ruleOf(c.document)
		for len(c.todo) > 0 && !c.spent {
			r := c.todo[0]
			c.todo = c.todo[1:]
			c.compile(r)
		}
	}
	c.weigh(v)
	ok := !c.spent && c.valid(c.root, v, 0)
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

// equal compares what two values say. Those that differ do so in their hashes, all but never elsewhere.
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

// rule is a compiled part of the schema. A nil *rule takes everything.
type rule struct {
	from  *schema.Node
	never bool // takes nothing
	refs  []*rule

	types   []string
	enum    set // nil: any value
	pattern *pattern
	numbers map[string]float64 // the keywords with numbers

	all, any, one                []*rule
	not, cond, then, orElse      *rule
	hasNot, hasCond, hasContains bool

	required   []string
	properties map[string]*rule
	byPattern  []keyed
	rest       *rule // additionalProperties
	names      *rule

	first    []*rule
	items    *rule
	contains *rule
	unique   bool
}

type keyed struct {
	*pattern
	rule *rule
}

var never = &rule{never: true}

// ruleOf gives what a part of the document is compiled to, if only later on.
func (c *checker) ruleOf(at *schema.Node) *rule {
	if at.Kind() != schema.Object {
		if at.Is(false) {
			return never
		}
		return nil
	}
	r := c.rules[at]
	if r == nil && c.spend(16) {
		r = &rule{from: at}
		c.rules[at] = r
		c.todo = append(c.todo, r)
	}
	return r
}

func (c *checker) rulesOf(at *schema.Node) (out []*rule) {
	list := at.Elements()
	for i := range list {
		if !c.spend(1) {
			break
		}
		out = append(out, c.ruleOf(&list[i]))
	}
	return out
}

func (c *checker) setOf(list []schema.Node) set {
	out := set{}
	for i := range list {
		if c.spent {
			break
		}
		c.weigh(&list[i])
		c.add(out, &list[i])
	}
	return out
}

// numbered are the keywords whose values are numbers.
var numbered = []string{"minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"minProperties", "maxProperties", "minItems", "maxItems"}

func (c *checker) compile(r *rule) {
	m := r.from
	if ref, ok := m.Member("$ref").Str(); ok {
		c.spend(8 + len(ref))
		to := never
		if at := c.document.Local(ref); at != nil {
			to = c.ruleOf(at)
		}
		r.refs = []*rule{to}
	}
	r.types, _ = m.Types()
	c.spend(len(m.Member("type").Elements()))
	if enum := m.Member("enum"); enum.Kind() == schema.Array {
		r.enum = c.setOf(enum.Items)
	}
	if want := m.Member("const"); want != nil {
		c.weigh(want)
		only := set{}
		c.add(only, want)
		r.refs = append(r.refs, &rule{enum: only})
	}
	if p, ok := m.Member("pattern").Str(); ok {
		r.pattern = c.patternOf(p)
	}
	for _, key := range numbered {
		if n, ok := m.Member(key).Float(); ok {
			if r.numbers == nil {
				r.numbers = map[string]float64{}
			}
			r.numbers[key] = n
		}
	}
	r.all, r.any, r.one = c.rulesOf(m.Member("allOf")), c.rulesOf(m.Member("anyOf")), c.rulesOf(m.Member("oneOf"))
	if not := m.Member("not"); not != nil {
		r.not, r.hasNot = c.ruleOf(not), true
	}
	if cond := m.Member("if"); cond != nil {
		r.cond, r.hasCond = c.ruleOf(cond), true
		r.then, r.orElse = c.ruleOf(m.Member("then")), c.ruleOf(m.Member("else"))
	}
	c.compileObject(r, m)
	r.first = c.rulesOf(m.Member("prefixItems"))
	if items := m.Member("items"); items.Kind() == schema.Array { // before 2020-12
		r.first, r.items = c.rulesOf(items), c.ruleOf(m.Member("additionalItems"))
	} else {
		r.items = c.ruleOf(items)
	}
	if want := m.Member("contains"); want.Given() {
		r.contains, r.hasContains = c.ruleOf(want), true
	}
	r.unique = m.Member("uniqueItems").Is(true)
}

func (c *checker) compileObject(r *rule, m *schema.Node) {
	required := m.Member("required").Elements()
	for i := range required {
		c.spend(1)
		if key, ok := required[i].Str(); ok {
			r.required = append(r.required, key)
		}
	}
	props := m.Member("properties").Members()
	if len(props) > 0 {
		r.properties = make(map[string]*rule, len(props))
	}
	for i := range props {
		c.spend(2)
		r.properties[props[i].Key] = c.ruleOf(&props[i])
	}
	patterns := m.Member("patternProperties").Members()
	for i := range patterns {
		c.spend(2)
		r.byPattern = append(r.byPattern, keyed{c.patternOf(patterns[i].Key), c.ruleOf(&patterns[i])})
	}
	r.rest, r.names = c.ruleOf(m.Member("additionalProperties")), c.ruleOf(m.Member("propertyNames"))
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

// matches tells whether a pattern is in a text. Its cost is at most the text's length times the program's size, whose parts all
// may be at work at every place of the text.
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

// valid compares a value with a part of the schema.
func (c *checker) valid(r *rule, v *schema.Node, depth int) bool {
	if r == nil || r.never {
		return r == nil
	}
	at := pair{r, v}
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
	ok := c.every(r.refs, v, depth) && c.says(r, v) && c.combined(r, v, depth) && c.shape(r, v, depth)
	if c.known[at] = differs; ok {
		c.known[at] = fits
	}
	return ok && !c.spent
}

func (c *checker) every(list []*rule, v *schema.Node, depth int) bool {
	for _, r := range list {
		if !c.spend(1) || !c.valid(r, v, depth+1) {
			return false
		}
	}
	return true
}

// says compares the value itself.
func (c *checker) says(r *rule, v *schema.Node) bool {
	if len(r.types) > 0 && !slices.ContainsFunc(r.types, func(name string) bool { c.spend(1); return isType(name, v) }) {
		return false
	}
	if r.enum != nil && !c.has(r.enum, v) {
		return false
	}
	if text, ok := v.Str(); ok {
		if r.has("minLength", "maxLength") {
			c.spend(len(text) >> 6)
			if !r.within("minLength", "maxLength", utf8.RuneCountInString(text)) {
				return false
			}
		}
		return r.pattern == nil || c.matches(r.pattern, text)
	}
	x, ok := v.Float()
	return !ok || r.inRange(x)
}

func isType(name string, v *schema.Node) bool {
	switch v.Kind() {
	case schema.Null:
		return name == "null"
	case schema.Bool:
		return name == "boolean"
	case schema.String:
		return name == "string"
	case schema.Number:
		x, _ := v.Float()
		return name == "number" || name == "integer" && x == math.Trunc(x)
	case schema.Array:
		return name == "array"
	}
	return name == "object"
}

func (r *rule) has(keys ...string) bool {
	return r.numbers != nil && slices.ContainsFunc(keys, func(k string) bool { _, ok := r.numbers[k]; return ok })
}

// within compares n with two bounds, either of which may be missing.
func (r *rule) within(least, most string, n int) bool {
	lo, hasLo := r.numbers[least]
	hi, hasHi := r.numbers[most]
	return (!hasLo || float64(n) >= lo) && (!hasHi || float64(n) <= hi)
}

func (r *rule) inRange(x float64) bool {
	for key, b := range r.numbers {
		ok := true
		switch key {
		case "minimum":
			ok = x >= b
		case "exclusiveMinimum":
			ok = x > b
		case "maximum":
			ok = x <= b
		case "exclusiveMaximum":
			ok = x < b
		case "multipleOf":
			n := x / b
			ok = b <= 0 || math.Abs(n-math.Round(n)) < 1e-9*max(1, math.Abs(n))
		}
		if !ok {
			return false
		}
	}
	return true
}

// combined applies the keywords that hold schemas for the same value.
func (c *checker) combined(r *rule, v *schema.Node, depth int) bool {
	if !c.every(r.all, v, depth) {
		return false
	}
	if len(r.any) > 0 && !slices.ContainsFunc(r.any, func(sub *rule) bool { return c.spend(1) && c.valid(sub, v, depth+1) }) {
		return false
	}
	if len(r.one) > 0 {
		n := 0
		for _, sub := range r.one {
			if c.spend(1) && c.valid(sub, v, depth+1) {
				n++
			}
		}
		if n != 1 {
			return false
		}
	}
	if r.hasNot && c.valid(r.not, v, depth+1) {
		return false
	}
	if r.hasCond {
		if c.valid(r.cond, v, depth+1) {
			return c.valid(r.then, v, depth+1)
		}
		return c.valid(r.orElse, v, depth+1)
	}
	return true
}

// shape applies the keywords about what is inside objects and arrays.
func (c *checker) shape(r *rule, v *schema.Node, depth int) bool {
	switch v.Kind() {
	case schema.Object:
		return c.object(r, v, depth)
	case schema.Array:
		return c.array(r, v, depth)
	}
	return true
}

func (c *checker) object(r *rule, v *schema.Node, depth int) bool {
	if !r.within("minProperties", "maxProperties", len(v.Items)) {
		return false
	}
	for _, name := range r.required {
		if !c.spend(1) || v.Member(name) == nil {
			return false
		}
	}
	for i := range v.Items {
		if !c.spend(2) {
			return false
		}
		e := &v.Items[i]
		sub, known := r.properties[e.Key]
		if known && !c.valid(sub, e, depth+1) {
			return false
		}
		for _, p := range r.byPattern {
			if c.matches(p.pattern, e.Key) {
				if known = true; !c.valid(p.rule, e, depth+1) {
					return false
				}
			}
		}
		if !known && !c.valid(r.rest, e, depth+1) {
			return false
		}
		if r.names == nil {
			continue
		}
		name := schema.NewString(e.Key)
		if c.weigh(name); !c.valid(r.names, name, depth+1) {
			return false
		}
	}
	return true
}

func (c *checker) array(r *rule, v *schema.Node, depth int) bool {
	if !r.within("minItems", "maxItems", len(v.Items)) {
		return false
	}
	found := 0
	seen := set{}
	for i := range v.Items {
		if !c.spend(2) {
			return false
		}
		e := &v.Items[i]
		sub := r.items
		if i < len(r.first) {
			sub = r.first[i]
		}
		if !c.valid(sub, e, depth+1) {
			return false
		}
		if r.hasContains && c.valid(r.contains, e, depth+1) {
			found++
		}
		if r.unique {
			if c.has(seen, e) {
				return false
			}
			c.add(seen, e)
		}
	}
	return !r.hasContains || found > 0
}
