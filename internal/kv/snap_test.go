package kv

import (
	"errors"
	"slices"
	"testing"
)

// snapTree is a tree of recurrent state: pages of 4 tokens and 10 bytes, snapshots of 7 bytes.
type snapTree struct {
	*Prefix
	t *testing.T
}

func newSnapTree(t *testing.T) snapTree {
	t.Helper()
	a, err := NewAlloc(Geometry{PageTokens: 4, FixedBytes: 5, SnapBytes: 7, DraftBytes: 90, Groups: []Group{{PageBytes: 10}}},
		Limits{Bytes: 200, Slots: 2, Tokens: 40, Span: 8})
	if err != nil {
		t.Fatal(err)
	}
	return snapTree{NewPrefix(a), t}
}

// put leaves tokens in the tree with snapshots after so many of them, and gives their ids.
func (p snapTree) put(tokens string, at ...int) (ids []SnapID) {
	p.t.Helper()
	var table Table
	if !p.alloc.Grow(&table, len(tokens)) {
		p.t.Fatal("no room")
	}
	for _, to := range at {
		id, ok := p.alloc.Snap()
		if !ok {
			p.t.Fatal("no room for a snapshot")
		}
		if !p.Snapshot(elems(tokens), &table, to, id) {
			id = 0
		}
		ids = append(ids, id)
	}
	p.Insert(elems(tokens), &table, len(tokens))
	p.alloc.Release(&table)
	p.check()
	return ids
}

func (p snapTree) check(held ...SnapID) {
	p.t.Helper()
	if err := p.Check(); err != nil {
		p.t.Fatal(err)
	}
	if err := p.alloc.CheckSnaps(held); err != nil {
		p.t.Fatal(err)
	}
	if len(held) == 0 {
		if err := p.alloc.Check(nil, nil); err != nil {
			p.t.Fatal(err)
		}
	}
}

// match wants a match of that many tokens with that snapshot, and tokens in common.
func (p snapTree) match(tokens string, want int, snap SnapID, longer int) Match {
	p.t.Helper()
	m := p.Match(elems(tokens))
	if m.Tokens != want || m.Snap != snap || m.Longer != longer {
		p.t.Errorf("%s: %d tokens, snapshot %d, %d in common, want %d, %d, %d", tokens, m.Tokens, m.Snap, m.Longer, want, snap, longer)
	}
	return m
}

func TestSnapshotMatch(t *testing.T) {
	p := newSnapTree(t)
	ids := p.put("abcdefghij", 4, 8, 10)
	p.match("abcdefghijk", 10, ids[2], 10)
	p.match("abcdefghij", 8, ids[1], 10) // one token at least is run
	p.match("abcdefghxx", 8, ids[1], 8)
	p.match("abcdefgxxx", 4, ids[0], 7) // tokens alone would reach further
	p.match("abcxxx", 0, 0, 3)
	if m := p.match("abcdefghijk", 10, ids[2], 10); len(m.Table.Pages[0]) != 2 || len(m.Tail) != 1 {
		t.Errorf("pages %v, tail %v", m.Table.Pages, m.Tail)
	}

	// What goes on behind a snapshot, or parts before it, leaves it where it is.
	p.put("abcdefghijklmn")
	p.match("abcdefghijklmnop", 10, ids[2], 14)
	p.put("abcdefzz")
	p.match("abcdefghijk", 10, ids[2], 11)
	p.match("abcdefzzz", 4, ids[0], 8)
	if again := p.put("abcdefgh", 8); again[0] != 0 {
		t.Error("a second snapshot of the same place")
	}
	if n := p.alloc.snaps.inUse(); n != 3 {
		t.Errorf("%d snapshots in use", n)
	}
	p.DropSnapshot(ids[1])
	p.check()
	p.match("abcdefghxx", 4, ids[0], 8)
	p.Clear()
	p.check()
	if p.alloc.InUse() != 0 {
		t.Errorf("%d bytes left", p.alloc.InUse())
	}
}

func TestSnapshotEvict(t *testing.T) {
	p := newSnapTree(t)
	ids := p.put("abcdefgh", 4, 8)
	m := p.match("abcdxxxx", 4, ids[0], 4)
	pin := p.Pin(&m) // now worth more than the other
	p.check(pin.Snap())
	if freed := p.Evict(7); freed != 7 {
		t.Errorf("freed %d, want the snapshot nobody started from", freed)
	}
	p.match("abcdefghx", 4, ids[0], 8)
	// All that can go goes; a snapshot that somebody is about to restore stays, though the tree lets go of it.
	p.Evict(1000)
	if p.alloc.snaps.inUse() != 1 {
		t.Errorf("%d snapshots left, one is pinned", p.alloc.snaps.inUse())
	}
	p.check(pin.Snap())
	p.Unpin(&pin)
	p.Evict(1000)
	p.check()
	if p.alloc.InUse() != 0 || p.Bytes() != 0 {
		t.Errorf("%d bytes in use, the tree has %d", p.alloc.InUse(), p.Bytes())
	}
}

