package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/grammar"
	"hearth/internal/grammar/jsonschema"
)

// checkFor is one for a reply whose form is a schema, or any object.
func checkFor(t *testing.T, schema string) *formCheck {
	form := &chat.Form{}
	if schema != "" {
		form.Kind, form.Source = chat.FormSchema, schema
	}
	return &formCheck{ctx: t.Context(), req: &chat.Request{Form: form}, outcome: chat.Unchecked}
}

// TestFormat: values that a schema takes and values that it does not, each a JSON text.
func TestFormat(t *testing.T) {
	for _, tt := range []struct {
		schema, met, unmet string // lists separated by " | "
	}{
		{``, `{} | {"a": 1}`, `[] | 1 | "x" | null | {"a": | {} {} | text |  `},
		{`{}`, `{} | 1 | null`, `{`},
		{`{"type": "string"}`, `"x" | ""`, `1 | null | {}`},
		{`{"type": "integer"}`, `1 | 1.0 | -2e3`, `1.5 | "1" | true`},
		{`{"type": "number"}`, `1 | 1.5`, `"1" | false`},
		{`{"type": ["string", "null"]}`, `"x" | null`, `1 | {}`},
		{`{"type": "boolean"}`, `true | false`, `0 | "true"`},
		{`{"type": "array"}`, `[] | [1]`, `{} | ""`},
		{`{"enum": ["a", 1, null, {"b": [1]}]}`, `"a" | 1 | null | {"b": [1]}`, `"b" | 2 | {} | {"b": [2]}`},
		{`{"const": 5}`, `5 | 5.0`, `6 | "5"`},
		{`{"minLength": 2, "maxLength": 3}`, `"äö" | "abc" | 1`, `"ä" | "abcd"`},
		{`{"pattern": "^a+$"}`, `"aa" | 1`, `"ab" | ""`},
		{`{"pattern": "(?=a)[ab]"}`, `"a"`, `"x" | "b"`},
		{`{"pattern": "(a)\\1"}`, `1`, `"aa"`}, // which is unchecked
		{`{"format": "date"}`, `"2026-11-26" | "x"`, ``},
		{`{"minimum": 1, "exclusiveMaximum": 3}`, `1 | 2.9 | "x"`, `0.9 | 3`},
		{`{"exclusiveMinimum": 1, "maximum": 3}`, `1.1 | 3`, `1 | 3.1`},
		{`{"multipleOf": 0.1}`, `0.3 | 7`, `0.35`},
		{`{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false}`,
			`{"a": 1}`, `{} | {"a": "1"} | {"a": 1, "b": 2} | null`},
		{`{"properties": {"a": {}}, "additionalProperties": {"type": "string"}}`, `{"a": 1, "b": "x"} | {}`, `{"b": 1}`},
		{`{"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": false}`, `{"x1": 1}`, `{"x1": "1"} | {"y": 1}`},
		{`{"propertyNames": {"maxLength": 1}, "minProperties": 1, "maxProperties": 2}`, `{"a": 1}`, `{} | {"ab": 1} | {"a": 1, "b": 1, "c": 1}`},
		{`{"items": {"type": "integer"}, "minItems": 1, "maxItems": 2, "uniqueItems": true}`, `[1] | [1, 2]`, `[] | [1, 2, 3] | ["1"] | [1, 1]`},
		{`{"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}`, `[] | ["a", 1]`, `[1] | ["a", "b"]`},
		{`{"items": [{"type": "string"}], "additionalItems": false}`, `["a"]`, `["a", 1]`},
		{`{"contains": {"const": 1}}`, `[0, 1]`, `[] | [0]`},
		{`{"anyOf": [{"type": "string"}, {"minimum": 5}]}`, `"x" | 7 | null`, `1`},
		{`{"oneOf": [{"type": "integer"}, {"minimum": 5}]}`, `1 | 5.5`, `7 | 1.5`},
		{`{"allOf": [{"type": "integer"}, {"minimum": 5}], "not": {"const": 6}}`, `5`, `1 | 5.5 | 6`},
		{`{"if": {"type": "integer"}, "then": {"minimum": 5}, "else": {"type": "string"}}`, `5 | "x"`, `1 | null`},
		{`{"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}, "required": ["v"]}}}`,
			`{"v": 1} | {"v": 1, "next": {"v": 2}}`, `{} | {"v": 1, "next": {}}`},
		{`{"$ref": "#/a~1b", "a/b": {"type": "string"}}`, `"x"`, `1`},
		{`{"$ref": "#"}`, ``, `1`},
		{`{"$ref": "#/nowhere"}`, ``, `1`},
		{`{"$ref": "http://elsewhere"}`, ``, `1`},
		{`{"properties": {"a": false, "b": true}}`, `{"b": 1} | {}`, `{"a": 1}`},
		{`{"type": "object", "title": "T", "format": "email", "description": "d", "default": {}}`, `{}`, `1`},
	} {
		for want, list := range map[bool]string{true: tt.met, false: tt.unmet} {
			for _, text := range strings.Split(list, " | ") {
				if list != "" && (checkFor(t, tt.schema).compareText(text) == jsonschema.Valid) != want {
					t.Errorf("%s: %s is met: %t", tt.schema, text, !want)
				}
			}
		}
	}
}

