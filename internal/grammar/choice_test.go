package grammar_test

import (
	"errors"
	"testing"

	"hearth/internal/grammar"
	"hearth/internal/grammar/notation/notationtest"
)

// TestOneOf: texts to choose from are taken token by token.
func TestOneOf(t *testing.T) {
	g, err := grammar.OneOf("positive", "negative", "not sure", "not")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"positive": true, "not": true, "not sure": true, "no": false, "not sure ": false, "": false} {
		if got := g.Matches(text, grammar.NewBudget(1)); got != want {
			t.Errorf("%q: %v", text, got)
		} else if want {
			notationtest.Masks(t, "choice", g, text)
		}
	}
	if _, err := grammar.OneOf(); !errors.Is(err, grammar.ErrNothing) {
		t.Errorf("nothing to choose from: %v", err)
	}
}
