package notationtest

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"hearth/internal/grammar"
)

// node is a part of a random rule, as it is written and as what it means.
type node struct {
	text  string
	kind  kind
	parts []*node
	least int
	most  int
	match *regexp.Regexp
}

type kind uint8

const (
	isText kind = iota
	isSelf      // the rule
	isOr
	isSeq
	isRepeat
)

// span is two places in a text, between which something matches.
type span struct{ from, to int }

// Definition makes random rules of texts (as notations write them alike), of the rule itself by its name, and of what says how
// often something comes; and compares what they match with a reading by definition. Unless exact, a rule may match less.
func Definition(t *testing.T, texts []string, self string, often []string, compile Compile, exact bool) {
	r := rand.New(rand.NewPCG(3, 4))
	n, yes := 1500, 0
	if testing.Short() {
		n = 150
	}
	for range n {
		x := random(r, 1+r.IntN(4), texts, self, often)
		g, err := compile(x.text)
		if err != nil && !errors.Is(err, grammar.ErrNothing) {
			t.Fatalf("%s: %v", x.text, err)
		}
		for range 8 {
			bytes := make([]byte, r.IntN(6))
			for i := range bytes {
				bytes[i] = "ab"[r.IntN(2)]
			}
			text := string(bytes)
			known := map[span]bool{}
			for {
				next := x.spans(text, known)
				if len(next) == len(known) {
					break
				}
				known = next
			}
			want := known[span{0, len(text)}]
			got := g != nil && g.Matches(text, grammar.NewBudget(1))
			if got {
				yes++
			}
			if got != want && (exact || got) {
				t.Fatalf("%s on %q: %v, by definition %v", x.text, text, got, want)
			}
		}
	}
	if yes < n/4 {
		t.Errorf("only %d texts that follow", yes)
	}
}

func random(r *rand.Rand, depth int, texts []string, self string, often []string) *node {
	sub := func() *node { return random(r, depth-1, texts, self, often) }
	switch op := r.IntN(7); {
	case depth == 0 || op < 2:
		text := texts[r.IntN(len(texts))]
		return &node{text: text, match: regexp.MustCompile("^(?:" + strings.Trim(text, `"/`) + ")$")}
	case op == 2:
		return &node{text: self, kind: isSelf}
	case op == 3:
		a, b := sub(), sub()
		return &node{text: "(" + a.text + " | " + b.text + ")", kind: isOr, parts: []*node{a, b}}
	case op == 4:
		x := &node{kind: isRepeat, parts: []*node{sub()}, most: 99}
		times := often[r.IntN(len(often))]
		x.text = "(" + x.parts[0].text + ")" + times
		switch digits := regexp.MustCompile(`\d`).FindAllString(times, -1); {
		case times == "+":
			x.least = 1
		case times == "?":
			x.most = 1
		case len(digits) > 0:
			x.least = int(digits[0][0] - '0')
			if x.most = int(digits[len(digits)-1][0] - '0'); strings.Contains(times, ",}") {
				x.most = 99
			}
		}
		return x
	}
	a, b := sub(), sub()
	return &node{text: a.text + " " + b.text, kind: isSeq, parts: []*node{a, b}}
}

// spans are those of a text that a node matches, where the rule itself matches what is known of it.
func (n *node) spans(text string, self map[span]bool) map[span]bool {
	out := map[span]bool{}
	add := func(more map[span]bool) {
		for s := range more {
			out[s] = true
		}
	}
	join := func(a, b map[span]bool) map[span]bool {
		both := map[span]bool{}
		for x := range a {
			for y := range b {
				if x.to == y.from {
					both[span{x.from, y.to}] = true
				}
			}
		}
		return both
	}
	switch n.kind {
	case isText:
		for from := range len(text) + 1 {
			for to := from; to <= len(text); to++ {
				if n.match.MatchString(text[from:to]) {
					out[span{from, to}] = true
				}
			}
		}
	case isSelf:
		return self
	case isOr:
		add(n.parts[0].spans(text, self))
		add(n.parts[1].spans(text, self))
	case isSeq:
		return join(n.parts[0].spans(text, self), n.parts[1].spans(text, self))
	case isRepeat:
		once, at := n.parts[0].spans(text, self), map[span]bool{}
		for i := range len(text) + 1 {
			at[span{i, i}] = true
		}
		for times := range min(n.most, len(text)+3) + 1 {
			if times >= n.least {
				add(at)
			}
			at = join(at, once)
		}
	}
	return out
}
