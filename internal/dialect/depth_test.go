package dialect

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hearth/internal/schema"
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
			`{"x": {"k": "b", "m": "true", "n": "1"}}`, `{"x": {"k": "b", "m": true, "n": "1"}}`},
		{`{"x": {"oneOf": [{"properties": {"n": {"type": "integer"}}}, {"properties": {"n": {"type": "string"}}}]}}`, `{"x": {"n": "1"}}`, `{"x": {"n": "1"}}`},
		// what a member says tells which alternative holds
		{`{"l": {"items": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}}}, "$defs": {"a": {"properties": {"k": {"const": "a"}, "n": {"type": "integer"}}}, "b": {"properties": {"k": {"$ref": "#/$defs/kb"}, "n": {"type": "string"}}}, "kb": {"enum": ["b", "c"]}}`,
			`{"l": [{"k": "a", "n": "1"}, {"k": "b", "n": "1"}, {"k": "c", "n": 1}, {"n": "1", "k": "a"}, {"k": "d", "n": "1"}, {"k": "\u0061", "n": "2"}]}`,
			`{"l": [{"k": "a", "n": 1}, {"k": "b", "n": "1"}, {"k": "c", "n": "1"}, {"n": "1", "k": "a"}, {"k": "d", "n": "1"}, {"k": "\u0061", "n": 2}]}`},
		{`{"x": {"oneOf": [{"properties": {"v": {"const": 1}, "o": {"properties": {"n": {"type": "integer"}}}}}, {"properties": {"v": {"const": 2}, "o": {"type": "object"}}}]}}`,
			`{"x": {"v": "1", "o": {"n": "1"}}}`, `{"x": {"v": 1, "o": {"n": 1}}}`},
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
	telling := func(n int) string {
		return `{"x": {"oneOf": [{"properties": {"k": {"const": "` + strings.Repeat("k", n) + `"}, "n": {"type": "integer"}}}, {"properties": {"k": {"const": ""}, "n": {"type": "string"}}}]}}`
	}
	object := `{"a": "` + strings.Repeat("b", 2*maxHeld) + `"}`
	for _, c := range []struct{ schema, args, want string }{
		{`{"l": {"type": "array"}}`, `{"l": ` + text(deep(255)) + `}`, `{"l": ` + deep(255) + `}`},
		{`{"l": {"type": "array"}}`, `{"l": ` + text(deep(256)) + `}`, `{"l": ` + text(deep(256)) + `}`},
		{`{"l": {"items": {"type": "array"}}}`, `{"l": [` + text(deep(254)) + "," + text(deep(255)) + `]}`, `{"l": [` + deep(254) + "," + text(deep(255)) + `]}`},
		{`{"n": {"type": "integer"}, "l": {"items": {"type": "boolean"}}}`, fmt.Sprintf(`{"n": %s, "l": [%[1]s, "true"]}`, long), fmt.Sprintf(`{"n": %s, "l": [%[1]s, true]}`, long)},
		{`{"s": {"type": "string"}, "l": {"items": {"type": "string"}}}`, fmt.Sprintf(`{"s": %s, "l": [%[1]s, 1]}`, object), fmt.Sprintf(`{"s": %s, "l": [%[1]s, "1"]}`, text(object))},
		{`{"m": {"patternProperties": {"` + strings.Repeat("a", 64) + `": {"type": "integer"}}}}`, `{"m": {"` + strings.Repeat("a", 65) + `": "1"}}`, `{"m": {"` + strings.Repeat("a", 65) + `": 1}}`},
		{`{"m": {"patternProperties": {"` + strings.Repeat("a", 65) + `": {"type": "integer"}}}}`, `{"m": {"` + strings.Repeat("a", 65) + `": "1"}}`, `{"m": {"` + strings.Repeat("a", 65) + `": "1"}}`},
		{telling(maxTelling - 3), `{"x": {"k": "` + strings.Repeat("k", maxTelling-3) + `", "n": "1"}}`, `{"x": {"k": "` + strings.Repeat("k", maxTelling-3) + `", "n": 1}}`},
		{telling(maxTelling), `{"x": {"k": "` + strings.Repeat("k", maxTelling) + `", "n": "1"}}`, `{"x": {"k": "` + strings.Repeat("k", maxTelling) + `", "n": "1"}}`},
	} {
		if got, _ := mend(t, `{"type": "object", "properties": `+c.schema+`}`, c.args, 0); got != c.want {
			t.Errorf("%.100s: %.200s, want %.200s", c.args, got, c.want)
		}
	}
}