// TestSchemaChoices: the choices of a reply share what is done to check them, and the reply says that it was not enough.
func TestSchemaChoices(t *testing.T) {
	f := checkFor(t, `{"pattern": "(a{1,100}){1,2}b$"}`)
	info := &Info{Usage: &chat.Usage{}}
	f.ctx = WithInfo(t.Context(), info)
	for range 10 {
		f.event(&chat.Event{Kind: chat.EventText, Text: `"` + strings.Repeat("a", 600_000) + `"`})
		f.event(&chat.Event{Kind: chat.EventFinish, Finish: chat.FinishStop})
	}
	if !f.seen[jsonschema.Unchecked] {
		t.Error("not spent")
	}
	if !slices.Equal(info.Usage.Bounds, []chat.Bound{chat.BoundSchema}) {
		t.Errorf("bounds met: %v", info.Usage.Bounds)
	}
}

// FuzzFormat: no schema and no text makes the check fail or run on.
func FuzzFormat(f *testing.F) {
	f.Add(`{"$ref": "#/$defs/n", "$defs": {"n": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}}`, `{"a": [1, 1, 1]}`)
	f.Add(`{"items": {"uniqueItems": true, "contains": {"not": {}}}, "multipleOf": 0}`, `[[1, "x"], 0]`)
	f.Add(`{"allOf": [{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}]}`, `1`)
	f.Fuzz(func(t *testing.T, schema, text string) {
		was := json.Valid([]byte(text))
		if schema != "" && checkFor(t, schema).compareText(text) == jsonschema.Valid && !was {
			t.Errorf("%q is not JSON and meets %q", text, schema)
		}
	})
}

// TestSchemaShared: the calls of several tools share what is done to check them, with the text.
func TestSchemaShared(t *testing.T) {
	costly := func(i string) json.RawMessage {
		return json.RawMessage(`{"properties": {"x": {"pattern": "(a{1,100}){1,2}b$"}}, "title": "` + i + `"}`)
	}
	f := checkFor(t, "")
	f.req = &chat.Request{Choice: chat.ToolChoice{Kind: chat.ChoiceRequired}}
	arguments := json.RawMessage(`{"x": "` + strings.Repeat("a", 600_000) + `"}`)
	for _, name := range strings.Fields("a b c d e f g h i j") {
		f.req.Tools = append(f.req.Tools, chat.Tool{Name: name, Parameters: costly(name)})
		f.event(&chat.Event{Kind: chat.EventToolEnd, Call: &chat.ToolCall{Name: name, Arguments: arguments}})
	}
	if len(f.known) != 10 || !f.seen[jsonschema.Unchecked] {
		t.Errorf("%d schemas, verdicts %v", len(f.known), f.seen)
	}
}

// TestInputBound: the input of a call that takes too much work to compare is unchecked.
func TestInputBound(t *testing.T) {
	f := &chat.Form{Kind: chat.FormLark, Source: `start: "a"+`}
	c := &formCheck{ctx: t.Context(), budget: grammar.NewBudget(1 << 24)}
	for arguments, want := range map[string]jsonschema.Verdict{`{"input": "aaaa"}`: jsonschema.Unchecked, `{"input": "b"}`: jsonschema.Unchecked, `{}`: jsonschema.Invalid} {
		if got := c.compareInput(f, []byte(arguments)); got != want {
			t.Errorf("%s: %v", arguments, got)
		}
	}
}
