package dialect

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// mend reads arguments of a tool with a schema, cut at a place, and returns what came out and what was counted.
func mend(t *testing.T, parameters, args string, at int) (string, []Repair) {
	t.Helper()
	s := toolsetOf(parameters)
	var counted []Repair
	s.repaired = func(kind Repair) { counted = append(counted, kind) }
	var out joiner
	var got strings.Builder
	a := newArgs(s, "f")
	for i := range len(args) {
		if v := a.step(args[i], &out); v == broken || v == ended && i < len(args)-1 {
			t.Fatalf("%s: broken at byte %d", args, i)
		}
		if i == at {
			for _, p := range out.take() {
				got.WriteString(p.Text)
			}
		}
	}
	s.settle(true)
	for _, p := range out.take() {
		got.WriteString(p.Text)
	}
	return got.String(), counted
}

// TestDepth: values are what the schema says at every depth, whatever way it says it.
func TestDepth(t *testing.T) {
	const tree = `{"type": "object", "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/n"}}, "next": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}}}`
	for _, c := range []struct{ schema, args, want string }{
		// through properties, items and the like
		{`{"q": {"type": "object", "properties": {"limit": {"type": "integer"}}}}`, `{"q": {"limit": "5"}}`, `{"q": {"limit": 5}}`},
		{`{"q": {"properties": {"r": {"properties": {"b": {"type": "boolean"}, "s": {"type": "string"}}}}}}`, `{"q": {"r": {"b": "False", "s": 7, "t": "8"}}}`, `{"q": {"r": {"b": false, "s": "7", "t": "8"}}}`},
		{`{"l": {"type": "array", "items": {"type": "integer"}}}`, `{"l": ["1", 2, 3.0, "x", 4.5]}`, `{"l": [1, 2, 3, "x", 4.5]}`},
		{`{"l": {"items": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}}}`, `{"l": [[["1.5"], []], ["[2, \"3\"]"]]}`, `{"l": [[[1.5], []], [[2, 3]]]}`},
		{`{"l": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}}`, `{"l": [{"n": "1"}, {"n": "2", "m": "3"}]}`, `{"l": [{"n": 1}, {"n": 2, "m": "3"}]}`},
		{`{"l": {"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": {"type": "boolean"}}}`, `{"l": ["1", 2, "true", "no"]}`, `{"l": [1, "2", true, false]}`},
		{`{"l": {"items": [{"type": "integer"}], "additionalItems": {"type": "string"}}}`, `{"l": ["1", 2]}`, `{"l": [1, "2"]}`},
		{`{"m": {"type": "object", "additionalProperties": {"type": "integer"}}}`, `{"m": {"a": "1", "b": "2"}}`, `{"m": {"a": 1, "b": 2}}`},
		{`{"m": {"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "integer"}}}`, `{"m": {"a": "1", "b": "2"}}`, `{"m": {"a": "1", "b": 2}}`},
		{`{"m": {"patternProperties": {"^n_": {"type": "integer"}, "_s$": {"type": "string"}}, "additionalProperties": {"type": "boolean"}}}`, `{"m": {"n_a": "1", "a_s": 2, "b": "yes", "n_s": "3"}}`, `{"m": {"n_a": 1, "a_s": "2", "b": true, "n_s": "3"}}`},
		{`{"m": {"patternProperties": {"^a{2}": {"type": "string"}}, "additionalProperties": {"type": "integer"}}}`, `{"m": {"aa": "1"}}`, `{"m": {"aa": "1"}}`},
		{`{"a\nb": {"properties": {"\u00e9": {"type": "integer"}}}}`, `{"a\nb": {"é": "1", "e": "2"}}`, `{"a\nb": {"é": 1, "e": "2"}}`},
		// through references
		{`{"t": ` + tree + `}, "$defs": {"n": ` + tree + `}`, `{"t": {"v": "1", "kids": [{"v": "2", "kids": "[{\"v\": \"3\"}]"}], "next": {"v": "4", "next": {"v": 5.0, "next": "null"}}}}`,
			`{"t": {"v": 1, "kids": [{"v": 2, "kids": [{"v": 3}]}], "next": {"v": 4, "next": {"v": 5, "next": null}}}}`},
		{`{"t": {"$ref": "#"}, "n": {"type": "integer"}}`, `{"t": {"t": {"n": "1"}}}`, `{"t": {"t": {"n": 1}}}`},
		{`{"x": {"$ref": "#/properties/y"}, "y": {"$ref": "#/properties/x"}}`, `{"x": {"a": "1"}}`, `{"x": {"a": "1"}}`},
		{`{"x": {"anyOf": [{"$ref": "#/properties/x"}, {"type": "integer"}]}}`, `{"x": "1"}`, `{"x": 1}`},
		{`{"x": {"allOf": [{"$ref": "#/properties/x"}, {"type": "integer"}]}}`, `{"x": "1"}`, `{"x": 1}`},
		{`{"x": {"$ref": "#/$defs/none", "type": "integer"}, "y": {"$ref": "https://example.com/s.json"}}`, `{"x": "1", "y": "1"}`, `{"x": 1, "y": "1"}`},
		// anyOf and oneOf: what fits one stays, and what fits none is mended if only one thing can be meant
		{`{"x": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}`, `{"x": "1"}`, `{"x": "1"}`},
		{`{"x": {"anyOf": [{"type": "integer"}, {"type": "boolean"}, {"type": "null"}]}, "y": {"oneOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}}`,
			`{"x": "1", "y": "[\"1\"]"}`, `{"x": 1, "y": [1]}`},
		{`{"x": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}, "y": {"anyOf": [{}, {"type": "integer"}]}}`, `{"x": "yes", "y": "1"}`, `{"x": "yes", "y": "1"}`},
		{`{"x": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "array", "items": {"type": "integer"}}]}}`, `{"x": ["1", 2, true]}`, `{"x": ["1", 2, "true"]}`},
		{`{"x": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"n": {"type": "integer"}}}]}}`, `{"x": {"n": "1"}}`, `{"x": {"n": 1}}`},
		{`{"x": {"oneOf": [{"properties": {"k": {"const": "a"}, "n": {"type": "integer"}}}, {"properties": {"k": {"const": "b"}, "m": {"type": "boolean"}}}]}}`,
			`{"x": {"k": "b", "m": "true", "n": "1"}}`, `{"x": {"k": "b", "m": true, "n": 1}}`},
		{`{"x": {"oneOf": [{"properties": {"n": {"type": "integer"}}}, {"properties": {"n": {"type": "string"}}}]}}`, `{"x": {"n": "1"}}`, `{"x": {"n": "1"}}`},
		{`{"x": {"anyOf": [{"properties": {"n": {"type": "integer"}}}, {"type": "object"}]}}`, `{"x": {"n": "1"}}`, `{"x": {"n": "1"}}`},
		{`{"x": {"properties": {"n": {"type": "integer"}}, "anyOf": [{"required": ["n"]}, {"required": ["m"]}]}}`, `{"x": {"n": "1"}}`, `{"x": {"n": 1}}`},
		// allOf: what all say
		{`{"x": {"allOf": [{"type": ["integer", "string"]}, {"type": ["integer", "null"]}]}}`, `{"x": "1"}`, `{"x": 1}`},
		{`{"x": {"allOf": [{"type": "number"}, {"type": "integer"}]}}`, `{"x": 1.0}`, `{"x": 1}`},
		{`{"x": {"allOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"b": {"type": "boolean"}}}], "properties": {"c": {"type": "string"}}}}`,
			`{"x": {"a": "1", "b": "True", "c": 1}}`, `{"x": {"a": 1, "b": true, "c": "1"}}`},
		{`{"x": {"allOf": [{"properties": {"a": {"type": ["integer", "string"]}}}, {"properties": {"a": {"type": ["integer", "null"]}}}]}}`, `{"x": {"a": "1"}}`, `{"x": {"a": 1}}`},
		// nullable, and null as text
		{`{"x": {"type": "integer", "nullable": true}, "y": {"nullable": true, "allOf": [{"type": "integer"}]}, "z": {"type": "string", "nullable": true}}`,
			`{"x": "null", "y": "None", "z": "null"}`, `{"x": null, "y": null, "z": "null"}`},
		{`{"x": {"type": "integer"}, "l": {"type": "array", "items": {"type": ["integer", "null"]}}}`, `{"x": "null", "l": ["null", "None", "1"]}`, `{"x": "null", "l": [null, null, 1]}`},
		// booleans
		{`{"o": {"properties": {"a": {"type": "boolean"}, "b": {"type": "boolean"}, "c": {"type": "boolean"}, "d": {"type": "boolean"}, "e": {"type": "boolean"}, "f": {"type": ["boolean", "integer"]}}}}`,
			`{"o": {"a": "yes", "b": "NO", "c": 1, "d": 0, "e": 2, "f": 1}}`, `{"o": {"a": true, "b": false, "c": true, "d": false, "e": 2, "f": 1}}`},
		// enum and const
		{`{"l": {"items": {"enum": [1, 2]}}, "c": {"const": 3}, "s": {"enum": ["1", "2"]}}`, `{"l": ["1", "2"], "c": "3", "s": 1}`, `{"l": [1, 2], "c": 3, "s": "1"}`},
		// strings in place of lists and objects, and the other way round
		{`{"l": {"items": {"items": {"type": "integer"}}}}`, `{"l": ["[1,2]", "[\"3\"]", "(4, '5')"]}`, `{"l": [[1,2], [3], "(4, '5')"]}`},
		{`{"l": {"items": {"type": "string"}}}`, `{"l": [{"a": ["b\n", 1]}, [1, "é"], true, null, "x"]}`, `{"l": ["{\"a\": [\"b\\n\", 1]}", "[1, \"é\"]", "true", null, "x"]}`},
		{`{"l": {"type": "array", "items": {"type": "string"}}, "s": {"type": "string"}}`, `{"l": "a", "s": ["a"]}`, `{"l": "a", "s": "[\"a\"]"}`},
		{`{"o": {"properties": {"o": {"properties": {"n": {"type": "integer"}}}}}}`, `{"o": "{\"o\": \"{\\\"n\\\": \\\"1\\\"}\"}"}`, `{"o": {"o": {"n": 1}}}`},
		// types as others spell them, and none
		{`{"x": {"type": "INTEGER"}, "y": {"type": "any"}, "z": {"type": "ARRAY", "items": {"type": "NUMBER"}}, "o": {"type": "object", "additionalProperties": true}, "p": {"type": "object"}}`,
			`{"x": "1", "y": "1", "z": ["1"], "o": {"a": "1"}, "p": {"a": "1"}, "q": {"a": ["1"]}}`, `{"x": 1, "y": "1", "z": [1], "o": {"a": "1"}, "p": {"a": "1"}, "q": {"a": ["1"]}}`},
	} {
		parameters := `{"type": "object", "properties": ` + c.schema + `}`
		got, counted := mend(t, parameters, c.args, 0)
		if got != c.want {
			t.Errorf("%s\n%s\n%s, want\n%s", c.schema, c.args, got, c.want)
		}
		for at := range len(c.args) {
			if cut, again := mend(t, parameters, c.args, at); cut != got || !slices.Equal(again, counted) {
				t.Errorf("%s cut at %d: %s %v, want %s %v", c.args, at, cut, again, got, counted)
			}
		}
		if again, counted := mend(t, parameters, got, 0); again != got || len(counted) > 0 {
			t.Errorf("%s becomes %s, %v", got, again, counted)
		}
		if mended := c.args != c.want; mended != (len(counted) > 0) {
			t.Errorf("%s: counted %v", c.args, counted)
		}
	}
}

