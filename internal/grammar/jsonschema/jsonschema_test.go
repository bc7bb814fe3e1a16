package jsonschema

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"hearth/internal/grammar"
	"hearth/internal/schema"
)

func parsed(t testing.TB, text string) *schema.Node {
	t.Helper()
	n, err := schema.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return n
}

func read(t testing.TB, text string) *Schema {
	t.Helper()
	s, err := Read(context.Background(), parsed(t, text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

// TestCases: testdata/cases.txt has schemas, what may be written by them (+), what is valid and written otherwise (~), what is
// not valid (-), and what is not valid and written all the same (?). A line ! has the keywords that are not held.
func TestCases(t *testing.T) {
	raw, err := os.ReadFile("testdata/cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	var s *Schema
	var g *grammar.Grammar
	var of string
	var unheld []string
	told := func() {
		if len(unheld) > 0 {
			t.Errorf("%s: %q are not held", of, unheld)
		}
	}
	n := 0
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '{' || line[0] == 't' || line[0] == 'f' {
			told()
			of, s = line, read(t, line)
			var lacks []Unheld
			g, lacks, err = s.Grammar(context.Background(), Options{})
			if err != nil && !errors.Is(err, grammar.ErrNothing) {
				t.Errorf("%s: %v", of, err)
			}
			unheld = nil
			for _, u := range lacks {
				unheld = append(unheld, strings.TrimSpace(u.Pointer+" "+u.Keyword))
			}
			continue
		}
		text := strings.TrimSpace(line[1:])
		if line[0] == '!' {
			if got := strings.Join(unheld, ", "); got != text {
				t.Errorf("%s: %q are not held, want %q", of, got, text)
			}
			unheld = nil
			continue
		}
		n++
		v := parsed(t, text)
		want := Valid
		if line[0] == '-' || line[0] == '?' {
			want = Invalid
		}
		if got := s.Checker(true).Check(context.Background(), v); got != want {
			t.Errorf("%s: the check of %s says %d", of, text, got)
		}
		if ok := g != nil && follows(g, text); ok != (line[0] == '+' || line[0] == '?') {
			t.Errorf("%s: %s is written: %v", of, text, ok)
		}
	}
	if told(); n < 300 {
		t.Errorf("only %d cases", n)
	}
}

// TestWrong: a schema that is wrong in itself is an error with its place and keyword.
func TestWrong(t *testing.T) {
	for text, want := range map[string]string{
		`{"type": "text"}`: ` type`, `{"properties": {"a/b": {"type": ["null", "any"]}}}`: `/properties/a~1b type`, `{"type": 1}`: ` type`,
		`{"$ref": "#/$defs/x"}`: ` $ref`, `{"items": {"$ref": "#nowhere"}}`: `/items $ref`, `{"$ref": "https://example.com/x.json"}`: ` $ref`, `{"$ref": 1}`: ` $ref`,
		`{"anyOf": [true, {"pattern": "("}]}`: `/anyOf/1 pattern`, `{"patternProperties": {"[": true}}`: ` patternProperties`, `{"pattern": 1}`: ` pattern`,
		`{"minimum": "1"}`: ` minimum`, `{"multipleOf": 0}`: ` multipleOf`, `{"minLength": -1}`: ` minLength`, `{"maxItems": 1.5}`: ` maxItems`, `{"enum": 1}`: ` enum`,
		`{"required": "a"}`: ` required`, `{"required": [1]}`: ` required`, `{"properties": []}`: ` properties`, `{"properties": {"a": 1}}`: `/properties a`, `{"anyOf": []}`: ` anyOf`,
		`{"allOf": {}}`: ` allOf`, `{"uniqueItems": 1}`: ` uniqueItems`, `{"format": 1}`: ` format`, `{"dependentRequired": {"a": 1}}`: ` dependentRequired`,
		`{"dependentRequired": 1}`: ` dependentRequired`, `{"minimum": 1e-999}`: ` minimum`, `{"$ref": "#"}`: ` $ref`, `{"type": "null", "not": {"anyOf": [{"$ref": "#"}, true]}}`: ` $ref`, `[]`: ` schema`,
		`{"$ref": "#/x/a~1b/0%25", "x": {"a/b": {"0%": {"type": "text"}}}}`:                                                         `/x/a~1b/0% type`,
		`{"$defs": {"x": {"$id": "http://example.com/x", "y": {"a~b": {"type": "text"}}}}, "$ref": "http://example.com/x#/y/a~0b"}`: `/$defs/x/y/a~0b type`,
	} {
		_, err := Read(context.Background(), parsed(t, text))
		var e *Error
		if !errors.As(err, &e) || e.Pointer+" "+e.Keyword != want || !strings.Contains(err.Error(), e.Keyword) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestNothing: where no value follows a schema that is an error of its own.
func TestNothing(t *testing.T) {
	for _, text := range []string{`false`, `{"allOf": [{"type": "string"}, {"type": "null"}]}`, `{"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}`,
		`{"enum": []}`, `{"type": "integer", "minimum": 2, "maximum": 1}`, `{"type": "string", "pattern": "^a$", "minLength": 2}`} {
		if _, _, err := read(t, text).Grammar(context.Background(), Options{}); !errors.Is(err, grammar.ErrNothing) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestLimits: what is too large is an error that names the limit, soon.
func TestLimits(t *testing.T) {
	list := func(n int, of func(i int) string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = of(i)
		}
		return strings.Join(all, ", ")
	}
	choices := func(n, of int) string {
		return `{"allOf": [` + list(n, func(i int) string {
			return fmt.Sprintf(`{"anyOf": [{"required": ["a%d.%d"]}, {"required": ["b%d.%d"]}]}`, i, of, i, of)
		}) + `]}`
	}
	for _, c := range []struct {
		limit  int
		schema string
	}{
		{maxLevels, strings.Repeat(`{"not": `, 9000) + "true" + strings.Repeat("}", 9000)},
		{maxLevels, `{"$ref": "#/$defs/0", "$defs": {` + list(5000, func(i int) string { return fmt.Sprintf(`"%d": {"items": {"$ref": "#/$defs/%d"}}`, i, (i+1)%5000) }) + `}}`},
		{maxForms, choices(40, 0)},
		{maxAllForms, `{"properties": {` + list(20, func(i int) string { return fmt.Sprintf(`"%d": %s`, i, choices(11, i)) }) + `}}`},
		{grammar.MaxRepeat, `{"type": "array", "minItems": 100000000}`},
		{1 << 18, `{"const": "` + strings.Repeat("a", 1<<19) + `"}`},
		{200, `{"pattern": "` + strings.Repeat("(", 300) + strings.Repeat(")", 300) + `"}`},
		{maxAddresses, `{"$id": "http://x/` + strings.Repeat("a", 1<<20) + `/", "$ref": "#a0", "$defs": {` + list(100, func(i int) string { return fmt.Sprintf(`"%d": {"$anchor": "a%d"}`, i, i) }) + `}}`},
		{maxAddresses, `{"$id": "http://x/` + strings.Repeat("a", 1<<20) + `/", "allOf": [` + list(100, func(int) string { return `{"$ref": "#/$defs/a"}` }) + `], "$defs": {"a": true}}`},
		{maxAddresses, `{"$id": "http://x/` + strings.Repeat("a", 1<<20) + `/", "$ref": "#/$defs/a", "$defs": {"a": true}, "allOf": [` + list(100, func(i int) string { return fmt.Sprintf(`{"$id": "%d"}`, i) }) + `]}`},
		{mostPatterns, `{"patternProperties": {` + list(mostPatterns+1, func(i int) string { return fmt.Sprintf(`"%d": {}`, i) }) + `}}`},
	} {
		var large *grammar.LimitError
		s, err := Read(context.Background(), parsed(t, c.schema))
		if err == nil {
			_, _, err = s.Grammar(context.Background(), Options{})
		}
		if !errors.As(err, &large) || large.Limit != c.limit {
			t.Errorf("%d: %.100s: %v", c.limit, c.schema, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	large := `{"properties": {` + list(5000, func(i int) string {
		return fmt.Sprintf(`"p%d": {"type": "object", "properties": {"a": {"minimum": %d}}}`, i, i)
	}) + `}}`
	if _, err := Read(ctx, parsed(t, large)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, _, err := read(t, large).Grammar(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestOptions: other spacing, and members in any order.
func TestOptions(t *testing.T) {
	of := `{"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": "object", "properties": {"x": true, "y": true}}}, "required": ["b"], "additionalProperties": false}`
	for text, want := range map[string]Options{
		`{"a": [1, 2], "b": {"x": 1, "z": 2}}`: {},
		`{"a":[1,2],"b":{"x":1,"z":2}}`:        {Compact: true},
		`{"b": {"z": 2, "y": 1, "x": 0}}`:      {AnyOrder: true},
		`{"b":{"y":{"b":1,"a":2}},"a":[1,2]}`:  {Compact: true, AnyOrder: true},
	} {
		for _, o := range []Options{{}, {Compact: true}, {AnyOrder: true}, {Compact: true, AnyOrder: true}} {
			g, unheld, err := read(t, of).Grammar(context.Background(), o)
			if err != nil || len(unheld) > 0 {
				t.Fatal(err, unheld)
			}
			if got := follows(g, text); got != (o.Compact == want.Compact && (o.AnyOrder || !want.AnyOrder)) {
				t.Errorf("%+v: %s: %v", o, text, got)
			}
		}
	}
	for text, want := range map[string]bool{`{"b": 1}`: false, `{"b": {}, "b": {}}`: false, `{"a": []}`: false, `{"b": {}, "c": 1}`: false, `{"b": {}, "a": []}`: true} {
		g, _, err := read(t, of).Grammar(context.Background(), Options{AnyOrder: true})
		if err != nil || follows(g, text) != want {
			t.Errorf("%s: %v, %v", text, !want, err)
		}
	}
}

// TestBlanks: any white space may stand where JSON has some, up to a bound.
func TestBlanks(t *testing.T) {
	g, _, err := read(t, `{"properties": {"a": {"items": {"type": "integer"}}, "b": {}}}`).Grammar(context.Background(), Options{Blanks: true})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		`{"a":[1,2],"b":{}}`: true, "{\n\t\"a\" : [ 1\r\n,\t2 ] , \"b\":{ \"x\" :[ ] } }": true, `{ }`: true, `{"a" :[1 2]}`: false, `{"a": [1 ,]}`: false, ` {}`: false,
		"{" + strings.Repeat(" ", mostBlanks) + `"a": []}`: true, `{"a":` + strings.Repeat(" ", mostBlanks+1) + `[]}`: false,
	} {
		if follows(g, text) != want {
			t.Errorf("%q is written: %v", text, !want)
		}
	}
}

// TestDeclared: objects that name members have no others, unless a keyword says which.
func TestDeclared(t *testing.T) {
	for of, texts := range map[string]string{
		`{"properties": {"a": {}}}`:                                                `{} {"a": {"z": 1}} !{"b": 1} !{"a": 1, "b": 1}`,
		`{"properties": {"a": {"properties": {"x": {}}}}}`:                         `{"a": {"x": 1}} !{"a": {"y": 1}}`,
		`{"properties": {"a": {}}, "required": ["b"]}`:                             `{"a": 1, "b": 1} !{"b": 1, "c": 1}`,
		`{"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}`:        `{"a": 1, "b": 1} !{"a": 1, "c": 1}`,
		`{"properties": {"a": {}}, "additionalProperties": true}`:                  `{"a": 1, "b": 1}`,
		`{"properties": {"a": {}}, "additionalProperties": {"type": "null"}}`:      `{"a": 1, "b": null} !{"b": 1}`,
		`{"properties": {"a": {}}, "patternProperties": {"^x": {"type": "null"}}}`: `{"a": 1, "x": null} !{"x": 1}`,
		`{"properties": {"a": {}}, "unevaluatedProperties": {"type": "null"}}`:     `{"a": 1, "b": null}`,
		`{"properties": {"a": {}}, "minProperties": 2}`:                            `{"a": 1, "b": 1}`,
		`{"type": "object", "required": ["a"]}`:                                    `{"a": 1, "b": 1}`,
		`{"type": "object"}`:                                                       `{"b": 1}`,
	} {
		g, unheld, err := read(t, of).Grammar(context.Background(), Options{Declared: true})
		if err != nil || len(unheld) > 0 {
			t.Fatal(of, err, unheld)
		}
		for text := range strings.SplitSeq(strings.ReplaceAll(texts, "} ", "}\n"), "\n") {
			bare, not := strings.CutPrefix(text, "!")
			if follows(g, bare) == not {
				t.Errorf("%s: %s is written: %v", of, bare, not)
			}
		}
	}
}

// TestReported: what takes too much to be held is not held, and told.
func TestReported(t *testing.T) {
	branches, members, nots := "", "", ""
	for i := range mostSome {
		nots += fmt.Sprintf(`{"not": {"patternProperties": {"%d": {"type": "null"}}}}, `, i)
	}
	for i := range mostBranches + 1 {
		branches += fmt.Sprintf(`{"required": ["%d"]}, `, i)
		members += fmt.Sprintf(`"m%d": {}, `, i)
	}
	for text, want := range map[string]string{
		`{"allOf": [` + nots + `{"not": {"patternProperties": {"x": {"type": "null"}}}}]}`:                                                      "not",
		`{"type": "object", "oneOf": [` + branches + `{"required": ["x"]}]}`:                                                                    "oneOf",
		`{"type": "object", "properties": {` + members + `"x": {}}, "minProperties": 100}`:                                                      "minProperties",
		`{"contains": {"type": "null"}, "minContains": 3, "maxItems": 5000}`:                                                                    "contains",
		`{"allOf": [{"contains": {"const": 1}}, {"contains": {"const": 2}}, {"contains": {"const": 3}}, {"contains": {"const": 4}}]}`:           "contains",
		`{"unevaluatedProperties": false, "anyOf": [{"maxLength": 1}, {"maxLength": 2}, {"maxLength": 3}, {"maxLength": 4}, {"maxLength": 5}]}`: "anyOf",
		`{"type": "number", "multipleOf": 0.0005}`:                                                                                              "multipleOf",
		`{"type": "integer", "multipleOf": 7, "minimum": 0, "maximum": 100000}`:                                                                 "multipleOf",
		`{"type": "integer", "multipleOf": 9973}`:                                                                                               "multipleOf",
		`{"items": {"enum": [1, 2, 3, 4, 5, 6, 7]}, "uniqueItems": true}`:                                                                       "uniqueItems",
		`{"type": "string", "pattern": "(a)\\1"}`:                                                                                               "pattern",
	} {
		_, unheld, err := read(t, text).Grammar(context.Background(), Options{})
		if err != nil || len(unheld) == 0 || unheld[0].Keyword != want || unheld[0].Why == "" || !strings.Contains(unheld[0].String(), want) {
			t.Errorf("%.100s: %v, %v", text, unheld, err)
		}
	}
	g, _, err := read(t, `{"type": "number"}`).Grammar(context.Background(), Options{})
	if err != nil || !follows(g, strings.Repeat("1", mostDigits)) || follows(g, strings.Repeat("1", mostDigits+1)) {
		t.Errorf("digits: %v", err)
	}
}

// TestChecksAtOnce: checks share a schema and no bound.
func TestChecksAtOnce(t *testing.T) {
	s := read(t, `{"items": {"anyOf": [{"type": "string", "pattern": "^a*b$"}, {"enum": [1, 2, 3, 4, 5, 6, 7, 8, 9]}, {"type": "object", "patternProperties": {"x": false}}]}}`)
	long := parsed(t, "["+strings.Repeat(`"aaaaaaaaaaaaaaaaaaaaab", 9, {"y": 1}, `, 20_000)+`1]`)
	wrong := parsed(t, `["aab", {"ax": 1}]`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 3 {
				if got := s.Checker(true).Check(context.Background(), long); got != Valid {
					t.Errorf("a long list: %d", got)
				}
				if got := s.Checker(true).Check(context.Background(), wrong); got != Invalid {
					t.Errorf("a wrong one: %d", got)
				}
			}
		})
	}
	wg.Wait()
	if _, _, err := s.Grammar(context.Background(), Options{}); err != nil {
		t.Error(err)
	}
}

// TestCheckBound: a check that takes too much work ends, and so does one that nobody waits for.
func TestCheckBound(t *testing.T) {
	list := func(n int, of string) string { return "[" + strings.Repeat(of+", ", n) + of + "]" }
	many := ""
	for i := range 3000 {
		many += fmt.Sprintf(`{"const": %d}, `, i)
	}
	for name, c := range map[string]struct{ schema, value string }{
		"depth":                  {`{"items": {"$ref": "#"}}`, strings.Repeat("[", 5000) + strings.Repeat("]", 5000)},
		"alternatives and items": {`{"items": {"anyOf": [` + many + `false]}}`, list(2000, "2999")},
		"patterns":               {`{"items": {"not": {"pattern": "(a|ab|b){5,100}c"}}}`, list(30, `"`+strings.Repeat("ab", 100_000)+`"`)},
		"a pattern":              {`{"pattern": "(a)\\1"}`, `"aa"`},
	} {
		s := read(t, c.schema)
		if got := s.Checker(true).Check(context.Background(), parsed(t, c.value)); got != Unchecked {
			t.Errorf("%s: %d", name, got)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if got := read(t, `{"items": {"minimum": 0}}`).Checker(true).Check(ctx, parsed(t, list(100_000, "1"))); got != Unchecked {
		t.Errorf("cancelled: %d", got)
	}
}

// TestNumbersOfManyDigits: what a number costs is what its text costs, whatever its exponent. One that is nearer to 0 than any
// float64 is 0.
func TestNumbersOfManyDigits(t *testing.T) {
	long := "0." + strings.Repeat("7", 4_000_000)
	for _, c := range []struct{ schema, valid, not string }{
		{`{"enum": [1e-9223372036854775807, 1]}`, "0", "0.1"},
		{`{"enum": [-1e-3000000000]}`, "1e-99999999999999999999", "-1e-300"},
		{`{"not": {"const": 1e-3000000000}}`, "1", "0e3000000000"},
		{`{"multipleOf": 0.5}`, "1e-3000000000", long},
		{`{"multipleOf": 1e-300}`, "3e-300", "1e-301"},
		{`{"multipleOf": 25e-1}`, "1e300", "1.3e1"},
		{`{"exclusiveMinimum": 0}`, long, "1e-3000000000"},
		{`{"enum": [` + long[:2000] + `]}`, long[:2000], long[:1999]},
	} {
		s := read(t, c.schema)
		if got := s.Checker(true).Check(context.Background(), parsed(t, c.valid)); got != Valid {
			t.Errorf("%.100s: %.100s: %d", c.schema, c.valid, got)
		}
		if got := s.Checker(true).Check(context.Background(), parsed(t, c.not)); got != Invalid {
			t.Errorf("%.100s: %.100s: %d", c.schema, c.not, got)
		}
		g, _, err := s.Grammar(context.Background(), Options{})
		if err != nil {
			t.Errorf("%.100s: %v", c.schema, err)
		} else if text, err := s.spelledOut(parsed(t, c.valid), Options{}); err != nil || len(text) <= mostDigits && !follows(g, text) {
			t.Errorf("%.100s: %.100s is not written: %v", c.schema, text, err)
		}
	}
}

// TestCost: eight times the schema costs about eight times the memory.
func TestCost(t *testing.T) {
	cost := func(of func(i int) string, form string, n int) int {
		all := make([]string, n)
		for i := range all {
			all[i] = of(i)
		}
		text := fmt.Sprintf(form, strings.Join(all, ", "))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, _, err := read(t, text).Grammar(context.Background(), Options{}); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return int(after.TotalAlloc - before.TotalAlloc)
	}
	for name, c := range map[string]struct {
		form string
		of   func(i int) string
	}{
		"properties": {`{"type": "object", "properties": {%s}, "additionalProperties": false}`, func(i int) string { return fmt.Sprintf(`"p%d": {"type": "string"}`, i) }},
		"open": {`{"type": "object", "properties": {%s}}`, func(i int) string {
			return fmt.Sprintf(`"p%d": {"type": "object", "properties": {"a%d": {"type": "number"}}}`, i, i)
		}},
		"enum": {`{"enum": [%s]}`, func(i int) string { return fmt.Sprintf(`"value %d"`, i) }},
		"anyOf": {`{"anyOf": [%s]}`, func(i int) string {
			return fmt.Sprintf(`{"type": "object", "properties": {"k": {"const": "%d"}}, "required": ["k"]}`, i)
		}},
		"oneOf": {`{"oneOf": [%s]}`, func(i int) string {
			return fmt.Sprintf(`{"type": "object", "properties": {"k": {"const": "%d"}}, "required": ["k"]}`, i)
		}},
		"allOf": {`{"allOf": [%s]}`, func(i int) string {
			return fmt.Sprintf(`{"properties": {"k%d": {"type": "null"}}, "required": ["k%d"]}`, i, i)
		}},
		"prefix": {`{"prefixItems": [%s]}`, func(i int) string { return fmt.Sprintf(`{"maxLength": %d}`, i) }},
	} {
		if a, b := cost(c.of, c.form, 100), cost(c.of, c.form, 800); b > 24*a {
			t.Errorf("%s: %d bytes, and %d for eight times as much", name, a, b)
		}
	}
}

// typist writes what a grammar lets it, byte by byte.
type typist struct {
	vocab *grammar.Vocab
	r     *rand.Rand
}

func newTypist(seed uint64) *typist {
	return &typist{grammar.NewVocab(256, func(id int32) []byte { return []byte{byte(id)} }), rand.New(rand.NewPCG(seed, 1))}
}

// text is one that follows a grammar. It reports false if none ends soon.
func (w *typist) text(g *grammar.Grammar, most int) (string, bool) {
	u := grammar.NewBudget(1)
	m := w.vocab.Matcher(g, u)
	var out []byte
	for len(out) < most && !u.Spent() {
		u.Token()
		mask := m.Allowed()
		if m.Done() && (mask == nil || w.r.IntN(3) == 0) {
			return string(out), true
		}
		var may, closing []byte
		for c := range 256 {
			if mask != nil && mask[c/64]>>(c%64)&1 == 1 {
				if may = append(may, byte(c)); strings.IndexByte(`"]}0,`, byte(c)) >= 0 {
					closing = append(closing, byte(c))
				}
			}
		}
		if len(may) == 0 {
			return string(out), false
		}
		if len(closing) > 0 && w.r.IntN(2) == 0 {
			may = closing
		}
		c := may[w.r.IntN(len(may))]
		m.Accept(int32(c))
		out = append(out, c)
	}
	return string(out), m.Done()
}

// check checks what a typist writes by a schema, and that the same value in the schema's order may be written.
func (w *typist) check(t *testing.T, of string, times int) (ended int) {
	n, err := schema.Parse([]byte(of))
	if err != nil {
		return 0
	}
	s, err := Read(context.Background(), n)
	if err != nil {
		return 0
	}
	g, unheld, err := s.Grammar(context.Background(), Options{})
	if err != nil {
		return 0
	}
	for range times {
		text, ok := w.text(g, 300)
		if !ok {
			continue
		}
		ended++
		v, err := schema.Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %q: %v", of, text, err)
			continue
		}
		verdict := s.Checker(true).Check(context.Background(), v)
		if verdict == Invalid && len(unheld) == 0 && !repeats(text, v) {
			t.Errorf("%s: %s is written and not valid", of, text)
		}
		if verdict != Valid {
			continue
		}
		if again, err := s.spelledOut(v, Options{}); err != nil || !follows(g, again) && !strings.ContainsAny(text, "eE\ufffd") && len(unheld) == 0 {
			t.Errorf("%s: %s is valid and not written as %s", of, text, again)
		}
	}
	return ended
}

var quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// repeats tells whether an object was written with a name twice, of which the last one counts.
func repeats(text string, v *schema.Node) bool {
	return strings.Count(quotedText.ReplaceAllString(text, ""), ":") > membersOf(v)
}

// membersOf is how many members a value has at all depths.
func membersOf(v *schema.Node) int {
	n := len(v.Members())
	for i := range v.Items {
		n += membersOf(&v.Items[i])
	}
	return n
}

// TestWrittenIsValid: what is written by the schemas of the cases is valid.
func TestWrittenIsValid(t *testing.T) {
	raw, err := os.ReadFile("testdata/cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	w := newTypist(1)
	ended, schemas := 0, 0
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimSpace(line); line != "" && line[0] == '{' {
			schemas++
			ended += w.check(t, line, 20)
		}
	}
	if ended < 5*schemas {
		t.Errorf("only %d texts of %d schemas", ended, schemas)
	}
}

// FuzzSchema: any schema is a grammar or an error, in bounded memory, and what is written by it is valid.
func FuzzSchema(f *testing.F) {
	raw, err := os.ReadFile("testdata/cases.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if line[0] == '{' {
			f.Add(strings.TrimSpace(line))
		}
	}
	f.Fuzz(func(t *testing.T, of string) {
		if len(of) > 2000 {
			return
		}
		newTypist(7).check(t, of, 3)
	})
}

// BenchmarkCompile compiles a schema with 5,000 properties.
func BenchmarkCompile(b *testing.B) {
	var all, names []string
	for i := range 5_000 {
		names = append(names, fmt.Sprintf(`"property%d"`, i))
		all = append(all, fmt.Sprintf(`"property%d": {"type": ["string", "null"], "description": "what it is for and how it is used %d"}`, i, i))
	}
	root := parsed(b, `{"type": "object", "properties": {`+strings.Join(all, ", ")+`}, "required": [`+strings.Join(names, ", ")+`], "additionalProperties": false}`)
	for b.Loop() {
		s, err := Read(context.Background(), root)
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := s.Grammar(context.Background(), Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
