package dialect

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"hearth/internal/schema"
)

// argType is what the schema of a tool says of its arguments, or of a value in them. Of nil nothing is known.
type argType struct {
	*reading
	root    *schema.Node        // what references lead into
	alts    [][]*schema.Node    // one of them holds, with all its parts
	allowed []types             // by each of alts; nil until asked for
	union   types               // of them; 0 if that is anything
	members map[string]*argType // that were asked for
	items   []*argType          // of the elements that have a schema of their own, then of all others; nil until asked for
	fewer   map[string]*argType // what remains once a member is known
}

// reading is what was found in schemas so far.
type reading struct {
	left     int
	partial  int // times that a schema led back to itself, or too far
	parts    map[*schema.Node]*readPart
	patterns map[*schema.Node]*regexp.Regexp // nil for those that are not read
}

// readPart is what was found of one part of a schema.
type readPart struct {
	own         types            // 0: not asked for
	alts        [][]*schema.Node // what it comes to
	of          *argType         // the same, alone
	done, alone bool             // alts and of are known
}

func newReading() *reading { return &reading{left: maxSchemaWork, parts: map[*schema.Node]*readPart{}} }

func (r *reading) part(node *schema.Node) *readPart {
	p := r.parts[node]
	if p == nil {
		p = &readPart{}
		r.parts[node] = p
	}
	return p
}

// spend counts work before it is done and tells whether it may be.
func (r *reading) spend(n int) bool {
	r.left -= n
	return r.left > 0
}

// types returns what the value may be.
func (a *argType) types() types {
	if a == nil {
		return 0
	}
	if a.allowed == nil {
		a.allowed = make([]types, len(a.alts))
		for i, alt := range a.alts {
			a.allowed[i] = allTypes
			for _, node := range alt {
				a.allowed[i] &= a.ownTypes(node)
			}
			a.union |= a.allowed[i]
		}
		if !a.spend(len(a.alts)) || a.union == allTypes {
			a.union = 0
		}
	}
	return a.union
}

// property is what is said of a member, if the value is an object.
func (a *argType) property(name string) *argType {
	if a == nil {
		return nil
	}
	of, ok := a.members[name]
	if !ok {
		of = a.within(typeObject, func(node *schema.Node) ([]*schema.Node, bool) { return a.memberOf(node, name) })
		if a.members == nil {
			a.members = map[string]*argType{}
		}
		a.members[name] = of
	}
	return of
}

// item is what is said of an element, if the value is an array.
func (a *argType) item(at int) *argType {
	if a == nil {
		return nil
	}
	if a.items == nil {
		own := 0
		for _, alt := range a.alts {
			for _, node := range alt {
				prefix, _ := itemsOf(node)
				own = max(own, len(prefix))
			}
		}
		a.items = make([]*argType, own+1)
		for i := range a.items {
			a.items[i] = a.within(typeArray, func(node *schema.Node) ([]*schema.Node, bool) { return itemOf(node, i) })
		}
	}
	return a.items[min(at, len(a.items)-1)]
}

// given is what remains once a member is known: alternatives that want another value for it do not hold. If all of them do,
// none tells anything.
func (a *argType) given(name, value string) *argType {
	if a == nil || len(a.alts) < 2 || len(value) > maxTelling || value[0] == '{' || value[0] == '[' {
		return a
	}
	key := name + "\x00" + value
	if of, ok := a.fewer[key]; ok {
		return of
	}
	v, err := schema.Parse([]byte(value))
	if err != nil {
		return a
	}
	var left [][]*schema.Node
	for _, alt := range a.alts {
		wanted := true
		for _, node := range alt {
			if p := node.Member("properties").Member(name); p != nil && !a.wants(p, v) {
				wanted = false
				break
			}
		}
		if !a.spend(1 + len(alt)) {
			return a
		}
		if wanted {
			left = append(left, alt)
		}
	}
	if len(left) == 0 || len(left) == len(a.alts) {
		return a
	}
	if a.fewer == nil {
		a.fewer = map[string]*argType{}
	}
	a.fewer[key] = a.of(left)
	return a.fewer[key]
}

// wants tells whether a value is one of those that a schema lists, if it does.
func (a *argType) wants(node, v *schema.Node) bool {
	alts := a.expand(node, 0, 0)
	return len(alts) == 0 || slices.ContainsFunc(alts, func(alt []*schema.Node) bool {
		return !slices.ContainsFunc(alt, func(node *schema.Node) bool {
			enum, only := node.Member("enum").Elements(), node.Member("const")
			return len(enum) > 0 && !a.among(enum, v) || only != nil && !a.equal(only, v)
		})
	})
}

