package grammar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"hearth/internal/schema"
)

// bytesVocab has a token for every byte, and some longer ones.
func bytesVocab(more ...string) *Vocab { return NewVocab(byteTokens(more)) }

func bytesCallVocab(more ...string) *CallVocab { return NewCallVocab(byteTokens(more)) }

func byteTokens(more []string) (size int, text func(id int32) []byte) {
	texts := make([][]byte, 0, 256+len(more))
	for i := range 256 {
		texts = append(texts, []byte{byte(i)})
	}
	for _, s := range more {
		texts = append(texts, []byte(s))
	}
	return len(texts) + 1, func(id int32) []byte { // the last id is no text
		if int(id) < len(texts) {
			return texts[id]
		}
		return nil
	}
}

const end = "</tool_call>"

func document(text string) *schema.Document { return &schema.Document{Raw: json.RawMessage(text)} }

// callOf is the form of a call of a tool f with a schema.
func callOf(schema string) *CallGrammar {
	return &Call([]Tool{{Name: "f", Schema: document(schema)}, {Name: "fetch"}}, end).CallGrammar
}

// fits tells whether a text is a whole call.
func fits(g *CallGrammar, text string) bool {
	m := bytesCallVocab().Matcher(g, NewBudget(1))
	return m.Accept([]byte(text)) && m.Done()
}

func TestCall(t *testing.T) {
	g := &Call([]Tool{
		{Name: "f", Schema: document(`{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}`)},
		{Name: "fetch", Schema: document(`{"type": "object", "properties": {}}`)},
		{Name: `say "ü"`},
		{Name: "f", Schema: document(`{"type": "object"}`)}, // twice: the first one counts
	}, end).CallGrammar
	for text, want := range map[string]bool{
		`{"name": "f", "arguments": {"a": "x"}}` + end:                            true,
		"\n{\"name\": \"f\", \"arguments\": {\"a\": \"x\", \"b\": 3}}\n" + end:    true,
		`{"name":"f","arguments":{"b":-12,"a":""}}` + end + " and whatever":       true,
		`{"name": "fetch", "arguments": {}}` + end:                                true,
		`{"name": "say \"ü\"", "arguments": {"any": [1, {"x": null}]}}` + end:     true,
		`{"arguments": {"a": "x"}, "name": "f"}` + end:                            false,
		`{"name": "f", "arguments": {"b": 3}}` + end:                              false,
		`{"name": "f", "arguments": {"a": 1}}` + end:                              false,
		`{"name": "f", "arguments": {"a": "x", "c": 1}}` + end:                    false,
		`{"name": "f", "arguments": {"a": "x", "a": "y"}}` + end:                  false,
		`{"name": "f", "arguments": {"a": "x",}}` + end:                           false,
		`{"name": "fe", "arguments": {}}` + end:                                   false,
		`{"name": "fetch", "arguments": {"a": 1}}` + end:                          false,
		`{"name": "g", "arguments": {}}` + end:                                    false,
		`{"name": "f", "arguments": "{\"a\": \"x\"}"}` + end:                      false,
		`{"name": "f"}` + end:                                                     false,
		`{"name": "f", "arguments": {"a": "x"}}`:                                  false,
		`<function=f>`:                                                            false,
		strings.Repeat("\n", 70) + `{"name": "f", "arguments": {"a": "x"}}` + end: false, // blanks without end
	} {
		if got := fits(g, text); got != want {
			t.Errorf("%q fits: %v, want %v", text, got, want)
		}
	}
}

