package grammar

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"hearth/internal/schema"
)

// shape is what a value may be, as far as output is kept to a JSON Schema. Keywords without a field here (pattern, format,
// bounds, lengths and the like) are not enforced.
type shape struct {
	kinds      kinds
	any        []*shape // alternatives, then no other field counts; not nil but empty: no value is possible
	spellings  *choices // of an enum, then no other field counts
	keys       *choices // of an object's properties, in the order of their spelling
	properties []*shape // beside keys; nil: nothing can be its value
	required   uint64   // of the first 64 properties, see bit
	closed     uint64   // of those, the ones without a value
	extra      *shape   // of members that are no properties; nil: there are none
	items      *shape   // of an array; nil: it is empty
	finite     bool     // there is a value of it, see settle
}

type kinds uint8

const (
	text kinds = 1 << iota
	integer
	number
	boolean
	null
	elements // of an array
	members  // of an object
)

var kindNames = map[string]kinds{"string": text, "integer": integer, "number": number, "boolean": boolean, "null": null,
	"array": elements, "object": members}

var (
	anything = func() *shape {
		s := &shape{kinds: text | integer | number | boolean | null | elements | members, finite: true}
		s.extra, s.items = s, s
		return s
	}()
	anyObject = &shape{kinds: members, extra: anything, items: anything}
)

// choices are spellings in the order of their bytes.
type choices struct {
	texts []string
	after func(next *frame, i int32) *frame // what follows a choice, where that depends on it
}

// narrow gives those of [lo, hi), which have the first n bytes in common, whose next one is b.
func (c *choices) narrow(lo, hi int32, n int, b byte) (int32, int32) {
	beyond := func(b int) int32 { // the first one with a larger byte there
		return lo + int32(sort.Search(int(hi-lo), func(i int) bool {
			t := c.texts[lo+int32(i)]
			return len(t) > n && int(t[n]) > b
		}))
	}
	return beyond(int(b) - 1), beyond(int(b))
}

const (
	mostShapes = 4096 // of a schema; what comes after them may be anything
	mostLevels = 64   // of a schema within a schema
)

// reader reads a schema.
type reader struct {
	root *schema.Node
	refs map[string]*shape // that were met
	all  []*shape          // that were made
	made int
}

// arguments reads the schema of a tool's arguments. A schema that can't be read allows every object. So does one that no finite
// object follows, such as a node that must hold another node; for that one it reports false.
func arguments(d *schema.Document) (*shape, bool) {
	node := d.Root()
	if node.Kind() != schema.Object {
		return anyObject, true
	}
	props := node.Member("properties")
	if props.Kind() == schema.Object && len(props.Items) == 0 && !node.Member("additionalProperties").Given() {
		return &shape{kinds: members}, true // a tool without arguments
	}
	r := &reader{root: node, refs: map[string]*shape{}}
	root := r.shape(node, 0)
	object := root.any != nil || root.kinds&members != 0
	r.settle()
	if !object || slices.ContainsFunc(root.any, func(alt *shape) bool { return alt.kinds != members }) {
		return anyObject, true // arguments are an object, whatever the schema says
	}
	if len(root.any) == 0 && root.kinds&members == 0 {
		return anyObject, false
	}
	s := *root
	s.kinds = members
	return &s, true
}

// shape makes the shape of a schema. What a reference leads to has one shape, however often it is referred to.
func (r *reader) shape(node *schema.Node, level int) *shape {
	if r.made++; level > mostLevels || r.made > mostShapes || node.Kind() != schema.Object {
		return anything
	}
	if ref, ok := node.Member("$ref").Str(); ok {
		return r.reference(ref, level)
	}
	return r.fill(new(shape), node, level)
}