// TestSnapshotBranch: a branch names the snapshots at the ends of its pages, also when one of them is about to go.
func TestSnapshotBranch(t *testing.T) {
	p := newSnapTree(t)
	ids := p.put("abcdefghij", 4, 6, 8, 10)
	p.put("abcdxxxx", 8)
	if b := p.Branch(elems("abcdefghij")); len(b.Snaps) != 2 || b.Snaps[0] != ids[0] || b.Snaps[1] != ids[2] {
		t.Errorf("snapshots %v, want those of %v after 4 and 8", b.Snaps, ids)
	}
	if b := p.Branch(elems("abcdefg")); len(b.Snaps) != 1 || b.Snaps[0] != ids[0] {
		t.Errorf("snapshots %v of a beginning", b.Snaps)
	}
	var seen []SnapID
	p.OnEvict(func(b Branch) bool {
		if n := len(b.Snaps); n > 0 {
			seen = append(seen, b.Snaps[n-1])
		}
		return true
	})
	if p.Evict(7); len(seen) == 0 || seen[0] != ids[0] {
		t.Errorf("%v were seen before they went, want %d first", seen, ids[0])
	}
	p.check()
}

// TestInsertSnap: what comes from elsewhere is as good as what was taken here.
func TestInsertSnap(t *testing.T) {
	p := newSnapTree(t)
	p.put("abcdefgh")
	p.match("abcdefghi", 0, 0, 8)
	var filled SnapID
	fill := func(id SnapID) error { filled = id; return nil }
	if ok, err := p.InsertSnap(elems("abcdefgh"), 4, fill); !ok || err != nil {
		t.Fatal(ok, err)
	}
	p.match("abcdefghi", 4, filled, 8)
	if ok, err := p.InsertSnap(elems("abcdefgh"), 4, func(SnapID) error { return errors.New("filled twice") }); !ok || err != nil {
		t.Error(ok, err)
	}
	if ok, err := p.InsertSnap(elems("abcdefgh"), 8, func(SnapID) error { return errors.New("torn") }); ok || err == nil {
		t.Error("a snapshot that cannot be read is there")
	}
	if ok, err := p.InsertSnap(elems("abcdxxxx"), 8, fill); ok || err != nil {
		t.Error("a snapshot of what is not there", ok, err)
	}
	p.match("abcdefghi", 4, filled, 8)
	p.check()
	p.Clear()
	p.check()
}

// TestTakeDraft: drafts have what is free and what the tree alone holds, until they are freed, and of their memory there is one
// Ref.
func TestTakeDraft(t *testing.T) {
	p := newSnapTree(t)
	p.put("abcdefgh", 4)
	slot, _ := p.alloc.Slot()
	if before := p.alloc.InUse(); !p.alloc.TakeDraft() || p.alloc.InUse() != before+90 {
		t.Errorf("%d bytes in use, before it were %d", p.alloc.InUse(), before)
	}
	if p.alloc.TakeDraft() {
		t.Error("two are 180 bytes beside 32 of 200")
	}
	if !p.TakeDraft() || p.alloc.InUse() != 2*90+5+10 {
		t.Errorf("%d bytes in use", p.alloc.InUse())
	}
	if p.TakeDraft() || slices.Contains(p.alloc.Unused(1), Ref{Drafts: true}) {
		t.Error("a third draft, or those in use could go")
	}
	if err := p.alloc.Check(nil, []SlotID{slot}); err != nil {
		t.Error(err)
	}
	if !p.alloc.FreeDrafts() || p.alloc.FreeDrafts() {
		t.Error("they are freed once")
	}
	if refs := p.alloc.Unused(2*90 + 1); slices.Contains(refs, Ref{Drafts: true}) {
		t.Error(refs)
	}
	if refs := p.alloc.Unused(2 * 90); !slices.Contains(refs, Ref{Drafts: true}) {
		t.Error(refs)
	}
	if refs := p.alloc.Unused(1); slices.Contains(refs, Ref{Drafts: true}) {
		t.Error("told twice", refs)
	}
	p.alloc.FreeSlot(slot)
	if err := p.alloc.Check(nil, nil); err != nil {
		t.Error(err)
	}
}
