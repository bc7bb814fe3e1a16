package kv

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata")

// TestPrefixScripts runs testdata/*.txt: blocks of command lines, ----, and what they print. A token is a letter, a page
// has four, group 0 keeps all and costs 10 bytes a page, group 1 has a window of 6 and costs 1.
//
//	new                 an empty tree
//	put TOKENS          a sequence starts at its match, runs TOKENS as one prompt and leaves them in the tree
//	answer TOKENS       likewise, but token by token: the window has moved on when they come into the tree
//	match TOKENS
//	hold NAME TOKENS    like put, but the sequence goes on holding its pages, of which the tree gets the whole ones
//	drop NAME
//	evict BYTES
//	tree
func TestPrefixScripts(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	if len(files) == 0 {
		t.Fatal("no scripts")
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			want, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			var out []string
			sc := prefixScript{}
			for _, block := range strings.Split(strings.TrimSpace(string(want)), "\n\n") {
				commands, _, _ := strings.Cut(block, "\n----")
				ran := []string{commands}
				for _, line := range strings.Split(commands, "\n") {
					if words := strings.Fields(line); words[0] != "#" {
						if len(ran) == 1 {
							ran = append(ran, "----")
						}
						ran = append(ran, sc.do(t, words)...)
						sc.check(t)
					}
				}
				out = append(out, strings.Join(ran, "\n"))
			}
			got := strings.Join(out, "\n\n") + "\n"
			if *update {
				if err := os.WriteFile(f, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
				t.Errorf("output differs (-want +got):\n%s", d)
			}
		})
	}
}

type prefixScript struct {
	a    *Alloc
	p    *Prefix
	held map[string]*Table
}

func (sc *prefixScript) check(t *testing.T) {
	t.Helper()
	var tables []*Table
	for _, h := range sc.held {
		tables = append(tables, h)
	}
	if err := sc.p.Check(); err != nil {
		t.Fatal(err)
	}
	if err := sc.a.Check(tables, nil); err != nil {
		t.Fatal(err)
	}
	sameNodes(t, sc.p)
}

func elems(s string) []Elem {
	key := make([]Elem, len(s))
	for i := range s {
		key[i] = Elem(s[i])
	}
	return key
}

func letters(key []Elem) string {
	var b strings.Builder
	for _, e := range key {
		b.WriteByte(byte(e))
	}
	return b.String()
}

// run does what a scheduler does with a prompt, all at once.
func (sc *prefixScript) run(t *testing.T, key []Elem, keep int, trim bool) (*Table, Match) {
	m := sc.p.Match(key)
	var table Table
	sc.a.Share(&table, &m)
	pin := sc.p.Pin(&m)
	for !sc.a.Grow(&table, len(key)) {
		if sc.p.Evict(sc.a.Short(&table, len(key))) == 0 {
			t.Fatal("no memory")
		}
	}
	sc.p.Unpin(&pin)
	table.Len = len(key)
	if trim {
		sc.a.Trim(&table)
	}
	sc.p.Insert(key, &table, keep)
	sc.a.Trim(&table)
	return &table, m
}

func (sc *prefixScript) do(t *testing.T, words []string) []string {
	switch words[0] {
	case "new":
		g := Geometry{PageTokens: 4, Groups: []Group{{PageBytes: 10}, {Window: 6, PageBytes: 1}}}
		a, err := NewAlloc(g, Limits{Bytes: 400, Slots: 4, Tokens: 100, Span: 100})
		if err != nil {
			t.Fatal(err)
		}
		sc.a, sc.p, sc.held = a, NewPrefix(a), map[string]*Table{}
	case "put", "answer":
		table, _ := sc.run(t, elems(words[1]), len(words[1]), words[0] == "answer")
		sc.a.Release(table)
	case "hold":
		sc.held[words[1]], _ = sc.run(t, elems(words[2]), len(words[2])/4*4, false)
	case "drop":
		sc.a.Release(sc.held[words[1]])
		delete(sc.held, words[1])
	case "match":
		m := sc.p.Match(elems(words[1]))
		return []string{fmt.Sprintf("%v %d of %d, pages %v tail %v", m.Kind, m.Tokens, m.Longer, m.Table.Pages, m.Tail)}
	case "evict":
		var need int64
		_, _ = fmt.Sscan(words[1], &need)
		return []string{fmt.Sprintf("freed %d", sc.p.Evict(need))}
	case "tree":
		lines := []string{fmt.Sprintf("%d entries, %d bytes, %d of %d in use idle", sc.p.Entries(), sc.p.Bytes(), sc.a.Idle(), sc.a.InUse())}
		return append(lines, sc.tree(&sc.p.root, "")...)
	default:
		t.Fatalf("unknown command %v", words)
	}
	return nil
}

