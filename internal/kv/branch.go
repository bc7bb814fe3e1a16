package kv

import (
	"cmp"
	"slices"
)

// Branch is what the tree has along a path, in whole pages. It is good until the tree changes.
type Branch struct {
	Key   []Elem
	Pages [][]PageID // per group and page; 0: a window's page that is gone
	Uses  []int      // per page: times a sequence started from it or from below it
	Snaps []SnapID   // per page: the snapshot of the state after it; 0: none. Snapshots inside pages are not here
}

// Branch gives what is stored along key.
func (p *Prefix) Branch(key []Elem) Branch {
	n, at := p.walk(key)
	return p.branch(n, key[:at])
}

func (p *Prefix) branch(n *node, key []Elem) Branch {
	pt := p.alloc.geo.PageTokens
	whole := len(key) / pt
	b := Branch{Key: key[:whole*pt], Pages: p.pagesOn(n, whole), Uses: make([]int, whole), Snaps: make([]SnapID, whole)}
	p.path(n, whole, func(x *node, i, _ int) { b.Uses[i] = x.hits })
	for x := n; x.parent != nil; x = x.parent {
		if at := x.to(); x.snap != 0 && at%pt == 0 && at <= whole*pt {
			b.Snaps[at/pt-1] = x.snap
		}
	}
	return b
}

// ending is the branch that ends with n.
func (p *Prefix) ending(n *node) Branch {
	key := make([]Elem, n.to())
	for x := n; x.parent != nil; x = x.parent {
		copy(key[x.from:], x.key)
	}
	return p.branch(n, key)
}

// Branches visits every end of the tree, the ones worth most first, until visit says no. It must not change the tree.
func (p *Prefix) Branches(visit func(Branch) bool) {
	ends := slices.Clone(p.leaves)
	slices.SortFunc(ends, func(a, b *node) int { return cmp.Compare(b.Rank, a.Rank) })
	for _, n := range ends {
		if !visit(p.ending(n)) {
			return
		}
	}
}

// OnEvict calls see for every branch before Evict shortens it. A branch for which see returned true comes again only when it was
// used or has grown. see must not change the tree.
func (p *Prefix) OnEvict(see func(Branch) bool) { p.onEvict = see }

// notifyEvict calls onEvict for a branch whose end may go.
func (p *Prefix) notifyEvict(n *node) {
	if p.onEvict != nil && !n.notified && !p.inUse(n, len(n.pages[0])-1) {
		n.notified = p.onEvict(p.ending(n))
	}
}

// notifyEvictSnap calls onEvict for the branch that ends with a snapshot that is about to go.
func (p *Prefix) notifyEvictSnap(n *node) {
	if p.onEvict != nil && n.to()%p.alloc.geo.PageTokens == 0 {
		p.onEvict(p.ending(n))
	}
}

// InsertPage puts a page into the tree that comes from elsewhere and not from a sequence: fill writes its contents, for each
// group for which want is true. Memory comes from what is free or can be evicted. uses is how often sequences are known to have
// started from there. False without an error: there is no memory, or the tree no longer reaches up to the page.
func (p *Prefix) InsertPage(key []Elem, index, uses int, want func(group int) bool, fill func(group int, page PageID) error) (bool, error) {
	to := (index + 1) * p.alloc.geo.PageTokens
	t := Table{Pages: make([][]PageID, len(p.named))}
	for g := range t.Pages {
		t.Pages[g] = make([]PageID, index+1)
	}
	for {
		n, at := p.walk(key[:to])
		if at < index*p.alloc.geo.PageTokens {
			return false, nil
		}
		if at == to && p.has(n, index, want) {
			return true, nil
		}
		short, ok := p.alloc.page(&t, index, want)
		if ok {
			break
		}
		if p.Evict(short) == 0 {
			return false, nil
		}
	}
	defer p.alloc.Release(&t)
	for g := range t.Pages {
		if page := t.Pages[g][index]; page != 0 {
			if err := fill(g, page); err != nil {
				return false, err
			}
		}
	}
	p.Insert(key, &t, to)
	n, _ := p.walk(key[:to])
	for x := n; x.parent != nil; x = x.parent {
		x.hits = max(x.hits, uses)
	}
	p.use(n)
	return true, nil
}

// InsertSnap puts a snapshot into the tree that comes from elsewhere, of the state after the first to positions of key: fill
// writes its contents. False without an error: there is no memory, or the tree does not reach so far.
func (p *Prefix) InsertSnap(key []Elem, to int, fill func(SnapID) error) (bool, error) {
	if n, at := p.walk(key[:to]); at == to && n.to() == to && n.snap != 0 {
		return true, nil
	}
	id, ok := p.TakeSnap()
	if !ok {
		return false, nil
	}
	n, at := p.walk(key[:to])
	if at != to || n.parent == nil { // evicted, maybe just now
		p.alloc.DropSnap(id)
		return false, nil
	}
	if err := fill(id); err != nil {
		p.alloc.DropSnap(id)
		return false, err
	}
	p.putSnap(n, at, id)
	return true, nil
}

// has reports whether the path to n has the page of an index in every group for which want is true.
func (p *Prefix) has(n *node, index int, want func(group int) bool) bool {
	all := true
	p.path(n, index+1, func(x *node, i, k int) {
		for g := range x.pages {
			all = all && (i != index || !want(g) || x.pages[g][k] != 0)
		}
	})
	return all
}

// page takes a fresh page of each group for which want is true, all or none. short is how many bytes are missing.
func (a *Alloc) page(t *Table, index int, want func(group int) bool) (short int64, ok bool) {
	need := int64(0)
	for g := range a.geo.Groups {
		if want(g) {
			need += a.geo.Groups[g].PageBytes
		}
	}
	if !a.Has(need) {
		return a.inUse + need - a.lim.Bytes, false
	}
	for g := range a.geo.Groups {
		if !want(g) {
			continue
		}
		id, ok := a.pages[g].take()
		if !ok {
			for ; g >= 0; g-- {
				if page := &t.Pages[g][index]; *page != 0 {
					a.drop(g, *page)
					*page = 0
				}
			}
			return 1, false
		}
		t.Pages[g][index] = PageID(id)
		a.inUse += a.geo.Groups[g].PageBytes
	}
	return 0, true
}
