package dialect

import (
	"math"
	"strings"

	"hearth/internal/schema"
)

// types is a set of JSON types. The empty set means that nothing is known.
type types uint8

const (
	typeString types = 1 << iota
	typeInteger
	typeNumber
	typeBoolean
	typeArray
	typeObject
	typeNull
)

var typeNames = map[string]types{"string": typeString, "integer": typeInteger, "number": typeNumber,
	"boolean": typeBoolean, "array": typeArray, "object": typeObject, "null": typeNull}

const (
	// maxReferences bounds how many references in a row are followed where one schema is looked for.
	maxReferences = 16
	// maxSchemaWork bounds how many parts of schemas are read for one reply. After that types count as not known, and arguments
	// stay as the model wrote them.
	maxSchemaWork = 1_000_000
)

// toolset is the tools of a request and what may be done for them. Schemas are read when a call first needs them.
type toolset struct {
	tools    []Tool
	schemas  map[string]argType // of parameters, by tool
	reading  *reading           // of all of them
	strict   bool               // no repairs
	repaired func(Repair)
	pending  []Repair // in what may become a call
	cut      bool     // the output did not end by itself

	folded []string     // names, see foldedNames
	mended string       // the name of the call being read, as the model wrote it, where it had to be mended
	before int          // of pending, when that was seen
	noted  func(string) // takes notes
	notes  []string     // of calls that were mended, for the log
}

func newToolset(o Options) toolset {
	return toolset{tools: o.Tools, strict: o.NoRepair, repaired: o.Repaired, noted: o.Mended}
}

func (s *toolset) has(name string) bool {
	for i := range s.tools {
		if s.tools[i].Name == name {
			return true
		}
	}
	return false
}

// begins tells whether prefix may become the name of a tool.
func (s *toolset) begins(prefix string) bool {
	for i := range s.tools {
		if strings.HasPrefix(s.tools[i].Name, prefix) {
			return true
		}
	}
	return false
}

// argType is the schema of a tool's arguments or of a part of them.
type argType struct {
	node *schema.Node // nil: nothing is known
	root *schema.Node // what references lead into
	*reading
}

// reading is what was found in schemas so far.
type reading struct {
	left  int
	known map[*schema.Node]types
}

// spend counts work before it is done and tells whether it may be.
func (r *reading) spend(n int) bool {
	r.left -= n
	return r.left > 0
}

// of returns the schema of a tool's arguments.
func (s *toolset) of(tool string) argType {
	a, ok := s.schemas[tool]
	if ok {
		return a
	}
	if s.reading == nil {
		s.reading, s.schemas = &reading{left: maxSchemaWork, known: map[*schema.Node]types{}}, map[string]argType{}
	}
	a.reading = s.reading
	for i := range s.tools {
		if s.tools[i].Name != tool {
			continue
		}
		if root := s.tools[i].Schema.Root(); root.Kind() == schema.Object {
			a.node, a.root = root, root
		}
	}
	s.schemas[tool] = a
	return a
}

// types returns what a parameter of a tool may be.
func (s *toolset) types(tool, param string) types { return s.of(tool).property(param).types() }

// hasAll tells whether the parameters given are all that the tool requires.
func (s *toolset) hasAll(tool string, given []string) bool {
	required := s.of(tool).resolved().node.Member("required").Elements()
	has := make(map[string]bool, len(given))
	for _, name := range given {
		has[name] = true
	}
	for i := range required {
		if name, ok := required[i].Str(); ok && !has[name] {
			return false
		}
	}
	return true
}

// resolved is the schema that references lead to.
func (a argType) resolved() argType {
	for range maxReferences {
		to := a.follow(a.node)
		if to.Kind() != schema.Object {
			break
		}
		a.node = to
	}
	return a
}

// property is the schema of a member of an object.
func (a argType) property(name string) argType {
	a = a.resolved()
	a.node = a.node.Member("properties").Member(name)
	return a
}

// items is the schema of an array's elements.
func (a argType) items() argType {
	a = a.resolved()
	a.node = a.node.Member("items")
	return a
}

// follow resolves a local reference, nil if node has none or it leads nowhere.
func (a argType) follow(node *schema.Node) *schema.Node {
	ref, ok := node.Member("$ref").Str()
	if !ok || !a.spend(1+len(ref)/8) {
		return nil
	}
	return a.root.Local(ref)
}

// types returns what a value may be: all that a schema and those which it refers to or combines say, each of them read once.
func (a argType) types() types {
	if ts, ok := a.known[a.node]; ok || a.node == nil {
		return ts
	}
	var ts types
	seen := map[*schema.Node]bool{}
	todo := []*schema.Node{a.node}
	for len(todo) > 0 {
		node := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if node.Kind() != schema.Object {
			continue
		}
		if !a.spend(1) {
			return 0
		}
		if seen[node] {
			continue
		}
		seen[node] = true
		own, more := a.own(node)
		ts |= own
		todo = append(todo, more...)
	}
	a.known[a.node] = ts
	return ts
}

// own is what one part of a schema says of types, and the parts that say the rest.
func (a argType) own(node *schema.Node) (ts types, more []*schema.Node) {
	if names, ok := node.Types(); ok {
		a.spend(len(node.Member("type").Elements()))
		for _, name := range names {
			ts |= typeNames[name]
		}
		return ts, nil
	}
	if to := a.follow(node); to.Given() {
		return 0, []*schema.Node{to}
	}
	values := node.Member("enum").Elements()
	a.spend(len(values))
	for i := range values {
		ts |= typeOf(&values[i])
	}
	ts |= typeOf(node.Member("const"))
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		alts := node.Member(key).Elements()
		if !a.spend(len(alts)) {
			return ts, nil
		}
		for i := range alts {
			more = append(more, &alts[i])
		}
	}
	if node.Member("properties") != nil {
		ts |= typeObject
	}
	if node.Member("items") != nil {
		ts |= typeArray
	}
	return ts, more
}

// typeOf is the type of a value, 0 if there is none.
func typeOf(n *schema.Node) types {
	if x, ok := n.Float(); ok && x == math.Trunc(x) {
		return typeInteger
	}
	return typeNames[n.Kind().String()]
}