// TestDepthStreams: what fits goes out byte by byte at every depth, and so does all around a value that waits.
func TestDepthStreams(t *testing.T) {
	const parameters = `{"properties": {"q": {"properties": {"s": {"type": "string"}, "sn": {"type": ["string", "null"]}, "i": {"type": "integer"},
		"l": {"items": {"type": "string"}}, "p": {"anyOf": [{"properties": {"k": {"const": "a"}}}, {"properties": {"k": {"type": "string"}}}]}}}}}`
	for args, want := range map[string]string{
		`{"q": {"s": "ab`:                `{"q": {"s": "ab`,
		`{"q": {"sn": "nu`:               `{"q": {"sn": "nu`,
		`{"q": {"i": "12`:                `{"q": {"i": `,
		`{"q": {"i": "12", "l": ["`:      `{"q": {"i": 12, "l": ["`,
		`{"q": {"l": [{"a": "b`:          `{"q": {"l": ["{\"a\": \"b`,
		`{"q": {"p": {"k": "ab`:          `{"q": {"p": {"k": "ab`,
		`{"q": {"i": "12", "o": {"p": "`: `{"q": {"i": 12, "o": {"p": "`,
	} {
		a := newArgs(toolsetOf(parameters), "f")
		var out joiner
		for i := range len(args) {
			a.step(args[i], &out)
		}
		if got := out.take()[0].Text; got != want {
			t.Errorf("of %s came %s, want %s", args, got, want)
		}
	}
}

// TestDepthWork: what is read of a schema is read once, however often it is needed; what is more than may be read says nothing.
func TestDepthWork(t *testing.T) {
	ten := func(of string) string { return strings.Repeat(of+", ", 9) + of }
	for name, c := range map[string]struct {
		schema, args, want string
		most               int // parts read, or that would have been
	}{
		"wide": {`{"q": {"properties": {` + properties(10_000, `{"type": "integer"}`) + `}}}`, `{"q": {` + properties(10_000, `"5"`) + `}}`, `{"q": {` + properties(10_000, `5`) + `}}`, 100_000},
		"deep": {`{"q": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"anyOf": [{"type": "null"}, {"properties": {"v": {"type": "integer"}, "q": {"$ref": "#/$defs/n"}}}]}}`,
			strings.Repeat(`{"v": "1", "q": `, 250) + `"null"` + strings.Repeat("}", 250), `{"v": "1", "q": ` + strings.Repeat(`{"v": 1, "q": `, 249) + `null` + strings.Repeat("}", 250), 2_000},
		"long": {`{"l": {"items": {"oneOf": [{"properties": {"k": {"const": "a"}, "n": {"type": "integer"}}}, {"properties": {"k": {"const": "b"}, "n": {"type": "boolean"}}}]}}}`,
			`{"l": [` + strings.Repeat(`{"k": "a", "n": "1"}, {"k": "b", "n": "no"}, `, 10_000) + `"x"]}`, `{"l": [` + strings.Repeat(`{"k": "a", "n": 1}, {"k": "b", "n": false}, `, 10_000) + `"x"]}`, 1_000},
		"every combination": {`{"x": {"allOf": [` + ten(`{"anyOf": [`+ten(`{"type": "boolean"}`)+`]}`) + `]}}`, `{"x": "yes", "y": "1"}`, `{"x": "yes", "y": "1"}`, 10 * maxSchemaWork},
		"circles": {`{"x": {"$ref": "#/$defs/a"}, "y": {"type": "integer"}}, "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/a"}]}, "b": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}, {"type": "integer"}]}}`,
			`{"x": "1", "y": "1"}`, `{"x": 1, "y": 1}`, 1_000},
	} {
		t.Run(name, func(t *testing.T) {
			s := toolsetOf(`{"properties": ` + c.schema + `}`)
			var out joiner
			a := newArgs(s, "f")
			for i := range len(c.args) {
				a.step(c.args[i], &out)
			}
			if got := out.take()[0].Text; got != c.want {
				t.Errorf("%.300s, want %.300s", got, c.want)
			}
			if used := maxSchemaWork - s.reading.left; used > c.most {
				t.Errorf("%d parts read", used)
			}
		})
	}
}

