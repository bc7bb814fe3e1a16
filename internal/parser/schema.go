package parser

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
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

// toolset is the tools of a request. Schemas are read when a call first needs them.
type toolset struct {
	tools  []Tool
	params map[string]map[string]types
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

// types returns what a parameter of a tool may be.
func (s *toolset) types(tool, param string) types {
	ps, ok := s.params[tool]
	if !ok {
		if s.params == nil {
			s.params = map[string]map[string]types{}
		}
		for i := range s.tools {
			if s.tools[i].Name == tool {
				ps = paramTypes(s.tools[i].Parameters)
			}
		}
		s.params[tool] = ps
	}
	return ps[param]
}

func paramTypes(schema json.RawMessage) map[string]types {
	var root map[string]any
	if json.Unmarshal(schema, &root) != nil {
		return nil
	}
	node := root
	if ref, ok := follow(root, root).(map[string]any); ok {
		node = ref
	}
	props, _ := node["properties"].(map[string]any)
	out := make(map[string]types, len(props))
	for name, p := range props {
		out[name] = typesOf(p, root, 0)
	}
	return out
}

// follow resolves a local reference, nil if node has none or it leads nowhere.
func follow(node, root map[string]any) any {
	ref, _ := node["$ref"].(string)
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	var at any = root
	for _, key := range strings.Split(path, "/") {
		m, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = m[strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~")]
	}
	return at
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

// typed turns the text of a parameter into JSON of one of the types. Text that fits none of them is a string: a call
// must not fail over a wrong type, the tool's answer tells the model.
func typed(text string, ts types) string {
	s := strings.TrimSpace(text)
	if ts == 0 { // nothing declared: only what can hardly be meant as text is taken as JSON
		ts = typeString | typeArray | typeObject
	}
	if ts&typeNull != 0 && (s == "null" || s == "None") {
		return "null"
	}
	if ts&typeBoolean != 0 && (strings.EqualFold(s, "true") || strings.EqualFold(s, "false")) {
		return strings.ToLower(s)
	}
	if ts&(typeInteger|typeNumber) != 0 {
		if n, ok := number(s, ts&typeNumber == 0); ok {
			return n
		}
	}
	if v, ok := container(s, ts); ok {
		return v
	}
	if ts&typeString == 0 {
		var inner string // the value as a string in quotes
		if strings.HasPrefix(s, `"`) && json.Unmarshal([]byte(s), &inner) == nil {
			if v := typed(inner, ts); !strings.HasPrefix(v, `"`) {
				return v
			}
			return s
		}
	}
	return string(appendQuoted(nil, text))
}

// number returns s as JSON. Whole is for integers, which models also write as 5.0.
func number(s string, whole bool) (string, bool) {
	if s == "" || !json.Valid([]byte(s)) || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return "", false
	}
	if whole && strings.ContainsAny(s, ".eE") {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil || x != math.Trunc(x) || math.Abs(x) > 1<<53 {
			return "", false
		}
		return strconv.FormatInt(int64(x), 10), true
	}
	return s, true
}

// container returns an array or object written as JSON or as a Python literal.
func container(s string, ts types) (string, bool) {
	if !(strings.HasPrefix(s, "[") && ts&typeArray != 0 || strings.HasPrefix(s, "{") && ts&typeObject != 0) {
		return "", false
	}
	if json.Valid([]byte(s)) {
		return s, true
	}
	p := pyParser{s: s}
	v, ok := p.value(0)
	return v, ok && p.atEnd()
}

// appendQuoted appends s as a JSON string.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		dst = appendEscaped(dst, s[i])
	}
	return append(dst, '"')
}

// appendEscaped appends a byte as it stands in a JSON string.
func appendEscaped(dst []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch {
	case c == '"' || c == '\\':
		return append(dst, '\\', c)
	case c == '\n':
		return append(dst, `\n`...)
	case c == '\r':
		return append(dst, `\r`...)
	case c == '\t':
		return append(dst, `\t`...)
	case c < 0x20:
		return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
	}
	return append(dst, c)
}
