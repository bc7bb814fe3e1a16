package grammar

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestExprs: regular expressions match what they match by their definition, and are never only if nothing does.
func TestExprs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		x := randomExpr(r, 3, 0)
		b := NewBuilder()
		e := x.build(b, nil)
		found := false
		texts(4, func(text string) {
			want := naiveGrammar{x}.matches(text)
			found = found || want
			if got := b.Matches(e, text); got != want {
				t.Fatalf("%v, which is %v, matches %q: %v, want %v", x, e, text, got, want)
			}
		})
		if found && b.IsNever(e) {
			t.Fatalf("%v, which is %v, is never", x, e)
		}
		if !found && !b.IsNever(e) { // a longer text is looked for
			if text := shortest(b, e); len(text) < len(naiveSpans{}) && !(naiveGrammar{x}).matches(text) {
				t.Fatalf("%v, which is %v, is not never, but does not match %q", x, e, text)
			}
		}
		if b.Err() != nil {
			t.Fatal(b.Err())
		}
	}
}

// shortest is the shortest text that an expression matches.
func shortest(b *Builder, e *Expr) string {
	type at struct {
		e    *Expr
		text string
	}
	list, met := []at{{e, ""}}, map[*Expr]bool{}
	for i := 0; i < len(list); i++ {
		if list[i].e.nullable {
			return list[i].text
		}
		for _, c := range []byte("abc") {
			if d := b.t.derive(list[i].e, c, b.budget); d != b.t.never && !met[d] {
				met[d] = true
				list = append(list, at{d, list[i].text + string(c)})
			}
		}
	}
	return "nothing"
}

// TestTexts: a text is the same expression whatever it was made of, and so is what is left of it.
func TestTexts(t *testing.T) {
	b := NewBuilder()
	long := strings.Repeat("abcdefgh", 3*mostText/8) + "xyz"
	var bytes []*Expr
	for i := range len(long) {
		bytes = append(bytes, b.Literal(long[i:i+1]))
	}
	digit := b.Repeat(b.Or(b.Literal("0"), b.Literal("1")), 1, -1)
	for _, end := range []*Expr{b.Empty(), digit} {
		whole := b.Seq(b.Literal(long), end)
		byByte := end
		for _, e := range slices.Backward(bytes) {
			byByte = b.Seq(e, byByte)
		}
		if b.Seq(b.Seq(bytes...), end) != whole || byByte != whole {
			t.Errorf("%v is made in several ways", whole)
		}
		for n := range len(long) + 1 {
			rest := b.Seq(b.Literal(long[n:]), end)
			if b.Seq(b.Literal(long[:n]), rest) != whole || b.After(whole, long[:n]) != rest {
				t.Fatalf("%v does not go on with %v behind %d bytes", whole, rest, n)
			}
			other := b.Seq(b.Literal(long[:n]), b.Literal("#"))
			if n > 0 && b.After(b.Or(whole, other), long[:n-1]) != b.Or(b.After(whole, long[:n-1]), b.Literal(long[n-1:n]+"#")) {
				t.Fatalf("%v or %v", whole, other)
			}
		}
	}
}

// TestSameExprs: what is equal is one.
func TestSameExprs(t *testing.T) {
	b := NewBuilder()
	l := b.Literal
	var digits Set
	digits.Add('0', '9')
	d := b.Byte(digits)
	for i, pair := range [][2]*Expr{
		{b.Or(l("ab"), l("ac")), b.Choice("ac", "ab")},
		{b.Seq(l("a"), l("b")), l("ab")},
		{b.Or(l("a"), b.Or(l("b"), l("c"))), b.Or(l("c"), l("b"), l("a"))},
		{b.Repeat(b.Repeat(d, 0, -1), 0, -1), b.Repeat(d, 0, -1)},
		{b.Repeat(b.Optional(d), 3, 5), b.Repeat(d, 0, 5)},
		{b.Seq(b.Repeat(d, 1, 2), b.Repeat(d, 0, 3)), b.Repeat(d, 1, 5)},
		{b.Or(b.Repeat(d, 1, 3), b.Repeat(d, 4, 9)), b.Repeat(d, 1, 9)},
		{b.Optional(b.Repeat(d, 1, -1)), b.Repeat(d, 0, -1)},
		{b.And(d, b.Not(d)), b.Never()},
		{b.And(b.Repeat(d, 2, -1), b.Not(b.Or(l("xy"), b.Repeat(d, 2, -1)))), b.Never()},
		{b.Not(b.Not(d)), d},
		{b.Or(b.Any(), d), b.Any()},
		{b.And(b.Any(), d), d},
		{b.Seq(l("a"), b.Never()), b.Never()},
		{b.Runes(RuneRange{0, utf8.MaxRune}), b.Or(b.Runes(RuneRange{0, 'x'}), b.Runes(OtherRanges(RuneRange{0, 'x'})...))},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%d: %v and %v", i, pair[0], pair[1])
		}
	}
	var many []string
	for range 5000 {
		many = append(many, strings.Repeat("x", len(many)%50)+string(rune('a'+len(many)%26))+string(rune('0'+len(many)%10)))
	}
	e := b.Choice(many...)
	for _, m := range many[:100] {
		if !b.Matches(e, m) || b.Matches(e, m+"!") {
			t.Fatal(m)
		}
	}
	if b.Err() != nil {
		t.Fatal(b.Err())
	}
}

