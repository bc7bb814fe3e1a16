package sched

import (
	"slices"

	"hearth/internal/kv"
)

// Recurrent state can be restored only from snapshots (kv.Prefix.Snapshot). They are taken where a later prompt is likely to
// differ from this one or to continue it: at the offsets in Seq.Marks, every Config.SnapEvery tokens, where the prompt stopped
// matching the prefix tree (kv.Match.Longer), and where a sequence ends. While a sequence runs an offset is rounded down to a
// whole page, because the rest of that page is still being written.

// Snap is a snapshot to take of the slot's state after position To-1. It splits its item into two spans of one batch.
type Snap struct {
	To int
	ID kv.SnapID
}

// planSnaps finds memory for the snapshots inside an item.
func (s *Scheduler) planSnaps(it *Item) {
	geo := s.alloc.Geometry()
	if s.prefix == nil || geo.Sliceable() {
		return
	}
	first, from := len(s.snaps), it.Seq.Table.Len
	for to := from - from%geo.PageTokens + geo.PageTokens; to <= from+it.Tokens; to += geo.PageTokens {
		if !s.wantsSnap(it.Seq, to) {
			continue
		}
		id, ok := s.prefix.TakeSnap()
		if !ok {
			break
		}
		s.snaps = append(s.snaps, Snap{To: to, ID: id})
	}
	it.Snaps = s.snaps[first:len(s.snaps):len(s.snaps)]
}

// wantsSnap says whether a snapshot is wanted on the page that ends at to.
func (s *Scheduler) wantsSnap(q *Seq, to int) bool {
	page := s.alloc.Geometry().PageTokens
	on := func(at int) bool { return at-at%page == to }
	return slices.ContainsFunc(q.Marks, on) || q.Match.Longer > q.Match.Tokens && on(q.Match.Longer) ||
		s.cfg.SnapEvery > 0 && to/s.cfg.SnapEvery > (to-page)/s.cfg.SnapEvery
}

// storeSnaps puts the snapshots of an item whose tokens have run into the tree.
func (s *Scheduler) storeSnaps(it *Item) {
	for _, n := range it.Snaps {
		s.prefix.Snapshot(it.Seq.Key, &it.Seq.Table, n.To, n.ID)
		it.Seq.stored = max(it.Seq.stored, n.To)
	}
}

func (s *Scheduler) dropSnaps(it *Item) {
	for _, n := range it.Snaps {
		s.alloc.DropSnap(n.ID)
	}
}

// snapEnd puts a snapshot of the end of q into the tree; the caller still has to take its contents, see Seq.EndSnap.
func (s *Scheduler) snapEnd(q *Seq) {
	if s.prefix == nil || s.alloc.Geometry().Sliceable() || q.Table.Len == 0 {
		return
	}
	if id, ok := s.prefix.TakeSnap(); ok && s.prefix.Snapshot(q.Key, &q.Table, q.Table.Len, id) {
		q.EndSnap = id
	}
}

// Lost takes back a snapshot that the store could not make.
func (s *Scheduler) Lost(id kv.SnapID) {
	if s.prefix != nil {
		s.prefix.DropSnapshot(id)
	}
}