// FuzzValues: arguments that are mended by any schema are JSON still, the same however they are cut, have nothing left to
// mend, and still fit if they did. Without repairs they stay as they are.
func FuzzValues(f *testing.F) {
	for _, s := range [][2]string{
		{`{"properties": {"q": {"properties": {"n": {"type": "integer"}, "b": {"type": "boolean"}}}}}`, `{"q": {"n": "5", "b": "yes", "x": ["1"]}}`},
		{`{"properties": {"t": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "object", "properties": {"v": {"type": ["integer", "null"]}, "kids": {"items": {"$ref": "#/$defs/n"}}}}}}`,
			`{"t": {"v": "1", "kids": "[{\"v\": \"2\", \"kids\": [{\"v\": \"null\"}]}]"}}`},
		{`{"additionalProperties": {"anyOf": [{"type": "array", "prefixItems": [{"enum": [1, "a"]}, {"const": null}], "items": {"type": "string"}}, {"type": "number"}]}}`, `{"a": ["1", "None", {"a": 1}], "b": "1e3", "c": "[1]"}`},
		{`{"allOf": [{"properties": {"a": {"type": ["integer", "string"]}}}, {"patternProperties": {"^.$": {"type": "integer", "nullable": true}}}, {"$ref": "#"}]}`, `{"a": "1", "b": 2.0, "c": "null", "\u00e9": "\ud800"}`},
		{`{"oneOf": [{"properties": {"k": {"const": "a"}}, "required": ["k"]}, {"properties": {"k": false}, "additionalProperties": true}], "x": {"not": {}}}`, `{"k": 1, "l": {"k": -0.0}}`},
		{`{"properties": {"s": {"type": "string"}, "l": {"type": "array", "items": [{"type": "string"}], "additionalItems": false}}}`, `{"s": {"a": [true, "\n"]}, "l": [[1], {}], "s": 0}`},
	} {
		f.Add(s[0], s[1], 7)
	}
	f.Fuzz(checkValues)
}

func checkValues(t *testing.T, parameters, args string, at int) {
	if args = strings.TrimSpace(args); !strings.HasPrefix(args, "{") || !json.Valid([]byte(args)) || strings.Count(args, "{")+strings.Count(args, "[") > maxJSONDepth {
		return
	}
	if _, err := schema.Parse([]byte(args)); err != nil { // a number that is none
		return
	}
	got, counted := mend(t, parameters, args, -1)
	if !json.Valid([]byte(got)) {
		t.Fatalf("%s becomes %s", args, got)
	}
	if cut, again := mend(t, parameters, args, max(at, 0)%len(args)); cut != got || !slices.Equal(again, counted) {
		t.Fatalf("%s cut at %d becomes %s, %v; whole %s, %v", args, at, cut, again, got, counted)
	}
	if again, counted := mend(t, parameters, got, -1); again != got || len(counted) > 0 {
		t.Fatalf("%s becomes %s, and that %s, %v", args, got, again, counted)
	}
	if len(counted) == 0 && got != args {
		t.Fatalf("%s becomes %s, not counted", args, got)
	}
	if toolsetOf(parameters).fits("f", args) && !toolsetOf(parameters).fits("f", got) {
		t.Fatalf("%s fits, and becomes %s", args, got)
	}
	s := toolsetOf(parameters)
	s.strict = true
	var out joiner
	a := newArgs(s, "f")
	for i := range len(args) {
		a.step(args[i], &out)
	}
	if ps := out.take(); ps[0].Text != args {
		t.Fatalf("%s becomes %s when repairs are off", args, ps[0].Text)
	}
}

