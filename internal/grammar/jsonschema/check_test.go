package jsonschema

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"hearth/internal/schema"
)

// ladder is a schema of n definitions, each either of two references to the next one, with a pattern at the end of 2 to the n
// ways.
func ladder(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref": "#/$defs/d0", "$defs": {`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d": {"anyOf": [{"$ref": "#/$defs/d%d"}, {"$ref": "#/$defs/d%d"}]}, `, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d": {"type": "string", "pattern": "^(a|b|ab)*c$"}}}`, n)
	return b.String()
}

// checked checks a text and tells how many steps that took.
func checked(t testing.TB, ctx context.Context, schema, text string) (Verdict, int) {
	t.Helper()
	c := read(t, schema).Checker(false)
	v := c.Check(ctx, parsed(t, text))
	return v, checkSteps - c.left
}

func list(n int, item func(i int) string) string {
	var items []string
	for i := range n {
		items = append(items, item(i))
	}
	return "[" + strings.Join(items, ",") + "]"
}

// TestSchemaWork: what honest schemas need grows with the schema and with the value, not with their product or worse.
func TestSchemaWork(t *testing.T) {
	for name, of := range map[string]func(n int) (schema, text string){
		"ladder":    func(n int) (string, string) { return ladder(n / 10), `"abababc"` },
		"ladder no": func(n int) (string, string) { return ladder(n / 10), `"` + strings.Repeat("ab", n) + `"` },
		"enum": func(n int) (string, string) {
			return `{"items": {"enum": ` + list(n, func(i int) string { return fmt.Sprintf(`{"a": %d}`, i) }) + `}}`,
				list(n, func(i int) string { return fmt.Sprintf(`{"a": %d}`, n-1-i) })
		},
		"unique": func(n int) (string, string) {
			return `{"uniqueItems": true}`, list(n, func(i int) string { return fmt.Sprintf(`[%d, "x"]`, i) })
		},
		"required": func(n int) (string, string) {
			return `{"required": ` + list(n, func(i int) string { return fmt.Sprintf(`"k%d"`, i) }) + `}`,
				`{` + strings.Trim(list(n, func(i int) string { return fmt.Sprintf(`"k%d": 1`, i) }), "[]") + `}`
		},
		"shared": func(n int) (string, string) {
			return `{"$ref": "#/$defs/a", "$defs": {"a": {"items": {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}}}`,
				strings.Repeat("[", n/10) + strings.Repeat("]", n/10)
		},
	} {
		t.Run(name, func(t *testing.T) {
			const n = 1000
			_, once := checked(t, t.Context(), firstOf(of(n)), secondOf(of(n)))
			v, twice := checked(t, t.Context(), firstOf(of(2*n)), secondOf(of(2*n)))
			t.Logf("%d and %d steps", once, twice)
			if v == Unchecked || twice > 3*once {
				t.Errorf("verdict %d, %d steps at n, %d at 2n", v, once, twice)
			}
		})
	}
}

func firstOf(a, _ string) string  { return a }
func secondOf(_, b string) string { return b }

// TestSchemaBound: what would take more than a reply's steps is left unchecked.
func TestSchemaBound(t *testing.T) {
	text, r := []byte{}, rand.New(rand.NewPCG(1, 2))
	for range 1 << 20 {
		text = append(text, "ab"[r.IntN(2)])
	}
	long := `"` + string(text) + `"`
	patterns := func(n int) string {
		return strings.Trim(list(n, func(i int) string { return fmt.Sprintf(`"(a*)*b%d$": true`, i) }), "[]")
	}
	for name, tt := range map[string]struct{ schema, text string }{
		"pattern and a long text": {`{"pattern": "a(a|b){200}c"}`, long},
		"patterns and keys":       {`{"patternProperties": {` + patterns(500) + `}}`, `{` + strings.Trim(list(2000, func(i int) string { return fmt.Sprintf(`"%s%d": 1`, strings.Repeat("a", 100), i) }), "[]") + `}`},
		"alternatives and items":  {`{"items": {"anyOf": ` + list(3000, func(i int) string { return fmt.Sprintf(`{"const": %d}`, i) }) + `}}`, list(2000, func(int) string { return "2999" })},
		"a large pattern":         {`{"pattern": "` + strings.Repeat("(ab|c)", 9000) + `"}`, `"x"`},
		"a large program":         {`{"pattern": "` + strings.Repeat("a{1000}", 40) + `"}`, `"` + strings.Repeat("a", 1<<20) + `"`},
		"many classes":            {`{"anyOf": ` + list(2000, func(i int) string { return fmt.Sprintf(`{"pattern": "%d%s"}`, i, strings.Repeat(`[\\p{L}\\p{N}]`, 4)) }) + `}`, `"x"`},
		"depth":                   {`{"items": {"$ref": "#"}}`, strings.Repeat("[", 5000) + strings.Repeat("]", 5000)},
		"a large enum":            {`{"enum": ` + list(1_400_000, func(i int) string { return "1" }) + `}`, `2`},
	} {
		t.Run(name, func(t *testing.T) {
			v, steps := checked(t, t.Context(), tt.schema, tt.text)
			if v != Unchecked || steps > checkSteps+checkSteps/10 {
				t.Errorf("verdict %d after %d steps", v, steps)
			}
		})
	}
}

