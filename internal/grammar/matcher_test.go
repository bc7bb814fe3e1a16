package grammar

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

// abcVocab has texts of a, b and c as tokens, one that is no text, and one that no text has.
func abcVocab() *Vocab {
	list := strings.Fields("a b c aa ab ba bc ca cc abc bca cab aab bbb abab caca abcabc d ad")
	return NewVocab(len(list)+1, func(id int32) []byte {
		if int(id) < len(list) {
			return []byte(list[id])
		}
		return nil
	})
}

// randomGrammar has a few rules, which may refer to each other and to themselves in any way.
func randomGrammar(r *rand.Rand) naiveGrammar {
	g := make(naiveGrammar, 1+r.IntN(3))
	for i := range g {
		g[i] = randomExpr(r, 3, len(g))
	}
	return g
}

// complete is the shortest text that goes on from where a matcher is to an end.
func complete(m *Matcher) (string, bool) {
	type at struct {
		m    *Matcher
		text string
	}
	list := []at{{m.Clone(NewBudget(1)), ""}}
	for i := 0; i < len(list) && i < 2000; i++ {
		if list[i].m.Done() {
			return list[i].text, true
		}
		for _, c := range "abc" {
			next := list[i].m.Clone(NewBudget(1))
			if next.AcceptBytes([]byte(string(c))) {
				list = append(list, at{next, list[i].text + string(c)})
			}
		}
	}
	return "", false
}

// TestMatcher: what a matcher takes, where it may end and what it says may come next is so by the grammar's definition.
func TestMatcher(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	v := abcVocab()
	n := 150
	if testing.Short() {
		n = 30
	}
	for range n {
		checkMatcher(t, r, v, randomGrammar(r))
	}
}

// FuzzMatcher checks matchers of random grammars, and that no work of theirs is beyond its bounds.
func FuzzMatcher(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	v := abcVocab()
	f.Fuzz(func(t *testing.T, a, b uint64) {
		r := rand.New(rand.NewPCG(a, b))
		checkMatcher(t, r, v, randomGrammar(r))
	})
}

func checkMatcher(t *testing.T, r *rand.Rand, v *Vocab, rules naiveGrammar) {
	const longest = 6
	alive, whole := map[string]bool{}, map[string]bool{}
	texts(longest, func(text string) {
		if rules.matches(text) {
			whole[text] = true
			for i := range len(text) + 1 {
				alive[text[:i]] = true
			}
		}
	})
	g, err := rules.compile()
	if errors.Is(err, ErrNothing) {
		if len(whole) > 0 {
			t.Fatalf("%v: %v", rules, err)
		}
		return
	}
	if err != nil {
		t.Fatalf("%v: %v", rules, err)
	}
	start := v.Matcher(g, NewBudget(1))
	texts(3, func(text string) {
		m := start.Clone(NewBudget(1))
		fits := m.AcceptBytes([]byte(text))
		if alive[text] && !fits {
			t.Fatalf("%v: %q does not fit", rules, text)
		}
		if !fits {
			return
		}
		if rest, ok := complete(m); ok && len(text+rest) < 12 && !rules.matches(text+rest) {
			t.Fatalf("%v: %q fits and goes on to %q, which does not", rules, text, rest)
		}
		if m.Done() != whole[text] {
			t.Fatalf("%v: %q is whole: %v", rules, text, m.Done())
		}
		if g.Matches(text, NewBudget(1)) != whole[text] {
			t.Fatalf("%v: matches %q: %v", rules, text, !whole[text])
		}
		checkMask(t, m, rules)
		forced := string(m.Forced(nil, 5))
		for i := range len(forced) + 1 {
			options := 0
			for _, c := range "abc" {
				if next := m.Clone(NewBudget(1)); next.AcceptBytes([]byte(forced[:i] + string(c))) {
					options++
				}
			}
			next := m.Clone(NewBudget(1))
			next.AcceptBytes([]byte(forced[:i]))
			one := options == 1 && !next.Done()
			if i < len(forced) && !one || i == len(forced) && len(forced) < 5 && one {
				t.Fatalf("%v: after %q what must follow is %q: after %d of it there are %d ways", rules, text, forced, i, options)
			}
		}
	})
	checkRollback(t, r, v, g, rules)
}

// checkMask tries each token by itself.
func checkMask(t *testing.T, m *Matcher, rules naiveGrammar) {
	mask := m.Allowed()
	for id := range int32(len(m.vocab.ends)) {
		next := m.Clone(NewBudget(1))
		got := mask != nil && mask[id/64]>>(id%64)&1 != 0
		if want := next.Accept(id); got != want && !next.s.budget.Spent() && !m.s.budget.Spent() {
			t.Fatalf("%v: after %d tokens %q may come: %v, want %v", rules, m.Tokens(), m.vocab.text(id), got, want)
		}
	}
}