// TestRandomValues: the same of schemas and values that are made of what counts.
func TestRandomValues(t *testing.T) {
	n, mended := 20_000, 0
	if testing.Short() {
		n = 2000
	}
	for seed := range n {
		r := random{rand.New(rand.NewPCG(uint64(seed), 0))}
		parameters := `{"properties": {"a": ` + r.schema(0) + `, "b": ` + r.schema(0) + `}, "$defs": {"a": ` + r.schema(1) + `, "b": ` + r.schema(1) + `}}`
		args := `{"a": ` + r.value(0) + `, "b": ` + r.value(0) + `}`
		checkValues(t, parameters, args, r.IntN(len(args)))
		if got, _ := mend(t, parameters, args, -1); got != args {
			mended++
		}
		if t.Failed() {
			t.Fatal(parameters)
		}
	}
	if mended < n/10 {
		t.Errorf("only %d of %d were mended", mended, n)
	}
}

// random makes schemas and values.
type random struct{ *rand.Rand }

func (r random) one(of ...string) string { return of[r.IntN(len(of))] }

func (r random) schema(depth int) string {
	sub := func() string { return r.schema(depth + 1) }
	kinds := 9
	if depth > 3 {
		kinds = 5
	}
	switch r.IntN(kinds) {
	case 0, 1, 2:
		return `{"type": "` + r.one("string", "integer", "number", "boolean", "array", "object", "null") + `"` + r.one("", "", `, "nullable": true`) + `}`
	case 3:
		return r.one(`{"$ref": "#/$defs/a"}`, `{"$ref": "#/$defs/b"}`, `{"$ref": "#"}`, `{"$ref": "#/none"}`, `{}`, `true`, `false`)
	case 4:
		if r.IntN(3) == 0 {
			return `{"oneOf": [{"properties": {"a": {"const": 1}, "b": {"type": "string"}}}, {"properties": {"a": {"enum": ["x", true]}, "b": {"type": "integer"}}}]}`
		}
		return r.one(`{"enum": [1, 2]}`, `{"enum": ["1", null]}`, `{"const": 1}`, `{"type": ["integer", "null"]}`, `{"type": ["boolean", "array"]}`, `{"enum": [true, [1], 0.5]}`)
	case 5:
		return `{"items": ` + sub() + r.one("", `, "prefixItems": [`+sub()+`]`, `, "type": "array"`) + `}`
	case 6:
		return `{"` + r.one("anyOf", "oneOf", "allOf") + `": [` + sub() + `, ` + sub() + `]` + r.one("", "", `, "properties": {"a": `+sub()+`}`) + `}`
	}
	return `{"properties": {"a": ` + sub() + `, "b": ` + sub() + `}` + r.one("", "", `, "additionalProperties": `+sub(), `, "patternProperties": {"^[b-c]": `+sub()+`}`, `, "required": ["a"]`) + `}`
}

func (r random) value(depth int) string {
	kinds := 10
	if depth > 3 {
		kinds = 6
	}
	switch r.IntN(kinds) {
	case 0, 1:
		return r.one("0", "1", "2", "-1.50", "5.0", "1e2", "true", "false", "null")
	case 2, 3, 4:
		return r.one(`"0"`, `"1"`, `" 2 "`, `"-1.50"`, `"5.0"`, `"yes"`, `"No"`, `"True"`, `"null"`, `"None"`, `""`, `"x"`, `"\u0031"`)
	case 5:
		return r.one("{}", "[]", `"[]"`, `"{}"`, `"[1, 'a']"`)
	case 6:
		return `[` + r.value(depth+1) + `, ` + r.value(depth+1) + `]`
	case 7:
		b, _ := json.Marshal(r.value(depth + 1))
		return string(b)
	}
	return `{"a": ` + r.value(depth+1) + `,"` + r.one("b", "c", "d") + `":` + r.value(depth+1) + `}`
}
