package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// scannerNames lists the known expressions for messages and for the fuzz target.
var scannerNames = []struct{ name, regex string }{
	{"gpt2", gpt2Regex}, {"qwen2", qwen2Regex}, {"llama3", llama3Regex},
	{"qwen3.5", qwen35Regex}, {"o200k", o200kRegex}, {"mistral", mistralRegex},
	{"kimi", kimiRegex}, {"numbers", numberRegex}, {"cjk", cjkRegex}, {"deepseek", deepseekRegex}, {"camel", camelRegex},
}

// pieces runs a stage over s.
func pieces(t testing.TB, st stage, s string) []string {
	t.Helper()
	var out []string
	if s == "" {
		return nil
	}
	if err := st.split(s, true, nil, func(p string) { out = append(out, p) }); err != nil {
		t.Fatal(err)
	}
	return out
}

func engineStage(t testing.TB, regex string) stage {
	t.Helper()
	find, err := newRegexFinder(regex)
	if err != nil {
		t.Fatal(err)
	}
	return splitStage{find: find, how: isolated}
}

// TestScannersAgree compares each scanner with the engine on random text made of
// the runes where the expressions branch.
func TestScannersAgree(t *testing.T) {
	if want := len(scanners) + 1; len(scannerNames) != want { // camelRegex is none of them
		t.Fatalf("%d scanners are tested of %d", len(scannerNames), want)
	}
	alphabet := []string{
		"a", "b", "z", "A", "B", "Z", "s", "t", "re", "VE", "Ll", "D", "m", "'", "'", "'s", "'LL", "ſ", "K",
		"1", "2", "½", "٣", "Ⅷ", " ", " ", "  ", "\t", "\n", "\n", "\r", "\r\n", "\u00a0", "\u2003", "\u0085", "\v", "\u2028", "\u200b", "\u180e",
		"!", ".", "/", "/", "-", "_", "€", "🔥", "\u0301", "\u0903", "\u20dd", "ǅ", "ʰ", "ª", "中", "あ", "é", "É", "ß", "ب", "\x00", "𐐀", "𐐨", "\U0001D400", "\U000E0100", "ー", "龦", "々", "〇", "㐀", "\u303a", "$",
	}
	rounds := 3000
	if testing.Short() {
		rounds = 1000
	}
	for _, sc := range scannerNames {
		engine := engineStage(t, sc.regex)
		r := rand.New(rand.NewPCG(1, 2))
		for range rounds {
			var b strings.Builder
			for range 1 + r.IntN(14) {
				b.WriteString(alphabet[r.IntN(len(alphabet))])
			}
			compareStages(t, sc.name, sc.regex, engine, b.String())
		}
		// Every rune of the lower planes once, between letters and after a space.
		for from := rune(0); from < 0x1FF00 && !testing.Short(); from += 64 {
			var b strings.Builder
			for c := from; c < from+64; c++ {
				if utf8.ValidRune(c) {
					b.WriteRune(c)
					b.WriteString([]string{"a", " ", "", "A"}[c%4])
				}
			}
			compareStages(t, sc.name, sc.regex, engine, b.String())
		}
	}
}

func compareStages(t *testing.T, name, regex string, engine stage, s string) {
	t.Helper()
	st := stage(scanStage(scanners[regex]))
	if regex == camelRegex {
		st = splitStage{find: findCamel, how: isolated}
	}
	got := pieces(t, st, s)
	want := pieces(t, engine, s)
	if !slices.Equal(got, want) {
		t.Fatalf("%s on %q\nscanner %q\nengine  %q", name, s, got, want)
	}
}

func FuzzScanners(f *testing.F) {
	for _, s := range []string{"", "I'm here, he'LL 'ſ", "  a\n\n b \r\n", "\u0301ABC a\u0301B!\u0301", "12345 ½", "//\n/x", "HTTPServer ǅa", "sponsorMail éÉß"} {
		for i := range scannerNames {
			f.Add(uint8(i), s)
		}
	}
	var engines []stage
	for _, sc := range scannerNames {
		engines = append(engines, engineStage(f, sc.regex))
	}
	f.Fuzz(func(t *testing.T, which uint8, s string) {
		if len(s) > 4096 {
			return
		}
		i := int(which) % len(scannerNames)
		compareStages(t, scannerNames[i].name, scannerNames[i].regex, engines[i], strings.ToValidUTF8(s, "\uFFFD"))
	})
}

func TestSplitBehaviors(t *testing.T) {
	tests := []struct {
		how    behavior
		invert bool
		want   []string
	}{
		{isolated, false, []string{"the", "-", "final", "-", "-", "countdown"}},
		{removed, false, []string{"the", "final", "countdown"}},
		{removed, true, []string{"-", "-", "-"}},
		{mergedWithPrevious, false, []string{"the-", "final-", "-", "countdown"}},
		{mergedWithNext, false, []string{"the", "-final", "-", "-countdown"}},
		{contiguous, false, []string{"the", "-", "final", "--", "countdown"}},
	}
	for _, tt := range tests {
		for name, find := range map[string]finding{
			"string": newStringFinder("-"),
			"regex":  engineStage(t, "-").(splitStage).find,
		} {
			got := pieces(t, splitStage{find: find, how: tt.how, invert: tt.invert}, "the-final--countdown")
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s by %s, invert %v: got %q, want %q", tt.how, name, tt.invert, got, tt.want)
			}
		}
	}
}

// TestLongTextByEngine checks that a long text is cut as a short one is.
func TestLongTextByEngine(t *testing.T) {
	text := strings.Repeat("one  two\n\n three 12345, ", 50000)
	got := pieces(t, engineStage(t, llama3Regex), text)
	want := pieces(t, scanStage(scanners[llama3Regex]), text)
	if !slices.Equal(got, want) {
		t.Errorf("%d pieces, want %d", len(got), len(want))
	}
}
