package kv

import (
	"crypto/sha256"
	"math/rand/v2"
	"slices"
	"testing"
)

// No salted element equals one that is not, or one under another salt, of whatever token.
func TestSaltElem(t *testing.T) {
	var none Salt
	if none.Elem(0, 7) != 7 {
		t.Error("the zero salt changes an element")
	}
	a, b := saltOf("a"), saltOf("b")
	for pos := range saltedElems {
		for _, e := range []Elem{0, 7, 1<<32 - 1, 5<<32 | 3} {
			if x := a.Elem(pos, e); x == e || x>>63 != 1 || x == b.Elem(pos, e) || uint32(x) != uint32(e) {
				t.Errorf("element %x at %d: %x and %x", e, pos, x, b.Elem(pos, e))
			}
		}
	}
	if a.Elem(saltedElems, 7) != 7 {
		t.Error("an element behind the salted ones is changed")
	}
}

func saltOf(name string) Salt {
	sum := sha256.Sum256([]byte(name))
	return Salt(sum[:16])
}

// Sequences of three parties with the same tokens leave what they ran in one tree. What each finds is what it would find
// in a tree of its own: kind of hit, tokens, and how far they match.
func TestSaltsApart(t *testing.T) {
	const parties = 3
	r := rand.New(rand.NewPCG(4, 4))
	g := Geometry{PageTokens: 8, Groups: []Group{{PageBytes: 1}, {Window: 20, PageBytes: 1}}}
	tree := func() (*Alloc, *Prefix) {
		a, err := NewAlloc(g, Limits{Bytes: 1 << 20, Slots: 4, Tokens: 400, Span: 400})
		if err != nil {
			t.Fatal(err)
		}
		return a, NewPrefix(a)
	}
	shared, together := tree()
	var alone [parties]*Prefix
	var allocs [parties]*Alloc
	for i := range alone {
		allocs[i], alone[i] = tree()
	}
	put := func(a *Alloc, p *Prefix, key []Elem) Match {
		m, table := run(t, a, p, key)
		a.Release(&table)
		return m
	}
	hits := 0
	var stored [][]Elem
	for range 600 {
		var key []Elem
		if len(stored) > 0 && r.IntN(3) > 0 {
			key = append(key, stored[r.IntN(len(stored))]...)
			key = key[:1+r.IntN(len(key))]
		}
		for n := 1 + r.IntN(40); n > 0; n-- {
			key = append(key, Elem(r.IntN(3)))
		}
		key = key[:min(len(key), 400)]
		stored = append(stored, key)
		who := r.IntN(parties)
		salt := saltOf(string(rune('a' + who)))
		salted := make([]Elem, len(key))
		for i, e := range key {
			salted[i] = salt.Elem(i, e)
		}
		got, want := put(shared, together, salted), put(allocs[who], alone[who], key)
		if got.Kind != want.Kind || got.Tokens != want.Tokens || got.Longer != want.Longer {
			t.Fatalf("party %d: %v %d of %d, alone %v %d of %d", who, got.Kind, got.Tokens, got.Longer, want.Kind, want.Tokens, want.Longer)
		}
		if want.Kind != Miss {
			hits++
		}
		if err := together.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if hits < 100 {
		t.Errorf("%d hits say little", hits)
	}
}

// What a session left that has come back, and what was marked, outlives one-offs that are as young.
func TestCredit(t *testing.T) {
	a, err := NewAlloc(Geometry{PageTokens: 1, Groups: []Group{{PageBytes: 1}}}, Limits{Bytes: 100, Slots: 1, Tokens: 9, Span: 9})
	if err != nil {
		t.Fatal(err)
	}
	p := NewPrefix(a)
	p.SetTerms(Terms{Sessions: 10})
	put := func(o Owner, e Elem) {
		var table Table
		a.Grow(&table, 1)
		p.Insert([]Elem{e}, &table, 1)
		p.Credit([]Elem{e}, o)
		a.Release(&table)
	}
	for e := range Elem(20) {
		put(Owner{}, 10+e)
	}
	put(Owner{Session: 1}, 1)
	put(Owner{Session: 1}, 2) // the second turn
	put(Owner{Marked: true}, 3)
	put(Owner{Session: 2}, 4)
	put(Owner{}, 5)
	p.Evict(20)
	for i, want := range []Elem{1, 4, 5, 2, 3} {
		if p.Evict(1); p.root.children[want] != nil {
			t.Errorf("eviction %d does not take %d", i, want)
		}
	}
	if p.Entries() != 0 || p.Sessions() != 2 {
		t.Errorf("%d entries and %d sessions left", p.Entries(), p.Sessions())
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}

// TestHitsAreBounded: what was used again very often outlives eight times as many as there were, and no more.
func TestHitsAreBounded(t *testing.T) {
	a, err := NewAlloc(Geometry{PageTokens: 1, Groups: []Group{{PageBytes: 1}}}, Limits{Bytes: 200, Slots: 1, Tokens: 9, Span: 9})
	if err != nil {
		t.Fatal(err)
	}
	p := NewPrefix(a)
	put := func(e Elem) {
		var table Table
		a.Grow(&table, 1)
		p.Insert([]Elem{e}, &table, 1)
		a.Release(&table)
	}
	put(1)
	for range 100 {
		p.root.children[1].hits++
		p.use(p.root.children[1])
	}
	for e := range Elem(20) {
		put(10 + e)
	}
	for e := range Elem(20) {
		if p.Evict(1); p.root.children[1] == nil {
			if e != 7 {
				t.Errorf("it goes as number %d", e)
			}
			return
		}
	}
	t.Error("it is never evicted")
}

// Owns says yes only where the party itself left something that has as much in common with the key as anything has, and goes
// on otherwise; and it says so wherever what the party left is the end of a branch.
func TestOwns(t *testing.T) {
	const parties = 4
	r := rand.New(rand.NewPCG(5, 5))
	a, err := NewAlloc(Geometry{PageTokens: 4, Groups: []Group{{PageBytes: 1}}}, Limits{Bytes: 1 << 20, Slots: 4, Tokens: 60, Span: 60})
	if err != nil {
		t.Fatal(err)
	}
	p := NewPrefix(a)
	type left struct {
		key   []Elem
		party uint64
	}
	var all []left
	yes, ends := 0, 0
	for range 800 {
		var key []Elem
		if len(all) > 0 && r.IntN(4) > 0 {
			key = append(key, all[r.IntN(len(all))].key...)
			key = key[:1+r.IntN(len(key))]
		}
		for n := 1 + r.IntN(20); n > 0; n-- {
			key = append(key, Elem(r.IntN(3)))
		}
		key = key[:min(len(key), 60)]
		party := uint64(r.IntN(parties))
		n, at := p.walk(key)
		reaches := false
		for _, l := range all {
			reaches = reaches || l.party == party && Common(l.key, key) == at
		}
		got, instead := p.Owns(key, party)
		if len(instead) > 0 && !slices.ContainsFunc(all, func(l left) bool {
			return l.party == party && Common(l.key, key) == at && len(instead) <= longestInstead && Common(l.key[at:], instead) == len(instead)
		}) || !got && instead != nil {
			t.Fatalf("%v parts after %d, where party %d is said to have left %v", key, at, party, instead)
		}
		parts := at > 0 && kind(n, at, len(key)) == LCP
		switch {
		case got && (!reaches || !parts || party == 0):
			t.Fatalf("%v is party %d's where it parts after %d, says Owns", key, party, at)
		case got:
			yes++
		case party != 0 && parts && at < n.to() && n.Listed() && n.party == party && n.reach >= at:
			t.Fatalf("%v parts after %d from an end that party %d left, and Owns says no", key, at, party)
		}
		if got && !n.Listed() {
			ends++
		}
		_, table := run(t, a, p, key)
		if r.IntN(8) > 0 { // else it failed
			p.Credit(key, Owner{Party: party})
			all = append(all, left{key, party})
		}
		a.Release(&table)
		if r.IntN(20) == 0 {
			p.Evict(int64(r.IntN(60)))
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if yes < 50 || ends < 20 {
		t.Errorf("%d times yes, %d before a branching, say little", yes, ends)
	}
}

// run puts all of key into the tree as a sequence does that starts at its match, and gives the table it still holds.
func run(t *testing.T, a *Alloc, p *Prefix, key []Elem) (Match, Table) {
	t.Helper()
	m := p.Match(key)
	var table Table
	a.Share(&table, &m)
	pin := p.Pin(&m)
	p.Unpin(&pin)
	a.Release(&table)
	if !a.Grow(&table, len(key)) {
		t.Fatal("no memory")
	}
	p.Insert(key, &table, len(key))
	return m, table
}

// What is under each of several salts is counted by itself, whatever comes and goes, and dropped by itself.
func TestStored(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	g := Geometry{PageTokens: 8, Groups: []Group{{PageBytes: 3}, {Window: 20, PageBytes: 2}}}
	a, err := NewAlloc(g, Limits{Bytes: 400, Slots: 4, Tokens: 200, Span: 200})
	if err != nil {
		t.Fatal(err)
	}
	p := NewPrefix(a)
	salts := []Salt{{}, saltOf("a"), saltOf("b")}
	stored := map[Tag]Stored{}
	drops := 0
	for range 2000 {
		who := r.IntN(len(salts))
		if r.IntN(20) == 0 {
			p.Stored(stored)
			before, mine := p.Bytes(), stored[salts[who].Tag()]
			freed := p.DropTag(salts[who].Tag())
			p.Stored(stored)
			if left := stored[salts[who].Tag()]; freed != mine.Bytes || before-p.Bytes() != freed || left != (Stored{}) {
				t.Fatalf("dropped %d of %+v, %+v are left", freed, mine, left)
			}
			drops += int(min(freed, 1))
		}
		key := make([]Elem, 1+r.IntN(60))
		for i := range key {
			key[i] = salts[who].Elem(i, Elem(r.IntN(2)))
		}
		m := p.Match(key)
		var table Table
		a.Share(&table, &m)
		pin := p.Pin(&m)
		p.Unpin(&pin)
		a.Release(&table)
		if !a.Grow(&table, len(key)) {
			p.Evict(200)
			if !a.Grow(&table, len(key)) {
				t.Fatal("no memory")
			}
		}
		p.Insert(key, &table, len(key))
		a.Release(&table)
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if p.Stored(stored); len(stored) != len(salts) || drops < 50 {
		t.Errorf("%v after %d drops: this shows nothing", stored, drops)
	}
	if len(stored) == 0 || TagOf(salts[1].Elem(0, 7)) != salts[1].Tag() || TagOf(7) != 0 {
		t.Error("a tag is not that of its salt")
	}
}
