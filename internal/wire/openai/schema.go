package openai

import (
	"encoding/json"
	"math"
	"reflect"
	"regexp"
	"unicode/utf8"

	"hearth/internal/chat"
	"hearth/internal/jsonref"
)

// A reply that is not what response_format asked for says so in this header, or in a trailer of that name if it is a
// stream.
const (
	schemaHeader = "X-Hearth-Schema"
	schemaUnmet  = "unmet"
)

// format is a response_format that a reply can be checked against: a JSON Schema, or without one any JSON object.
type format struct {
	schema json.RawMessage
}

// missed reports whether a choice's text is not what was asked for. A turn that ends in calls is not the answer yet.
func (r *reply) missed(text string, f chat.Finish) bool {
	return r.format != nil && f != chat.FinishToolCalls && !r.format.met(text)
}

func (f *format) met(text string) bool {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return false
	}
	if f.schema == nil {
		_, ok := v.(map[string]any)
		return ok
	}
	var root any
	if json.Unmarshal(f.schema, &root) != nil {
		return false
	}
	c := checker{root: root, left: maxChecks}
	return c.valid(root, v, 0) && c.left > 0
}

// Bounds of the work that a schema can ask for. A reply that needs more counts as unmet.
const (
	maxChecks = 200_000
	maxNested = 200
)

// checker validates against JSON Schema 2020-12 and its predecessors: all keywords about types, values, objects and
// arrays, with references inside the document. Keywords that only annotate, among them format, are passed over, and so
// are patterns that Go's syntax lacks.
type checker struct {
	root any
	left int
}

func (c *checker) valid(schema, v any, depth int) bool {
	c.left--
	if depth > maxNested || c.left <= 0 {
		c.left = 0
		return false
	}
	s, ok := schema.(map[string]any)
	if !ok {
		return schema != false
	}
	if ref, ok := s["$ref"].(string); ok {
		to, ok := jsonref.Local(c.root, ref)
		if !ok || !c.valid(to, v, depth+1) {
			return false
		}
	}
	return c.value(s, v) && c.combined(s, v, depth) && c.shape(s, v, depth)
}

func (c *checker) value(s map[string]any, v any) bool {
	switch t := s["type"].(type) {
	case string:
		if !isType(t, v) {
			return false
		}
	case []any:
		if !some(t, func(t any) bool { name, _ := t.(string); return isType(name, v) }) {
			return false
		}
	}
	if list, ok := s["enum"].([]any); ok && !some(list, func(e any) bool { return reflect.DeepEqual(e, v) }) {
		return false
	}
	if want, ok := s["const"]; ok && !reflect.DeepEqual(want, v) {
		return false
	}
	switch v := v.(type) {
	case string:
		if n := utf8.RuneCountInString(v); !within(s, "minLength", "maxLength", n) {
			return false
		}
		if p, ok := s["pattern"].(string); ok && !matches(p, v) {
			return false
		}
	case float64:
		return inRange(s, v)
	}
	return true
}

func isType(name string, v any) bool {
	switch v := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case float64:
		return name == "number" || name == "integer" && v == math.Trunc(v)
	case []any:
		return name == "array"
	}
	return name == "object"
}

func some(list []any, f func(any) bool) bool {
	for _, e := range list {
		if f(e) {
			return true
		}
	}
	return false
}

// within compares n with two bounds, either of which may be missing.
func within(s map[string]any, least, most string, n int) bool {
	lo, hasLo := s[least].(float64)
	hi, hasHi := s[most].(float64)
	return (!hasLo || float64(n) >= lo) && (!hasHi || float64(n) <= hi)
}

func inRange(s map[string]any, x float64) bool {
	for key, ok := range map[string]func(bound float64) bool{
		"minimum": func(b float64) bool { return x >= b }, "exclusiveMinimum": func(b float64) bool { return x > b },
		"maximum": func(b float64) bool { return x <= b }, "exclusiveMaximum": func(b float64) bool { return x < b },
		"multipleOf": func(b float64) bool {
			n := x / b
			return b <= 0 || math.Abs(n-math.Round(n)) < 1e-9*max(1, math.Abs(n))
		},
	} {
		if b, is := s[key].(float64); is && !ok(b) {
			return false
		}
	}
	return true
}

func matches(pattern, text string) bool {
	re, err := regexp.Compile(pattern)
	return err != nil || re.MatchString(text)
}

// combined applies the keywords that hold schemas for the same value.
func (c *checker) combined(s map[string]any, v any, depth int) bool {
	count := func(list any) (n, of int) {
		schemas, _ := list.([]any)
		for _, sub := range schemas {
			if c.valid(sub, v, depth+1) {
				n++
			}
		}
		return n, len(schemas)
	}
	if n, of := count(s["allOf"]); n < of {
		return false
	}
	if n, of := count(s["anyOf"]); of > 0 && n == 0 {
		return false
	}
	if n, of := count(s["oneOf"]); of > 0 && n != 1 {
		return false
	}
	if not, ok := s["not"]; ok && c.valid(not, v, depth+1) {
		return false
	}
	if cond, ok := s["if"]; ok {
		branch := "else"
		if c.valid(cond, v, depth+1) {
			branch = "then"
		}
		if sub, ok := s[branch]; ok {
			return c.valid(sub, v, depth+1)
		}
	}
	return true
}

// shape applies the keywords about what is inside objects and arrays.
func (c *checker) shape(s map[string]any, v any, depth int) bool {
	switch v := v.(type) {
	case map[string]any:
		return c.object(s, v, depth)
	case []any:
		return c.array(s, v, depth)
	}
	return true
}

func (c *checker) object(s, v map[string]any, depth int) bool {
	if !within(s, "minProperties", "maxProperties", len(v)) {
		return false
	}
	required, _ := s["required"].([]any)
	for _, name := range required {
		if key, ok := name.(string); ok {
			if _, there := v[key]; !there {
				return false
			}
		}
	}
	properties, _ := s["properties"].(map[string]any)
	patterns, _ := s["patternProperties"].(map[string]any)
	for key, e := range v {
		known := false
		if sub, ok := properties[key]; ok {
			if known = true; !c.valid(sub, e, depth+1) {
				return false
			}
		}
		for pattern, sub := range patterns {
			if matches(pattern, key) {
				if known = true; !c.valid(sub, e, depth+1) {
					return false
				}
			}
		}
		if rest, ok := s["additionalProperties"]; ok && !known && !c.valid(rest, e, depth+1) {
			return false
		}
		if names, ok := s["propertyNames"]; ok && !c.valid(names, key, depth+1) {
			return false
		}
	}
	return true
}

func (c *checker) array(s map[string]any, v []any, depth int) bool {
	if !within(s, "minItems", "maxItems", len(v)) {
		return false
	}
	first, _ := s["prefixItems"].([]any)
	rest, hasRest := s["items"]
	if list, ok := rest.([]any); ok { // before 2020-12
		first, rest, hasRest = list, s["additionalItems"], s["additionalItems"] != nil
	}
	found := 0
	for i, e := range v {
		switch {
		case i < len(first):
			if !c.valid(first[i], e, depth+1) {
				return false
			}
		case hasRest && !c.valid(rest, e, depth+1):
			return false
		}
		if want, ok := s["contains"]; ok && c.valid(want, e, depth+1) {
			found++
		}
		if s["uniqueItems"] == true && some(v[:i], func(o any) bool { c.left--; return reflect.DeepEqual(o, e) }) {
			return false
		}
	}
	return s["contains"] == nil || found > 0
}
