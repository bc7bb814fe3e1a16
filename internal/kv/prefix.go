package kv

import (
	"slices"

	"hearth/internal/retention"
)

// Prefix is the index of what has been computed: a tree over token ids whose nodes name the pages that hold the keys
// and values of their edge. Sequences that share a beginning share pages through it, and what a sequence leaves behind
// stays until its memory is needed (Evict). One goroutine calls it.
//
// A page holds PageTokens positions, but an edge may begin and end anywhere. So a node's first page may also hold positions of
// its ancestors. They are valid there, because whoever computed the page computed or copied them: of all nodes on a path that
// have a page of an index, the deepest one's is read. Only computed pages come in here, and nobody writes to a page that is here:
// a sequence that goes on inside one copies it first.
//
// Invariants (Check):
//   - a node's edge has at least one token and starts where its parent's ends; siblings share no first token;
//   - a node has one entry per group for every page its edge touches; an entry is 0 only in a window group, where that
//     page is gone;
//   - the tree references in Alloc exactly the pages that its nodes name, and counts rightly how many nodes name each;
//   - the evictable nodes are exactly those without children, ordered by rank.
type Prefix struct {
	alloc   *Alloc
	root    node
	named   [][]int32   // per group and page id: how many nodes name it
	leaves  Heap[*node] // the evictable nodes
	nodes   int
	made    int64 // nodes so far, for their ids
	bytes   int64 // of the pages named
	stored  map[Tag]*Stored
	changed bool  // stored has, since Stored
	clock   int64 // counts uses: inserts and pins
	snaps   []*node

	onEvict func(Branch) bool // see OnEvict
	evicted Evicted

	kept    retention.Rule
	idle    int64 // see Terms
	now     int64 // see Expire
	expired int64 // when Expire last looked
}

// node is an edge of the tree and its end.
type node struct {
	Place // in leaves; for the rank see Prefix.use

	id       int64
	parent   *node
	children map[Elem]*node // by the first element of their edge
	from     int            // position of key[0]
	key      []Elem
	pages    [][]PageID // per group: from index from/PageTokens on
	hits     int        // how often a sequence started from here or from below
	notified bool       // see OnEvict
	tag      Tag        // of the key
	lastOwner
	snapshot
}

func (n *node) to() int { return n.from + len(n.key) }

// NewPrefix makes an empty tree over the pages of a, of which there must be some.
func NewPrefix(a *Alloc) *Prefix {
	return &Prefix{alloc: a, named: make([][]int32, len(a.geo.Groups))}
}

// Entries counts the ends of what is stored: branches that nothing stored continues.
func (p *Prefix) Entries() int { return len(p.leaves) }

// Bytes is the size of all pages the tree names, whether sequences use them too or not.
func (p *Prefix) Bytes() int64 { return p.bytes }

// walk follows key as far as the tree does: key[:at] is stored and ends in the edge of n, or is empty and n the root.
func (p *Prefix) walk(key []Elem) (n *node, at int) {
	n = &p.root
	for at < len(key) {
		c := n.children[key[at]]
		if c == nil {
			break
		}
		k := Common(c.key, key[at:])
		n, at = c, at+k
		if k < len(c.key) {
			break
		}
	}
	return n, at
}

// Common is the length of the common beginning.
func Common(a, b []Elem) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// Match finds the longest beginning of key, shorter than key itself, from which a sequence can continue. It changes
// nothing; the match is good until the next Insert or Evict.
func (p *Prefix) Match(key []Elem) Match {
	n, at := p.walk(key)
	m := Match{Longer: at, node: n, Kind: kind(n, at, len(key))}
	tokens := min(at, len(key)-1)
	pt := p.alloc.geo.PageTokens
	if tokens < pt {
		m.Kind = Miss
		return m
	}
	pages := p.pagesOn(n, ceil(tokens, pt))
	if tokens = p.restorable(pages, tokens); !p.alloc.geo.Sliceable() {
		x := p.snapped(n, pages, tokens)
		if tokens = 0; x != nil {
			tokens, m.Snap, m.snapped = x.to(), x.snap, x
		}
	}
	if tokens < pt {
		m.Kind, m.Snap = Miss, 0
		return m
	}
	for g := range pages {
		pages[g] = pages[g][:ceil(tokens, pt)]
	}
	m.Tokens, m.Table.Len = tokens, tokens
	whole := tokens / pt
	for g := range pages {
		if tokens%pt != 0 {
			m.Tail = append(m.Tail, pages[g][whole])
		}
		pages[g] = pages[g][:whole]
		if w := p.alloc.geo.Groups[g].Window; w > 0 {
			clear(pages[g][:min(p.alloc.geo.FirstRead(w, tokens), whole)])
		}
	}
	m.Table.Pages = pages
	return m
}

