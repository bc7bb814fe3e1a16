package dialect

import (
	"fmt"
	"strings"
	"testing"
)

// TestFits: arguments that a schema takes are told from those that it does not.
func TestFits(t *testing.T) {
	const node = `{"type": "object", "required": ["v"], "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/n"}},
		"next": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}}, "additionalProperties": false}`
	for _, c := range []struct{ schema, fit, unfit string }{
		{``, `{} | {"a": 1}`, `[] | 1 | {"a": 1`},
		{`{"properties": {"a": {"type": "string"}}, "required": ["a"]}`, `{"a": "x"}`, `{} | {"a": 1} | {"b": "x"} | {"a": "x", "b": 1}`},
		{`{"properties": {"a": {"type": "string"}}, "additionalProperties": true}`, `{} | {"a": "x", "b": 1}`, `{"a": 1}`},
		{`{"allOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}}]}`, `{"a": "x", "b": "y"}`, `{"a": "x", "c": "y"} | {"b": 1}`},
		{`{"properties": {"a": {"type": "integer"}}, "additionalProperties": false}`, `{"a": 1} | {"a": 1.0} | {}`, `{"a": 1.5} | {"a": "1"} | {"b": 1} | {"a": null}`},
		{`{"properties": {"a": {"type": "number"}}, "additionalProperties": {"type": "boolean"}}`, `{"a": 1} | {"a": 1.5, "b": true}`, `{"b": 1}`},
		{`{"properties": {"a": {"enum": [1, "x", [1, {"k": 2}]]}}}`, `{"a": 1} | {"a": 1.0} | {"a": "x"} | {"a": [1, {"k": 2.0}]}`, `{"a": 2} | {"a": "1"} | {"a": [1, {"k": 3}]}`},
		{`{"properties": {"a": {"const": null}}}`, `{"a": null}`, `{"a": 0}`},
		{`{"properties": {"a": {"type": "string", "nullable": true}, "b": false}}`, `{"a": null} | {"a": "x"}`, `{"a": 1} | {"b": 1}`},
		{`{"patternProperties": {"^n_": {"type": "integer"}}, "additionalProperties": false}`, `{"n_a": 1}`, `{"n_a": "x"} | {"m": 1}`},
		{`{"properties": {"a": {"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false}}}`, `{"a": [1, "x"]} | {"a": []}`, `{"a": ["x"]} | {"a": [1, "x", 2]}`},
		{`{"properties": {"a": {"items": [{"type": "integer"}], "additionalItems": {"type": "null"}}}}`, `{"a": [1, null]}`, `{"a": [1, 2]}`},
		{`{"allOf": [{"required": ["a"]}, {"properties": {"a": {"oneOf": [{"type": "integer"}, {"type": "string", "enum": ["x"]}]}}}]}`, `{"a": 1} | {"a": "x"}`, `{} | {"a": "y"} | {"a": true}`},
		{`{"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": ` + node + `}}`, `{"a": {"v": 1, "next": {"v": 2, "kids": [{"v": 3}], "next": null}}}`,
			`{"a": {"v": 1, "next": {"v": "2"}}} | {"a": {"v": 1, "next": {}}} | {"a": {"v": 1, "kids": [{"v": 1, "w": 2}]}}`},
		{`{"$ref": "#/$defs/x", "$defs": {"x": {"$ref": "#/$defs/x"}}}`, `{}`, `[]`},
	} {
		for text, want := range map[string]bool{c.fit: true, c.unfit: false} {
			for _, v := range strings.Split(text, " | ") {
				if got := toolsetOf(c.schema).fits("f", v); v != "" && got != want {
					t.Errorf("%s fits %s: %v", v, c.schema, got)
				}
			}
		}
	}
	if toolsetOf(`{}`).fits("g", `{}`) {
		t.Error("arguments fit a tool that does not exist")
	}
}

// TestFitsBound: what takes too much work does not fit.
func TestFitsBound(t *testing.T) {
	var b strings.Builder
	for i := range 12 {
		fmt.Fprintf(&b, `"d%d": {"anyOf": [%s]}, `, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"$ref": "#/$defs/d%d"},`, i+1), 10), ","))
	}
	s := toolsetOf(`{"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {` + b.String() + `"d12": {"type": "integer"}}}`)
	if !s.fits("f", `{"x": 1}`) {
		t.Error("the first alternative fits and is not taken")
	}
	if s.fits("f", `{"x": "a"}`) || s.reading.left > 0 || s.reading.left < -maxSchemaWork {
		t.Errorf("%d parts left", s.reading.left)
	}
}