func (sc *prefixScript) tree(n *node, indent string) (lines []string) {
	for e := range Elem(128) {
		if c := n.children[e]; c != nil {
			lines = append(lines, fmt.Sprintf("%s%s %v", indent, letters(c.key), c.pages))
			lines = append(lines, sc.tree(c, indent+"  ")...)
		}
	}
	return lines
}

// TestPrefixTraffic: thousands of conversations of agents that share a system prompt, a small part of which fits. Memory
// stays flat, the system prompt stays, and the conversation that goes on does.
func TestPrefixTraffic(t *testing.T) {
	turns := 10000
	if testing.Short() {
		turns = 1500
	}
	g := Geometry{PageTokens: 64, Groups: []Group{{PageBytes: 64}}}
	a, err := NewAlloc(g, Limits{Bytes: 64 * 1000, Slots: 4, Tokens: 8000, Span: 512}) // thirty conversations or so
	if err != nil {
		t.Fatal(err)
	}
	sc := prefixScript{a: a, p: NewPrefix(a)}
	r := rand.New(rand.NewPCG(1, 1))
	random := func(n int) []Elem {
		key := make([]Elem, n)
		for i := range key {
			key[i] = Elem(r.Uint32())
		}
		return key
	}
	system, mine := random(1200), random(100)
	for i := range turns {
		key := append(system[:len(system):len(system)], random(800)...)
		if i%20 == 19 {
			mine = append(mine, random(3)...)
			key = mine
		}
		table, m := sc.run(t, key, len(key), false)
		a.Release(table)
		if want := len(system); i > 0 && i%20 != 19 && m.Tokens != want {
			t.Fatalf("turn %d: %d of the system prompt's %d tokens", i, m.Tokens, want)
		}
		if i%20 == 19 && i > 20 && m.Tokens != len(mine)-3 {
			t.Fatalf("turn %d: %d of %d tokens of the last turn", i, m.Tokens, len(mine)-3)
		}
		if i%500 == 0 {
			if err := sc.p.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if a.InUse() > a.Limits().Bytes || a.InUse() < a.Limits().Bytes*9/10 || a.Idle() != a.InUse() || sc.p.Entries() > 200 {
		t.Errorf("%d bytes in use, %d idle, %d entries", a.InUse(), a.Idle(), sc.p.Entries())
	}
	sc.p.Clear()
	if a.InUse() != 0 || sc.p.Check() != nil {
		t.Errorf("after Clear %d bytes in use, %v", a.InUse(), sc.p.Check())
	}
}

// Check finds each kind of damage.
func TestPrefixCheck(t *testing.T) {
	for name, damage := range map[string]func(p *Prefix){
		"edge":     func(p *Prefix) { p.root.children['a'].from++ },
		"page":     func(p *Prefix) { p.root.children['a'].pages[0][0]++ },
		"gone":     func(p *Prefix) { p.root.children['a'].pages[0][0] = 0 },
		"count":    func(p *Prefix) { p.named[0][1]++ },
		"nodes":    func(p *Prefix) { p.nodes++ },
		"bytes":    func(p *Prefix) { p.bytes++ },
		"leaf":     func(p *Prefix) { p.leaves.Pop() },
		"unlisted": func(p *Prefix) { p.leaves[0].at = 0 },
	} {
		sc := prefixScript{}
		sc.do(t, []string{"new"})
		sc.do(t, []string{"put", "abcdefgh"})
		sc.do(t, []string{"put", "abcdexyz"})
		sc.check(t)
		damage(sc.p)
		if sc.p.Check() == nil {
			t.Errorf("%s: nothing found", name)
		}
	}
}

// BenchmarkMatch: one prompt of 20,000 tokens among 10,000 conversations of 2,000.
func BenchmarkMatch(b *testing.B) {
	g := Geometry{PageTokens: 64, Groups: []Group{{PageBytes: 64}}}
	a, err := NewAlloc(g, Limits{Bytes: 64 * 400000, Slots: 4, Tokens: 30000, Span: 512})
	if err != nil {
		b.Fatal(err)
	}
	p := NewPrefix(a)
	r := rand.New(rand.NewPCG(1, 1))
	put := func(n int) []Elem {
		key := make([]Elem, n)
		for i := range key {
			key[i] = Elem(i)
			if i > n/2 {
				key[i] = Elem(r.Uint32())
			}
		}
		var t Table
		a.Grow(&t, n)
		p.Insert(key, &t, n)
		a.Release(&t)
		return key
	}
	for range 10000 {
		put(2000)
	}
	key := put(20000)
	b.ReportAllocs()
	for b.Loop() {
		if m := p.Match(key); m.Tokens != 19999 {
			b.Fatal(m.Tokens)
		}
	}
}