// TestDepthBounds: nesting that is too deep is left as it is, and text that cannot wait goes out.
func TestDepthBounds(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	text := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	long := `"` + strings.Repeat("1", 2*maxHeld) + `"`
	object := `{"a": "` + strings.Repeat("b", 2*maxHeld) + `"}`
	for _, c := range []struct{ schema, args, want string }{
		{`{"l": {"type": "array"}}`, `{"l": ` + text(deep(255)) + `}`, `{"l": ` + deep(255) + `}`},
		{`{"l": {"type": "array"}}`, `{"l": ` + text(deep(256)) + `}`, `{"l": ` + text(deep(256)) + `}`},
		{`{"l": {"items": {"type": "array"}}}`, `{"l": [` + text(deep(254)) + "," + text(deep(255)) + `]}`, `{"l": [` + deep(254) + "," + text(deep(255)) + `]}`},
		{`{"n": {"type": "integer"}, "l": {"items": {"type": "boolean"}}}`, fmt.Sprintf(`{"n": %s, "l": [%[1]s, "true"]}`, long), fmt.Sprintf(`{"n": %s, "l": [%[1]s, true]}`, long)},
		{`{"s": {"type": "string"}, "l": {"items": {"type": "string"}}}`, fmt.Sprintf(`{"s": %s, "l": [%[1]s, 1]}`, object), fmt.Sprintf(`{"s": %s, "l": [%[1]s, "1"]}`, text(object))},
	} {
		if got, _ := mend(t, `{"type": "object", "properties": `+c.schema+`}`, c.args, 0); got != c.want {
			t.Errorf("%.100s: %.200s, want %.200s", c.args, got, c.want)
		}
	}
}
