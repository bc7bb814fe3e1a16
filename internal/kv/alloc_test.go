package kv

import (
	"slices"
	"strings"
	"testing"
)

func two(t *testing.T, bytes int64) *Alloc {
	t.Helper()
	g := Geometry{PageTokens: 4, FixedBytes: 5, Groups: []Group{{PageBytes: 10}, {Window: 6, PageBytes: 1}}}
	a, err := NewAlloc(g, Limits{Bytes: bytes, Slots: 2, Tokens: 40, Span: 8})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func pages(a *Alloc) int { n, _ := a.PagesInUse(); return n }

func check(t *testing.T, a *Alloc, tables []*Table, slots ...SlotID) {
	t.Helper()
	if err := a.Check(tables, slots); err != nil {
		t.Fatal(err)
	}
}

func TestAllocGrowTrimRelease(t *testing.T) {
	a := two(t, 1000)
	var x, y Table
	s, ok := a.Slot()
	if !ok || !a.Grow(&x, 9) || !a.Grow(&y, 4) {
		t.Fatal("no room in an empty allocator")
	}
	check(t, a, []*Table{&x, &y}, s)
	if got, want := a.InUse(), int64(5+4*11); got != want || pages(a) != 8 {
		t.Errorf("%d bytes in %d pages, want %d in 8", got, pages(a), want)
	}
	if x.Pages[0][0] == 0 || len(x.Pages[0]) != 3 {
		t.Errorf("pages %v", x.Pages[0])
	}
	x.Len = 9 // the token at 9 reads 4..9: page 0 of the window group is dead
	a.Trim(&x)
	if x.Pages[1][0] != 0 || x.Pages[1][1] == 0 || x.Pages[0][0] == 0 {
		t.Errorf("after Trim at 9: %v", x.Pages)
	}
	a.Trim(&x)
	check(t, a, []*Table{&x, &y}, s)
	a.Release(&x)
	a.Release(&y)
	a.FreeSlot(s)
	check(t, a, nil)
	if a.InUse() != 0 {
		t.Errorf("%d bytes left", a.InUse())
	}
}

// A refused Grow or Slot changes nothing.
func TestAllocBudget(t *testing.T) {
	a := two(t, 60)
	var x, y Table
	s, _ := a.Slot()
	if !a.Grow(&x, 16) { // 5 + 44 of 60
		t.Fatal("refused within the budget")
	}
	if a.Grow(&y, 5) || len(y.Pages[0]) != 0 {
		t.Errorf("two pages granted beyond the budget: %v", y.Pages)
	}
	check(t, a, []*Table{&x, &y}, s)
	if !a.Grow(&y, 4) || a.InUse() != 60 {
		t.Errorf("one page refused, %d in use", a.InUse())
	}
	if _, ok := a.Slot(); ok {
		t.Error("a slot beyond the budget")
	}
	check(t, a, []*Table{&x, &y}, s)
}

func TestAllocSizes(t *testing.T) {
	a := two(t, 60)
	// 16 tokens: 4 pages of 10, and the window's 4 of 1, and 5 fixed make 49; a fifth page would make 60.
	if got := a.Limits().Tokens; got != 20 {
		t.Errorf("longest sequence %d, want 20", got)
	}
	if c := a.Capacity(); c.Slots != 2 || c.Pages[0] != 6 || c.Pages[1] != 60 {
		t.Errorf("capacity %+v", c)
	}
	g := a.Geometry()
	if n := g.Pages(1, 1000, 8); n != 5 { // 6+8 positions touch at most 5 pages of 4
		t.Errorf("window pages %d", n)
	}
	_, err := NewAlloc(g, Limits{Bytes: 15, Slots: 1, Tokens: 40, Span: 8})
	if err == nil || !strings.Contains(err.Error(), "15 bytes are less than the 16") {
		t.Errorf("tiny budget: %v", err)
	}
	if _, err = NewAlloc(g, Limits{Bytes: 1 << 20, Tokens: 40, Span: 8}); err == nil {
		t.Error("no slots accepted")
	}
}

// Check finds each kind of damage.
func TestAllocCheck(t *testing.T) {
	a := two(t, 1000)
	var x Table
	s, _ := a.Slot()
	a.Grow(&x, 9)
	for name, c := range map[string]struct {
		tables []*Table
		slots  []SlotID
		want   string
	}{
		"leaked page":  {nil, []SlotID{s}, "leaked"},
		"leaked slot":  {[]*Table{&x}, nil, "leaked"},
		"shared page":  {[]*Table{&x, &x}, []SlotID{s}, "2 times"},
		"foreign page": {[]*Table{&x, {Pages: [][]PageID{{9}}}}, []SlotID{s}, "free"},
	} {
		if err := a.Check(c.tables, c.slots); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a.inUse++
	if err := a.Check([]*Table{&x}, []SlotID{s}); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("wrong sum: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a double free went unnoticed")
		}
	}()
	a.FreeSlot(s)
	a.FreeSlot(s)
}

