package jsonschema

import (
	"context"

	"hearth/internal/grammar"
	"hearth/internal/schema"
)

// Warm makes the masks within strings and names, those of strings that are counted among them. In a large vocabulary the first
// mask of a string takes a hundred times as long as others, and nearly all schemas have it: no reply should wait for it.
func Warm(v *grammar.Vocab) {
	for source, text := range map[string]string{
		`true`:                                  `{"a": "b`,
		`{"type": "string", "maxLength": 1000}`: `"a`,
	} {
		s, err := Read(context.Background(), schema.MustParse(source))
		if err != nil {
			panic(err)
		}
		g, _, err := s.Grammar(context.Background(), Options{})
		if err != nil {
			panic(err)
		}
		m := v.Matcher(g, grammar.NewBudget(1))
		for i := range len(text) {
			m.Allowed()
			m.AcceptBytes([]byte(text[i : i+1]))
		}
		m.Allowed()
	}
}
