package callform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"hearth/internal/dialect"
	"hearth/internal/grammar"
)

const end = "</tool_call>"

// objects are replies with calls of tools as JSON objects behind a tag, none of which anybody has asked to be held.
func objects(t *testing.T, tools ...dialect.Tool) *grammar.Grammar {
	t.Helper()
	form, err := New(context.Background(), choose(t, "hermes").Notation, tools, Options{
		Loose: func(string) bool { return true }, Object: choose(t, "hermes").Object, Begins: &dialect.Beginnings{Anywhere: []string{"<tool_call>"}}})
	if err != nil {
		t.Fatal(err)
	}
	return form.Grammar
}

func matches(g *grammar.Grammar, text string) bool {
	budget := grammar.NewBudget(1)
	for range text {
		budget.Token()
	}
	return g.Matches(text, budget) && !budget.Spent()
}

// TestObjects: a call has a name that is declared, then arguments that follow the schema of that tool, members in any order and
// with any white space. What is beside calls is free.
func TestObjects(t *testing.T) {
	g := objects(t, tool("f", `{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}`),
		tool("fetch", `{"type": "object", "properties": {}}`), dialect.Tool{Name: `say "ü"`}, tool("f", `{"type": "object"}`)) // twice: the first one counts
	for text, want := range map[string]bool{
		`{"name": "f", "arguments": {"a": "x"}}` + end:                                   true,
		"\n{\"name\": \"f\", \"arguments\": {\"a\": \"x\", \"b\": 3}}\n" + end:           true,
		"{ \"name\" :\t\"f\",\r\n \"arguments\": { \"b\" :3 ,\n\"a\": \"x\"\n}\n}" + end: true,
		`{"name":"f","arguments":{"b":-12,"a":""}}` + end + " and <b>":                   true,
		`{"name": "fetch", "arguments": {}}` + end + "<tool_call>":                       false,
		`{"name": "fetch", "arguments": {}}` + end:                                       true,
		`{"name": "say \"ü\"", "arguments": {"any": [1, {"x": null}]}}` + end:            true,
		`{"arguments": {"a": "x"}, "name": "f"}` + end:                                   false,
		`{"name": "f", "arguments": {"b": 3}}` + end:                                     false,
		`{"name": "f", "arguments": {"a": 1}}` + end:                                     false,
		`{"name": "f", "arguments": {"a": "x", "c": 1}}` + end:                           false,
		`{"name": "f", "arguments": {"a": "x", "a": "y"}}` + end:                         false,
		`{"name": "f", "arguments": {"a": "x",}}` + end:                                  false,
		`{"name": "fe", "arguments": {}}` + end:                                          false,
		`{"name": "fetch", "arguments": {"a": 1}}` + end:                                 false,
		`{"name": "g", "arguments": {}}` + end:                                           false,
		`{"name": "f", "arguments": "{\"a\": \"x\"}"}` + end:                             false,
		`{"name": "f"}` + end:                                                            false,
		`{"name": "f", "arguments": {"a": "x"}}`:                                         false,
		`<function=f>`:                                                                   false,
		strings.Repeat("\n", 70) + `{"name": "f", "arguments": {"a": "x"}}` + end:        false, // blanks without end
	} {
		if got := matches(g, "So: <tool_call>"+text); got != want {
			t.Errorf("%q is a call: %v, want %v", text, got, want)
		}
	}
	if !matches(g, `{"name": "g"} <function=f> </tool_call>`) || matches(objects(t, dialect.Tool{Name: "f"}), `<tool_call>{"name": "`) {
		t.Error("beside calls")
	}
}

// TestObjectSchemas: what models write of values, without blanks.
func TestObjectSchemas(t *testing.T) {
	for _, c := range []struct{ schema, yes, no string }{
		{`{"type": "string"}`, `"" "xy" "\n\"" "ü"`, `1 true null {} "\x" "\u00g0"`},
		{`{"type": "integer"}`, `0 -1 12345`, `01 1.0 1e3 - "1" --1`},
		{`{"type": "number"}`, `0 -1.5 1e3 0.5E-10 12`, `.5 1. 1e 01 +1`},
		{`{"type": ["string", "null"]}`, `"x" null`, `1 nul`},
		{`{"enum": ["a", "ab", 1, 10, null, true]}`, `"a" "ab" 1 10 null true`, `"b" "abc" 100 false`},
		{`{"type": "array", "items": {"type": "integer"}}`, `[] [1] [1,2]`, `[1,] ["a"] [,1] 1`},
		{`{"anyOf": [{"type": "integer"}, {"type": "object", "properties": {"k": {"type": "string"}}}]}`, `1 {"k":"v"} {}`, `"a" {"j":1}`},
		{`{"oneOf": [{"const": "red"}, {"const": "redder"}]}`, `"red" "redder"`, `"redd"`},
		{`{"$ref": "#/$defs/tree"}`, `{"kids":[{"kids":[]},{}]}`, `{"kids":[1]}`},
		{`{"$ref": "#/$defs/either"}`, `1 [1,[1]]`, `"a"`},
		{`{"type": "object"}`, `{} {"a":1,"b":2}`, `1 {a:1} {"a"}`},
		{`{"type": "object", "additionalProperties": {"type": "integer"}}`, `{} {"x":1}`, `{"x":"y"}`},
		{`{"properties": {"a": {}}, "type": "object", "additionalProperties": true}`, `{"a":1,"b":2} {}`, `{"a"}`},
		{`{"type": "object", "properties": {"a": {"type": "integer"}, "ab": {}}, "additionalProperties": {"type": "boolean"}}`, `{"a":1,"b":true,"abc":false,"":true,"a\"":true}`, `{"a":true} {"b":1}`},
		{`{"type": "object", "properties": {"a": {}}, "required": ["a", "b"]}`, `{"a":1,"b":2} {"b":[],"a":{}}`, `{"a":1} {"c":1}`},
		{`{"type": "object", "properties": {"<&>": {"type": "null"}}}`, `{"<&>":null}`, `{"\u003c&>":null}`},
		{`true`, `1 {"a":[]}`, `]`},
		{`{"type": "array", "items": {"type": "integer"}, "prefixItems": [{"type": "string"}]}`, `["a",1]`, `["a"`},
	} {
		g := objects(t, tool("f", `{"type": "object", "properties": {"v": `+c.schema+`}, "required": ["v"], "$defs": {
			"tree": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}},
			"either": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/either"}}]}}}`))
		for want, values := range map[bool]string{true: c.yes, false: c.no} {
			for _, v := range strings.Fields(values) {
				if got := matches(g, `<tool_call>{"name": "f", "arguments": {"v": `+v+`}}`+end); got != want {
					t.Errorf("%s: %s is written: %v, want %v", c.schema, v, got, want)
				}
			}
		}
	}
}

