package gbnf

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"hearth/internal/grammar"
	"hearth/internal/grammar/notation/notationtest"
)

func compile(text string) (*grammar.Grammar, error) {
	return Compile(context.Background(), text, Options{})
}

// TestForms: grammars of our own, with texts that follow them and texts that do not.
func TestForms(t *testing.T) {
	notationtest.Forms(t, "testdata/forms.txtar", func(text string) (*grammar.Grammar, error) {
		return Compile(context.Background(), text, Options{Token: func(name string) (string, bool) {
			return map[string]string{"<think>": "{think}", "<[7]>": "{7}"}[name], name == "<think>" || name == "<[7]>"
		}})
	})
}

// TestErrors: each error names its place and what to do.
func TestErrors(t *testing.T) {
	notationtest.Errors(t, "testdata/errors.txt", compile)
	if _, err := Compile(context.Background(), "root ::= <a>", Options{Token: func(string) (string, bool) { return "", false }}); err == nil ||
		err.Error() != `line 1, column 10: the model has no token <a>; write text as "text"` {
		t.Error(err)
	}
}

// TestBounds: large grammars are made, or are errors that name the limit.
func TestBounds(t *testing.T) {
	notationtest.Bounds(t, compile, map[string]string{
		"root ::= " + strings.Repeat("(", 600) + strings.Repeat(")", 600):                              "groups within each other",
		"root ::= \"" + strings.Repeat("x", 1<<20) + `"`:                                               "bytes",
		"root ::= \"" + strings.Repeat("x", 1<<19) + `"`:                                               "expressions",
		`root ::= "x"{2000000}`:                                                                        "repetitions of one expression",
		`root ::= (("ab"{1000}){1000}){1000}`:                                                          "",
		"root ::= " + strings.Repeat("a|", 1<<18) + "a\na ::= [ab]":                                    "",
		"root ::= " + strings.Repeat("(", 400) + `"x" root?` + strings.Repeat(")?", 400):               "",
		"root ::= r0\n" + rules(1<<12) + "r4096 ::= [a-z]":                                             "",
		"root ::= r0\n" + rules(1<<15) + "r32768 ::= [a-z]":                                            "rules",
		"root ::= \"x\" #" + strings.Repeat("# comment ", 1<<16) + "\n" + strings.Repeat(" \n", 1<<16): "",
	})
}

// TestCancel: compiling ends when nobody waits for it.
func TestCancel(t *testing.T) {
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(gone)
	if _, err := Compile(ctx, "root ::= r0\n"+rules(1<<12)+"r4096 ::= [a-z]", Options{}); err != gone {
		t.Error(err)
	}
}

func rules(n int) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, "r%d ::= r%d \"x\"?\n", i, i+1)
	}
	return s.String()
}

// TestAgainstDefinition: random grammars match what a reading by definition says.
func TestAgainstDefinition(t *testing.T) {
	texts := []string{`"a"`, `"b"`, `"ab"`, `"ba"`, `""`, `[ab]`, `[^a]`, `[a-b]`, `.`}
	notationtest.Definition(t, texts, "root", []string{"*", "+", "?", "{2}", "{1,2}", "{2,}"}, func(rule string) (*grammar.Grammar, error) {
		return compile("root ::= " + rule)
	}, true)
}

// FuzzCompile: any text is a grammar or an error of a known kind.
func FuzzCompile(f *testing.F) {
	notationtest.Fuzz(f, compile, `root ::= "a" | [^b]{2,3} x?`+"\nx ::= (root | .)*", "root::=\"\\u00e9\\x41\"#", "root ::= <[1]> !<x>", "root ::= a{0,9} (b)\na::=[]]")
}

func ExampleCompile() {
	g, err := Compile(context.Background(), `root ::= "yes" | "no, " [a-z]{1,9}`, Options{})
	fmt.Println(err, g.Matches("no, why", grammar.NewBudget(1)), g.Matches("maybe", grammar.NewBudget(1)))
	// Output: <nil> true false
}