func TestSchema(t *testing.T) {
	for _, c := range []struct{ schema, yes, no string }{
		{`{"type": "string"}`, `"" "x y" "\n\u00fc\"" "ü"`, `1 true null {} "\x" "\u00g0"`},
		{`{"type": "integer"}`, `0 -1 12345`, `01 1.0 1e3 - "1" --1`},
		{`{"type": "number"}`, `0 -1.5 1e3 0.5E-10 12`, `.5 1. 1e 01 +1`},
		{`{"type": "boolean"}`, `true false`, `True 1 "true" null`},
		{`{"type": ["string", "null"]}`, `"x" null`, `1 nul`},
		{`{"type": "STRING", "nullable": true}`, `"x" null`, `1`},
		{`{"enum": ["a", "ab", 1, 10, null, true]}`, `"a" "ab" 1 10 null true`, `"b" "abc" 100 false`},
		{`{"const": "x"}`, `"x"`, `"y"`},
		{`{"enum": [[1], "a"]}`, `[1] "a" [2]`, `]`},
		{`{"type": "array", "items": {"type": "integer"}}`, `[] [1] [1,2]`, `[1,] ["a"] [,1] 1`},
		{`{"type": "array", "items": {"enum": ["a", "b"]}}`, `["a","b"] []`, `["c"]`},
		{`{"items": {"type": "integer"}}`, `[1]`, `["a"] 1`},
		{`{"anyOf": [{"type": "integer"}, {"type": "object", "properties": {"k": {"type": "string"}}}]}`, `1 {"k":"v"} {}`, `"a" {"j":1}`},
		{`{"oneOf": [{"const": "red"}, {"const": "redder"}]}`, `"red" "redder"`, `"redd"`},
		{`{"anyOf": [{"type": "number"}, {"type": "integer"}, {"type": "null"}]}`, `1 1.5 null`, `"a"`},
		{`{"allOf": [{"type": "boolean"}]}`, `true`, `1`},
		{`{"$ref": "#/$defs/tree"}`, `{"kids":[{"kids":[]},{}]}`, `{"kids":[1]}`},
		{`{"$ref": "#/$defs/self"}`, `1 "a"`, `]`},
		{`{"$ref": "#/$defs/none"}`, `1 "a" {"x":[1]}`, `]`},
		{`{"$ref": "#/$defs/either"}`, `1 [1,[1]]`, `"a"`},
		{`{"type": "object"}`, `{} {"a":1,"a":2}`, `1 {a:1} {"a"}`},
		{`{"type": "object", "additionalProperties": {"type": "integer"}}`, `{} {"x":1}`, `{"x":"y"}`},
		{`{"properties": {"a": {}}, "additionalProperties": true}`, `{"a":1,"b":2} {}`, `{"a"}`},
		{`{"properties": {"a": {"type": "integer"}, "ab": {}}, "additionalProperties": {"type": "boolean"}}`, `{"a":1,"b":true,"abc":false,"":true,"a\"":true}`, `{"a":true} {"b":1}`},
		{`{"properties": {"a\n": {"type": "integer"}, "a\"b": {"type": "null"}, "a\\": {}}, "additionalProperties": {"type": "boolean"}}`,
			`{"a":true} {"a\"":true} {"a\"c":true} {"a\n":1,"a\"b":null,"a\\":[]} {"a\\\\":true}`, `{"a\n":true} {"a\":true} {"a\"b":true}`},
		{`{"properties": {"a\n": {"type": "integer"}, "\u0001": {}}, "additionalProperties": {"type": "boolean"}}`, `{"a\t":true} {"\u0002":true} {"\u00e9":true}`, `{"a\":true} {"\u0":true} {"\u000g":true} {"\u":true}`},
		{`{"properties": {"a": {}}, "required": ["a", "b"]}`, `{"a":1,"b":2} {"b":[],"a":{}}`, `{"a":1} {"c":1}`},
		{`{"properties": {"<&>": {"type": "null"}}}`, `{"<&>":null}`, `{"\u003c&>":null}`},
		{`true`, `1 {"a":[]}`, `]`},
		{`{"type": "file"}`, `1 "a"`, `]`},
		{`{"type": "array", "items": {"type": "integer"}, "prefixItems": [{"type": "string"}]}`, `["a",1]`, `["a"`},
	} {
		g := callOf(`{"type": "object", "properties": {"v": ` + c.schema + `}, "required": ["v"], "$defs": {
			"tree": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}},
			"self": {"$ref": "#/$defs/self"},
			"either": {"anyOf": [{"$ref": "#/$defs/either"}, {"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/either"}}]}}}`)
		for want, values := range map[bool]string{true: c.yes, false: c.no} {
			values := strings.Fields(strings.ReplaceAll(values, `"x y"`, `"xy"`))
			for _, v := range values {
				if got := fits(g, `{"name": "f", "arguments": {"v": `+v+`}}`+end); got != want {
					t.Errorf("%s: %s fits: %v, want %v", c.schema, v, got, want)
				}
			}
		}
	}
}

// TestArguments: whatever stands in a tool's parameters, the arguments are an object.
func TestArguments(t *testing.T) {
	for schema, want := range map[string]string{
		``:                   `{"a":1}`,
		`null`:               `{"a":1}`,
		`{`:                  `{"a":1}`,
		`{"type": "string"}`: `{"a":1}`,
		`{"enum": [1]}`:      `{"a":1}`,
		`{"anyOf": [{"type": "string"}, {"properties": {"a": {}}}]}`:             `{"b":1}`,
		`{"anyOf": [{"properties": {"b": {}}}, {"properties": {"a": {}}}]}`:      `{"a":1}`,
		`{"type": ["object", "null"], "properties": {"a": {"type": "integer"}}}`: `{"a":1}`,
		`{"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {}}}}}`:       `{"a":1}`,
	} {
		g := callOf(schema)
		if !fits(g, `{"name": "f", "arguments": `+want+`}`+end) {
			t.Errorf("%s: %s does not fit", schema, want)
		}
		for _, no := range []string{`"a"`, `1`, `null`, `[]`} {
			if fits(g, `{"name": "f", "arguments": `+no+`}`+end) {
				t.Errorf("%s: %s fits", schema, no)
			}
		}
	}
}

