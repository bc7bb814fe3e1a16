package dialect

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"

	"hearth/internal/jsonref"
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
	// maxReferences bounds how many references lead on from one to another where only one schema is meant.
	maxReferences = 16
	// maxSchemaWork bounds what is read of schemas for one reply, in parts of them: after that their types count as not known,
	// and arguments stay as the model wrote them.
	maxSchemaWork = 1_000_000
)

// toolset is the tools of a request and what may be done for them. Schemas are read when a call first needs them.
type toolset struct {
	tools    []Tool
	schemas  map[string]schema // of parameters, by tool
	reading  *reading          // of all of them
	strict   bool              // no repairs
	repaired func(Repair)
	pending  []Repair // in what may become a call
	cut      bool     // the output did not end by itself
}

func newToolset(o Options) toolset {
	return toolset{tools: o.Tools, strict: o.NoRepair, repaired: o.Repaired}
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

// schema is a JSON Schema or a part of one.
type schema struct {
	node map[string]any
	root map[string]any // what references lead into
	*reading
}

// reading is what was found in schemas so far.
type reading struct {
	left  int
	known map[uintptr]types // by the map that is the schema
}

// spend counts work before it is done and tells whether it may be.
func (r *reading) spend(n int) bool {
	r.left -= n
	return r.left > 0
}

// of returns the schema of a tool's arguments.
func (s *toolset) of(tool string) schema {
	sc, ok := s.schemas[tool]
	if ok {
		return sc
	}
	if s.reading == nil {
		s.reading = &reading{left: maxSchemaWork, known: map[uintptr]types{}}
	}
	sc.reading = s.reading
	for i := range s.tools {
		if s.tools[i].Name == tool && json.Unmarshal(s.tools[i].Parameters, &sc.root) == nil {
			sc.node = sc.root
		}
	}
	if s.schemas == nil {
		s.schemas = map[string]schema{}
	}
	s.schemas[tool] = sc
	return sc
}

// types returns what a parameter of a tool may be.
func (s *toolset) types(tool, param string) types { return s.of(tool).property(param).types() }

// hasAll tells whether the parameters given are all that the tool requires.
func (s *toolset) hasAll(tool string, given []string) bool {
	required, _ := s.of(tool).resolved().node["required"].([]any)
	has := make(map[string]bool, len(given))
	for _, name := range given {
		has[name] = true
	}
	return !slices.ContainsFunc(required, func(r any) bool {
		name, ok := r.(string)
		return ok && !has[name]
	})
}

// resolved is the schema that references lead to.
func (s schema) resolved() schema {
	for range maxReferences {
		to, ok := s.follow(s.node).(map[string]any)
		if !ok {
			break
		}
		s.node = to
	}
	return s
}

// property is the schema of a member of an object.
func (s schema) property(name string) schema {
	s = s.resolved()
	props, _ := s.node["properties"].(map[string]any)
	s.node, _ = props[name].(map[string]any)
	return s
}

// items is the schema of an array's elements.
func (s schema) items() schema {
	s = s.resolved()
	s.node, _ = s.node["items"].(map[string]any)
	return s
}

// follow resolves a local reference, nil if node has none or it leads nowhere.
func (s schema) follow(node map[string]any) any {
	ref, ok := node["$ref"].(string)
	if !ok || !s.spend(1+len(ref)/8) {
		return nil
	}
	to, _ := jsonref.Local(s.root, ref)
	return to
}

// types returns what a value may be: all that a schema and those which it refers to or combines say, each of them read once.
func (s schema) types() types {
	if s.node == nil {
		return 0
	}
	id := reflect.ValueOf(s.node).Pointer()
	if ts, ok := s.known[id]; ok {
		return ts
	}
	var ts types
	seen := map[uintptr]bool{}
	todo := []any{s.node}
	for len(todo) > 0 {
		node, ok := todo[len(todo)-1].(map[string]any)
		todo = todo[:len(todo)-1]
		if !ok {
			continue
		}
		if !s.spend(1) {
			return 0
		}
		at := reflect.ValueOf(node).Pointer()
		if seen[at] {
			continue
		}
		seen[at] = true
		own, more := s.own(node)
		ts |= own
		todo = append(todo, more...)
	}
	s.known[id] = ts
	return ts
}

// own is what one part of a schema says of types, and the parts that say the rest.
func (s schema) own(node map[string]any) (ts types, more []any) {
	switch t := node["type"].(type) {
	case string:
		return typeNames[t], nil
	case []any:
		s.spend(len(t))
		for _, e := range t {
			name, _ := e.(string)
			ts |= typeNames[name]
		}
		return ts, nil
	}
	if to := s.follow(node); to != nil {
		return 0, []any{to}
	}
	if values, ok := node["enum"].([]any); ok {
		s.spend(len(values))
		for _, v := range values {
			ts |= typeOf(v)
		}
	}
	if v, ok := node["const"]; ok {
		ts |= typeOf(v)
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		alts, _ := node[key].([]any)
		if !s.spend(len(alts)) {
			return ts, nil
		}
		more = append(more, alts...)
	}
	if _, ok := node["properties"]; ok {
		ts |= typeObject
	}
	if _, ok := node["items"]; ok {
		ts |= typeArray
	}
	return ts, more
}

func typeOf(v any) types {
	switch x := v.(type) {
	case string:
		return typeString
	case bool:
		return typeBoolean
	case float64:
		if x == math.Trunc(x) {
			return typeInteger
		}
		return typeNumber
	case []any:
		return typeArray
	case map[string]any:
		return typeObject
	}
	return typeNull
}
