package kv

// Recurrent state (of recurrent and convolution layers) has the same size after every token and cannot be shortened. It can be
// restored only where a snapshot of it was taken. A node of the tree may have one, of the state after its last token. A match
// ends at the deepest node that has one, with the pages up to there; Match.Longer is what the tokens alone have in common.
//
// Invariants, beside those of Alloc and Prefix (Check):
//   - a snapshot id in use is referenced once by whoever took or pinned it, and once by the tree if a node has it;
//   - the list of nodes with snapshots is complete;
//   - a snapshot belongs to its node's end: a node without one may grow, and one that shrinks loses it.

// snapshot is what a node has of it.
type snapshot struct {
	snap     SnapID // 0: none
	snapAt   int    // in Prefix.snaps
	restores int
	worth    int64 // comparable with a node's rank
}

// Snap takes the id of a snapshot, or reports that none is free or that its bytes do not fit the budget.
func (a *Alloc) Snap() (SnapID, bool) {
	if a.geo.FixedBytes == 0 || a.snaps.left() == 0 || !a.Has(a.geo.SnapBytes) {
		return 0, false
	}
	id, _ := a.snaps.take()
	a.inUse += a.geo.SnapBytes
	return SnapID(id), true
}

// TakeSnap is Alloc.Snap, with memory from what only the tree holds where there is no other.
func (p *Prefix) TakeSnap() (SnapID, bool) {
	id, ok := p.alloc.Snap()
	if !ok && p.Evict(p.alloc.geo.SnapBytes) > 0 {
		id, ok = p.alloc.Snap()
	}
	return id, ok
}

// TakeDraft is Alloc.TakeDraft likewise.
func (p *Prefix) TakeDraft() bool {
	return p.alloc.TakeDraft() || p.Evict(p.alloc.inUse+p.alloc.geo.DraftBytes-p.alloc.lim.Bytes) > 0 && p.alloc.TakeDraft()
}

// DropSnap gives up the reference that Snap gave.
func (a *Alloc) DropSnap(id SnapID) {
	was := a.snaps.idle
	free := a.snaps.put(int32(id))
	a.updateSnapSums(was, free)
	a.notifyFree(free, Ref{Snap: id})
}

func (a *Alloc) shareSnap(id SnapID) {
	was := a.snaps.idle
	a.snaps.share(int32(id))
	a.updateSnapSums(was, false)
}

// updateSnapSums is updateSums for snapshots.
func (a *Alloc) updateSnapSums(wasIdle int, freed bool) {
	a.idle += int64(a.snaps.idle-wasIdle) * a.geo.SnapBytes
	if freed {
		a.inUse -= a.geo.SnapBytes
	}
}

// Snapshot puts the first to positions of a sequence into the tree, as Insert does, with a snapshot of its state after
// them. It takes over the reference that Snap gave. False: there is one already, and id is free again.
func (p *Prefix) Snapshot(key []Elem, t *Table, to int, id SnapID) bool {
	p.Insert(key, t, to)
	n, at := p.walk(key[:to])
	if n.parent == nil || at != to || n.to() == to && n.snap != 0 {
		p.alloc.DropSnap(id)
		return false
	}
	p.putSnap(n, at, id)
	return true
}

// putSnap gives the end of the first at positions on the way to n a snapshot, which it has none of.
func (p *Prefix) putSnap(n *node, at int, id SnapID) {
	if at < n.to() {
		n = p.split(n, at)
	}
	n.snapshot = snapshot{snap: id, snapAt: len(p.snaps), worth: p.clock}
	p.snaps = append(p.snaps, n)
	p.count(n.tag, 0, p.alloc.geo.SnapBytes)
	p.alloc.snaps.treeRef(int32(id))
	p.alloc.DropSnap(id)
}

// DropSnapshot drops a snapshot whose contents could not be taken.
func (p *Prefix) DropSnapshot(id SnapID) {
	for _, n := range p.snaps {
		if n.snap == id {
			p.dropSnap(n)
			return
		}
	}
}

// dropSnap takes a node's snapshot out of the tree and gives the bytes that were freed.
func (p *Prefix) dropSnap(n *node) int64 {
	if n.snap == 0 {
		return 0
	}
	last := p.snaps[len(p.snaps)-1]
	p.snaps[n.snapAt], last.snapAt = last, n.snapAt
	p.snaps = p.snaps[:len(p.snaps)-1]
	id := n.snap
	n.snapshot = snapshot{}
	p.count(n.tag, 0, -p.alloc.geo.SnapBytes)
	was, before := p.alloc.snaps.idle, p.alloc.inUse
	free := p.alloc.snaps.treeUnref(int32(id))
	p.alloc.updateSnapSums(was, free)
	p.alloc.notifyFree(free, Ref{Snap: SnapID(id)})
	return before - p.alloc.inUse
}

// leastSnap is the snapshot of the least worth that no sequence is about to restore, nil if there is none. There are few, since
// each takes as much memory as hundreds or thousands of tokens.
func (p *Prefix) leastSnap() *node {
	var least *node
	for _, n := range p.snaps {
		if (least == nil || n.worth < least.worth) && !p.alloc.snaps.shared(int32(n.snap)) {
			least = n
		}
	}
	return least
}

// snapped is the deepest node on the path to n that ends within the first tokens, has a snapshot, and whose windows are
// whole in pages; nil if there is none.
func (p *Prefix) snapped(n *node, pages [][]PageID, tokens int) *node {
	for ; n.parent != nil; n = n.parent {
		if n.snap != 0 && n.to() <= tokens && p.restorable(pages, n.to()) == n.to() {
			return n
		}
	}
	return nil
}
