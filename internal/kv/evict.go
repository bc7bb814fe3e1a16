package kv

// mostHits bounds what past use is worth.
const mostHits = 8

// use ranks n after a use; the lowest rank is evicted first. The rank is the clock of the last use, plus the number of nodes for
// every time a sequence started from the node or from below it and for every bonus of Credit, mostHits of these at most. So what
// was used once is evicted in LRU order. What is used again and again, such as the system prompt of an agent, outlives a few
// trees' worth of prompts that are used once, but not for ever.
func (p *Prefix) use(n *node) {
	p.clock++
	n.used = p.now
	n.Rank = p.clock + int64(min(n.hits+n.bonus, mostHits))*int64(p.nodes)
	p.leaves.Moved(n)
}

// Evicted is the bytes that have left the tree, by why.
type Evicted struct {
	Memory  int64 // others needed it: Evict
	Limit   int64 // there was more than Terms allow, in bytes or sessions
	Expired int64
	Cleared int64 // by Drop, DropTag and Clear
}

// Evicted counts since the tree was made.
func (p *Prefix) Evicted() Evicted { return p.evicted }

// Evict frees at least need bytes, if pages that only the tree holds suffice, and says how many. It takes whole pages from the
// ends of branches, those of least rank first; then pages of sliding windows wherever they are, after which no prompt can start
// in the middle of that branch, only at its end. It cannot free the partly filled page before a branch that a sequence uses, one
// per branching, though only the tree holds it.
func (p *Prefix) Evict(need int64) int64 {
	freed := p.evict(need)
	p.evicted.Memory += freed
	return freed
}

func (p *Prefix) evict(need int64) int64 {
	var freed int64
	var inUse []*node
	for freed < need && len(p.leaves) > 0 {
		if s := p.leastSnap(); s != nil && s.worth < p.leaves[0].Rank {
			p.notifyEvictSnap(s)
			freed += p.dropSnap(s)
			continue
		}
		n := p.leaves[0]
		p.removeLeaf(n)
		p.notifyEvict(n)
		freed += p.evictEnd(n, need-freed)
		if len(n.key) > 0 { // the rest is in use, or enough is free
			inUse = append(inUse, n)
			continue
		}
		p.remove(n)
	}
	for _, n := range inUse {
		p.addLeaf(n)
	}
	for s := p.leastSnap(); s != nil && freed < need; s = p.leastSnap() {
		p.notifyEvictSnap(s)
		freed += p.dropSnap(s)
	}
	if freed < need {
		freed += p.evictWindows(&p.root, need-freed)
	}
	return freed
}

// evictEnd shortens a node from its end by whole pages that no sequence uses.
func (p *Prefix) evictEnd(n *node, need int64) int64 {
	var freed int64
	first := n.from / p.alloc.geo.PageTokens
	for freed < need && len(n.key) > 0 {
		last := len(n.pages[0]) - 1
		if p.inUse(n, last) {
			break
		}
		freed += p.dropSnap(n)
		for g := range n.pages {
			freed += p.unname(n.tag, g, n.pages[g][last])
			n.pages[g] = n.pages[g][:last]
		}
		to := max((first+last)*p.alloc.geo.PageTokens-n.from, 0)
		n.key = n.key[:to:max(to, 1)] // who looks at what was beyond goes on seeing that, see Node.Key; remove looks at the first
	}
	return freed
}

// inUse reports whether a sequence holds a page of entry k.
func (p *Prefix) inUse(n *node, k int) bool {
	for g := range n.pages {
		if page := n.pages[g][k]; page != 0 && p.alloc.pages[g].shared(int32(page)) {
			return true
		}
	}
	return false
}

// remove takes out a node that names no page any more.
func (p *Prefix) remove(n *node) {
	up := n.parent
	delete(up.children, n.key[:1][0]) // evictEnd leaves the first token beyond the length
	p.nodes--
	if len(up.children) == 0 && up.parent != nil {
		p.addLeaf(up)
	}
}

// evictWindows drops pages of window groups that no sequence uses, at n and below.
func (p *Prefix) evictWindows(n *node, need int64) int64 {
	var freed int64
	for g := range n.pages {
		if p.alloc.geo.Groups[g].Window == 0 {
			continue
		}
		for k, page := range n.pages[g] {
			if page != 0 && freed < need && !p.alloc.pages[g].shared(int32(page)) {
				freed += p.unname(n.tag, g, page)
				n.pages[g][k] = 0
			}
		}
	}
	for _, c := range n.children {
		if freed < need {
			freed += p.evictWindows(c, need-freed)
		}
	}
	return freed
}

// Clear evicts everything. Pages that sequences hold stay theirs.
func (p *Prefix) Clear() {
	p.evicted.Cleared += p.bytes
	p.drop(&p.root)
	p.root.children, p.leaves, p.nodes, p.stored, p.changed = nil, nil, 0, nil, true
	p.kept.Clear()
}

// drop gives back all pages at n and below.
func (p *Prefix) drop(n *node) {
	p.dropSnap(n)
	for g := range n.pages {
		for _, page := range n.pages[g] {
			p.unname(n.tag, g, page)
		}
	}
	for _, c := range n.children {
		p.drop(c)
	}
}
