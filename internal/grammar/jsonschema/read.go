package jsonschema

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"hearth/internal/grammar"
	"hearth/internal/grammar/regex"
	"hearth/internal/schema"
)

// kinds is a set of the types of JSON values. Numbers are of two: whole ones and others.
type kinds uint8

const (
	null kinds = 1 << iota
	boolean
	integer
	fraction
	text
	array
	object

	number = integer | fraction
	all    = null | boolean | number | text | array | object
)

var kindNames = map[string]kinds{"null": null, "boolean": boolean, "integer": integer, "number": number, "string": text, "array": array, "object": object}

// none is the absence of an upper bound.
const none = -1

// span is how many of something there are.
type span struct{ min, max int }

var anyMany = span{0, none}

func (s span) empty() bool { return s.max != none && s.min > s.max }

// behind is how many there are behind the first n.
func (s span) behind(n int) span {
	left := span{max(s.min-n, 0), none}
	if s.max != none {
		if left.max = s.max - n; left.max < 0 {
			return span{1, 0}
		}
	}
	return left
}

// rule is a schema, or a part of one that was made of others. It does not change once it is read.
type rule struct {
	at     *place
	id     int
	never  bool // no value is valid: false
	plain  bool // it has no assertions of its own
	inner  bool // it has rules for the same value
	kinds  kinds
	enums  [][]*schema.Node // a value is one of each
	not    []*schema.Node   // none of these
	number numberRule
	text   textRule
	array  arrayRule
	object objectRule
	sameRules
}

type numberRule struct {
	min, max *bound
	steps    []decimal // multipleOf
}

func (n *numberRule) free() bool { return n.min == nil && n.max == nil && n.steps == nil }

type bound struct {
	decimal
	exclusive bool
}

// tighter is the one of two bounds that leaves less, either of which may be missing. Those below have the sign 1, those above -1.
func tighter(x, y *bound, sign int) *bound {
	if x == nil || y != nil && (y.compare(x.decimal) == sign || y.compare(x.decimal) == 0 && y.exclusive) {
		return y
	}
	return x
}

type textRule struct {
	span     // of characters
	patterns []pattern
	formats  []pattern
}

func (t *textRule) free() bool { return t.span == anyMany && t.patterns == nil && t.formats == nil }

// pattern is a regular expression that is in a text, or is not if not is set.
type pattern struct {
	text string
	not  bool
}

type arrayRule struct {
	span
	prefix   []*rule
	items    *rule // of the elements behind; nil is any
	contains []contains
	unique   bool
	left     *rule // unevaluatedItems
}

func (a *arrayRule) free() bool {
	return a.span == anyMany && a.prefix == nil && a.items == nil && a.contains == nil && !a.unique && a.left == nil
}

type contains struct {
	rule *rule
	span
}

type objectRule struct {
	span
	props      []member
	named      map[string]int // of props
	patterns   []member
	additional *rule // of members that neither names; nil is any
	names      *rule // of the names as strings
	required   []string
	dependent  []dependency
	some       []some
	left       *rule // unevaluatedProperties
}

func (o *objectRule) free() bool {
	return o.span == anyMany && o.props == nil && o.patterns == nil && o.additional == nil && o.names == nil &&
		o.required == nil && o.dependent == nil && o.some == nil && o.left == nil
}

// some asks for a member of some names whose value follows a rule: it is what a keyword about all members is negated to.
type some struct {
	outside *objectRule // whose properties and patterns the name has none of, nil if it may
	pattern *string     // that is in the name, nil for any
	names   *rule       // that the name follows, nil for any
	rule    *rule       // that the value follows, nil for any
}

type member struct {
	name string // or a pattern
	rule *rule
}

type dependency struct {
	name     string
	required []string
}

// sameRules are those for the same value.
type sameRules struct {
	allOf           []*rule   // $ref among them
	anyOf           [][]*rule // one of each
	oneOf           [][]*rule
	nots            []*rule
	cond, then, els *rule
}

