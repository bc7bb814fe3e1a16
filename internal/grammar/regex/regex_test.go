package regex

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/dlclark/regexp2/v2"

	"hearth/internal/grammar"
	"hearth/internal/grammar/notation/notationtest"
)

// matches tells whether a text is what a pattern matches, in one writing of characters.
func matches(t testing.TB, pattern, text string, o Options) bool {
	t.Helper()
	b := grammar.NewBuilder()
	e, err := Compile(b, pattern, o)
	if err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	ok := b.Matches(e, text)
	if b.Err() != nil {
		t.Fatalf("%s: %v", pattern, b.Err())
	}
	return ok
}

// compare tells of texts that a pattern should match and does not, and of others that it does.
func compare(t *testing.T, pattern string, yes, no []string, o Options) {
	t.Helper()
	for _, s := range yes {
		if !matches(t, pattern, s, o) {
			t.Errorf("%s (%s) does not match %q", pattern, o.Flags, s)
		}
	}
	for _, s := range no {
		if matches(t, pattern, s, o) {
			t.Errorf("%s (%s) matches %q", pattern, o.Flags, s)
		}
	}
}

// TestCompile: what patterns match.
func TestCompile(t *testing.T) {
	for _, c := range []struct {
		pattern, flags string
		yes, no        []string // whole texts, a space between
	}{
		{`^a*$`, "", []string{"", "aaa"}, []string{"b", "aab", "a\n"}},
		{`a+`, "", []string{"xaay", "a"}, []string{"", "xyz"}},
		{`^[a-c\d_-]{2,3}$`, "", []string{"a1", "_-c"}, []string{"a", "a1b2", "d1"}},
		{`^(?:foo|ba[rz])?$`, "", []string{"", "foo", "bar", "baz"}, []string{"ba", "foobar"}},
		{`(^a|b)c`, "", []string{"ac", "xbc", "ac-"}, []string{"xac", "bac"}},
		{`a$|^b`, "", []string{"xa", "bx", "a", "b"}, []string{"ax", "xb"}},
		{`^(?!foo)\w+$`, "", []string{"fo", "bar", "xfoo"}, []string{"foo", "foobar", ""}},
		{`^(?=.*\d)(?=.*[a-z]).{4,}$`, "", []string{"abc1", "1234a"}, []string{"abcd", "1a", "1234"}},
		{`\bcat\b`, "", []string{"cat", "a cat!", "-cat-"}, []string{"cats", "concat", "a_cat"}},
		{`\Bat`, "", []string{"cat"}, []string{"at", " at"}},
		{`^.$`, "", []string{"é", "😀", "\t"}, []string{"", "\n", "\u2028", "ab"}},
		{`^.$`, "s", []string{"\n"}, []string{""}},
		{`^\u00e9\u{1F600}\x41\cA\0$`, "", []string{"é😀A\x01\x00"}, []string{"é"}},
		{`^\ud83d\udc32$`, "", []string{"🐲"}, []string{"", "x"}},
		{`^\s$`, "", []string{" ", "\t", "\u00a0", "\ufeff", "\u2003"}, []string{"x", "\u180e"}},
		{`^\p{Letter}\P{L}\p{Script=Greek}\p{Lu}$`, "", []string{"é1αÄ"}, []string{"11αA", "aaαA", "a1aA", "a1αa"}},
		{`^straSSe$`, "i", []string{"STRAsse", "ſtrasse"}, []string{"straße"}},
		{`(?i)^[^a]$`, "", []string{"b"}, []string{"a", "A"}},
		{`^(?i:a)b$`, "", []string{"Ab", "ab"}, []string{"AB"}},
		{`^[]$`, "", nil, []string{"", "a"}},
		{`^[^]$`, "", []string{"a", "\n"}, []string{""}},
		{`^[\w-.]+$`, "", []string{"a-.b"}, []string{"a b"}},
		{`^a{,3}}]$`, "", []string{"a{,3}}]"}, []string{"a}]"}},
		{`^(?P<year>\d{4})-(?<month>\d\d)$`, "", []string{"2024-05"}, []string{"2024-5"}},
		{`^[a-z]+?\.[a-z]*?$`, "", []string{"a.", "ab.c"}, []string{".a"}},
		{`^\/\-\@\_$`, "", []string{"/-@_"}, []string{""}},
		{`^(a$|ab$)`, "", []string{"a", "ab"}, []string{"aba"}},
		{`^(\bx ?){1,2}$`, "", []string{"x", "x x", "x "}, []string{"xx", "x x x"}},
		{``, "", []string{"", "anything\nat all"}, nil},
		{`^x{2}{`, "", []string{"xx{"}, []string{"xx"}},
	} {
		compare(t, c.pattern, c.yes, c.no, Options{Search: true, Flags: c.flags})
	}
	if !matches(t, "a|bc", "bc", Options{}) || matches(t, "a|bc", "abc", Options{}) {
		t.Error("a pattern for the whole text")
	}
}

