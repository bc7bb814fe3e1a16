package openai

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/grammar/jsonschema"
	"hearth/internal/wire"
	"hearth/internal/wire/wiretest"
)

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
		f := Format{}
		if tt.schema != "" {
			f.schema = json.RawMessage(tt.schema)
		}
		for want, list := range map[bool]string{true: tt.met, false: tt.unmet} {
			for _, text := range strings.Split(list, " | ") {
				f.checker = nil
				if list != "" && (f.check(t.Context(), text) == jsonschema.Valid) != want {
					t.Errorf("%s: %s is met: %t", tt.schema, text, !want)
				}
			}
		}
	}
}

// TestSchemaChoices: the choices of a reply share what is done to check them, and the reply says that it was not enough.
func TestSchemaChoices(t *testing.T) {
	f := &Format{schema: json.RawMessage(`{"pattern": "(a{1,100}){1,2}b$"}`)}
	info := &wire.Info{Usage: &chat.Usage{}}
	ctx := wire.WithInfo(t.Context(), info)
	for range 10 {
		f.Look(ctx, `"`+strings.Repeat("a", 600_000)+`"`, chat.FinishStop)
	}
	if !f.spent {
		t.Error("not spent")
	}
	if !slices.Equal(info.Usage.Bounds, []chat.Bound{chat.BoundSchema}) {
		t.Errorf("bounds met: %v", info.Usage.Bounds)
	}

	steps := wiretest.Hello(1)
	steps[1].Event.Text, steps[2].Event.Finish = `"`+strings.Repeat("a", 6<<20)+`"`, chat.FinishStop
	mux := http.NewServeMux()
	Protocol{}.Mount(mux, wiretest.Options(wiretest.New(steps...)))
	srv := httptest.NewServer(mux)
	defer srv.Close()
	for _, stream := range []string{"false", "true"} {
		r, err := http.Post(srv.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"stream": `+stream+`, "messages": [{"role": "user", "content": "q"}],
			"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"pattern": "(a{1,100}){1,10}b$"}}}}`))
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := r.Write(&b); err != nil { // reads to the end, behind which trailers are
			t.Fatal(err)
		}
		r.Body.Close()
		if got := r.Header.Get(wire.SchemaHeader) + r.Trailer.Get(wire.SchemaHeader); got != schemaUnchecked {
			t.Errorf("stream %s: %q", stream, got)
		}
	}
}

// FuzzFormat: no schema and no text makes the check fail or run on.
func FuzzFormat(f *testing.F) {
	f.Add(`{"$ref": "#/$defs/n", "$defs": {"n": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}}`, `{"a": [1, 1, 1]}`)
	f.Add(`{"items": {"uniqueItems": true, "contains": {"not": {}}}, "multipleOf": 0}`, `[[1, "x"], 0]`)
	f.Add(`{"allOf": [{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}]}`, `1`)
	f.Fuzz(func(t *testing.T, schema, text string) {
		was := json.Valid([]byte(text))
		if (&Format{schema: json.RawMessage(schema)}).check(t.Context(), text) == jsonschema.Valid && !was {
			t.Errorf("%q is not JSON and meets %q", text, schema)
		}
	})
}

// TestSchemaHeader: what became of a form is told in a header, or after a stream; at once where the text is held to it.
func TestSchemaHeader(t *testing.T) {
	const wanted = `"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"required": ["a"]}}}`
	for _, tt := range []struct {
		name, fields, text string
		finish             chat.Finish
		enforced           bool
		want               string
	}{
		{"met", wanted, `{"a": 1}`, chat.FinishStop, false, schemaChecked},
		{"missed", wanted, `{"b": 1}`, chat.FinishStop, false, schemaUnmet},
		{"cut short", wanted, `{"a": `, chat.FinishLength, false, schemaUnmet},
		{"words", `"response_format": {"type": "json_object"}`, `Sure: {}`, chat.FinishStop, false, schemaUnmet},
		{"an object", `"response_format": {"type": "json_object"}`, ` {}`, chat.FinishStop, false, schemaChecked},
		{"a call first", wanted, `Let me look.`, chat.FinishToolCalls, false, ""},
		{"held", wanted, `{"a": 1}`, chat.FinishStop, true, wire.SchemaEnforced},
		{"held and cut short", wanted, `{"a": `, chat.FinishLength, true, wire.SchemaEnforced},
		{"text", `"response_format": {"type": "text"}`, `Sure`, chat.FinishStop, false, ""},
		{"nothing asked", `"n": 1`, `Sure`, chat.FinishStop, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			steps := wiretest.Hello(1)
			steps[0].Event.Usage.Enforced = tt.enforced
			steps[1].Event.Text, steps[2].Event.Finish = tt.text, tt.finish
			mux := http.NewServeMux()
			Protocol{}.Mount(mux, wiretest.Options(wiretest.New(steps...)))
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mux.ServeHTTP(w, r.WithContext(wire.WithInfo(r.Context(), &wire.Info{})))
			}))
			defer srv.Close()
			for _, stream := range []string{"false", "true"} {
				body := `{"stream": ` + stream + `, "messages": [{"role": "user", "content": "q"}], ` + tt.fields + `}`
				r, err := http.Post(srv.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				var b strings.Builder
				if err := r.Write(&b); err != nil { // reads to the end, behind which trailers are
					t.Fatal(err)
				}
				r.Body.Close()
				if got := r.Header.Get(wire.SchemaHeader) + r.Trailer.Get(wire.SchemaHeader); got != tt.want || r.StatusCode != 200 {
					t.Errorf("stream %s: %q, want %q: %s", stream, got, tt.want, b.String())
				}
			}
		})
	}
}