// place is where in the document a rule stands.
type place struct {
	up   *place
	step string
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

// String is a JSON Pointer.
func (p *place) String() string {
	var steps []string
	for ; p != nil && p.up != nil; p = p.up {
		steps = append(steps, "/"+escape.Replace(p.step))
	}
	slices.Reverse(steps)
	return strings.Join(steps, "")
}

func (p *place) below(steps ...string) *place {
	for _, s := range steps {
		p = &place{p, s}
	}
	return p
}

// Error is a schema that is wrong in itself.
type Error struct {
	Pointer string // JSON Pointer of the schema that has the keyword
	Keyword string
	What    string
}

func (e *Error) Error() string {
	return fmt.Sprintf("the schema at %s is wrong: %s %s", quotePointer(e.Pointer), e.Keyword, e.What)
}

func quotePointer(p string) string {
	if p == "" {
		return "its root"
	}
	return strconv.Quote(p)
}

// Bounds of a schema.
const (
	maxLevels    = 4000    // of schemas within each other
	maxRules     = 1 << 18 // schemas, those that are made of others too
	maxAddresses = 1 << 26 // bytes of the addresses that $id, anchors and references come to
)

// reader reads rules out of a document, each when it is first met.
type reader struct {
	ctx     context.Context
	root    *schema.Node
	rules   map[*schema.Node]*rule
	order   []*rule // as they were met
	hasLeft bool    // some ask for what others do not evaluate
	made    int
	found   *located // nil until a reference needs more than a path
	unheld  []Unheld
	checks  *Checker
	combined
}

// combined is what is known of combining rules.
type combined struct {
	known     map[string][]*form  // by key
	formed    int                 // alternatives that were looked at
	ones      map[*rule][][]*rule // of oneOf
	opposites map[*rule]*rule
	negations map[*rule]*negation
	apart     map[both]bool
	fulls     map[*rule]kinds
	reached   map[*rule]map[*rule]bool // rules for the same value, below those that ask for what is left
	empties   map[string]bool          // by key, of members
}

// stop ends the reading by an error, from whatever depth.
type stop struct{ error }

func (r *reader) fail(at *place, keyword, format string, args ...any) {
	panic(stop{&Error{at.String(), keyword, fmt.Sprintf(format, args...)}})
}

// caught gives the error that stopped a reader.
func caught(err *error) {
	switch e := recover().(type) {
	case nil:
	case stop:
		*err = e.error
	default:
		panic(e)
	}
}

func (r *reader) lacks(at *place, keyword, why string) {
	u := Unheld{at.String(), keyword, why}
	if !slices.Contains(r.unheld, u) {
		r.unheld = append(r.unheld, u)
	}
}

// make is a new rule that takes everything.
func (r *reader) make(at *place) *rule {
	if r.made++; r.made > maxRules {
		panic(stop{&grammar.LimitError{What: "schemas", Limit: maxRules}})
	}
	if r.made%1024 == 0 && r.ctx.Err() != nil {
		panic(stop{r.ctx.Err()})
	}
	return &rule{at: at, id: r.made, plain: true, kinds: all, text: textRule{span: anyMany}, array: arrayRule{span: anyMany}, object: objectRule{span: anyMany}}
}

// never is a new rule that takes nothing.
func (r *reader) never(at *place) *rule {
	s := r.make(at)
	s.never = true
	return s
}

// rule is that of a schema.
func (r *reader) rule(n *schema.Node, at *place, level int) *rule {
	if known := r.rules[n]; known != nil {
		return known
	}
	if level > maxLevels {
		panic(stop{&grammar.LimitError{What: "schemas within each other", Limit: maxLevels}})
	}
	s := r.make(at)
	r.rules[n] = s // what refers to itself finds it
	r.order = append(r.order, s)
	switch n.Kind() {
	case schema.Bool:
		s.never = n.Is(false)
	case schema.Object:
		k := &keywords{reader: r, n: n, s: s, level: level}
		k.read()
	default:
		r.fail(at.up, at.step, "is neither an object nor a boolean")
	}
	return s
}

// same are all rules for the same value.
func (s *sameRules) same() []*rule {
	lists := append(append([][]*rule{s.allOf, s.nots}, s.anyOf...), s.oneOf...)
	return slices.DeleteFunc(append(slices.Concat(lists...), s.cond, s.then, s.els), func(s *rule) bool { return s == nil })
}

// loops refuses schemas that lead back to themselves for the same value: these say nothing.
func (r *reader) loops() {
	open := map[*rule]bool{}
	var look func(s *rule)
	look = func(s *rule) {
		if on, known := open[s]; on {
			r.fail(s.at, "$ref", "leads back to its schema for the same value")
		} else if known {
			return
		}
		open[s] = true
		for _, o := range s.same() {
			look(o)
		}
		open[s] = false
	}
	for _, s := range r.order {
		look(s)
	}
}

// keywords reads those of one schema.
type keywords struct {
	*reader
	n     *schema.Node
	s     *rule
	level int
}

func (k *keywords) wrong(keyword, format string, args ...any) {
	k.fail(k.s.at, keyword, format, args...)
}

// sub is the rule of a keyword, nil if that is not there.
func (k *keywords) sub(keyword string) *rule {
	n := k.n.Member(keyword)
	if n == nil {
		return nil
	}
	return k.rule(n, k.s.at.below(keyword), k.level+1)
}

func (k *keywords) list(keyword string) (out []*rule) {
	n := k.n.Member(keyword)
	if n == nil {
		return nil
	}
	if len(n.Elements()) == 0 {
		k.wrong(keyword, "is no list of schemas")
	}
	for i := range n.Items {
		out = append(out, k.rule(&n.Items[i], k.s.at.below(keyword, strconv.Itoa(i)), k.level+1))
	}
	return out
}

func (k *keywords) members(keyword string) (out []member) {
	n := k.n.Member(keyword)
	if n == nil {
		return nil
	}
	if n.Kind() != schema.Object {
		k.wrong(keyword, "is no object")
	}
	for _, m := range n.Written() {
		out = append(out, member{m.Key, k.rule(m, k.s.at.below(keyword, m.Key), k.level+1)})
	}
	return out
}

// count is a number of things, otherwise if it is not there. What is beyond any text is cut.
func (k *keywords) count(keyword string, otherwise int) int {
	n := k.n.Member(keyword)
	if n == nil {
		return otherwise
	}
	x, ok := n.Float()
	if !ok || x < 0 || x != math.Trunc(x) {
		k.wrong(keyword, "is no whole number from 0 on")
	}
	return int(min(x, math.MaxInt32))
}

func (k *keywords) names(n *schema.Node, keyword string) (out []string) {
	if n.Kind() != schema.Array {
		k.wrong(keyword, "is no list of names")
	}
	seen := map[string]bool{}
	for i := range n.Items {
		name, ok := n.Items[i].Str()
		if !ok {
			k.wrong(keyword, "has an element that is no name")
		}
		if !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}

func (k *keywords) decimal(keyword string) *decimal {
	n := k.n.Member(keyword)
	if n == nil {
		return nil
	}
	if n.Kind() != schema.Number {
		k.wrong(keyword, "is no number")
	}
	d, ok := newDecimal(n.Text)
	if !ok {
		k.wrong(keyword, "is a number beyond float64")
	}
	return &d
}

func (k *keywords) pattern(keyword, text string) {
	switch e := regex.Check(text).(type) {
	case *regex.SyntaxError:
		k.wrong(keyword, "%s", "is no pattern: "+e.Error())
	case *grammar.LimitError:
		panic(stop{e})
	}
}

func (k *keywords) read() {
	s := k.s
	k.general()
	k.numbers()
	k.texts()
	k.arrays()
	k.objects()
	for _, keyword := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if ref := k.n.Member(keyword); ref != nil {
			if to := k.reference(keyword, ref); to != nil {
				s.allOf = append(s.allOf, to)
			}
		}
	}
	s.allOf = append(s.allOf, k.list("allOf")...)
	if l := k.list("anyOf"); l != nil {
		s.anyOf = append(s.anyOf, l)
	}
	if l := k.list("oneOf"); l != nil {
		s.oneOf = append(s.oneOf, l)
	}
	if n := k.sub("not"); n != nil {
		s.nots = append(s.nots, n)
	}
	if s.cond = k.sub("if"); s.cond != nil {
		s.then, s.els = k.sub("then"), k.sub("else")
	}
	s.object.left, s.array.left = k.sub("unevaluatedProperties"), k.sub("unevaluatedItems")
	k.hasLeft = k.hasLeft || s.object.left != nil || s.array.left != nil
	s.plain = s.kinds == all && s.enums == nil && s.number.free() && s.text.free() && s.array.free() && s.object.free()
	s.inner = len(s.allOf)+len(s.anyOf)+len(s.oneOf)+len(s.nots) > 0 || s.cond != nil
}

func (k *keywords) general() {
	s := k.s
	if t := k.n.Member("type"); t != nil {
		names, ok := k.n.Types()
		if !ok {
			k.wrong("type", "is neither a name nor a list of names")
		}
		s.kinds = 0
		for _, name := range names {
			of, ok := kindNames[name]
			if !ok {
				k.wrong("type", "has %.100q, which is no type", name)
			}
			s.kinds |= of
		}
	}
	if e := k.n.Member("enum"); e != nil {
		if e.Kind() != schema.Array {
			k.wrong("enum", "is no list of values")
		}
		values := make([]*schema.Node, len(e.Items))
		for i := range e.Items {
			values[i] = &e.Items[i]
		}
		s.enums = append(s.enums, values)
	}
	if v := k.n.Member("const"); v != nil {
		s.enums = append(s.enums, []*schema.Node{v})
	}
}

func (k *keywords) numbers() {
	limit := func(inclusive, exclusive string, sign int) *bound {
		var out *bound
		if d := k.decimal(inclusive); d != nil {
			out = &bound{decimal: *d}
		}
		if x := k.n.Member(exclusive); x.Kind() == schema.Bool { // draft 4
			if out != nil {
				out.exclusive = x.Is(true)
			}
		} else if d := k.decimal(exclusive); d != nil {
			out = tighter(out, &bound{*d, true}, sign)
		}
		return out
	}
	k.s.number.min = limit("minimum", "exclusiveMinimum", 1)
	k.s.number.max = limit("maximum", "exclusiveMaximum", -1)
	if d := k.decimal("multipleOf"); d != nil {
		if d.neg || d.digits == "" {
			k.wrong("multipleOf", "is not above 0")
		}
		k.s.number.steps = []decimal{*d}
	}
}

func (k *keywords) texts() {
	t := &k.s.text
	t.min, t.max = k.count("minLength", 0), k.count("maxLength", none)
	if p := k.n.Member("pattern"); p != nil {
		if p.Kind() != schema.String {
			k.wrong("pattern", "is no string")
		}
		k.pattern("pattern", p.Text)
		t.patterns = append(t.patterns, pattern{text: p.Text})
	}
	if f := k.n.Member("format"); f != nil {
		if f.Kind() != schema.String {
			k.wrong("format", "is no string")
		}
		if _, known := formats[f.Text]; known {
			t.formats = append(t.formats, pattern{text: f.Text})
		}
	}
}

func (k *keywords) arrays() {
	a := &k.s.array
	a.min, a.max = k.count("minItems", 0), k.count("maxItems", none)
	if items := k.n.Member("items"); items.Kind() == schema.Array { // before 2020-12
		if len(items.Items) > 0 {
			a.prefix = k.list("items")
			a.items = k.sub("additionalItems")
		}
	} else {
		a.prefix, a.items = k.list("prefixItems"), k.sub("items")
	}
	if c := k.sub("contains"); c != nil {
		a.contains = []contains{{c, span{k.count("minContains", 1), k.count("maxContains", none)}}}
	}
	if u := k.n.Member("uniqueItems"); u != nil {
		if u.Kind() != schema.Bool {
			k.wrong("uniqueItems", "is no boolean")
		}
		a.unique = u.Is(true)
	}
}

func (k *keywords) objects() {
	o := &k.s.object
	o.min, o.max = k.count("minProperties", 0), k.count("maxProperties", none)
	o.props = k.members("properties")
	if len(o.props) > 8 {
		o.named = make(map[string]int, len(o.props))
		for i, p := range o.props {
			o.named[p.name] = i
		}
	}
	o.patterns = k.members("patternProperties")
	for _, p := range o.patterns {
		k.pattern("patternProperties", p.name)
	}
	o.additional, o.names = k.sub("additionalProperties"), k.sub("propertyNames")
	if r := k.n.Member("required"); r != nil {
		o.required = k.names(r, "required")
	}
	for _, keyword := range []string{"dependentRequired", "dependencies", "dependentSchemas"} {
		n := k.n.Member(keyword)
		if n == nil {
			continue
		}
		if n.Kind() != schema.Object {
			k.wrong(keyword, "is no object")
		}
		for _, m := range n.Written() {
			if m.Kind() == schema.Array && keyword != "dependentSchemas" {
				o.dependent = append(o.dependent, dependency{m.Key, k.names(m, keyword)})
			} else if keyword == "dependentRequired" {
				k.wrong(keyword, "has an element that is no list of names")
			} else {
				k.dependentSchema(m.Key, k.rule(m, k.s.at.below(keyword, m.Key), k.level+1))
			}
		}
	}
}

// dependentSchema says that an object with such a member follows a schema: one of two rules holds.
func (k *keywords) dependentSchema(name string, then *rule) {
	without, with := k.make(k.s.at), k.make(k.s.at)
	without.object.props, without.plain = []member{{name, k.never(k.s.at)}}, false
	with.object.required, with.plain = []string{name}, false
	with.allOf, with.inner = []*rule{then}, true
	k.s.anyOf = append(k.s.anyOf, []*rule{without, with})
}

// prop is the rule of a declared member.
func (o *objectRule) prop(name string) *rule {
	if o.named != nil {
		if i, ok := o.named[name]; ok {
			return o.props[i].rule
		}
		return nil
	}
	for _, p := range o.props {
		if p.name == name {
			return p.rule
		}
	}
	return nil
}

// located is what references can lead to by a name.
type located struct {
	places map[*schema.Node]*place
	roots  map[*schema.Node]string // the address that a schema's references start from
	names  map[string]*schema.Node // by address, with the anchor behind a # if it has one
	times  map[string]int          // how many dynamic anchors have a name
	bytes  int                     // of addresses
}

// applicators are the keywords with schemas in them: one, a list, or members.
var applicators = map[string]bool{"items": true, "additionalItems": true, "contains": true, "additionalProperties": true, "propertyNames": true, "not": true, "if": true,
	"then": true, "else": true, "unevaluatedItems": true, "unevaluatedProperties": true, "contentSchema": true, "prefixItems": true, "allOf": true, "anyOf": true, "oneOf": true,
	"properties": false, "patternProperties": false, "dependentSchemas": false, "dependencies": false, "$defs": false, "definitions": false}

// locate finds all schemas of the document.
func (r *reader) locate() *located {
	if r.found == nil {
		r.found = &located{places: map[*schema.Node]*place{}, roots: map[*schema.Node]string{}, names: map[string]*schema.Node{"": r.root},
			times: map[string]int{}}
		r.walk(r.root, &place{}, "", 0)
	}
	return r.found
}

func (r *reader) walk(n *schema.Node, at *place, base string, level int) {
	if n.Kind() != schema.Object || level > maxLevels {
		return
	}
	f := r.found
	if id, ok := n.Member("$id").Str(); ok {
		base = f.resolved(base, strings.TrimSuffix(id, "#"))
		if f.names[base] == nil || base == "" {
			f.names[base] = n
		}
	} else if id, ok := n.Member("id").Str(); ok && strings.HasPrefix(id, "#") { // draft 4
		f.names[f.anchor(base, id[1:])] = n
	}
	for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
		if name, ok := n.Member(keyword).Str(); ok {
			if at := f.anchor(base, name); f.names[at] == nil {
				f.names[at] = n
			}
			if keyword == "$dynamicAnchor" {
				f.times[name]++
			}
		}
	}
	f.places[n], f.roots[n] = at, base
	for i := range n.Items {
		m := &n.Items[i]
		direct, ok := applicators[m.Key]
		switch {
		case !ok:
		case direct && m.Kind() == schema.Object:
			r.walk(m, at.below(m.Key), base, level+1)
		case direct:
			for j := range m.Elements() {
				r.walk(&m.Items[j], at.below(m.Key, strconv.Itoa(j)), base, level+1)
			}
		default:
			for j := range m.Members() {
				r.walk(&m.Items[j], at.below(m.Key, m.Items[j].Key), base, level+1)
			}
		}
	}
}