func kind(n *node, at, length int) Kind {
	end := at == n.to() && len(n.children) == 0
	switch {
	case at == length && end:
		return Exact
	case at == length:
		return Supersequence
	case end:
		return Within
	}
	return LCP
}

// pagesOn lists the pages of indices [0, count) on the path to n, per group.
func (p *Prefix) pagesOn(n *node, count int) [][]PageID {
	pages := make([][]PageID, len(p.named))
	for g := range pages {
		pages[g] = make([]PageID, count)
	}
	p.path(n, count, func(x *node, i, k int) {
		for g := range pages {
			pages[g][i] = x.pages[g][k]
		}
	})
	return pages
}

// path calls f for each page index i below count on the way from n to the root: entry k of node x, the deepest one that has it.
func (p *Prefix) path(n *node, count int, f func(x *node, i, k int)) {
	for x := n; x.parent != nil; x = x.parent {
		first := x.from / p.alloc.geo.PageTokens
		for i := first; i < count; i++ {
			f(x, i, i-first)
		}
		count = min(count, first)
	}
}

// restorable is the most tokens up to n whose windows are whole in pages.
func (p *Prefix) restorable(pages [][]PageID, n int) int {
	geo := &p.alloc.geo
	for again := true; again; {
		again = false
		for g := range pages {
			w := geo.Groups[g].Window
			if w == 0 {
				continue
			}
			for i := ceil(n, geo.PageTokens) - 1; i >= geo.FirstRead(w, n); i-- {
				if pages[g][i] == 0 {
					n, again = i*geo.PageTokens, true
					break
				}
			}
		}
	}
	return n
}

// Pin keeps those parts of a match from eviction that the caller's table does not hold: its snapshot, and the partly shared pages
// until they have been copied. The zero Pin keeps nothing.
type Pin struct {
	held Table
	snap SnapID
}

// Held is the pinned pages as a table, for Alloc.Check.
func (p *Pin) Held() *Table { return &p.held }

// Snap is the pinned snapshot, for Alloc.CheckSnaps.
func (p *Pin) Snap() SnapID { return p.snap }

// Pin counts m as used and keeps its tail from eviction until Unpin.
func (p *Prefix) Pin(m *Match) Pin {
	if m.Tokens == 0 {
		return Pin{}
	}
	for n := m.node; n.parent != nil; n = n.parent {
		n.hits++
		n.notified = false
		p.use(n)
	}
	var pin Pin
	for g, page := range m.Tail {
		if page != 0 {
			p.alloc.share(g, page)
		}
		pin.held.Pages = append(pin.held.Pages, []PageID{page})
	}
	if x := m.snapped; x != nil {
		p.alloc.shareSnap(m.Snap)
		pin.snap = m.Snap
		x.restores++
		x.worth = p.clock + int64(min(x.restores, mostHits))*int64(p.nodes)
	}
	return pin
}

// Unpin releases what is pinned. It may be called again.
func (p *Prefix) Unpin(pin *Pin) {
	p.alloc.Release(&pin.held)
	if pin.snap != 0 {
		p.alloc.DropSnap(pin.snap)
		pin.snap = 0
	}
}

// Insert stores the first to positions of a sequence in the tree, which takes references of its own to the pages it lacks. Where
// the tree already has a whole page, that replaces t's own. After Insert t must not write below to.
func (p *Prefix) Insert(key []Elem, t *Table, to int) {
	if to == 0 {
		return
	}
	n, at := p.walk(key[:to])
	p.reconcile(n, at/p.alloc.geo.PageTokens, t)
	switch {
	case at == to:
	case at < n.to():
		n = p.add(p.split(n, at), key, t, to)
	case n.parent != nil && len(n.children) == 0 && n.snap == 0:
		p.extend(n, key, t, to)
	default:
		n = p.add(n, key, t, to)
	}
	p.use(n)
}