// TestManyProperties: those beyond the 64th are not counted, but are known.
func TestManyProperties(t *testing.T) {
	var props []string
	for i := range 70 {
		props = append(props, fmt.Sprintf(`"p%02d": {"type": "integer"}`, i))
	}
	g := callOf(`{"properties": {` + strings.Join(props, ", ") + `}, "required": ["p63", "p64"]}`)
	for args, want := range map[string]bool{`{"p63":1}`: true, `{"p69":1,"p63":2,"p69":3}`: true, `{"p64":1}`: false, `{"p63":1,"p63":1}`: false, `{"p63":1,"p70":1}`: false} {
		if got := fits(g, `{"name":"f","arguments":`+args+`}`+end); got != want {
			t.Errorf("%s fits: %v, want %v", args, got, want)
		}
	}
}

// words are tokens that end, begin or cross what a form is made of.
var words = []string{`{"`, `":`, `": "`, `"}`, `"}}`, `"name": "f`, `", "`, "\n", "</", end, end + "\n", "tool", "arguments", `\"`, `\\`, "\\u00", "12", "-1.", "e5", "true", "tru", "false"[1:], "null,", "[]", "[{", "ab", "a\"b", "é", "\xc3", " ", "  {", "kids", "red"}

const wide = `{"properties": {"a": {"type": "string"}, "ab": {"enum": ["red", "redder", 12, 1]}, "n": {"type": ["number", "null"]}, "kids": {"type": "array", "items": {"$ref": "#"}},
	"o": {"type": "object"}, "u": {"anyOf": [{"type": "boolean"}, {"type": "string"}, {"properties": {"x": {"type": "integer"}}, "required": ["x"]}]}}, "required": ["a"]}`

// TestAllowed holds the set against every token tried by itself, along random outputs, which then are calls.
func TestAllowed(t *testing.T) {
	v := bytesCallVocab(words...)
	r := rand.New(rand.NewPCG(1, 2))
	texts := func(id int) []byte {
		if id < 256 {
			return []byte{byte(id)}
		}
		return []byte(words[id-256])
	}
	complete := 0
	for range 300 {
		m := v.Matcher(callOf(wide), NewBudget(1))
		var out []byte
		for range 200 {
			allowed := m.Allowed()
			var may []int
			for id := range 256 + len(words) {
				one := &CallMatcher{vocab: v, budget: NewBudget(1), ways: slices.Clone(m.ways)}
				ok := one.Accept(texts(id))
				if got := allowed != nil && allowed[id/64]&(1<<(id%64)) != 0; got != ok {
					t.Fatalf("after %q the token %q is allowed: %v, want %v", out, texts(id), got, ok)
				}
				if ok {
					may = append(may, id)
				}
			}
			m.budget.Token()
			if len(may) == 0 {
				t.Fatalf("after %q there is nothing to go on with", out)
			}
			id := may[r.IntN(len(may))]
			out = append(out, texts(id)...)
			if !m.Accept(texts(id)) {
				t.Fatalf("%q is not accepted", out)
			}
			if m.Done() {
				complete++
				check(t, out)
				break
			}
		}
	}
	if complete < 30 {
		t.Errorf("%d of 300 outputs came to an end", complete)
	}
}

// check is that an output is a call.
func check(t *testing.T, out []byte) {
	t.Helper()
	at := strings.LastIndex(string(out), end) // strings may hold it, too
	var call struct {
		Name      string
		Arguments map[string]any
	}
	d := json.NewDecoder(bytes.NewReader(out[:max(at, 0)]))
	d.UseNumber()
	if err := d.Decode(&call); at < 0 || err != nil || call.Name != "f" && call.Name != "fetch" || call.Arguments == nil {
		t.Errorf("%q is no call: %v", out, err)
	}
}

