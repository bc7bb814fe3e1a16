package jsonschema

import (
	"context"
	"fmt"
	"testing"

	"hearth/internal/grammar"
	"hearth/internal/schema"
)

// TestWarm: masks that were warmed take next to no work in whichever schema; others do.
func TestWarm(t *testing.T) {
	texts := make([]string, 0, 60_000)
	for i := range cap(texts) {
		texts = append(texts, fmt.Sprintf("%c%x", 'a'+i%26, i*2654435761%(1<<24)))
	}
	vocab := func() *grammar.Vocab {
		return grammar.NewVocab(len(texts), func(id int32) []byte { return []byte(texts[id]) })
	}
	cold, warm := vocab(), vocab()
	Warm(warm)
	for source, written := range map[string]string{
		`{"properties": {"n": {"type": "string"}}, "additionalProperties": false}`: `{"n": "x`,
		`{"type": "array", "items": {"type": "string", "maxLength": 500}}`:         `["ab`,
		`{"type": "object"}`: `{"a": {"b`,
	} {
		for v, want := range map[*grammar.Vocab]bool{cold: false, warm: true} {
			root, err := schema.Parse([]byte(source))
			if err != nil {
				t.Fatal(err)
			}
			s, err := Read(context.Background(), root)
			if err != nil {
				t.Fatal(err)
			}
			g, _, err := s.Grammar(context.Background(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			follow := grammar.NewBudget(1)
			m := v.Matcher(g, follow)
			if !m.AcceptBytes([]byte(written)) {
				t.Fatalf("%s does not fit %s", written, source)
			}
			few := grammar.NewBudget(4096) // so many steps, too
			if m.Clone(few).Allowed(); few.Spent() == want {
				t.Errorf("%s in %s: warmed %v, steps spent %v", written, source, want, few.Spent())
			}
		}
	}
}