// reconcile makes t and the path to n agree on their first count pages: t takes the tree's, and gives it those that it lacks.
func (p *Prefix) reconcile(n *node, count int, t *Table) {
	p.path(n, count, func(x *node, i, k int) {
		for g := range t.Pages {
			mine, its := &t.Pages[g][i], &x.pages[g][k]
			switch {
			case *mine == *its || *mine == 0:
			case *its == 0:
				*its = *mine
				p.name(x.tag, g, *its)
			default:
				p.alloc.share(g, *its)
				p.alloc.drop(g, *mine)
				*mine = *its
			}
		}
	})
}

// add makes a node below n for what key and t have beyond it.
func (p *Prefix) add(n *node, key []Elem, t *Table, to int) *node {
	p.made++
	c := &node{id: p.made, parent: n, from: n.to(), pages: make([][]PageID, len(p.named)), tag: TagOf(key[0])}
	if n.children == nil {
		n.children = map[Elem]*node{}
	}
	p.removeLeaf(n)
	n.children[key[c.from]] = c
	p.nodes++
	p.extend(c, key, t, to)
	p.addLeaf(c)
	return c
}

// extend lengthens n, which has no children, by what key and t have beyond it. A page that n fills only in part is
// replaced by t's, which holds the same and more.
func (p *Prefix) extend(n *node, key []Elem, t *Table, to int) {
	pt := p.alloc.geo.PageTokens
	at := n.to()
	for g := range n.pages {
		if have := len(n.pages[g]); have > 0 && at%pt != 0 {
			p.unname(n.tag, g, n.pages[g][have-1])
			n.pages[g] = n.pages[g][:have-1]
		}
		for _, page := range t.Pages[g][at/pt : ceil(to, pt)] {
			p.name(n.tag, g, page)
			n.pages[g] = append(n.pages[g], page)
		}
	}
	n.key = append(n.key, key[at:to]...)
	n.reach = min(n.reach, at) // what went further may have been evicted
	n.notified = false
}

// split divides the edge of n at a position inside it and returns the new node above n.
func (p *Prefix) split(n *node, at int) *node {
	pt := p.alloc.geo.PageTokens
	k, first := at-n.from, n.from/pt
	p.made++
	u := &node{id: p.made, parent: n.parent, from: n.from, key: slices.Clone(n.key[:k]), hits: n.hits, Place: Place{Rank: n.Rank}, lastOwner: n.lastOwner, tag: n.tag,
		pages: make([][]PageID, len(n.pages)), children: map[Elem]*node{n.key[k]: n}}
	for g, pages := range n.pages {
		u.pages[g] = slices.Clone(pages[:ceil(at, pt)-first])
		n.pages[g] = slices.Clone(pages[at/pt-first:])
		if at%pt != 0 {
			p.name(n.tag, g, n.pages[g][0])
		}
	}
	n.parent.children[u.key[0]] = u
	n.parent, n.from, n.key = u, at, slices.Clone(n.key[k:])
	p.nodes++
	return u
}

// name counts one more node that names a page; the first takes the tree's reference.
func (p *Prefix) name(tag Tag, g int, page PageID) {
	if page == 0 {
		return
	}
	for len(p.named[g]) <= int(page) {
		p.named[g] = append(p.named[g], 0)
	}
	if p.named[g][page]++; p.named[g][page] == 1 {
		p.alloc.treeRef(g, page)
		p.count(tag, 0, p.alloc.geo.Groups[g].PageBytes)
	}
}

// unname is the opposite. It gives the bytes that were freed.
func (p *Prefix) unname(tag Tag, g int, page PageID) int64 {
	if page == 0 {
		return 0
	}
	if p.named[g][page]--; p.named[g][page] > 0 {
		return 0
	}
	p.count(tag, 0, -p.alloc.geo.Groups[g].PageBytes)
	return p.alloc.treeUnref(g, page)
}