// TestString: within a string the set is made once.
func TestString(t *testing.T) {
	v := bytesCallVocab(words...)
	m := v.Matcher(callOf(wide), NewBudget(1))
	m.Accept([]byte(`{"name": "f", "arguments": {"a": "`))
	before := &m.Allowed()[0]
	m.of[0].blanks = 7 // a mark that would be gone if it were made again
	m.ways[0].blanks = 7
	if n := testing.AllocsPerRun(20, func() { m.Allowed() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if before != &m.Allowed()[0] || m.of[0].blanks != 7 {
		t.Error("the set was made again")
	}
}

func TestNothingAllowed(t *testing.T) {
	v := NewCallVocab(3, func(id int32) []byte { return []byte("xyz"[id : id+1]) })
	if v.Matcher(callOf(wide), NewBudget(1)).Allowed() != nil {
		t.Error("something is allowed")
	}
	if g := &Call(nil, end).CallGrammar; bytesCallVocab().Matcher(g, NewBudget(1)).Accept([]byte(`{"name": "`)) {
		t.Error("a call without tools")
	}
}

// TestLongTokens: a token that is longer than any that is known is never allowed.
func TestLongTokens(t *testing.T) {
	m := bytesCallVocab(strings.Repeat("a", 1<<10), strings.Repeat("a", 1<<10+1)).Matcher(callOf(wide), NewBudget(1))
	if !m.Accept([]byte(`{"name": "f", "arguments": {"a": "`)) {
		t.Fatal("the head is not accepted")
	}
	if got := m.Allowed()[256/64] & 3; got != 1 {
		t.Errorf("of tokens of 1024 and 1025 bytes %02b are allowed", got)
	}
}

func FuzzSchema(f *testing.F) {
	f.Add(wide, `{"a": "x"}`)
	f.Add(`{"$ref": "#/a", "a": {"anyOf": [{"$ref": "#/a"}, {"$ref": "#"}]}}`, `{"a": [[[`)
	f.Add(`{"properties": {"a": {"enum": ["a", 1, null]}}}`, `{"a": nul`)
	v := bytesCallVocab(words...)
	f.Fuzz(func(t *testing.T, schema, args string) {
		m := v.Matcher(callOf(schema), NewBudget(1))
		if !m.Accept([]byte(`{"name": "f", "arguments": `)) {
			t.Fatal("the head is not accepted")
		}
		fit := m.Accept([]byte(args))
		if len(m.ways) > mostWays {
			t.Fatalf("%d ways", len(m.ways))
		}
		allowed := m.Allowed()
		if !fit && allowed != nil {
			t.Fatal("something follows what does not fit")
		}
		if fit && m.Accept([]byte("}"+end)) && m.Done() {
			var v map[string]any
			if err := json.Unmarshal([]byte(args), &v); err != nil {
				t.Fatalf("%s is complete and no object: %v", args, err)
			}
		}
	})
}

// TestValid: what jsonschema calls valid is a call, and what it does not is none.
func TestValid(t *testing.T) {
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
		g := callOf(string(c.Schema))
		for want, texts := range map[bool][]string{true: c.Valid, false: c.Invalid} {
			for _, args := range texts {
				if got := fits(g, `{"name": "f", "arguments": `+args+"}"+end); got != want {
					t.Errorf("%s of %s fits: %v, want %v", args, c.Schema, got, want)
				}
			}
		}
	}
}

// TestDeepAndWide: what is beyond the bounds of a schema may be anything, and what a reply nests too deep is not allowed.
func TestDeepAndWide(t *testing.T) {
	deep := func(n int, leaf, open, close string) string {
		return strings.Repeat(open, n) + leaf + strings.Repeat(close, n)
	}
	levels := func(n int) (schema, text string) {
		return deep(n, `{"type": "integer"}`, `{"type": "object", "properties": {"a": `, `}, "required": ["a"]}`), deep(n, `"x"`, `{"a":`, `}`)
	}
	var wide []string
	for i := range mostShapes + 10 {
		wide = append(wide, fmt.Sprintf(`"p%05d": {"type": "integer"}`, i))
	}
	object := `{"type": "object", "properties": {` + strings.Join(wide, ",") + `}}`
	below, shallow := levels(mostLevels / 2)
	beyond, low := levels(mostLevels + 2)
	for _, c := range []struct {
		name, schema, text string
		want               bool
	}{
		{"a level that is held", below, shallow, false},
		{"a level beyond", beyond, low, true},
		{"a property that is held", object, `{"p00000":"x"}`, false},
		{"a property beyond", object, fmt.Sprintf(`{"p%05d":"x"}`, mostShapes+9), true},
		{"lists in lists", `{}`, `{"a":` + deep(mostFrames/2, "", "[", "]") + `}`, true},
		{"too many lists in lists", `{}`, `{"a":` + deep(mostFrames+2, "", "[", "]") + `}`, false},
	} {
		if got := fits(callOf(c.schema), `{"name": "f", "arguments": `+c.text+`}`+end); got != c.want {
			t.Errorf("%s fits: %v, want %v", c.name, got, c.want)
		}
	}
}