// TestObjectArguments: whatever stands in a tool's parameters, the arguments are an object.
func TestObjectArguments(t *testing.T) {
	for schema, want := range map[string]string{
		``:                   `{"a":1}`,
		`null`:               `{"a":1}`,
		`{`:                  `{"a":1}`,
		`{"type": "string"}`: `{"a":1}`,
		`{"type": "nope"}`:   `{"a":1}`,
		`{"enum": [1]}`:      `{"a":1}`,
		`{"anyOf": [{"properties": {"b": {}}}, {"properties": {"a": {}}}]}`:         `{"a":1}`,
		`{"type": ["object", "null"], "properties": {"a": {"type": "integer"}}}`:    `{"a":1}`,
		`{"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {}}}}}`:          `{"a":1}`,
		`{"type": "object", "properties": {"x": {"$ref": "#"}}, "required": ["x"]}`: `{"a":1}`,
	} {
		g := objects(t, tool("f", schema), dialect.Tool{Name: "g"})
		if !matches(g, `<tool_call>{"name": "f", "arguments": `+want+`}`+end) {
			t.Errorf("%s: %s does not fit", schema, want)
		}
		for _, no := range []string{`"a"`, `1`, `null`, `[]`} {
			if matches(g, `<tool_call>{"name": "f", "arguments": `+no+`}`+end) {
				t.Errorf("%s: %s fits", schema, no)
			}
		}
	}
}

// TestObjectsValid: what jsonschema calls valid is a call, and what it does not is none.
func TestObjectsValid(t *testing.T) {
	b, err := os.ReadFile("testdata/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Cases []struct {
			Schema         json.RawMessage
			Valid, Invalid []string
		}
	}
	if err := json.Unmarshal(b, &golden); err != nil || len(golden.Cases) < 5 {
		t.Fatal(err, len(golden.Cases))
	}
	for _, c := range golden.Cases {
		g := objects(t, tool("f", string(c.Schema)))
		for want, texts := range map[bool][]string{true: c.Valid, false: c.Invalid} {
			for _, args := range texts {
				if got := matches(g, `<tool_call>{"name": "f", "arguments": `+args+"}"+end); got != want {
					t.Errorf("%s of %s fits: %v, want %v", args, c.Schema, got, want)
				}
			}
		}
	}
}

// TestLooseTooLarge: loose tools whose schemas are too large may have any object as arguments, which is told; a strict one is an
// error.
func TestLooseTooLarge(t *testing.T) {
	large := tool("f", `{"type": "object", "patternProperties": {"a": {}, "b": {}, "c": {}, "d": {}, "e": {}, "f": {}}}`)
	for _, strict := range []string{"", "f", "g"} {
		form, err := New(context.Background(), choose(t, "hermes").Notation, []dialect.Tool{large, tool("g", `{}`)}, Options{Loose: func(name string) bool { return name != strict }})
		var limit *grammar.LimitError
		if strict == "f" {
			if !errors.As(err, &limit) {
				t.Errorf("strict: %v", err)
			}
		} else if err != nil || !errors.As(form.Any["f"], &limit) {
			t.Errorf("%q: %v, %v", strict, form, err)
		}
	}
}

// TestManyWrong: each wrong schema of a loose tool costs its own reading, not one more of all tools.
func TestManyWrong(t *testing.T) {
	cost := func(n int) uint64 {
		var tools []dialect.Tool
		for i := range n {
			tools = append(tools, tool(fmt.Sprintf("good%d", i), `{"properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "integer"}}}`),
				tool(fmt.Sprintf("wrong%d", i), `{"properties": {"a": {"type": "STRING"}}}`))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		form, err := New(t.Context(), choose(t, "hermes").Notation, tools, Options{Loose: func(string) bool { return true }})
		runtime.ReadMemStats(&after)
		if err != nil || len(form.Any) != n {
			t.Fatalf("%d of %d tools have any arguments: %v", len(form.Any), n, err)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	if once, twice := cost(40), cost(80); twice > 3*once {
		t.Errorf("%d bytes for 40 wrong schemas, %d for 80", once, twice)
	}
}
