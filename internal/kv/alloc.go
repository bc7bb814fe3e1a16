package kv

import "fmt"

// Limits is what an Alloc may spend.
type Limits struct {
	Bytes  int64 // all state of all sequences
	Slots  int   // sequences at once
	Tokens int   // longest sequence
	Span   int   // most tokens one step writes to one sequence
}

// Alloc hands out pages and slots under one byte budget. One goroutine calls it.
//
// Invariants (Check):
//   - every page id ever handed out is either free or owned by exactly one table entry, and the same holds for slots;
//   - ids in use stay within the capacity;
//   - the bytes in use are the sum over the pages and slots in use, and never exceed the budget.
type Alloc struct {
	geo   Geometry
	lim   Limits
	cap   Capacity
	pages []ids // per group
	slots ids
	inUse int64
}

// NewAlloc divides the limits into ids. Limits.Tokens is lowered to the longest sequence that fits the byte budget
// alone; a budget under one page of every group is an error with the numbers.
func NewAlloc(g Geometry, l Limits) (*Alloc, error) {
	if g.PageTokens <= 0 || l.Slots <= 0 || l.Span <= 0 || l.Tokens <= 0 {
		return nil, fmt.Errorf("divide cache memory: pages of %d tokens, %d slots, context %d, steps of %d tokens: none may be 0",
			g.PageTokens, l.Slots, l.Tokens, l.Span)
	}
	least := min(l.Tokens, g.PageTokens)
	if need := g.Need(least, l.Span); need > l.Bytes {
		return nil, fmt.Errorf("divide cache memory: %d bytes are less than the %d that one sequence of %d tokens needs; "+
			"raise the cache memory", l.Bytes, need, least)
	}
	l.Tokens = longest(g, l)
	a := &Alloc{geo: g, lim: l, cap: Capacity{Slots: l.Slots}, slots: newIDs(0, l.Slots)}
	for i, grp := range g.Groups {
		n := l.Slots * g.Pages(i, l.Tokens, l.Span)
		if grp.PageBytes > 0 {
			n = int(min(int64(n), l.Bytes/grp.PageBytes))
		}
		a.cap.Pages = append(a.cap.Pages, n)
		a.pages = append(a.pages, newIDs(1, n))
	}
	return a, nil
}

// longest is the largest token count up to l.Tokens whose Need fits. Need never falls with more tokens.
func longest(g Geometry, l Limits) int {
	lo, hi := min(l.Tokens, g.PageTokens), l.Tokens
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if g.Need(mid, l.Span) <= l.Bytes {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

// Geometry is what the allocator was made for.
func (a *Alloc) Geometry() Geometry { return a.geo }

// Limits are the limits in force: Tokens may be lower than asked for.
func (a *Alloc) Limits() Limits { return a.lim }

// Capacity is the ids there are, for Store.Resize.
func (a *Alloc) Capacity() Capacity { return a.cap }

// InUse is the bytes of all pages and fixed states handed out. Copies that slots keep (Geometry.SlotToken) are not in
// it: only Need accounts for them.
func (a *Alloc) InUse() int64 { return a.inUse }

// PagesInUse counts pages handed out over all groups.
func (a *Alloc) PagesInUse() int {
	n := 0
	for i := range a.pages {
		n += a.pages[i].inUse()
	}
	return n
}

// Slot takes a slot, or reports that none is free or that its fixed state does not fit the budget.
func (a *Alloc) Slot() (SlotID, bool) {
	if a.inUse+a.geo.FixedBytes > a.lim.Bytes {
		return NoSlot, false
	}
	id, ok := a.slots.take()
	if !ok {
		return NoSlot, false
	}
	a.inUse += a.geo.FixedBytes
	return SlotID(id), true
}

// FreeSlot returns a slot.
func (a *Alloc) FreeSlot(s SlotID) {
	a.slots.put(int32(s))
	a.inUse -= a.geo.FixedBytes
}

// Grow makes t cover positions up to tokens in every group. It takes all it needs or, when ids or bytes do not
// suffice, nothing.
func (a *Alloc) Grow(t *Table, tokens int) bool {
	if len(t.Pages) < len(a.geo.Groups) {
		t.Pages = make([][]PageID, len(a.geo.Groups))
	}
	want := ceil(tokens, a.geo.PageTokens)
	var bytes int64
	for g := range t.Pages {
		n := max(want-len(t.Pages[g]), 0)
		if n > a.pages[g].left() {
			return false
		}
		bytes += int64(n) * a.geo.Groups[g].PageBytes
	}
	if a.inUse+bytes > a.lim.Bytes {
		return false
	}
	for g := range t.Pages {
		for len(t.Pages[g]) < want {
			id, _ := a.pages[g].take()
			t.Pages[g] = append(t.Pages[g], PageID(id))
		}
	}
	a.inUse += bytes
	return true
}

// Trim frees pages of window groups that no later token can see: the token at t.Len reads positions after
// t.Len-Window.
func (a *Alloc) Trim(t *Table) {
	for g := range t.Pages {
		w := a.geo.Groups[g].Window
		if w == 0 {
			continue
		}
		dead := min(max(t.Len-w+1, 0)/a.geo.PageTokens, len(t.Pages[g]))
		for i := dead - 1; i >= 0 && t.Pages[g][i] != 0; i-- { // what lies before a freed page was freed earlier
			a.free(g, t.Pages[g][i])
			t.Pages[g][i] = 0
		}
	}
}

// Release frees all pages of t and empties it.
func (a *Alloc) Release(t *Table) {
	for g := range t.Pages {
		for _, p := range t.Pages[g] {
			if p != 0 {
				a.free(g, p)
			}
		}
	}
	*t = Table{}
}

func (a *Alloc) free(g int, p PageID) {
	a.pages[g].put(int32(p))
	a.inUse -= a.geo.Groups[g].PageBytes
}
