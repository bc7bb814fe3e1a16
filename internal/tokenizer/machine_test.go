package tokenizer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dlclark/regexp2/v2"
)

// machinePatterns have every construct: those of published tokenizers, and small ones.
func machinePatterns() []string {
	all := []string{
		`a`, `ab|a`, `a|ab`, `a*`, `a*?b`, `a+?`, `a??b`, `(a|b)*c`, `(?:ab)*`, `(?:ab)+?b`, `(?:a|ab)(?:c|bcd)`, `a{2,3}`, `a{2}`, `a{2,}?`, `(?:ab){1,2}`, `(?:ab|a){2,3}b`,
		`(?>a+)b`, `(?>a*)a`, `(?>ab|a)b`, `a(?=b)`, `a(?!b)`, `(?<=a)b`, `(?<!a)b`, `(?<=a.*)b`, `(?<=ab|c)b`, `(?<!a+b)c`, `^a`, `(?m)^a`, `a$`, `(?m)a$`, `\Aa`, `a\z`, `a\Z`, `\Ga`, `\ba`, `a\B`, `b\b`,
		`[ab]+`, `[^ab]+`, `.`, `.+`, `(?s).+`, `(?i)A+`, `(?i)[a-b]c`, `\s+(?!\S)|\s+`, `(a*)*`, `(a*)+b`, `(?:a*|b)*c`, `(?:a?){3}b`, `(?:)*a`, `(?:a|)+b`, `|a`, `a|`, ``, `(?=a)`, `x*`, `[^\r\n\p{L}]?\p{L}+|\p{N}{1,3}`,
		`\p{Lu}?\p{Ll}+|\p{Lu}+`, ` ?[^\s\p{L}\p{N}]+[\r\n]*`, `(?:(?=a)|b)*`, `(?:a(?!c)|b)+?c`, `(?>(?:a|ab)*)c`, `(?<=(?:ab)*)c`, `a.*b`, `a.*?b`, `(?:a|b|c|ab)*?c`, `é+`, `(?<=é)a`, `(?<!日)a|日+`, `[a-c-[b]]+`, `(?n)(a)b`,
	}
	for _, sc := range scannerNames {
		p, err := translate(sc.regex)
		if err != nil {
			panic(err)
		}
		all = append(all, p)
	}
	return all
}

func machineText(r *rand.Rand) string {
	bits := []string{"a", "b", "c", "ab", "A", "B", " ", "  ", "\n", "\r\n", "1", "23", "é", "日", "!", ".", "'s", "x", "aaaa"}
	var b strings.Builder
	for range r.IntN(12) {
		b.WriteString(bits[r.IntN(len(bits))])
	}
	return b.String()
}

// agree compares a machine with regexp2 on a text.
func agree(t *testing.T, pattern, s string) {
	t.Helper()
	re, err := regexp2.Compile(pattern)
	m, err2 := newMachine(pattern)
	if err != nil || err2 != nil {
		if err != nil && err2 == nil {
			t.Fatalf("%q is only an error of regexp2: %v", pattern, err)
		}
		return
	}
	want, err := re.FindAllStringIndex(s, -1)
	if err != nil {
		return // its stack
	}
	got, err := m.all(s)
	if err != nil {
		want = want[:min(len(want), len(got))] // it gave up
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%q on %q: %v, want %v", pattern, s, got, want)
	}
}

// all lists the matches in s.
func (m *machine) all(s string) (all [][]int, err error) {
	err = m.find(s, nil, func(from, to int) { all = append(all, []int{from, to}) })
	return all, err
}

func TestMachineAgrees(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 9))
	for _, p := range machinePatterns() {
		if _, err := newMachine(p); err != nil {
			t.Errorf("%q: %v", p, err)
		}
		for range 300 {
			agree(t, p, machineText(r))
		}
	}
	// Random ones, of all constructs inside each other.
	for range 6000 {
		agree(t, randomPattern(r, 3), machineText(r))
	}
}