// fill reads a schema that is no reference.
func (r *reader) fill(s *shape, node *schema.Node, level int) *shape {
	*s = shape{extra: anything, items: anything}
	r.all = append(r.all, s)
	if r.enumerated(s, node) {
		return s
	}
	s.kinds = declared(node)
	if props := node.Member("properties"); props.Kind() == schema.Object {
		s.kinds |= members
		r.object(s, node, props, level)
	} else if extra := node.Member("additionalProperties"); extra.Kind() == schema.Object {
		s.extra = r.shape(extra, level+1)
	}
	if items := node.Member("items"); items.Kind() == schema.Object && !node.Member("prefixItems").Given() {
		s.items = r.shape(items, level+1)
		if !node.Member("type").Given() {
			s.kinds |= elements
		}
	}
	if s.kinds != 0 {
		return s
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		alts := node.Member(key).Elements()
		if len(alts) == 0 || key == "allOf" && len(alts) > 1 {
			continue
		}
		for i := range alts {
			s.any = append(s.any, r.shape(&alts[i], level+1))
		}
		return s
	}
	*s = *anything
	return s
}

// declared is what a schema's type says, 0 if nothing.
func declared(node *schema.Node) (k kinds) {
	names, _ := node.Types()
	for _, name := range names {
		kind, ok := kindNames[strings.ToLower(name)]
		if !ok {
			return anything.kinds
		}
		k |= kind
	}
	if k != 0 && node.Member("nullable").Is(true) {
		k |= null
	}
	return k
}

// reference reads what a local reference leads to, once. References that only lead to each other allow anything.
func (r *reader) reference(ref string, level int) *shape {
	var on []string // the references on the way
	s := anything
	for {
		if known, ok := r.refs[ref]; ok {
			s = known
			break
		}
		on = append(on, ref)
		r.refs[ref] = anything // until more is known
		node := r.root.Local(ref)
		if next, ok := node.Member("$ref").Str(); ok {
			ref = next
			continue
		}
		if node.Kind() != schema.Object {
			break
		}
		if r.made++; level < mostLevels && r.made <= mostShapes {
			s = new(shape)
			for _, ref := range on {
				r.refs[ref] = s
			}
			r.fill(s, node, level+1)
		}
		break
	}
	for _, ref := range on {
		r.refs[ref] = s
	}
	return s
}

// enumerated reads enum and const. If lists or objects are among the values, which can be spelled in many ways, it reports false
// and the enum is not enforced.
func (r *reader) enumerated(s *shape, node *schema.Node) bool {
	values := node.Member("enum").Elements()
	if v := node.Member("const"); v != nil {
		values = []schema.Node{*v}
	}
	c := &choices{}
	for i := range values {
		v := &values[i]
		text := v.Text
		switch v.Kind() {
		case schema.Array, schema.Object:
			return false
		case schema.Number:
			x, _ := v.Float()
			if math.Trunc(x) != x || math.Abs(x) > 1<<53 {
				return false
			}
			text = strconv.FormatFloat(x, 'f', -1, 64)
		case schema.String:
			text = spelled(v.Text)
		}
		c.texts = append(c.texts, text)
	}
	if len(c.texts) == 0 {
		return false
	}
	slices.Sort(c.texts)
	c.texts = slices.Compact(c.texts)
	s.spellings = c
	return true
}

// object reads the members of an object. If it declares properties it has no others unless it says so, because a model that
// writes another name means one of them.
func (r *reader) object(s *shape, node, props *schema.Node, level int) {
	switch extra := node.Member("additionalProperties"); extra.Kind() {
	case schema.Object:
		s.extra = r.shape(extra, level+1)
	case schema.Bool:
		if extra.Is(false) {
			s.extra = nil
		}
	default:
		if len(props.Items) > 0 && !node.Member("patternProperties").Given() {
			s.extra = nil
		}
	}
	of := map[string]*schema.Node{} // by the spelling of the name
	for i := range props.Items {
		of[spelled(props.Items[i].Key)] = &props.Items[i]
	}
	needed := map[string]bool{} // likewise
	required := node.Member("required").Elements()
	for i := range required {
		if name, ok := required[i].Str(); ok {
			needed[spelled(name)] = true
		}
	}
	for key := range needed { // one that is required and not declared may be anything
		if _, ok := of[key]; !ok {
			of[key] = nil
		}
	}
	if len(of) == 0 {
		return
	}
	s.keys = &choices{texts: slices.Sorted(maps.Keys(of))}
	for i, key := range s.keys.texts {
		s.properties = append(s.properties, r.shape(of[key], level+1))
		if needed[key] {
			s.required |= bit(int32(i))
		}
	}
}

// spelled is a text in JSON, as models write it.
func spelled(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(text) != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}