// TestSchemaLeft: nobody waits for a check whose client has left.
func TestSchemaLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, text := range []string{list(100_000, func(i int) string { return "1" }), `"` + strings.Repeat("a", 1<<20) + `"`} {
		v, steps := checked(t, ctx, `{"items": {"enum": [1]}, "pattern": "(a|ab)*c{1,100}$"}`, text)
		if v != Unchecked || steps > 50_000 {
			t.Errorf("verdict %d after %d steps", v, steps)
		}
	}
}

// TestSchemaShares: the checks of one Checker share what is done for them.
func TestSchemaShares(t *testing.T) {
	c := read(t, `{"pattern": "(a{1,100}){1,2}b$"}`).Checker(false)
	v := Valid
	for range 10 {
		v = c.Check(t.Context(), parsed(t, `"`+strings.Repeat("a", 600_000)+`"`))
	}
	if used := checkSteps - c.left; v != Unchecked || used > checkSteps+checkSteps/10 {
		t.Errorf("verdict %d after %d steps", v, used)
	}
}

// tried checks a text by what may be no schema; nil if it is none.
func tried(ctx context.Context, of, text string) *Checker {
	root, err := schema.Parse([]byte(of))
	if err != nil {
		return nil
	}
	v, err := schema.Parse([]byte(text))
	if err != nil {
		return nil
	}
	s, err := Read(ctx, root)
	if err != nil {
		return nil
	}
	c := s.Checker(true)
	c.Check(ctx, v)
	return c
}

// FuzzSchemaCost: no schema and no text take more than the steps of a reply, or memory that is out of proportion to what was
// counted.
func FuzzSchemaCost(f *testing.F) {
	f.Add(ladder(17), `"abababab"`)
	f.Add(ladder(17), `["a", "b", {"a": [1, 1.5, null]}]`)
	f.Add(`{"items": {"uniqueItems": true, "contains": {"not": {}}}, "multipleOf": 0}`, `[[1, "x"], 0]`)
	f.Add(`{"allOf": [{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}]}`, `1`)
	f.Add(`{"pattern": "(?i)`+strings.Repeat(`\\p{L}`, 4000)+`"}`, `"x"`)
	f.Add(`{"anyOf": `+list(100, func(i int) string { return fmt.Sprintf(`{"pattern": "(?i:[%d%s])"}`, i, strings.Repeat(`\\p{L}`, 100)) })+`}`, `"x"`)
	f.Add(`{"patternProperties": {"(?i)\\p{L}{3,1000}": {"$ref": "#"}}, "propertyNames": {"pattern": "((a{9}){9}){9}"}}`, `{"abc": {"abd": {}}}`)
	f.Add(`{"if": {"type": "object"}, "then": {"additionalProperties": {"$ref": "#"}}, "else": {"enum": [1, [2], {"a": 3}]}}`, `{"a": {"b": [2]}, "c": 1}`)
	f.Fuzz(func(t *testing.T, of, text string) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c := tried(t.Context(), of, text)
		runtime.ReadMemStats(&after)
		if c == nil {
			return
		}
		steps, size := checkSteps-c.left, len(of)+len(text)
		if steps > checkSteps+checkSteps/10 {
			t.Errorf("%d steps", steps)
		}
		if made := after.TotalAlloc - before.TotalAlloc; made > uint64(256*steps+400*size)+1<<18 {
			t.Errorf("%d bytes allocated for %d steps and %d bytes of input", made, steps, size)
		}
	})
}