// checkRollback goes on and back at random: each time it is as if what was taken back had never been there.
func checkRollback(t *testing.T, r *rand.Rand, v *Vocab, g *Grammar, rules naiveGrammar) {
	m := v.Matcher(g, NewBudget(1))
	var taken []int32
	for range 20 {
		m.s.budget = NewBudget(1)
		switch {
		case r.IntN(3) > 0:
			id := int32(r.IntN(len(v.ends)))
			if m.Accept(id) {
				taken = append(taken, id)
			}
		case r.IntN(2) == 0:
			draft := make([]int32, r.IntN(5))
			for i := range draft {
				draft[i] = int32(r.IntN(len(v.ends)))
			}
			fresh, n := m.Clone(NewBudget(1)), 0
			for n < len(draft) && fresh.Accept(draft[n]) {
				n++
			}
			if got := m.Prefix(draft); got != n {
				t.Fatalf("%v: of a draft %d fit, not %d", rules, n, got)
			}
		default:
			n := r.IntN(len(taken) + 1)
			m.Rollback(n)
			taken = taken[:len(taken)-n]
		}
		fresh := v.Matcher(g, NewBudget(1))
		for _, id := range taken {
			if fresh.s.budget.left = burst; !fresh.Accept(id) {
				t.Fatalf("%v: what was taken does not fit again", rules)
			}
		}
		if m.Tokens() != len(taken) || m.Done() != fresh.Done() {
			t.Fatalf("%v: after %d tokens: %d, done %v, by itself %v", rules, len(taken), m.Tokens(), m.Done(), fresh.Done())
		}
		fresh.s.budget = NewBudget(1)
		if checkMask(t, m, rules); r.IntN(4) > 0 {
			continue
		}
		a, b := m.Allowed(), fresh.Allowed()
		if m.s.budget.Spent() || fresh.s.budget.Spent() {
			return
		}
		if (a == nil) != (b == nil) || a != nil && a[0] != b[0] {
			t.Fatalf("%v: after going back the mask is another", rules)
		}
	}
}

// TestCounters: where a counter and a pattern together tell whether there is a text at all, no token is allowed that leaves none.
func TestCounters(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	v := abcVocab()
	for range 100 {
		var words []*naive
		for range 1 + r.IntN(4) {
			word := make([]byte, 1+r.IntN(12))
			for i := range word {
				word[i] = "abc"[r.IntN(3)]
			}
			words = append(words, &naive{op: "literal", chars: string(word)})
		}
		least := r.IntN(8)
		rules := naiveGrammar{{op: "and", parts: []*naive{
			{op: "repeat", parts: []*naive{{op: "byte", chars: "abc"}}, least: least, most: least + r.IntN(25)},
			{op: "repeat", parts: []*naive{{op: "or", parts: words}}, most: -1},
		}}}
		g, err := rules.compile()
		if err != nil {
			continue
		}
		m := v.Matcher(g, NewBudget(1))
		for range 12 {
			m.s.budget = NewBudget(1)
			checkMask(t, m, rules)
			var may []int32
			for id := range int32(len(v.ends)) {
				if mask := m.Allowed(); mask != nil && mask[0]>>id&1 != 0 {
					may = append(may, id)
				}
			}
			if len(may) == 0 {
				if !m.Done() {
					t.Fatalf("%v: after %d tokens nothing may come, and it is no end", rules, m.Tokens())
				}
				break
			}
			m.Accept(may[r.IntN(len(may))])
		}
	}
}

// TestMarks: a token that is no text is asked for by its mark, and tokens of single bytes do not spell that.
func TestMarks(t *testing.T) {
	const special = 300
	b := NewBuilder()
	root := b.Rule("root")
	b.Define(root, b.Seq(b.Literal("a"+Mark(special)), b.Optional(b.Runes(OtherRanges()...))))
	g, err := b.Compile(root)
	if err != nil {
		t.Fatal(err)
	}
	m := NewVocab(special+1, func(id int32) []byte {
		switch {
		case id < 256:
			return []byte{byte(id)}
		case id == special:
			return []byte(Mark(id))
		}
		return []byte(Mark(special))[:1+id%3]
	}).Matcher(g, NewBudget(1))
	if !m.Accept('a') {
		t.Fatal("a text before a mark is not taken")
	}
	for id, words := int32(0), m.Allowed(); id <= special; id++ {
		if got := words[id/64]>>(id%64)&1 == 1; got != (id == special) {
			t.Errorf("token %d may come: %v", id, got)
		}
	}
	if m.Accept(0xff) || !m.Accept(special) || !m.Done() {
		t.Error("a mark is a token")
	}
}