// spend counts the bytes of addresses: each may be as long as the document, and there may be as many.
func (f *located) spend(n int) {
	if f.bytes += n; f.bytes > maxAddresses {
		panic(stop{&grammar.LimitError{What: "bytes of addresses", Limit: maxAddresses}})
	}
}

func (f *located) anchor(base, name string) string {
	f.spend(len(base) + len(name))
	return base + "#" + name
}

func (f *located) resolved(base, ref string) string {
	f.spend(len(base) + len(ref))
	b, err := url.Parse(base)
	if err != nil {
		return ref
	}
	to, err := b.Parse(ref)
	if err != nil {
		return ref
	}
	return to.String()
}

// reference is what a $ref leads to, nil where that depends on how it is come by.
func (k *keywords) reference(keyword string, n *schema.Node) *rule {
	ref, ok := n.Str()
	if !ok {
		k.wrong(keyword, "is no string")
	}
	f := k.locate()
	if keyword == "$dynamicRef" {
		if _, name, _ := strings.Cut(ref, "#"); f.times[name] > 1 {
			k.lacks(k.s.at, keyword, "several schemas have the dynamic anchor "+name+"; it is not checked either")
			return nil
		}
	}
	path, fragment, _ := strings.Cut(ref, "#")
	base := f.roots[k.n]
	address := base
	if path != "" {
		address = f.resolved(base, path)
	}
	f.spend(len(address))
	root := f.names[address]
	if root == nil && address == base {
		root = k.root
	}
	if root == nil {
		k.wrong(keyword, "leads to %.100q, which is not in this document; nothing is fetched", ref)
	}
	var to *schema.Node
	steps, pointer := schema.Steps(fragment)
	if !pointer {
		to = f.names[f.anchor(address, fragment)]
	} else if to = root.Local("#" + fragment); to == nil {
		root = k.root // $id is often there, and paths from the root all the same
		to = root.Local("#" + fragment)
	}
	if to == nil {
		k.wrong(keyword, "leads to %.100q, which does not exist", ref)
	}
	at := f.places[to]
	if at == nil { // in what is no known keyword
		at = f.places[root].below(steps...)
	}
	return k.rule(to, at, k.level+1)
}
