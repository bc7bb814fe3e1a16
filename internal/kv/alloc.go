package kv

import (
	"fmt"
	"math"
)

// Limits is what an Alloc may spend.
type Limits struct {
	Bytes  int64 // all state of all sequences
	Slots  int   // sequences at once
	Tokens int   // longest sequence
	Least  int   // shortest limit of a sequence that Bytes must allow; 0: a page
	Span   int   // most tokens one step writes to one sequence
}

// Alloc hands out pages and slots under one byte budget. One goroutine calls it.
//
// Invariants (Check):
//   - every page id ever handed out is free or referenced: once by each table entry that names it, and once by the prefix
//     tree if that names it; a slot is referenced once;
//   - ids in use stay within the capacity;
//   - the bytes in use are those of all pages, slots, snapshots and drafts in use, each counted once however many share it, and
//     never exceed the budget; the idle bytes are those of pages and snapshots that only the tree references.
type Alloc struct {
	geo   Geometry
	lim   Limits
	cap   Capacity
	pages []ids // per group
	slots ids
	snaps ids
	inUse int64
	idle  int64

	drafts  int // taken
	drafted int // taken at once at most, since Unused told of them

	most   int64 // what lim.Bytes may become
	ask    func(least, most int64) int64
	onFree func(Ref)
}

