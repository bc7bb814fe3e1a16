package grammar

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestJoins: the places are those from which a token goes on beyond the text with what fits, by trying each token at each.
func TestJoins(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	v := abcVocab()
	found := 0
	for range 60 {
		rules := randomGrammar(r)
		g, err := rules.compile()
		if err != nil {
			continue
		}
		texts(4, func(text string) {
			m := v.Matcher(g, NewBudget(1))
			if !m.AcceptBytes([]byte(text)) {
				return
			}
			var want []int
			for from := range len(text) {
				for id := range int32(len(v.ends) - 1) {
					rest, ok := strings.CutPrefix(string(v.text(id)), text[from:])
					if ok && rest != "" && m.Clone(NewBudget(1)).AcceptBytes([]byte(rest)) {
						want = append(want, from)
						break
					}
				}
			}
			found += len(want)
			if got := m.Joins(nil, []byte(text)); !slices.Equal(got, want) || m.Tokens() != 1 {
				t.Fatalf("%v: behind %q tokens go on from %v, want %v", rules, text, got, want)
			}
		})
	}
	if found < 100 {
		t.Errorf("%d places in all", found)
	}
}

// TestCutMark: marks are found in a text, also one that is cut off.
func TestCutMark(t *testing.T) {
	for text, want := range map[string]struct {
		before string
		id     int32
		after  string
		found  bool
	}{
		"":                                 {"", -1, "", false},
		"abc":                              {"abc", -1, "", false},
		"a" + Mark(7) + "b":                {"a", 7, "b", true},
		Mark(0x7fffffff) + Mark(1):         {"", 0x7fffffff, Mark(1), true},
		"ab" + Mark(7)[:5]:                 {"ab", -1, "", true},
		"é\xffnothing of the kind" + "abc": {"é", -1, "", true},
	} {
		before, id, after, found := CutMark([]byte(text))
		if string(before) != want.before || id != want.id || string(after) != want.after || found != want.found {
			t.Errorf("%q: %q, %d, %q, %v", text, before, id, after, found)
		}
	}
}
