package openai

import (
	"context"
	"hash/maphash"
	"io"
	"maps"
	"math"
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode/utf8"

	"hearth/internal/jsonref"
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
	document any
	root     *schema
	schemas  map[uintptr]*schema // by the map they are made of
	todo     []*schema           // are not compiled yet
	patterns map[string]*pattern
	known    map[pair]state
}

// pair is a part of the schema and one of the value.
type pair struct {
	s *schema
	v *value
}

type state uint8

const (
	open state = iota + 1 // it is being compared
	fits
	differs
)

func newChecker(document any) *checker {
	return &checker{left: checkSteps, looked: checkSteps, seed: maphash.MakeSeed(), document: document,
		schemas: map[uintptr]*schema{}, patterns: map[string]*pattern{}}
}

// check compares one value.
func (c *checker) check(ctx context.Context, v any) verdict {
	c.ctx, c.known = ctx, map[pair]state{}
	if c.root == nil {
		c.root = c.schemaOf(c.document)
		for len(c.todo) > 0 && !c.spent {
			s := c.todo[0]
			c.todo = c.todo[1:]
			c.compile(s)
		}
	}
	of := c.valueOf(v)
	ok := !c.spent && c.valid(c.root, of, 0)
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

// value is a part of a reply, or one that a schema names, with the hash of what it says.
type value struct {
	kind    byte // as isType knows them: 'n'ull, 'b'oolean, 's'tring, number '1', 'a'rray, 'o'bject
	num     float64
	text    string
	items   []*value
	keys    []string // sorted
	members map[string]*value
	hash    uint64
}

func (c *checker) valueOf(v any) *value {
	out := &value{kind: 'n'}
	if !c.spend(4) {
		return out
	}
	mix := func(h, x uint64) uint64 { return (h ^ x) * 0x9E3779B97F4A7C15 }
	switch v := v.(type) {
	case bool:
		out.kind, out.hash = 'b', 1
		if v {
			out.num, out.hash = 1, 2
		}
	case float64:
		out.kind, out.num = '1', v+0 // no -0
		out.hash = mix(3, math.Float64bits(out.num))
	case string:
		c.spend(len(v) >> 7)
		out.kind, out.text, out.hash = 's', v, mix(4, maphash.String(c.seed, v))
	case []any:
		out.kind, out.hash = 'a', 5
		for _, e := range v {
			if c.spent {
				break
			}
			item := c.valueOf(e)
			out.items = append(out.items, item)
			out.hash = mix(out.hash+7, item.hash)
		}
	case map[string]any:
		out.kind, out.hash = 'o', 6
		out.keys, out.members = slices.Sorted(maps.Keys(v)), make(map[string]*value, len(v))
		for _, k := range out.keys {
			if !c.spend(4 + len(k)>>6) {
				break
			}
			item := c.valueOf(v[k])
			out.members[k] = item
			out.hash += mix(maphash.String(c.seed, k), item.hash)
		}
	}
	return out
}

// equal compares what two values say. Those that differ do so in their hashes, all but never elsewhere.
func (c *checker) equal(a, b *value) bool {
	if a == b || a.hash != b.hash || a.kind != b.kind || !c.spend(1+len(a.text)>>7) {
		return a == b
	}
	switch a.kind {
	case 's':
		return a.text == b.text
	case 'a':
		return slices.EqualFunc(a.items, b.items, c.equal)
	case 'o':
		return slices.Equal(a.keys, b.keys) &&
			!slices.ContainsFunc(a.keys, func(k string) bool { return !c.equal(a.members[k], b.members[k]) })
	}
	return a.num == b.num
}

// set is values by their hashes.
type set map[uint64][]*value

func (c *checker) setOf(list []any) set {
	out := make(set)
	for _, e := range list {
		if c.spent {
			break
		}
		v := c.valueOf(e)
		out[v.hash] = append(out[v.hash], v)
	}
	return out
}

func (c *checker) has(s set, v *value) bool {
	return slices.ContainsFunc(s[v.hash], func(e *value) bool { return c.equal(e, v) })
}

// schema is a compiled part of the document. A nil *schema takes everything.
type schema struct {
	from  map[string]any
	never bool // takes nothing
	refs  []*schema

	types   []string
	enum    set // nil: any value
	pattern *pattern
	numbers map[string]float64 // the keywords with numbers

	all, any, one                []*schema
	hasAny, hasOne               bool
	not, cond, then, orElse      *schema
	hasNot, hasCond, hasContains bool

	required   []string
	properties map[string]*schema
	byPattern  []keyed
	rest       *schema // additionalProperties
	names      *schema

	first    []*schema
	items    *schema
	contains *schema
	unique   bool
}

type keyed struct {
	*pattern
	schema *schema
}

var never = &schema{never: true}

// schemaOf gives what a part of the document is compiled to, if only later on.
func (c *checker) schemaOf(at any) *schema {
	m, ok := at.(map[string]any)
	if !ok {
		if at == false {
			return never
		}
		return nil
	}
	id := reflect.ValueOf(m).Pointer()
	s := c.schemas[id]
	if s == nil && c.spend(16) {
		s = &schema{from: m}
		c.schemas[id] = s
		c.todo = append(c.todo, s)
	}
	return s
}

func (c *checker) schemasOf(at any) (out []*schema, some bool) {
	list, _ := at.([]any)
	for _, e := range list {
		if !c.spend(1) {
			break
		}
		out = append(out, c.schemaOf(e))
	}
	return out, len(list) > 0
}

// numbered are the keywords whose values are numbers.
var numbered = []string{"minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"minProperties", "maxProperties", "minItems", "maxItems"}

func (c *checker) compile(s *schema) {
	m := s.from
	if ref, ok := m["$ref"].(string); ok {
		c.spend(8 + len(ref))
		to, ok := jsonref.Local(c.document, ref)
		if !ok {
			to = false
		}
		s.refs = []*schema{c.schemaOf(to)}
	}
	switch t := m["type"].(type) {
	case string:
		s.types = []string{t}
	case []any:
		for _, e := range t {
			c.spend(1)
			name, _ := e.(string)
			s.types = append(s.types, name)
		}
	}
	if list, ok := m["enum"].([]any); ok {
		s.enum = c.setOf(list)
	}
	if want, ok := m["const"]; ok {
		s.refs = append(s.refs, &schema{enum: c.setOf([]any{want})})
	}
	if p, ok := m["pattern"].(string); ok {
		s.pattern = c.patternOf(p)
	}
	for _, key := range numbered {
		if n, ok := m[key].(float64); ok {
			if s.numbers == nil {
				s.numbers = map[string]float64{}
			}
			s.numbers[key] = n
		}
	}
	s.all, _ = c.schemasOf(m["allOf"])
	s.any, s.hasAny = c.schemasOf(m["anyOf"])
	s.one, s.hasOne = c.schemasOf(m["oneOf"])
	if not, ok := m["not"]; ok {
		s.not, s.hasNot = c.schemaOf(not), true
	}
	if cond, ok := m["if"]; ok {
		s.cond, s.hasCond = c.schemaOf(cond), true
		s.then, s.orElse = c.schemaOf(m["then"]), c.schemaOf(m["else"])
	}
	c.compileObject(s, m)
	s.first, _ = c.schemasOf(m["prefixItems"])
	if list, ok := m["items"].([]any); ok { // before 2020-12
		s.first, _ = c.schemasOf(list)
		s.items = c.schemaOf(m["additionalItems"])
	} else {
		s.items = c.schemaOf(m["items"])
	}
	if want, ok := m["contains"]; ok && want != nil {
		s.contains, s.hasContains = c.schemaOf(want), true
	}
	s.unique = m["uniqueItems"] == true
}

func (c *checker) compileObject(s *schema, m map[string]any) {
	required, _ := m["required"].([]any)
	for _, name := range required {
		c.spend(1)
		if key, ok := name.(string); ok {
			s.required = append(s.required, key)
		}
	}
	if props, ok := m["properties"].(map[string]any); ok {
		s.properties = make(map[string]*schema, len(props))
		for key, sub := range props {
			c.spend(2)
			s.properties[key] = c.schemaOf(sub)
		}
	}
	patterns, _ := m["patternProperties"].(map[string]any)
	for _, p := range slices.Sorted(maps.Keys(patterns)) {
		c.spend(2)
		s.byPattern = append(s.byPattern, keyed{c.patternOf(p), c.schemaOf(patterns[p])})
	}
	s.rest, s.names = c.schemaOf(m["additionalProperties"]), c.schemaOf(m["propertyNames"])
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
func (c *checker) valid(s *schema, v *value, depth int) bool {
	if s == nil || s.never {
		return s == nil
	}
	at := pair{s, v}
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
	ok := c.every(s.refs, v, depth) && c.says(s, v) && c.combined(s, v, depth) && c.shape(s, v, depth)
	if c.known[at] = differs; ok {
		c.known[at] = fits
	}
	return ok && !c.spent
}

func (c *checker) every(list []*schema, v *value, depth int) bool {
	for _, s := range list {
		if !c.spend(1) || !c.valid(s, v, depth+1) {
			return false
		}
	}
	return true
}

// says compares the value itself.
func (c *checker) says(s *schema, v *value) bool {
	if s.types != nil && !slices.ContainsFunc(s.types, func(name string) bool { c.spend(1); return isType(name, v) }) {
		return false
	}
	if s.enum != nil && !c.has(s.enum, v) {
		return false
	}
	switch v.kind {
	case 's':
		if s.has("minLength", "maxLength") {
			c.spend(len(v.text) >> 6)
			if !s.within("minLength", "maxLength", utf8.RuneCountInString(v.text)) {
				return false
			}
		}
		return s.pattern == nil || c.matches(s.pattern, v.text)
	case '1':
		return s.numbers == nil || s.inRange(v.num)
	}
	return true
}

func isType(name string, v *value) bool {
	switch v.kind {
	case 'n':
		return name == "null"
	case 'b':
		return name == "boolean"
	case 's':
		return name == "string"
	case '1':
		return name == "number" || name == "integer" && v.num == math.Trunc(v.num)
	case 'a':
		return name == "array"
	}
	return name == "object"
}

func (s *schema) has(keys ...string) bool {
	return s.numbers != nil && slices.ContainsFunc(keys, func(k string) bool { _, ok := s.numbers[k]; return ok })
}

// within compares n with two bounds, either of which may be missing.
func (s *schema) within(least, most string, n int) bool {
	lo, hasLo := s.numbers[least]
	hi, hasHi := s.numbers[most]
	return (!hasLo || float64(n) >= lo) && (!hasHi || float64(n) <= hi)
}

func (s *schema) inRange(x float64) bool {
	for key, b := range s.numbers {
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
func (c *checker) combined(s *schema, v *value, depth int) bool {
	if !c.every(s.all, v, depth) {
		return false
	}
	if s.hasAny && !slices.ContainsFunc(s.any, func(sub *schema) bool { return c.spend(1) && c.valid(sub, v, depth+1) }) {
		return false
	}
	if s.hasOne {
		n := 0
		for _, sub := range s.one {
			if c.spend(1) && c.valid(sub, v, depth+1) {
				n++
			}
		}
		if n != 1 {
			return false
		}
	}
	if s.hasNot && c.valid(s.not, v, depth+1) {
		return false
	}
	if s.hasCond {
		if c.valid(s.cond, v, depth+1) {
			return c.valid(s.then, v, depth+1)
		}
		return c.valid(s.orElse, v, depth+1)
	}
	return true
}

// shape applies the keywords about what is inside objects and arrays.
func (c *checker) shape(s *schema, v *value, depth int) bool {
	switch v.kind {
	case 'o':
		return c.object(s, v, depth)
	case 'a':
		return c.array(s, v, depth)
	}
	return true
}

func (c *checker) object(s *schema, v *value, depth int) bool {
	if !s.within("minProperties", "maxProperties", len(v.keys)) {
		return false
	}
	for _, name := range s.required {
		if _, there := v.members[name]; !c.spend(1) || !there {
			return false
		}
	}
	for _, key := range v.keys {
		if !c.spend(2) {
			return false
		}
		e := v.members[key]
		sub, known := s.properties[key]
		if known && !c.valid(sub, e, depth+1) {
			return false
		}
		for _, p := range s.byPattern {
			if c.matches(p.pattern, key) {
				if known = true; !c.valid(p.schema, e, depth+1) {
					return false
				}
			}
		}
		if !known && !c.valid(s.rest, e, depth+1) {
			return false
		}
		if s.names != nil && !c.valid(s.names, c.valueOf(key), depth+1) {
			return false
		}
	}
	return true
}

func (c *checker) array(s *schema, v *value, depth int) bool {
	if !s.within("minItems", "maxItems", len(v.items)) {
		return false
	}
	found := 0
	seen := set{}
	for i, e := range v.items {
		if !c.spend(2) {
			return false
		}
		sub := s.items
		if i < len(s.first) {
			sub = s.first[i]
		}
		if !c.valid(sub, e, depth+1) {
			return false
		}
		if s.hasContains && c.valid(s.contains, e, depth+1) {
			found++
		}
		if s.unique {
			if c.has(seen, e) {
				return false
			}
			seen[e.hash] = append(seen[e.hash], e)
		}
	}
	return !s.hasContains || found > 0
}