// NewAlloc makes the ids. Every group gets as many page ids as would fill the budget alone, because how groups share the budget
// changes with what is cached. Limits.Tokens is lowered to the longest sequence that fits the budget by itself; a budget for
// fewer than Limits.Least tokens is an error with the numbers.
func NewAlloc(g Geometry, l Limits) (*Alloc, error) {
	if g.PageTokens <= 0 || l.Slots <= 0 || l.Span <= 0 || l.Tokens <= 0 {
		return nil, fmt.Errorf("divide cache memory: pages of %d tokens, %d slots, context %d, steps of %d tokens: none may be 0",
			g.PageTokens, l.Slots, l.Tokens, l.Span)
	}
	least := min(l.Tokens, max(l.Least, g.PageTokens))
	if need := g.Need(least, l.Span); need > l.Bytes {
		return nil, fmt.Errorf("divide cache memory: %d bytes are less than the %d that one sequence of %d tokens needs; "+
			"raise the cache memory", l.Bytes, need, least)
	}
	l.Tokens = longest(g, l)
	a := &Alloc{geo: g, lim: l, cap: Capacity{Slots: l.Slots}, slots: newIDs(0, l.Slots), most: l.Bytes}
	if g.FixedBytes > 0 {
		a.cap.Snaps = int(min(l.Bytes/max(g.SnapBytes, 1), math.MaxInt32-1))
	}
	a.snaps = newIDs(1, a.cap.Snaps)
	for i, grp := range g.Groups {
		n := l.Slots * g.Pages(i, l.Tokens, l.Span)
		if grp.PageBytes > 0 {
			n = int(min(l.Bytes/grp.PageBytes, math.MaxInt32-1))
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

// Limits are the limits in force: Tokens may be lower than asked for, Bytes as OnShort says.
func (a *Alloc) Limits() Limits { return a.lim }

// OnShort makes bytes the limit in force for now, in the place of Limits.Bytes. Where more are needed, ask is called for at least
// so many and at most so many more, up to Limits.Bytes in all, and gives how many there are.
func (a *Alloc) OnShort(bytes int64, ask func(least, most int64) int64) {
	a.lim.Bytes, a.ask = min(max(bytes, a.inUse), a.most), ask
}

// Final reports that the limit in force is the one there will be: who alone has all of it gets no more by waiting.
func (a *Alloc) Final() bool { return a.lim.Bytes == a.most }

// Has reports whether n bytes more may be handed out, and asks for what is missing.
func (a *Alloc) Has(n int64) bool {
	short := a.inUse + n - a.lim.Bytes
	if short > 0 && short <= a.most-a.lim.Bytes {
		a.lim.Bytes += a.ask(short, a.most-a.lim.Bytes)
	}
	return a.inUse+n <= a.lim.Bytes
}

// Lower takes up to n bytes that nobody has from the limit in force, if OnShort can bring them back, and says how many.
func (a *Alloc) Lower(n int64) int64 {
	if a.ask == nil {
		return 0
	}
	n = max(min(n, a.lim.Bytes-a.inUse), 0)
	a.lim.Bytes -= n
	return n
}

// Capacity is the ids there are, for Store.Resize.
func (a *Alloc) Capacity() Capacity { return a.cap }

// InUse is the bytes of all pages, snapshots and fixed states handed out. Copies that slots keep (Geometry.SlotToken) are not
// counted here, only by Need.
func (a *Alloc) InUse() int64 { return a.inUse }

// Idle is the part of InUse that only the prefix tree holds: eviction can free it.
func (a *Alloc) Idle() int64 { return a.idle }

// PagesInUse counts pages handed out over all groups, and those of them that only the prefix tree holds.
func (a *Alloc) PagesInUse() (all, idle int) {
	for i := range a.pages {
		all += a.pages[i].inUse()
		idle += a.pages[i].idle
	}
	return all, idle
}

// Slot takes a slot, or reports that none is free or that its fixed state does not fit the budget.
func (a *Alloc) Slot() (SlotID, bool) {
	if a.slots.left() == 0 || !a.Has(a.geo.FixedBytes) {
		return NoSlot, false
	}
	id, _ := a.slots.take()
	a.inUse += a.geo.FixedBytes
	return SlotID(id), true
}

// FreeSlot returns a slot.
func (a *Alloc) FreeSlot(s SlotID) {
	a.slots.put(int32(s))
	a.inUse -= a.geo.FixedBytes
}

// TakeDraft takes the memory of a tentative span, or reports that it does not fit the budget.
func (a *Alloc) TakeDraft() bool {
	if !a.Has(a.geo.DraftBytes) {
		return false
	}
	a.drafts++
	a.drafted = max(a.drafted, a.drafts)
	a.inUse += a.geo.DraftBytes
	return true
}

// FreeDrafts frees what TakeDraft has taken, and reports whether that was anything.
func (a *Alloc) FreeDrafts() bool {
	n := a.drafts
	a.inUse, a.drafts = a.inUse-int64(n)*a.geo.DraftBytes, 0
	return n > 0
}

// Short is how many bytes Grow lacks of those in force, 0 if it would succeed.
func (a *Alloc) Short(t *Table, tokens int) int64 {
	return max(a.inUse+a.lacks(t, tokens)-a.lim.Bytes, 0)
}

// lacks is the bytes of the pages that t lacks up to tokens.
func (a *Alloc) lacks(t *Table, tokens int) (bytes int64) {
	want := ceil(tokens, a.geo.PageTokens)
	for g := range a.geo.Groups {
		have := 0
		if g < len(t.Pages) {
			have = len(t.Pages[g])
		}
		bytes += int64(max(want-have, 0)) * a.geo.Groups[g].PageBytes
	}
	return bytes
}

// Grow makes t cover positions up to tokens in every group. It takes all it needs or, when ids or bytes do not
// suffice, nothing.
func (a *Alloc) Grow(t *Table, tokens int) bool {
	if len(t.Pages) < len(a.geo.Groups) {
		t.Pages = make([][]PageID, len(a.geo.Groups))
	}
	want := ceil(tokens, a.geo.PageTokens)
	for g := range t.Pages {
		if want-len(t.Pages[g]) > a.pages[g].left() {
			return false
		}
	}
	if !a.Has(a.lacks(t, tokens)) {
		return false
	}
	for g := range t.Pages {
		for len(t.Pages[g]) < want {
			id, _ := a.pages[g].take()
			t.Pages[g] = append(t.Pages[g], PageID(id))
			a.inUse += a.geo.Groups[g].PageBytes
		}
	}
	return true
}

// Share makes t name the pages of m, each with a reference of its own. t must be empty.
func (a *Alloc) Share(t *Table, m *Match) {
	t.Len = m.Tokens
	t.Pages = make([][]PageID, len(a.geo.Groups))
	for g := range m.Table.Pages {
		t.Pages[g] = append(t.Pages[g], m.Table.Pages[g]...)
		for _, p := range t.Pages[g] {
			if p != 0 {
				a.share(g, p)
			}
		}
	}
}

// Trim drops pages of window groups that no later token can see: the token at t.Len reads positions after
// t.Len-Window.
func (a *Alloc) Trim(t *Table) {
	for g := range t.Pages {
		w := a.geo.Groups[g].Window
		if w == 0 {
			continue
		}
		dead := min(a.geo.FirstRead(w, t.Len), len(t.Pages[g]))
		for i := dead - 1; i >= 0 && t.Pages[g][i] != 0; i-- { // what lies before a dropped page was dropped earlier
			a.drop(g, t.Pages[g][i])
			t.Pages[g][i] = 0
		}
	}
}

// Release drops all pages of t and empties it.
func (a *Alloc) Release(t *Table) {
	for g := range t.Pages {
		for _, p := range t.Pages[g] {
			if p != 0 {
				a.drop(g, p)
			}
		}
	}
	*t = Table{}
}

// Writable reports whether t alone holds the pages of positions [from, to): nobody else sees what is written there.
func (a *Alloc) Writable(t *Table, from, to int) bool {
	for g := range t.Pages {
		for i := from / a.geo.PageTokens; i < ceil(to, a.geo.PageTokens); i++ {
			if i >= len(t.Pages[g]) || t.Pages[g][i] == 0 || a.pages[g].shared(int32(t.Pages[g][i])) {
				return false
			}
		}
	}
	return true
}

func (a *Alloc) share(g int, p PageID) {
	was := a.pages[g].idle
	a.pages[g].share(int32(p))
	a.updateSums(g, was, false)
}

// drop takes one table's reference away.
func (a *Alloc) drop(g int, p PageID) {
	was := a.pages[g].idle
	free := a.pages[g].put(int32(p))
	a.updateSums(g, was, free)
	a.notifyFree(free, Ref{Group: g, Page: p})
}

// Unused lists the pages and snapshots that are free and have been handed out since it listed them last, in ascending order, of
// those kinds that are at least so many bytes: the memory behind them may go back to the system. Of drafts there is one Ref.
func (a *Alloc) Unused(least int64) (refs []Ref) {
	for g := range a.pages {
		for _, id := range a.pages[g].unused(atLeast(least, a.geo.Groups[g].PageBytes)) {
			refs = append(refs, Ref{Group: g, Page: PageID(id)})
		}
	}
	for _, id := range a.snaps.unused(atLeast(least, a.geo.SnapBytes)) {
		refs = append(refs, Ref{Snap: SnapID(id)})
	}
	if a.drafts == 0 && a.drafted > 0 && int64(a.drafted)*a.geo.DraftBytes >= least {
		a.drafted = 0
		refs = append(refs, Ref{Drafts: true})
	}
	return refs
}

// atLeast is how many things of a size are so many bytes or more.
func atLeast(bytes, size int64) int { return int((bytes + size - 1) / max(size, 1)) }

// OnFree calls f for every page and snapshot that nobody holds any more, before its id is given out again. It is for stores that
// allocate the memory behind an id only while it is in use.
func (a *Alloc) OnFree(f func(Ref)) { a.onFree = f }

func (a *Alloc) notifyFree(free bool, ref Ref) {
	if free && a.onFree != nil {
		a.onFree(ref)
	}
}

// treeRef and treeUnref take and drop the prefix tree's reference. treeUnref gives the bytes it freed.
func (a *Alloc) treeRef(g int, p PageID) { a.pages[g].treeRef(int32(p)) }

func (a *Alloc) treeUnref(g int, p PageID) int64 {
	was, before := a.pages[g].idle, a.inUse
	free := a.pages[g].treeUnref(int32(p))
	a.updateSums(g, was, free)
	a.notifyFree(free, Ref{Group: g, Page: p})
	return before - a.inUse
}

// updateSums updates the byte counts after a change of one reference in group g.
func (a *Alloc) updateSums(g, wasIdle int, freed bool) {
	size := a.geo.Groups[g].PageBytes
	a.idle += int64(a.pages[g].idle-wasIdle) * size
	if freed {
		a.inUse -= size
	}
}