// within puts together what the parts say of a value within. One returns the schemas that a part has for it, or that it has
// no place for it: an alternative without one does not count where others have it.
func (a *argType) within(kind types, one func(*schema.Node) (subs []*schema.Node, none bool)) *argType {
	a.types()
	var found [][][]*schema.Node // by the alternatives
	var source *schema.Node      // of all that was found, if it is only one
	same := true
	for i, alt := range a.alts {
		if a.allowed[i]&kind == 0 {
			continue
		}
		var said [][]*schema.Node
		closed := false
		for _, node := range alt {
			subs, none := one(node)
			closed = closed || none
			for _, sub := range subs {
				said = a.both(said, a.expand(sub, 0, 0))
				same = same && (source == nil || source == sub)
				source = sub
			}
		}
		if len(said) == 0 && !closed || !a.spend(1+len(alt)+len(said)) {
			return nil
		}
		found = append(found, said)
	}
	if same && source != nil {
		return a.alone(source)
	}
	return a.of(slices.Concat(found...))
}

// alone is what one schema says.
func (a *argType) alone(node *schema.Node) *argType {
	p := a.part(node)
	if !p.alone {
		p.of, p.alone = a.of(a.expand(node, 0, 0)), true
	}
	return p.of
}

func (a *argType) of(alts [][]*schema.Node) *argType {
	if len(alts) == 0 || a.left <= 0 {
		return nil
	}
	return &argType{reading: a.reading, root: a.root, alts: alts}
}

// memberOf returns the schemas that a part has for a member.
func (a *argType) memberOf(node *schema.Node, name string) (subs []*schema.Node, none bool) {
	properties, patterns, others := node.Member("properties"), node.Member("patternProperties").Members(), node.Member("additionalProperties")
	if p := properties.Member(name); p != nil {
		subs = append(subs, p)
	}
	for i := range patterns {
		switch matches, known := a.matches(&patterns[i], name); {
		case matches:
			subs = append(subs, &patterns[i])
		case !known:
			return nil, false
		}
	}
	switch {
	case len(subs) > 0:
		return subs, false
	case others.Kind() == schema.Object:
		return []*schema.Node{others}, false
	}
	return nil, others.Is(false) || others == nil && len(patterns) == 0 && len(properties.Members()) > 0
}

// maxPattern bounds the patterns of names that are tried.
const maxPattern = 64

// matches tells whether a member's name is of a pattern, if the pattern is one that is read.
func (a *argType) matches(pattern *schema.Node, name string) (matches, known bool) {
	re, ok := a.patterns[pattern]
	if !ok {
		if text := pattern.Key; len(text) <= maxPattern && strings.IndexByte(text, '{') < 0 && a.spend(len(text)) {
			re, _ = regexp.Compile(text)
		}
		if a.patterns == nil {
			a.patterns = map[*schema.Node]*regexp.Regexp{}
		}
		a.patterns[pattern] = re
	}
	if re == nil || !a.spend(1+len(pattern.Key)*len(name)/16) {
		return false, false
	}
	return re.MatchString(name), true
}

// itemsOf returns the schemas of the first elements of an array and that of the others, in all spellings there are.
func itemsOf(node *schema.Node) (prefix []schema.Node, rest *schema.Node) {
	items := node.Member("items")
	if items.Kind() == schema.Array {
		return items.Elements(), node.Member("additionalItems")
	}
	return node.Member("prefixItems").Elements(), items
}

func itemOf(node *schema.Node, at int) (subs []*schema.Node, none bool) {
	prefix, rest := itemsOf(node)
	switch {
	case at < len(prefix):
		return []*schema.Node{&prefix[at]}, false
	case rest.Kind() == schema.Object:
		return []*schema.Node{rest}, false
	}
	return nil, rest.Is(false)
}

// endless is a schema that only leads back to itself.
var endless = [][]*schema.Node{}

// saying are the parts of a schema that tell something; the others combine or describe.
var saying = []string{"type", "enum", "const", "properties", "patternProperties", "additionalProperties", "items", "prefixItems", "required"}

// null is added to the alternatives of what is nullable.
var null = schema.MustParse(`{"type": "null"}`)