func randomPattern(r *rand.Rand, depth int) string {
	atoms := []string{"a", "b", "c", "ab", ".", "[ab]", "[^a]", `\s`, `\S`, `\b`, "^", "$", "é", "1", `\p{L}`, ""}
	if depth == 0 {
		return atoms[r.IntN(len(atoms))]
	}
	sub := func() string { return randomPattern(r, depth-1) }
	switch r.IntN(10) {
	case 0, 1:
		return "(?:" + sub() + "|" + sub() + ")"
	case 2:
		return "(?:" + sub() + ")" + []string{"*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}?", "{2,}"}[r.IntN(10)]
	case 3:
		return []string{"(?=", "(?!", "(?<=", "(?<!", "(?>", "("}[r.IntN(6)] + sub() + ")"
	}
	return sub() + sub()
}

func FuzzMachine(f *testing.F) {
	for _, p := range machinePatterns() {
		f.Add(p, "ab  c\n日é12 aaab")
	}
	f.Fuzz(func(t *testing.T, pattern, s string) {
		if len(pattern) > 30 || len(s) > 40 || strings.Contains(pattern, `\1`) {
			return
		}
		agree(t, strings.ToValidUTF8(pattern, ""), strings.ToValidUTF8(s, ""))
	})
}

// An expression that goes back and forth gives up after so many steps for a byte of text, always the same number, with what it
// has found until then; published ones need far fewer, whatever the text.
func TestRegexSteps(t *testing.T) {
	spend := func(pattern, s string) (steps int, found [][]int, err error) {
		m, err := newMachine(pattern)
		if err != nil {
			t.Fatal(err)
		}
		g := &search{machine: m, s: s, steps: regexSteps*len(s) + regexBaseSteps, marks: make([]int, m.marks)}
		all := g.steps
		for at := 0; at < len(s) && g.steps >= 0; {
			from, to, ok := g.search(at)
			if !ok {
				break
			}
			found = append(found, []int{from, to})
			if at = to; to == from {
				at++
			}
		}
		_, err = m.all(s)
		return all - max(g.steps, 0), found, err
	}
	for _, p := range []string{`(a+)+b`, `(?:a|a)*b`, `(?:a|aa)+$b`, `(?:a*)*b`, `(?=(?:a+)+b)c|a`, `(?>(?:a|aa)*b)|x`, `a*a*a*a*b`} {
		for _, n := range []int{1000, 2000} {
			steps, _, err := spend(p, strings.Repeat("a", n))
			if !errors.Is(err, errSteps) || steps > regexSteps*n+regexBaseSteps {
				t.Errorf("%q on %d bytes: %d steps, %v", p, n, steps, err)
			}
		}
	}
	if _, _, err := spend(`(?:(?:b??c??){25}a)+`, strings.Repeat("a", 2000)); !errors.Is(err, errSteps) {
		t.Errorf("many ways open: %v", err)
	}
	if _, found, err := spend(`ab|(?:a|aa)+c`, "ab"+strings.Repeat("a", 50)); err == nil || !slices.Equal(found[0], []int{0, 2}) {
		t.Errorf("before it gave up: %v, %v", found, err)
	}
	for _, sc := range scannerNames {
		p, err := translate(sc.regex)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"a", "A", " ", "\n", " \n", "1", "'", "a1", "Aa", "a\n ", "日", "é'", "!", "!\n", "the small room, "} {
			s := strings.Repeat(text, 4000/len(text))
			if steps, _, err := spend(p, s); err != nil || steps > regexSteps/4*len(s) {
				t.Errorf("%s on %q: %d steps a byte, %v", sc.name, text, steps/len(s), err)
			}
		}
	}
	for _, p := range []string{`(?:){2000000000}a`, `(?:a{1000}){1000}`, `(?:(?:ab){100}){100}`, strings.Repeat("(", 5000) + strings.Repeat(")", 5000)} {
		if m, err := newMachine(p); err == nil && len(m.code) > 2*maxRegexCode {
			t.Errorf("%.30q has %d instructions", p, len(m.code))
		}
	}
	for _, p := range []string{`(a)\1`, `(?<n>a)(?(n)b|c)`, `(?<a-a>b)`} {
		if _, err := newMachine(p); err == nil {
			t.Errorf("%q is no error", p)
		}
	}
}
