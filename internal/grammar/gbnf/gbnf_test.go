package gbnf

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"hearth/internal/grammar"
	"hearth/internal/grammar/notation"
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
	table, err := os.ReadFile("testdata/errors.txt")
	if err != nil {
		t.Fatal(err)
	}
	notationtest.Errors(t, string(table), compile)
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

// node is a part of a random grammar.
type node struct {
	op    string
	text  string
	parts []node
}

var repeats = map[string][2]int{"*": {0, 99}, "+": {1, 99}, "?": {0, 1}, "{2}": {2, 2}, "{1,2}": {1, 2}, "{2,}": {2, 99}}

func random(r *rand.Rand, depth int) node {
	switch op := r.IntN(7); {
	case depth == 0 || op == 0:
		return node{op: "text", text: []string{"a", "b", "ab", "ba", ""}[r.IntN(5)]}
	case op == 1:
		return node{op: "class", text: []string{"[ab]", "[^a]", "[a-b]", "."}[r.IntN(4)]}
	case op == 2:
		return node{op: "ref", text: "root"}
	case op == 3:
		return node{op: "or", parts: []node{random(r, depth-1), random(r, depth-1)}}
	case op == 4:
		return node{op: []string{"*", "+", "?", "{2}", "{1,2}", "{2,}"}[r.IntN(6)], parts: []node{random(r, depth-1)}}
	}
	return node{op: "seq", parts: []node{random(r, depth-1), random(r, depth-1)}}
}

func (n node) String() string {
	switch n.op {
	case "text":
		return strconv.Quote(n.text)
	case "class", "ref":
		return n.text
	case "or":
		return "(" + n.parts[0].String() + " | " + n.parts[1].String() + ")"
	case "seq":
		return n.parts[0].String() + " " + n.parts[1].String()
	}
	return "(" + n.parts[0].String() + ")" + n.op
}

// spans are the pairs of places in a text between which a node matches, by its definition; root is what is known of the rule.
type spans map[[2]int]bool

func (n node) spans(text string, root spans) spans {
	out := spans{}
	join := func(a, b spans) spans {
		both := spans{}
		for x := range a {
			for y := range b {
				if x[1] == y[0] {
					both[[2]int{x[0], y[1]}] = true
				}
			}
		}
		return both
	}
	for i := range len(text) + 1 {
		switch n.op {
		case "text":
			if strings.HasPrefix(text[i:], n.text) {
				out[[2]int{i, i + len(n.text)}] = true
			}
		case "class":
			if i < len(text) && (n.text != "[^a]" || text[i] != 'a') {
				out[[2]int{i, i + 1}] = true
			}
		}
	}
	switch n.op {
	case "text", "class":
	case "ref":
		return root
	case "or":
		for _, p := range n.parts {
			for s := range p.spans(text, root) {
				out[s] = true
			}
		}
	case "seq":
		return join(n.parts[0].spans(text, root), n.parts[1].spans(text, root))
	default:
		once, at := n.parts[0].spans(text, root), node{op: "text"}.spans(text, nil)
		for times := range min(repeats[n.op][1], len(text)+3) + 1 {
			if times >= repeats[n.op][0] {
				for s := range at {
					out[s] = true
				}
			}
			at = join(at, once)
		}
	}
	return out
}

// TestAgainstDefinition: random grammars match what a reading by definition says.
func TestAgainstDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	n, yes := 1500, 0
	if testing.Short() {
		n = 150
	}
	for range n {
		x := random(r, 1+r.IntN(4))
		g, err := compile("root ::= " + x.String())
		if err != nil && !errors.Is(err, grammar.ErrNothing) {
			t.Fatalf("%s: %v", x, err)
		}
		for range 8 {
			text := make([]byte, r.IntN(6))
			for i := range text {
				text[i] = "ab"[r.IntN(2)]
			}
			root := spans{}
			for {
				next := x.spans(string(text), root)
				if len(next) == len(root) {
					break
				}
				root = next
			}
			want := root[[2]int{0, len(text)}]
			if want {
				yes++
			}
			if got := g != nil && g.Matches(string(text), grammar.NewBudget(1)); got != want {
				t.Fatalf("%s on %q: %v, by definition %v", x, text, got, want)
			}
		}
	}
	if yes < n/2 {
		t.Errorf("only %d texts that follow", yes)
	}
}

// FuzzCompile: any text is a grammar or an error of a known kind.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{`root ::= "a" | [^b]{2,3} x?` + "\nx ::= (root | .)*", "root::=\"\\u00e9\\x41\"#", "root ::= <[1]> !<x>", "root ::= a{0,9} (b)\na::=[]]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 {
			return
		}
		g, err := compile(text)
		var place *notation.Error
		var large *grammar.LimitError
		switch {
		case err == nil:
			g.Matches("ab", grammar.NewBudget(1))
		case errors.As(err, &place):
			if place.Line < 1 || place.Column < 1 || place.Line > 1+strings.Count(text, "\n") {
				t.Errorf("%q: %v", text, err)
			}
		case !errors.As(err, &large) && !errors.Is(err, grammar.ErrNothing):
			t.Errorf("%q: %v", text, err)
		}
	})
}

func ExampleCompile() {
	g, err := Compile(context.Background(), `root ::= "yes" | "no, " [a-z]{1,9}`, Options{})
	fmt.Println(err, g.Matches("no, why", grammar.NewBudget(1)), g.Matches("maybe", grammar.NewBudget(1)))
	// Output: <nil> true false
}
