package kv

import "fmt"

// Check asserts the invariants of Alloc, given every table and slot that its callers hold; Pin.Held is such a table. Prefix.Check
// compares what the tree holds.
func (a *Alloc) Check(tables []*Table, slots []SlotID) error {
	used, idle := int64(len(slots))*a.geo.FixedBytes+int64(a.drafts)*a.geo.DraftBytes, int64(0)
	for g := range a.pages {
		var owned []int32
		for _, t := range tables {
			if g >= len(t.Pages) {
				continue
			}
			for _, p := range t.Pages[g] {
				if p != 0 {
					owned = append(owned, int32(p))
				}
			}
		}
		if err := a.pages[g].check(owned); err != nil {
			return fmt.Errorf("check pages of group %d: %w", g, err)
		}
		used += int64(a.pages[g].inUse()) * a.geo.Groups[g].PageBytes
		idle += int64(a.pages[g].idle) * a.geo.Groups[g].PageBytes
	}
	used += int64(a.snaps.inUse()) * a.geo.SnapBytes
	idle += int64(a.snaps.idle) * a.geo.SnapBytes
	owned := make([]int32, len(slots))
	for i, s := range slots {
		owned[i] = int32(s)
	}
	if err := a.slots.check(owned); err != nil {
		return fmt.Errorf("check slots: %w", err)
	}
	if used != a.inUse || idle != a.idle {
		return fmt.Errorf("check bytes: %d counted and %d idle, pages and slots hold %d and %d", a.inUse, a.idle, used, idle)
	}
	if a.inUse > a.lim.Bytes {
		return fmt.Errorf("check bytes: %d in use, the budget is %d", a.inUse, a.lim.Bytes)
	}
	return nil
}

// CheckSnaps asserts that snapshots are referenced by the tree and by held, which lists one id per reference of others.
func (a *Alloc) CheckSnaps(held []SnapID) error {
	owned := make([]int32, len(held))
	for i, id := range held {
		owned[i] = int32(id)
	}
	if err := a.snaps.check(owned); err != nil {
		return fmt.Errorf("check snapshots: %w", err)
	}
	return nil
}

// Check asserts the invariants of Prefix.
func (p *Prefix) Check() error {
	c := treeCheck{p: p, named: make([]map[PageID]int32, len(p.named)), stored: map[Tag]*Stored{}}
	for g := range c.named {
		c.named[g] = map[PageID]int32{}
	}
	if err := c.below(&p.root); err != nil {
		return fmt.Errorf("check prefix tree: %w", err)
	}
	if c.nodes != p.nodes || c.leaves != len(p.leaves) {
		return fmt.Errorf("check prefix tree: %d nodes with %d leaves counted, there are %d with %d", p.nodes, len(p.leaves), c.nodes, c.leaves)
	}
	if err := p.leaves.Check(); err != nil {
		return fmt.Errorf("check prefix tree: evictable nodes: %w", err)
	}
	for _, n := range p.leaves {
		if len(n.children) > 0 {
			return fmt.Errorf("check prefix tree: the edge from %d to %d is listed as evictable and has children", n.from, n.to())
		}
	}
	var bytes int64
	for g := range p.named {
		ids := &p.alloc.pages[g]
		for i, kept := range ids.inTree {
			page := PageID(int32(i) + ids.first)
			var counted int32
			if int(page) < len(p.named[g]) {
				counted = p.named[g][page]
			}
			if n := c.named[g][page]; n != counted || kept != (n > 0) {
				return fmt.Errorf("check prefix tree: page %d of group %d is named %d times, counted %d, kept %t", page, g, n, counted, kept)
			}
		}
		bytes += int64(len(c.named[g])) * p.alloc.geo.Groups[g].PageBytes
	}
	bytes += int64(len(p.snaps)) * p.alloc.geo.SnapBytes
	for i, n := range p.snaps {
		if n.snap == 0 || n.snapAt != i || !p.alloc.snaps.inTree[p.alloc.snaps.at(int32(n.snap))] {
			return fmt.Errorf("check prefix tree: entry %d of the snapshots, number %d of the edge to %d, is out of place", i, n.snap, n.to())
		}
	}
	if c.snaps != len(p.snaps) {
		return fmt.Errorf("check prefix tree: %d snapshots listed, nodes have %d", len(p.snaps), c.snaps)
	}
	if bytes != p.bytes {
		return fmt.Errorf("check prefix tree: %d bytes counted, the pages have %d", p.bytes, bytes)
	}
	for _, n := range p.leaves {
		c.of(n.tag).Entries++
	}
	for _, n := range p.snaps {
		c.of(n.tag).Bytes += p.alloc.geo.SnapBytes
	}
	if len(c.stored) != len(p.stored) {
		return fmt.Errorf("check prefix tree: %d tags counted, there are %d", len(p.stored), len(c.stored))
	}
	for tag, want := range c.stored {
		if got := p.stored[tag]; got == nil || *got != *want {
			return fmt.Errorf("check prefix tree: under tag %x %v counted, there is %v", tag, got, want)
		}
	}
	return nil
}

type treeCheck struct {
	p             *Prefix
	named         []map[PageID]int32
	nodes, leaves int
	snaps         int
	stored        map[Tag]*Stored
}

func (c *treeCheck) of(tag Tag) *Stored {
	if c.stored[tag] == nil {
		c.stored[tag] = &Stored{}
	}
	return c.stored[tag]
}

func (c *treeCheck) below(up *node) error {
	for first, n := range up.children {
		c.nodes++
		if n.snap != 0 {
			c.snaps++
		}
		if up.parent != nil && n.tag != up.tag || up.parent == nil && n.tag != TagOf(first) {
			return fmt.Errorf("edge from %d: tag %x below %x", n.from, n.tag, up.tag)
		}
		if n.parent != up || n.from != up.to() || len(n.key) == 0 || n.key[0] != first {
			return fmt.Errorf("edge from %d of %d tokens: wrong place below the edge from %d", n.from, len(n.key), up.from)
		}
		pt := c.p.alloc.geo.PageTokens
		for g, pages := range n.pages {
			if want := ceil(n.to(), pt) - n.from/pt; len(pages) != want {
				return fmt.Errorf("edge from %d to %d: %d pages of group %d, want %d", n.from, n.to(), len(pages), g, want)
			}
			for _, page := range pages {
				if page == 0 && c.p.alloc.geo.Groups[g].Window == 0 {
					return fmt.Errorf("edge from %d to %d: a page is gone from group %d, which has no window", n.from, n.to(), g)
				}
				if page != 0 {
					if c.named[g][page]++; c.named[g][page] == 1 {
						c.of(n.tag).Bytes += c.p.alloc.geo.Groups[g].PageBytes
					}
				}
			}
		}
		if len(n.children) == 0 {
			c.leaves++
			if !n.Listed() {
				return fmt.Errorf("edge from %d to %d: it can be evicted and is not listed", n.from, n.to())
			}
		}
		if err := c.below(n); err != nil {
			return err
		}
	}
	return nil
}
