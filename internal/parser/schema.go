package parser

import (
	"encoding/json"
	"math"
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

// maxSchemaDepth bounds the way through references and alternatives.
const maxSchemaDepth = 16

// toolset is the tools of a request and what may be done for them. Schemas are read when a call first needs them.
type toolset struct {
	tools    []Tool
	schemas  map[string]schema // of parameters, by tool
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
}

// of returns the schema of a tool's arguments.
func (s *toolset) of(tool string) schema {
	sc, ok := s.schemas[tool]
	if ok {
		return sc
	}
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
	for _, r := range required {
		if name, ok := r.(string); ok && !slices.Contains(given, name) {
			return false
		}
	}
	return true
}

// resolved is the schema that references lead to.
func (s schema) resolved() schema {
	for range maxSchemaDepth {
		to, ok := follow(s.node, s.root).(map[string]any)
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

// types returns what a value may be.
func (s schema) types() types {
	if s.node == nil {
		return 0
	}
	return typesOf(s.node, s.root, 0)
}

// follow resolves a local reference, nil if node has none or it leads nowhere.
func follow(node, root map[string]any) any {
	ref, _ := node["$ref"].(string)
	to, _ := jsonref.Local(root, ref)
	return to
}

func typesOf(schema any, root map[string]any, depth int) types {
	node, ok := schema.(map[string]any)
	if !ok || depth > maxSchemaDepth {
		return 0
	}
	switch t := node["type"].(type) {
	case string:
		return typeNames[t]
	case []any:
		var ts types
		for _, e := range t {
			name, _ := e.(string)
			ts |= typeNames[name]
		}
		return ts
	}
	if to := follow(node, root); to != nil {
		return typesOf(to, root, depth+1)
	}
	var ts types
	if values, ok := node["enum"].([]any); ok {
		for _, v := range values {
			ts |= typeOf(v)
		}
	}
	if v, ok := node["const"]; ok {
		ts |= typeOf(v)
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		alts, _ := node[key].([]any)
		for _, a := range alts {
			ts |= typesOf(a, root, depth+1)
		}
	}
	if _, ok := node["properties"]; ok {
		ts |= typeObject
	}
	if _, ok := node["items"]; ok {
		ts |= typeArray
	}
	return ts
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