// TestRunes: a class of characters matches them, and nothing that is no UTF-8.
func TestRunes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		var ranges []RuneRange
		for range 1 + r.IntN(4) {
			lo := rune(r.IntN(1 << (1 + r.IntN(21))))
			ranges = append(ranges, RuneRange{lo, lo + rune(r.IntN(1<<r.IntN(18)))})
		}
		b := NewBuilder()
		yes, no := b.Runes(ranges...), b.Runes(OtherRanges(ranges...)...)
		check := func(c rune) {
			if c < 0 || c > utf8.MaxRune || c >= 0xD800 && c < 0xE000 {
				return
			}
			in := slices.ContainsFunc(ranges, func(r RuneRange) bool { return r.Lo <= c && c <= r.Hi })
			if b.Matches(yes, string(c)) != in || b.Matches(no, string(c)) == in {
				t.Fatalf("%v: %U is in it: %v", ranges, c, in)
			}
		}
		for _, p := range ranges {
			for _, c := range []rune{p.Lo - 1, p.Lo, p.Lo + 1, p.Hi - 1, p.Hi, p.Hi + 1} {
				check(c)
			}
		}
		for range 50 {
			check(rune(r.IntN(utf8.MaxRune)))
		}
		for _, bad := range []string{"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80"} {
			if b.Matches(yes, bad) || b.Matches(no, bad) {
				t.Fatalf("%v: %q", ranges, bad)
			}
		}
	}
}

// TestCompile: what is wrong with a grammar is said, and what can never end is no part of it.
func TestCompile(t *testing.T) {
	for name, c := range map[string]struct {
		rules naiveGrammar
		want  string
	}{
		"endless": {naiveGrammar{{op: "seq", parts: []*naive{{op: "byte", chars: "a"}, {op: "ref"}}}}, ErrNothing.Error()},
		"and":     {naiveGrammar{{op: "and", parts: []*naive{{op: "ref"}, {op: "byte", chars: "a"}}}}, "regular expressions only"},
		"not":     {naiveGrammar{{op: "not", parts: []*naive{{op: "ref"}}}}, "regular expressions only"},
		"repeat":  {naiveGrammar{{op: "repeat", parts: []*naive{{op: "byte", chars: "a"}}, least: 3, most: 2}}, "does not exist"},
		"often":   {naiveGrammar{{op: "repeat", parts: []*naive{{op: "byte", chars: "a"}}, most: MaxRepeat + 1}}, "repetitions"},
		"never":   {naiveGrammar{{op: "and", parts: []*naive{{op: "literal", chars: "ab"}, {op: "literal", chars: "ac"}}}}, ErrNothing.Error()},
		"alternative": {naiveGrammar{{op: "or", parts: []*naive{{op: "byte", chars: "a"},
			{op: "seq", parts: []*naive{{op: "byte", chars: "b"}, {op: "ref", rule: 1}}}}}, {op: "ref", rule: 1}}, ""},
	} {
		g, err := c.rules.compile()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "alternative" && g.start.body != g.t.text("a", g.t.empty) {
			t.Errorf("%s: %v", name, g.start.body)
		}
	}
	b := NewBuilder()
	if _, err := b.Compile(b.Rule("x")); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Error(err)
	}
	var large *LimitError
	for what, make := range map[string]func(b *Builder, r *Rule){
		"expressions": func(b *Builder, r *Rule) { b.Define(r, b.Literal(strings.Repeat("abcdefgh", maxExprs/8)+"x")) },
		"rules": func(b *Builder, r *Rule) {
			for range maxRules {
				b.Rule("")
			}
		},
		"within": func(b *Builder, r *Rule) {
			e := b.Literal("a")
			for range maxNesting + 1 {
				e = b.Repeat(b.Seq(b.Literal("b"), e), 2, 3)
			}
			b.Define(r, e)
		},
		"work": func(b *Builder, r *Rule) { // the length of what is in both is a large product
			p := func(n int) *Expr { return b.Repeat(b.Repeat(b.Literal("a"), n, n), 1, -1) }
			b.Define(r, b.And(p(997), p(991), p(983), b.Seq(b.Literal("a"), p(977))))
		},
	} {
		b := NewBuilder()
		r := b.Rule("start")
		make(b, r)
		if _, err := b.Compile(r); !errors.As(err, &large) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
