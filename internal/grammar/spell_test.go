package grammar

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// spellings are ways to write a, b and c.
var spellings = []*strings.Replacer{
	strings.NewReplacer("a", `\a`, "b", `\b`),
	strings.NewReplacer("a", `\x01`, "b", `\x02`, "c", `\x03`),
	strings.NewReplacer("a", "b", "b", "a"),
	strings.NewReplacer(),
}

// TestSpelled: what is written is what the texts of random rules are written as, and nothing else.
func TestSpelled(t *testing.T) {
	n := 150
	if testing.Short() {
		n = 30
	}
	matched := 0
	for i := range n {
		r := rand.New(rand.NewPCG(5, uint64(i)))
		g := naiveGrammar{randomExpr(r, 4, 2), randomExpr(r, 3, 2)}
		spelling := spellings[i%len(spellings)]
		spelled, err := g.compileAs(func(b *Builder, start *Expr) *Expr {
			return b.Spelled(start, func(c byte) string { return spelling.Replace(string([]byte{c})) })
		})
		if err != nil {
			if plain, err := g.compile(); err == nil {
				t.Fatalf("%v: nothing is written of %v", g, plain)
			}
			continue
		}
		texts(4, func(text string) {
			want := g.matches(text)
			if want {
				matched++
			}
			for _, of := range []struct {
				text string
				want bool
			}{{spelling.Replace(text), want}, {spelling.Replace(text) + `\`, false}, {`\x` + text, false}, {text, want && spelling.Replace(text) == text}} {
				if i%len(spellings) == 2 && of.text == text { // which swaps a and b
					continue
				}
				if got := spelled.Matches(of.text, NewBudget(1)); got != of.want {
					t.Fatalf("%v: %q: %v", g, of.text, got)
				}
			}
		})
	}
	if matched < n {
		t.Errorf("only %d texts matched", matched)
	}
}

// TestSpelledOpposite: what is left out of an expression is left out of what is written of it.
func TestSpelledOpposite(t *testing.T) {
	b := NewBuilder()
	spell := func(c byte) string {
		if c == '"' || c == '\\' {
			return `\` + string(rune(c))
		}
		return string([]byte{c})
	}
	not := b.Spelled(b.Not(b.Literal(`a"`)), spell)
	for text, want := range map[string]bool{`a\"`: false, `a"`: false, `a`: true, ``: true, `a\"b`: true, `\\`: true, `\`: false, `\a`: false, "\xff": true} {
		if got := b.Matches(not, text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestSpelledBounds: large expressions are written, or are errors that name the limit, and what is not defined is told.
func TestSpelledBounds(t *testing.T) {
	long := func(c byte) string { return fmt.Sprintf(`\u00%02x`, c) }
	b := NewBuilder()
	some := b.Repeat(b.Literal("xyz"), 1000, 2000)
	b.Allow(100)
	b.Spelled(some, long)
	if _, ok := b.Err().(*LimitError); !ok {
		t.Error(b.Err())
	}
	b = NewBuilder()
	r := b.Rule("r")
	for range maxRules - 2 {
		next := b.Rule("r")
		b.Define(r, b.Optional(b.Seq(b.Literal("x"), b.Ref(next))))
		r = next
	}
	b.Define(r, b.Empty())
	b.Spelled(b.Ref(r), long)
	if b.Err() != nil {
		t.Error(b.Err())
	}
	b = NewBuilder()
	root := b.Rule("root")
	b.Define(root, b.Spelled(b.Ref(b.Rule("nowhere")), long))
	if _, err := b.Compile(root); err == nil || !strings.Contains(err.Error(), `"nowhere" is not defined`) {
		t.Error(err)
	}
}

// TestWithout: what is left of random rules holds no word and ends as it may, and nothing else is missing.
func TestWithout(t *testing.T) {
	n := 300
	if testing.Short() {
		n = 60
	}
	left, out, flat, done := 0, 0, 0, 0
	for i := range n {
		r := rand.New(rand.NewPCG(6, uint64(i)))
		g := naiveGrammar{randomExpr(r, 4, 2), randomExpr(r, 3, 2)}
		if s := fmt.Sprint(g); strings.Contains(s, "members") {
			continue
		}
		words := [][]string{{"aba"}, {"ab", "cc"}, {"bb", "abc"}, {}, {"aa", "cab", "c"}}[r.IntN(5)]
		ends := [][]string{{"c"}, {}, {"ab", "ca"}}[r.IntN(3)]
		begins := [][]string{{"a", "cb"}, {}, {"ba"}}[r.IntN(3)]
		without, err := g.compileAs(func(b *Builder, start *Expr) *Expr {
			if e := b.Flat(start); e.Regular() && i%2 == 0 {
				flat++
				start = e
			}
			return b.Without(start, Lacks{words, begins, ends})
		})
		if _, large := err.(*LimitError); large { // what is repeated too often
			continue
		} else if err != nil && err != ErrNothing {
			t.Fatal(err)
		}
		done++
		texts(5, func(text string) {
			want := g.matches(text)
			for _, w := range words {
				want = want && !strings.Contains(text, w)
			}
			for _, e := range ends {
				want = want && !strings.HasSuffix(text, e)
			}
			for _, e := range begins {
				want = want && !strings.HasPrefix(text, e)
			}
			if want {
				left++
			} else if g.matches(text) {
				out++
			}
			if got := without != nil && without.Matches(text, NewBudget(1)); got != want {
				t.Fatalf("%d: %v without %q, at its beginning %q and at its end %q: %q: %v", i, g, words, begins, ends, text, got)
			}
		})
	}
	if left < n || out < n || flat < n/10 || done < n/2 {
		t.Errorf("%d texts were left, %d were not, of %d rules %d were flat", left, out, done, flat)
	}
}

// TestWithoutBounds: words of too many beginnings, and what is repeated too often where it may end within a word, are errors that
// name the limit. Rules that would become large stay rules.
func TestWithoutBounds(t *testing.T) {
	b := NewBuilder()
	r := b.Rule("r")
	b.Define(r, b.Repeat(b.Byte(allBytes), 0, -1))
	b.Without(b.Ref(r), Lacks{Words: []string{strings.Repeat("ab", mostBeginnings)}})
	if e, ok := b.Err().(*LimitError); !ok || e.Limit != mostBeginnings {
		t.Error(b.Err())
	}
	for times, ok := range map[int]bool{mostTurns: true, mostTurns + 1: false} {
		b := NewBuilder()
		r := b.Rule("r")
		b.Define(r, b.Or(b.Choice("a", "b"), b.Seq(b.Literal("("), b.Ref(r), b.Literal(")"))))
		b.Without(b.Repeat(b.Ref(r), 0, times), Lacks{Words: []string{"abb"}})
		if e, limit := b.Err().(*LimitError); limit == ok || limit && e.Limit != mostTurns {
			t.Errorf("%d times: %v", times, b.Err())
		}
	}
	b = NewBuilder()
	of := b.Rule("r")
	b.Define(of, b.Literal("xyz"))
	for range 30 {
		next := b.Rule("r")
		b.Define(next, b.Seq(b.Ref(of), b.Literal(","), b.Ref(of)))
		of = next
	}
	if b.Flat(b.Ref(of)).Regular() || b.Err() != nil {
		t.Errorf("what is 2^30 long is flat: %v", b.Err())
	}
}

// TestRulesCost: what it takes to write, flatten and restrict rules grows with their number, not with its square.
func TestRulesCost(t *testing.T) {
	for name, of := range map[string]func(b *Builder, e *Expr){
		"Spelled": func(b *Builder, e *Expr) { b.Spelled(e, func(c byte) string { return fmt.Sprintf("%02x", c) }) },
		"Flat":    func(b *Builder, e *Expr) { b.Flat(e) },
		"Without": func(b *Builder, e *Expr) { b.Without(e, Lacks{Words: []string{"</value>"}, Begins: []string{"\n"}}) },
	} {
		cost := func(n int) int {
			b := NewBuilder()
			text := b.Repeat(b.Byte(allBytes), 0, -1)
			rules := make([]*Rule, n)
			for i := range rules {
				rules[i] = b.Rule("r")
			}
			for i, r := range rules {
				body := b.Seq(b.Literal(fmt.Sprint(i)), text)
				if i+1 < n {
					body = b.Seq(b.Optional(body), b.Ref(rules[i+1]))
				}
				b.Define(r, body)
			}
			before := b.Left()
			if of(b, b.Ref(rules[0])); b.Err() != nil {
				t.Fatalf("%s of %d: %v", name, n, b.Err())
			}
			return before - b.Left()
		}
		if few, many := cost(20), cost(160); many > 12*few {
			t.Errorf("%s: %d steps for 20 rules, %d for 160", name, few, many)
		}
	}
}
