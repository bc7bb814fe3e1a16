package jsonschema

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"hearth/internal/grammar"
)

// schemas writes random schemas out of few names and values, so that they meet.
type schemas struct{ *rand.Rand }

func (r schemas) pick(of ...string) string { return of[r.IntN(len(of))] }

func (r schemas) list(n int, of func() string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = of()
	}
	return strings.Join(all, ", ")
}

func (r schemas) value(depth int) string {
	switch r.IntN(9 + min(depth, 1)*4) {
	case 0:
		return "null"
	case 1:
		return r.pick("true", "false")
	case 2, 3, 4:
		return r.pick("0", "1", "2", "-1", "1.5", "10")
	case 5, 6, 7, 8:
		return r.pick(`"a"`, `"b"`, `"ab"`, `""`, `"abc"`)
	case 9, 10:
		return "[" + r.list(r.IntN(3), func() string { return r.value(depth - 1) }) + "]"
	}
	var all []string
	for _, name := range []string{"a", "b", "c", "d"} {
		if r.IntN(2) == 0 {
			all = append(all, fmt.Sprintf("%q: %s", name, r.value(depth-1)))
		}
	}
	return "{" + strings.Join(all, ", ") + "}"
}

func (r schemas) schema(depth int) string {
	if depth == 0 || r.IntN(8) == 0 {
		return r.pick("true", "true", "false", `{"type": "integer"}`, `{"type": "string"}`, `{"type": "null"}`, `{"const": 1}`, `{"enum": ["a", "b", 1]}`)
	}
	sub := func() string { return r.schema(depth - 1) }
	var all []string
	used := map[string]bool{}
	for range 1 + r.IntN(4) {
		k, v := "", ""
		switch r.IntN(30) {
		case 0, 1, 2:
			k, v = "type", r.pick(`"object"`, `"array"`, `"string"`, `"integer"`, `"number"`, `["object", "null"]`, `["array", "string"]`)
		case 3:
			k, v = "enum", "["+r.list(1+r.IntN(4), func() string { return r.value(2) })+"]"
		case 4:
			k, v = "const", r.value(1)
		case 5, 6, 7:
			k, v = "properties", "{"+r.pick(`"a": `, `"b": `)+sub()+r.pick("", `, "c": `+sub())+"}"
		case 8, 9:
			k, v = "required", r.pick(`["a"]`, `["b", "a"]`, `["c"]`)
		case 10, 11:
			k, v = "additionalProperties", r.pick("false", "false", sub())
		case 12:
			k, v = "patternProperties", fmt.Sprintf(`{%q: %s}`, r.pick("^a", "b", "[bc]$"), sub())
		case 13:
			k, v = "propertyNames", r.pick(`{"pattern": "^[ab]"}`, `{"maxLength": 1}`, `{"enum": ["a", "c"]}`, `{"not": {"const": "a"}}`)
		case 14:
			k, v = r.pick("minProperties", "maxProperties"), r.pick("0", "1", "2")
		case 15:
			k, v = "dependentRequired", r.pick(`{"a": ["b"]}`, `{"b": ["c", "a"]}`)
		case 16:
			k, v = "dependentSchemas", `{"a": `+sub()+"}"
		case 17:
			k, v = "items", sub()
		case 18:
			k, v = "prefixItems", "["+r.list(1+r.IntN(2), sub)+"]"
		case 19:
			k, v = "contains", sub()
		case 20:
			k, v = r.pick("minItems", "maxItems", "minContains", "maxContains"), r.pick("0", "1", "2")
		case 21:
			k, v = r.pick("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), r.pick("0", "1", "1.5", "-1")
		case 22:
			k, v = r.pick("minLength", "maxLength"), r.pick("0", "1", "2")
		case 23:
			k, v = "pattern", r.pick(`"^a"`, `"b$"`, `"^.?$"`)
		case 24:
			k, v = "anyOf", "["+r.list(1+r.IntN(3), sub)+"]"
		case 25:
			k, v = "oneOf", "["+r.list(1+r.IntN(3), sub)+"]"
		case 26:
			k, v = "allOf", "["+r.list(1+r.IntN(2), sub)+"]"
		case 27:
			k, v = "not", sub()
		case 28:
			k, v = "if", sub()
			all = append(all, `"then": `+sub(), `"else": `+sub())
			if used["if"] {
				all = all[:len(all)-2]
			}
		case 29:
			k, v = "multipleOf", r.pick("2", "0.5", "5", "1.5", "3")
		}
		if !used[k] {
			used[k] = true
			all = append(all, fmt.Sprintf("%q: %s", k, v))
		}
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// TestRandom: of random schemas and values, those that are valid may be written, and no others, where all keywords are held.
func TestRandom(t *testing.T) {
	n := 200
	if testing.Short() {
		n = 100
	}
	r, w := schemas{rand.New(rand.NewPCG(3, 4))}, newTypist(5)
	held, valid := 0, 0
	for range n {
		of := r.schema(3)
		s := read(t, of)
		g, unheld, err := s.Grammar(context.Background(), Options{})
		var large *grammar.LimitError
		if errors.As(err, &large) {
			continue
		}
		if err != nil && !errors.Is(err, grammar.ErrNothing) {
			t.Fatalf("%s: %v", of, err)
		}
		if len(unheld) == 0 {
			held++
		}
		for range 40 {
			v := parsed(t, r.value(2))
			verdict := s.Checker(true).Check(context.Background(), v)
			text, err := s.spelledOut(v, Options{})
			if err != nil {
				t.Fatalf("%s: %v", of, err)
			}
			ok := g != nil && follows(g, text)
			if verdict == Valid {
				valid++
			}
			if verdict == Valid && !ok || verdict == Invalid && ok && len(unheld) == 0 {
				t.Errorf("%s: %s: the check says %d, and it is written: %v", of, text, verdict, ok)
			}
		}
		if g != nil {
			w.check(t, of, 3)
		}
		if t.Failed() {
			return
		}
	}
	if held < n*3/4 || valid < n {
		t.Errorf("%d schemas are held, %d values valid", held, valid)
	}
}