// TestOnFree: whoever asks hears of every id once, when the last reference has gone, and of none that something holds.
func TestOnFree(t *testing.T) {
	a, err := NewAlloc(Geometry{PageTokens: 4, Groups: []Group{{PageBytes: 10}}, FixedBytes: 8, SnapBytes: 8},
		Limits{Bytes: 1 << 10, Slots: 2, Tokens: 100, Span: 8})
	if err != nil {
		t.Fatal(err)
	}
	var heard []Ref
	a.OnFree(func(r Ref) { heard = append(heard, r) })
	p := NewPrefix(a)
	var tab Table
	if !a.Grow(&tab, 12) {
		t.Fatal("no pages")
	}
	ids := append([]PageID(nil), tab.Pages[0]...)
	tab.Len = 12
	key := []Elem{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	snap, _ := a.Snap()
	p.Snapshot(key, &tab, 8, snap)
	a.Release(&tab)
	if len(heard) != 1 || heard[0] != (Ref{Page: ids[2]}) {
		t.Errorf("heard %v, want page %d", heard, ids[2])
	}
	p.Drop()
	seen := map[Ref]int{}
	for _, r := range heard {
		seen[r]++
	}
	for _, r := range []Ref{{Page: ids[0]}, {Page: ids[1]}, {Page: ids[2]}, {Snap: snap}} {
		if seen[r] != 1 {
			t.Errorf("heard %d times of %+v", seen[r], r)
		}
	}
	if len(heard) != 4 {
		t.Errorf("heard %v", heard)
	}
}

// TestAdded: whole pages that the tree lacks, without the prompt's last token; with what is computed anew and taken from the
// tree it makes the prompt.
func TestAdded(t *testing.T) {
	g := Geometry{PageTokens: 64}
	for _, tt := range []struct{ prompt, cached, longer, want int }{
		{1, 0, 0, 0}, {63, 0, 0, 0}, {64, 0, 0, 63}, {65, 0, 0, 64}, {200, 0, 0, 192}, {192, 0, 0, 191},
		{200, 0, 40, 192},    // less than a page is taken from nobody
		{200, 199, 200, 0},   // all of it is there
		{192, 191, 192, 0},   // likewise
		{200, 150, 150, 42},  // it goes on inside a page
		{200, 195, 195, 0},   // and ends there
		{500, 128, 300, 192}, // what is there cannot be restored, but is stored: 256 of it in whole pages
		{500, 0, 500, 0},
	} {
		got := g.Added(tt.prompt, tt.cached, tt.longer)
		if got != tt.want || got+tt.cached >= tt.prompt {
			t.Errorf("%+v: %d", tt, got)
		}
	}
}

// TestOnShort: the limit in force grows by what is given, no further than the first limit, and shrinks by what nobody has.
func TestOnShort(t *testing.T) {
	a, err := NewAlloc(Geometry{PageTokens: 64, Groups: []Group{{PageBytes: 10}}}, Limits{Bytes: 100, Slots: 2, Tokens: 640, Span: 64})
	if err != nil {
		t.Fatal(err)
	}
	left := int64(35)
	var asked []int64
	a.OnShort(20, func(least, most int64) int64 {
		asked = append(asked, least)
		if least > left {
			return 0
		}
		left -= least
		return least
	})
	var x, y Table
	if !a.Grow(&x, 3*64) || a.Limits().Bytes != 30 || a.Final() {
		t.Errorf("%d in force, final %v", a.Limits().Bytes, a.Final())
	}
	if a.Grow(&y, 4*64) || !a.Grow(&y, 2*64) || a.Limits().Bytes != 50 {
		t.Errorf("%d in force", a.Limits().Bytes)
	}
	if a.Grow(&y, 8*64) || !slices.Equal(asked, []int64{10, 40, 20}) { // beyond all there may be: nobody is asked
		t.Errorf("asked for %v", asked)
	}
	a.Release(&x)
	if n := a.Lower(20); n != 20 || a.Limits().Bytes != 30 {
		t.Errorf("lowered by %d to %d", n, a.Limits().Bytes)
	}
	if n := a.Lower(20); n != 10 {
		t.Errorf("lowered by %d of 10 that nobody has", n)
	}
	if refs := a.Unused(31); len(refs) != 0 {
		t.Errorf("%v are unused", refs)
	}
	if refs := a.Unused(30); !slices.Equal(refs, []Ref{{Page: 1}, {Page: 2}, {Page: 3}}) {
		t.Errorf("%v are unused", refs)
	}
	left = 100
	if refs := a.Unused(1); len(refs) != 0 || !a.Grow(&x, 64) || x.Pages[0][0] != 1 {
		t.Errorf("%v are unused, then %v", refs, x.Pages)
	}
	a.Release(&x)
	if refs := a.Unused(1); !slices.Equal(refs, []Ref{{Page: 1}}) {
		t.Errorf("%v are unused", refs)
	}
	a.Release(&y)
	if err := a.Check(nil, nil); err != nil {
		t.Error(err)
	}
}
