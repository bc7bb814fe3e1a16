package kv

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// sameNodes: the list of nodes is the tree, and adds up to what the tree says of itself.
func sameNodes(t *testing.T, p *Prefix) {
	t.Helper()
	list, left := p.Nodes(1 << 20)
	bytes, ends := int64(0), 0
	ids := map[int64]bool{}
	for i := range list {
		n := &list[i]
		bytes += n.Bytes
		if n.End {
			ends++
		}
		from := 0
		if n.Parent >= 0 {
			from = list[n.Parent].From + len(list[n.Parent].Key)
		}
		if n.Parent >= i || n.From != from || len(n.Key) == 0 || n.Bytes < 0 || ids[n.ID] {
			t.Errorf("node %d: %+v", i, n)
		}
		ids[n.ID] = true
	}
	if len(list) != p.nodes || left != 0 || bytes != p.Bytes() || ends != p.Entries() {
		t.Errorf("%d nodes of %d bytes with %d ends, %d left; the tree has %d of %d with %d", len(list), bytes, ends, left, p.nodes, p.Bytes(), p.Entries())
	}
	for most := range min(len(list), 5) {
		if some, left := p.Nodes(most); len(some) != most || left != p.nodes-most || most > 0 && some[0].Parent != -1 {
			t.Errorf("at most %d: %d, %d left", most, len(some), left)
		}
	}
}

// What a list has of a tree stays as it is while the tree changes below it.
func TestNodesStay(t *testing.T) {
	g := Geometry{PageTokens: 4, Groups: []Group{{PageBytes: 1}}}
	a, err := NewAlloc(g, Limits{Bytes: 40, Slots: 4, Tokens: 200, Span: 64})
	if err != nil {
		t.Fatal(err)
	}
	sc := prefixScript{a: a, p: NewPrefix(a)}
	r := rand.New(rand.NewPCG(1, 2))
	type seen struct {
		list []Node
		keys [][]Elem
	}
	var before []seen
	for range 2000 {
		key := make([]Elem, 1+r.IntN(60))
		for i := range key {
			key[i] = Elem(r.IntN(2))
		}
		table, _ := sc.run(t, key, len(key), false)
		a.Release(table)
		if r.IntN(3) == 0 {
			sc.p.Evict(int64(r.IntN(20)))
		}
		sameNodes(t, sc.p)
		list, _ := sc.p.Nodes(1000)
		now := seen{list: list}
		for i := range list {
			now.keys = append(now.keys, slices.Clone(list[i].Key))
		}
		if before = append(before, now); len(before) > 20 {
			for i, k := range before[0].keys {
				if !slices.Equal(k, before[0].list[i].Key) {
					t.Fatalf("a key has changed from %v to %v", k, before[0].list[i].Key)
				}
			}
			before = before[1:]
		}
	}
}

func TestPlain(t *testing.T) {
	s, other := saltOf("a"), saltOf("b")
	for pos := range 6 {
		for _, e := range []Elem{0, 7, 1<<31 - 1} {
			if got, ok := s.Plain(pos, s.Elem(pos, e)); got != e || !ok {
				t.Errorf("element %d at %d: %d, %t", e, pos, got, ok)
			}
			for name, foreign := range map[string]Elem{"none": e, "another": other.Elem(pos, e)} {
				if _, ok := s.Plain(pos, foreign); ok != (pos >= saltedElems) {
					t.Errorf("element %d at %d under %s: %t", e, pos, name, ok)
				}
			}
			if _, ok := (&Salt{}).Plain(pos, s.Elem(pos, e)); ok != (pos >= saltedElems) {
				t.Errorf("element %d at %d of a salt, under none: %t", e, pos, ok)
			}
		}
		if _, ok := (&Salt{}).Plain(pos, Media(5, pos)); !ok {
			t.Error("a row of an image, without a salt")
		}
		if _, ok := s.Plain(pos, s.Elem(pos, Media(5, pos))); ok != (pos >= saltedElems) {
			t.Error("a row of an image, with a salt")
		}
	}
}

// BenchmarkNodes lists trees of 100,000 pages: in as many nodes, and in 2,000 conversations that part behind one beginning.
func BenchmarkNodes(b *testing.B) {
	for name, c := range map[string]struct{ ends, pages int }{"100000 nodes": {100_000, 1}, "2000 nodes": {2000, 50}} {
		b.Run(name, func(b *testing.B) {
			g := Geometry{PageTokens: 64, Groups: []Group{{PageBytes: 1}}}
			a, err := NewAlloc(g, Limits{Bytes: 1 << 20, Slots: 4, Tokens: 8000, Span: 512})
			if err != nil {
				b.Fatal(err)
			}
			p := NewPrefix(a)
			for i := range c.ends {
				key := make([]Elem, 64*(c.pages+1))
				key[64] = Elem(i)
				t := Table{}
				m := p.Match(key)
				a.Share(&t, &m)
				if !a.Grow(&t, len(key)) {
					b.Fatal("no memory")
				}
				p.Insert(key, &t, len(key))
				a.Release(&t)
			}
			for b.Loop() {
				if list, left := p.Nodes(1 << 12); len(list)+left != p.nodes {
					b.Fatal(len(list))
				}
			}
		})
	}
}