// expand returns what a schema says, with those which it refers to and combines: alternatives, of parts that hold together,
// and none for a schema that says nothing.
func (a *argType) expand(node *schema.Node, depth, references int) (alts [][]*schema.Node) {
	if node.Kind() != schema.Object {
		return nil
	}
	p := a.part(node)
	if p.done {
		if p.alts != nil && len(p.alts) == 0 {
			a.partial++
		}
		return p.alts
	}
	if depth > maxJSONDepth || references > maxReferences || !a.spend(1) {
		a.partial++
		return nil
	}
	p.alts, p.done = endless, true
	before := a.partial
	for _, key := range saying {
		if node.Member(key) != nil {
			alts = [][]*schema.Node{{node}}
			break
		}
	}
	combined := false
	add := func(more [][]*schema.Node) { alts, combined = a.both(alts, more), true }
	if to := a.follow(node); to != nil {
		add(a.expand(to, depth+1, references+1))
	}
	all := node.Member("allOf").Elements()
	for i := range all {
		add(a.expand(&all[i], depth+1, 0))
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if list := node.Member(key).Elements(); len(list) > 0 {
			add(a.either(list, depth+1))
		}
	}
	if len(alts) > 0 && combined && node.Member("nullable").Is(true) {
		alts = append(slices.Clip(alts), []*schema.Node{null})
	}
	p.alts, p.done = alts, depth == 0 || a.partial == before
	return alts
}

// both are the alternatives of two schemas that hold together.
func (a *argType) both(x, y [][]*schema.Node) [][]*schema.Node {
	switch {
	case x == nil || len(x) == 0 && len(y) > 0:
		return y
	case len(y) == 0:
		return x
	}
	n := 0
	for _, part := range x {
		n += len(part) * len(y)
	}
	for _, part := range y {
		n += len(part) * len(x)
	}
	if !a.spend(n) {
		return nil
	}
	all := make([][]*schema.Node, 0, len(x)*len(y))
	for _, one := range x {
		for _, other := range y {
			all = append(all, slices.Concat(one, other))
		}
	}
	return all
}

// either are the alternatives of several schemas of which one holds, nil if one of them says nothing.
func (a *argType) either(list []schema.Node, depth int) [][]*schema.Node {
	if len(list) == 1 {
		return a.expand(&list[0], depth, 0)
	}
	all, seen := endless, map[*schema.Node]bool{}
	for i := range list {
		alts := a.expand(&list[i], depth, 0)
		if alts == nil && !list[i].Is(false) || !a.spend(1+len(alts)) {
			return nil
		}
		for _, alt := range alts {
			if len(alt) == 1 {
				if seen[alt[0]] {
					continue
				}
				seen[alt[0]] = true
			}
			all = append(all, alt)
		}
	}
	return all
}

// follow resolves a local reference, nil if node has none or it leads nowhere.
func (a *argType) follow(node *schema.Node) *schema.Node {
	ref, ok := node.Member("$ref").Str()
	if !ok || !a.spend(1+len(ref)/8) {
		return nil
	}
	return a.root.Local(ref)
}

// ownTypes is what one part of a schema says of types, without those which it refers to or combines.
func (r *reading) ownTypes(node *schema.Node) types {
	p := r.part(node)
	if p.own != 0 {
		return p.own
	}
	ts, enum := allTypes, node.Member("enum").Elements()
	names, _ := node.Types()
	if !r.spend(1 + len(names) + len(enum)) {
		return allTypes
	}
	var named, listed types
	for _, name := range names {
		if named |= typeNames[strings.ToLower(name)]; named&typeNumber != 0 {
			named |= typeInteger
		}
	}
	for i := range enum {
		listed |= typeOf(&enum[i])
	}
	for _, some := range []types{named, listed, typeOf(node.Member("const"))} {
		if some != 0 {
			ts &= some
		}
	}
	if ts == allTypes {
		var shape types
		if node.Member("properties") != nil || node.Member("patternProperties") != nil {
			shape |= typeObject
		}
		if node.Member("items") != nil || node.Member("prefixItems") != nil {
			shape |= typeArray
		}
		if shape != 0 {
			ts = shape
		}
	}
	if node.Member("nullable").Is(true) {
		ts |= typeNull
	}
	p.own = ts
	return ts
}

// typeOf is the type of a value, 0 if there is none.
func typeOf(n *schema.Node) types {
	if x, ok := n.Float(); ok && x == math.Trunc(x) {
		return typeInteger
	}
	return typeNames[n.Kind().String()]
}