// TestChars: the characters of a pattern are written as the options say, also in what it excludes.
func TestChars(t *testing.T) {
	quoted := func(b *grammar.Builder, set []grammar.RuneRange) *grammar.Expr { // as 'x'
		return b.Seq(b.Literal("'"), b.Runes(set...), b.Literal("'"))
	}
	o := Options{Search: true, Chars: quoted}
	for text, want := range map[string]bool{"'b''a'": true, "'a'": true, "a": false, "'b'": false, "'a''a'": false, "'a'b": false, "": false} {
		if got := matches(t, `^(?!aa).*a`, text, o); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestErrors: what is no pattern, what is none that can be kept to and what is too large are told apart.
func TestErrors(t *testing.T) {
	var bad *SyntaxError
	var lacks *UnsupportedError
	var large *grammar.LimitError
	for want, patterns := range map[any][]string{
		&bad: {`(`, `a)`, `[a`, `*`, `a**`, `a{2,1}`, `\`, `[z-a]`, `(?<>x)`, `(?i`, `\p{Nonsense}`, `\pL`, `\u12`, `\u{110000}`, `\xg`, `\Z`, `\h`, `(?#c)`,
			`^*`, `{1}`, `\c1`, `\01`, "a\xff", `[a-`, `(?i:a`, `(?<a-b>x)`},
		&lacks: {`(a)\1`, `(?<=a)b`, `(?<!a)b`, `(?<n>a)\k<n>`, `(?:^a)*`, `(?m:^)`, `(?:(?!ab).)+`},
		&large: {strings.Repeat("(", 300) + strings.Repeat(")", 300), strings.Repeat("a", 1<<17), `a{2000000}`, strings.Repeat("(?:$|", 12) + strings.Repeat("){0,9}", 12),
			strings.Repeat("ab|", 1<<14), strings.Repeat(`\p{L}`, 1<<13), strings.Repeat("(?i:.)", 1<<13), "[" + strings.Repeat(`\p{L}`, 1<<13) + "]"},
	} {
		for _, p := range patterns {
			e, err := Compile(grammar.NewBuilder(), p, Options{Search: true})
			if err == nil || e != nil || !errors.As(err, want) {
				t.Errorf("%.50s: %v, want %T", p, err, want)
			}
			if err := Check(p); want == any(&bad) && !errors.As(err, want) {
				t.Errorf("%.50s: the check says %v", p, err)
			}
		}
	}
	if _, err := Compile(grammar.NewBuilder(), "a", Options{Flags: "q"}); !errors.As(err, &bad) {
		t.Errorf("a flag: %v", err)
	}
}

// TestPython: what patterns match that are Python's or Rust's, from end to end.
func TestPython(t *testing.T) {
	for _, c := range []struct {
		pattern, flags string
		yes, no        []string
	}{
		{`(?P<y>\d{4})-(?<m>[0-9]{,2})`, "", []string{"2024-05", "２０２４-", "2024-5"}, []string{"2024-555"}},
		{`\w+\W`, "", []string{"é1_ ", "x٣!"}, []string{"é", "-!"}},
		{`(?a)\w\d\s`, "", []string{"a1\t"}, []string{"é1 ", "a٣ ", "a1\u00a0"}},
		{`a.\s`, "", []string{"a\r\x1c", "a\u2028\u0085"}, []string{"a\n "}},
		{`(?s).`, "", []string{"\n"}, []string{""}},
		{`.`, "s", []string{"\n"}, []string{""}},
		{`\Aab\Z`, "", []string{"ab"}, []string{"ab\n"}},
		{`ab$\n?`, "", []string{"ab", "ab\n"}, []string{"ab\n\n"}},
		{`(?m)^a$\n^b$`, "", []string{"a\nb"}, []string{"ab", "a\n"}},
		{`(?m)(^a|b)(\n|c)(^d|e)`, "", []string{"a\nd", "ace", "bce", "b\ne"}, []string{"acd", "bcd"}},
		{`a|b$\n`, "", []string{"a", "b\n"}, []string{"b", "a\n"}},
		{"(?x) a + # letters\n [b #] \\ ", "", []string{"aab ", "a# ", "a  "}, []string{"a +b"}},
		{`a(?i)b|c`, "", []string{"ab", "aB", "C"}, []string{"AB"}},
		{`(a(?i)b)c`, "", []string{"abc", "aBc"}, []string{"abC"}},
		{`(?i:a(?-i:b))`, "", []string{"Ab"}, []string{"AB"}},
		{`[]a][^]a]`, "", []string{"]b", "ab"}, []string{"]]", "b]"}},
		{`[[:alpha:]_][[:^digit:]]`, "", []string{"ab", "_é"}, []string{"1b", "a1"}},
		{`\x41\x{e9}\u00e9\U0001F600\101\0\a`, "", []string{"Aéé😀A\x00\a"}, []string{"A"}},
		{`\pL\p{Greek}\PN\p{Lu}`, "", []string{"éαxÄ"}, []string{"1αxA"}},
		{`a(?#any)b`, "", []string{"ab"}, []string{"a"}},
		{`a+?b*?`, "", []string{"a", "aabb"}, []string{"b"}},
		{`\bif\b \w+(?=;).`, "", []string{"if x;"}, []string{"if x:"}},
		{`x{`, "", []string{"x{"}, []string{"x"}},
		{`[\b\1]+`, "", []string{"\b\x01"}, []string{"b"}},
	} {
		compare(t, c.pattern, c.yes, c.no, Options{Python: true, Flags: c.flags})
	}
	for _, c := range []struct {
		pattern, want string
		part          bool
	}{
		{`ab(?<=b)c`, `the regular expression "ab(?<=b)c" has a look behind, which is not supported (at byte 2)`, false},
		{`(a)b\1`, `the regular expression "(a)b\\1" has a reference back to a group, which is not supported (at byte 4)`, false},
		{`(?P<n>a)(?P=n)`, `the regular expression "(?P<n>a)(?P=n)" has a reference back to a group, which is not supported (at byte 8)`, false},
		{`(a)(?(1)b)`, `the regular expression "(a)(?(1)b)" has a condition, which is not supported (at byte 3)`, false},
		{`(?>a)`, `the regular expression "(?>a)" has a group that gives nothing back, which is not supported (at byte 0)`, false},
		{`ba++`, `the regular expression "ba++" has a quantifier that gives nothing back, which is not supported (at byte 2)`, false},
		{`[a&&b]`, `the regular expression "[a&&b]" has && or ~~ in a class, which is not supported (at byte 0)`, false},
		{`\N{DASH}`, `the regular expression "\\N{DASH}" has a character by its name, which is not supported (at byte 0)`, false},
		{`(?L)a`, `the regular expression "(?L)a" has the flag L, which is not supported (at byte 0)`, false},
		{`[[:word]`, `the regular expression "[[:word]" has a [: in a class without the name of a class and :] (at byte 3)`, false},
		{`(?#a`, `the regular expression "(?#a" has a comment that is not closed (at byte 3)`, false},
		{`\q`, `the regular expression "\\q" has the escape \q, which does not exist (at byte 2)`, false},
		{`\U00110000`, `the regular expression "\\U00110000" has an escape for no character (at byte 10)`, false},
		{`a$`, `the regular expression "a$" has an assertion about what is around (^, $, \b, a look ahead), which is not supported (at byte 1)`, true},
		{`.*?;`, `the regular expression ".*?;" has a quantifier that takes as little as it can (write what may come before the end, such as [^;]*;), ` +
			`which is not supported (at byte 1)`, true},
	} {
		if _, err := Grammar(c.pattern, Options{Python: true, Part: c.part}); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", c.pattern, err)
		}
	}
}

// TestMasks: what a pattern matches is allowed token by token, and ends where the pattern lets it.
func TestMasks(t *testing.T) {
	for pattern, text := range map[string]string{`(?i)(yes|no): \w+( \w+)*\.`: "YES: because größer is more.", `\d{4}-\d\d(T.*)?$`: "2024-05Tmorning, näher"} {
		g, err := Grammar(pattern, Options{Python: true})
		if err != nil || !g.Matches(text, grammar.NewBudget(1)) {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		notationtest.Masks(t, pattern, g, text)
	}
}

// TestAgainstGo: patterns that Python, Rust and Go write alike match the same texts, from end to end.
func TestAgainstGo(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	n := 3000
	if testing.Short() {
		n = 300
	}
	for range n {
		p := strings.NewReplacer("(?=", "(?m:", "(?!", "(?s:", `$`, `\z`, `\b`, `(?-m:^)`, `\B`, `(?m:$)`).Replace(randomPattern(r, 1+r.IntN(4)))
		b := grammar.NewBuilder()
		e, err := Compile(b, p, Options{Python: true})
		re, wrong := regexp.Compile(`\A(?:` + p + `)\z`)
		var lacks *UnsupportedError
		if err != nil || wrong != nil {
			if err == nil || wrong == nil && !errors.As(err, &lacks) && !strings.Contains(err.Error(), "repeats an assertion") {
				t.Errorf("%s: %v, Go's: %v", p, err, wrong)
			}
			continue
		}
		for range 30 {
			text := make([]byte, r.IntN(7))
			for i := range text {
				text[i] = "ab_- \n"[r.IntN(6)]
			}
			if got, want := b.Matches(e, string(text)), re.Match(text); got != want && b.Err() == nil {
				t.Errorf("%s on %q: %v, Go's regexp says %v (%s)", p, text, got, want, e)
			}
		}
	}
}

// randomPattern is a pattern out of a few characters.
func randomPattern(r *rand.Rand, depth int) string {
	if depth == 0 {
		return []string{"a", "b", "_", "-", ".", `\w`, `[^a]`, `[ab]`, `\s`, `^`, `$`, `\b`, `\B`, ``}[r.IntN(14)]
	}
	sub := func() string { return randomPattern(r, depth-1) }
	switch r.IntN(8) {
	case 0, 1, 2:
		return sub() + sub()
	case 3:
		return "(?:" + sub() + "|" + sub() + ")"
	case 4:
		return "(?:" + sub() + ")" + []string{"*", "+", "?", "{2}", "{1,2}", "{0,1}"}[r.IntN(6)]
	case 5:
		return []string{"(?=", "(?!"}[r.IntN(2)] + sub() + ")"
	}
	return sub()
}

// TestAgainstOther: random patterns match what another engine says that they match.
func TestAgainstOther(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	n := 3000
	if testing.Short() {
		n = 300
	}
	compared := 0
	for range n {
		p := randomPattern(r, 1+r.IntN(4))
		b := grammar.NewBuilder()
		e, err := Compile(b, p, Options{Search: true})
		if err != nil {
			var lacks *UnsupportedError
			if _, bad := regexp.Compile(strings.NewReplacer("(?=", "(?:", "(?!", "(?:").Replace(p)); bad == nil && !errors.As(err, &lacks) && !strings.Contains(err.Error(), "quantifier") && !strings.Contains(err.Error(), "repeats an assertion") {
				t.Errorf("%s: %v", p, err)
			}
			continue
		}
		re, err := regexp2.Compile(p, regexp2.ECMAScript)
		if err != nil {
			continue
		}
		for range 30 {
			text := make([]byte, r.IntN(7))
			for i := range text {
				text[i] = "ab_- \n"[r.IntN(6)]
			}
			want, err := re.MatchString(string(text))
			if err != nil {
				continue
			}
			compared++
			if got := b.Matches(e, string(text)); got != want && b.Err() == nil {
				t.Errorf("%s on %q: %v, the other engine says %v (%s)", p, text, got, want, e)
			}
		}
	}
	if compared < 5*n {
		t.Errorf("only %d comparisons", compared)
	}
}

// FuzzCompile: any text is a pattern or an error, and what Go's regular expressions have in common with ECMA's means the same.
func FuzzCompile(f *testing.F) {
	for _, p := range []string{`^[a-z]{1,3}(-\d+)*$`, `(?=a)b|c\b`, `\p{L}+\u{61}`, `[^\]\\]`, `(?i)K`, `(((a*)*)*)*b`, `(a|b|ab){0,100}$`} {
		f.Add(p, "ab-1", false)
		f.Add(p, "ab-1", true)
	}
	f.Fuzz(func(t *testing.T, p, text string, python bool) {
		if len(p) > 1000 || len(text) > 100 {
			return
		}
		b := grammar.NewBuilder()
		e, err := Compile(b, p, Options{Search: true, Python: python})
		if err != nil {
			return
		}
		got := b.Matches(e, text)
		if b.Err() != nil {
			var large *grammar.LimitError
			if !errors.As(b.Err(), &large) {
				t.Fatalf("%q: %v", p, b.Err())
			}
			return
		}
		for i := range len(p) { // what both mean the same by
			if c := p[i]; c >= 0x80 || strings.IndexByte(`\(?.[]{}$`, c) >= 0 {
				return
			}
		}
		for i := range len(text) {
			if text[i] >= 0x80 {
				return
			}
		}
		re, err := regexp.Compile(p)
		if err == nil && re.MatchString(text) != got {
			t.Errorf("%q on %q: %v", p, text, got)
		}
	})
}

func ExampleCompile() {
	b := grammar.NewBuilder()
	e, err := Compile(b, `^\d{4}-\d\d$`, Options{Search: true})
	fmt.Println(err, b.Matches(e, "2024-05"), b.Matches(e, "on 2024-05"))
	// Output: <nil> true false
}

// TestLargeClasses: sets of many characters that come again and again are made once, and not at all where a pattern is only read.
func TestLargeClasses(t *testing.T) {
	cost := func(f func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	for _, pattern := range []string{`(?i)` + strings.Repeat(`\p{L}`, 500), `(?i)` + strings.Repeat(`\P{L}`, 500), `(?i)` + strings.Repeat(`[^x\p{L}]`, 250), `(?i)` + strings.Repeat(`.`, 1000)} {
		err := Check(pattern) // which makes what is made once for all patterns
		if made := cost(func() { err = errors.Join(err, Check(pattern)) }); made > uint64(500*len(pattern)) || err != nil {
			t.Errorf("%.20s: to read it takes %d bytes for each of its own: %v", pattern, made/uint64(len(pattern)), err)
		}
		if made := cost(func() { _, err = Compile(grammar.NewBuilder(), pattern, Options{}) }); made > uint64(30_000*len(pattern)) || err != nil {
			t.Errorf("%.20s: to compile it takes %d bytes for each of its own: %v", pattern, made/uint64(len(pattern)), err)
		}
	}
}
