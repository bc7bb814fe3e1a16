package lark

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"hearth/internal/grammar"
	"hearth/internal/grammar/notation/notationtest"
)

func compile(text string) (*grammar.Grammar, error) { return Compile(context.Background(), text) }

// TestForms: grammars of our own, with texts that follow them and texts that do not.
func TestForms(t *testing.T) {
	notationtest.Forms(t, "testdata/forms.txtar", compile)
}

// TestErrors: each error names its place and what to do.
func TestErrors(t *testing.T) {
	notationtest.Errors(t, "testdata/errors.txt", compile)
}

// TestCommon: the terminals that can be imported match what they should, each as a whole text.
func TestCommon(t *testing.T) {
	for name, c := range map[string]struct{ yes, no []string }{
		"DIGIT":          {[]string{"0", "9"}, []string{"", "a", "10"}},
		"HEXDIGIT":       {[]string{"0", "a", "F"}, []string{"g"}},
		"INT":            {[]string{"0", "007"}, []string{"-1", ""}},
		"SIGNED_INT":     {[]string{"-1", "+20", "3"}, []string{"--1"}},
		"DECIMAL":        {[]string{"1.", ".5", "1.5"}, []string{"1", ".", "1.5.1"}},
		"_EXP":           {[]string{"e5", "E-10"}, []string{"e", "5"}},
		"FLOAT":          {[]string{"1.", "1e5", ".5E+1"}, []string{"1", "e5"}},
		"SIGNED_FLOAT":   {[]string{"-1.5", "+1e5"}, []string{"-1"}},
		"NUMBER":         {[]string{"1", "1.5", "1e5"}, []string{"-1", ""}},
		"SIGNED_NUMBER":  {[]string{"-1", "+.5"}, []string{"-"}},
		"ESCAPED_STRING": {[]string{`""`, `"a\"b\\"`}, []string{`"`, `"a"b"`, `"\"`, "\"\n\""}},
		"LCASE_LETTER":   {[]string{"a"}, []string{"A"}},
		"UCASE_LETTER":   {[]string{"A"}, []string{"a"}},
		"LETTER":         {[]string{"a", "Z"}, []string{"1", "é"}},
		"WORD":           {[]string{"abC"}, []string{"", "a1"}},
		"CNAME":          {[]string{"_a1", "B"}, []string{"1a", ""}},
		"WS_INLINE":      {[]string{" \t "}, []string{"\n", ""}},
		"WS":             {[]string{" \r\n\t\f"}, []string{"", "\v"}},
		"CR":             {[]string{"\r"}, []string{"\n"}},
		"LF":             {[]string{"\n"}, []string{"\r"}},
		"NEWLINE":        {[]string{"\n", "\r\n\n"}, []string{"\r", ""}},
		"SH_COMMENT":     {[]string{"#", "# a"}, []string{"# a\n", "a"}},
		"CPP_COMMENT":    {[]string{"// a"}, []string{"/ a", "// a\n"}},
		"C_COMMENT":      {[]string{"/**/", "/* a ** / \n*/", "/***/"}, []string{"/*/", "/* a */ b */"}},
		"SQL_COMMENT":    {[]string{"-- a"}, []string{"- a"}},
	} {
		g, err := compile("start: X\n%import common." + name + " -> X")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, texts := range [][]string{c.yes, c.no} {
			for _, text := range texts {
				if g.Matches(text, grammar.NewBudget(1)) != (i == 0) {
					t.Errorf("%s on %q", name, text)
				}
			}
		}
	}
	if n := len(common()); n != 25 {
		t.Errorf("%d terminals of common", n)
	}
}

// TestBounds: large grammars are made, or are errors that name the limit.
func TestBounds(t *testing.T) {
	rules := func(n int) string {
		var s strings.Builder
		s.WriteString("start: r0\n")
		for i := range n {
			fmt.Fprintf(&s, "r%d: r%d \"x\"?\n", i, i+1)
		}
		fmt.Fprintf(&s, "r%d: /[a-z]/\n", n)
		return s.String()
	}
	words := func(n int) string {
		var s strings.Builder
		s.WriteString("start: (NAME")
		for i := range n {
			fmt.Fprintf(&s, " | \"k%d\"", i)
		}
		s.WriteString(")*\nNAME: /[a-z]+[0-9]*/\n%ignore \" \"")
		return s.String()
	}
	classes := func(n int) string {
		var s strings.Builder
		s.WriteString("start: X\nX: \"x\"")
		for i := range n {
			fmt.Fprintf(&s, ` | /[\W%c]/`, 0x4e00+i)
		}
		return s.String()
	}
	notationtest.Bounds(t, compile, map[string]string{
		"start: " + strings.Repeat("(", 600) + strings.Repeat(")", 600): "groups within each other",
		"start: \"" + strings.Repeat("x", 1<<20) + `"`:                  "bytes",
		"start: \"" + strings.Repeat("x", 1<<19) + `"`:                  "expressions",
		`start: "x"~2000000`:                                                            "repetitions of one expression",
		`start: (("ab"~1000)~1000)~1000`:                                                "",
		"start: " + strings.Repeat("a|", 1<<18) + "a\na: /[ab]/":                        "",
		"start: " + strings.Repeat("a ", 1<<14) + "\na: /[ab]/ | /[b-d]+/":              "",
		"start: " + strings.Repeat("(", 400) + `"x" start?` + strings.Repeat(")?", 400): "",
		rules(1 << 11):   "",
		rules(1 << 15):   "rules",
		words(500):       "",
		classes(1 << 8):  "",
		classes(1 << 12): "steps of work to it",
		words(1 << 11):   "different strings, patterns and terminals",
		"start: " + strings.Repeat("(", 20) + "/[a-z]+/ | /[0-9]+/" + strings.Repeat(")~5..8", 20):    "steps to find what may follow what",
		"start: \"x\" //" + strings.Repeat("# comment ", 1<<16) + "\n" + strings.Repeat(" \n", 1<<16): "",
	})
}

// TestCancel: compiling ends when nobody waits for it.
func TestCancel(t *testing.T) {
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(gone)
	if _, err := Compile(ctx, "start: "+strings.Repeat("\"a\" ", 5000)); err != gone {
		t.Error(err)
	}
}

// TestAgainstDefinition: random grammars of one character a terminal match what a reading by definition says; those in which a
// terminal may go on match nothing else.
func TestAgainstDefinition(t *testing.T) {
	start := func(rule string) (*grammar.Grammar, error) { return compile("start: " + rule) }
	often := []string{"*", "+", "?", "~2", "~1..2"}
	notationtest.Definition(t, []string{`"a"`, `"b"`, `/a/`}, "start", often, start, true)
	notationtest.Definition(t, []string{`"a"`, `"b"`, `"ab"`, `/a+/`, `/[ab]+/`, `/b*/`}, "start", often, start, false)
}

// FuzzCompile: any text is a grammar or an error of a known kind.
func FuzzCompile(f *testing.F) {
	notationtest.Fuzz(f, compile, "start: \"a\"i | B~2..3 x?\nx: (start | /b+/x)*\nB.2: \"b\"..\"c\"", "start: WS\n%import common.WS\n%ignore /#.*/", "?start: [\"é\" -> a]", "start: a{b}")
}

func ExampleCompile() {
	g, err := Compile(context.Background(), "start: \"set\" NAME\nNAME: /[a-z]+/\n%ignore \" \"")
	fmt.Println(err, g.Matches("set sail", grammar.NewBudget(1)), g.Matches("set", grammar.NewBudget(1)))
	// Output: <nil> true false
}
