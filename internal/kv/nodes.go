package kv

// Node is a stretch of the tree, for people who look at it: an edge and its end.
type Node struct {
	ID      int64  // its own, as long as it is there
	Parent  int    // in the list; -1: prompts begin with it
	From    int    // position of its first element
	Key     []Elem // not to be written to; it stays as it is, whatever becomes of the tree
	Bytes   int64  // of the pages and the snapshot that it has beside its parent's
	InUse   int    // sequences that hold its first page
	End     bool   // nothing stored continues it
	Session uint64 // whose sequence ended here last; 0: not known
	Used    int64  // time of the last use, see Expire
}

// Nodes lists the tree, parents before their children and what is near the root first, most nodes at most, and says how many are
// left out. It takes some hundred nanoseconds a node, and copies no key.
func (p *Prefix) Nodes(most int) (list []Node, left int) {
	n := min(most, p.nodes)
	list = make([]Node, 0, n)
	of := make([]*node, 0, n)
	add := func(parent int, up *node) {
		for _, c := range up.children {
			if len(list) == n {
				return
			}
			of = append(of, c)
			list = append(list, p.describe(c, parent))
		}
	}
	add(-1, &p.root)
	for i := 0; i < len(of) && len(list) < n; i++ {
		add(i, of[i])
	}
	return list, p.nodes - len(list)
}

// describe makes a Node of n.
func (p *Prefix) describe(n *node, parent int) Node {
	out := Node{ID: n.id, Parent: parent, From: n.from, Key: n.key[:len(n.key):len(n.key)], End: len(n.children) == 0, Session: n.session, Used: n.used}
	for g, pages := range n.pages {
		have := len(pages)
		if p.alloc.geo.Groups[g].Window > 0 {
			for _, page := range pages {
				if page == 0 {
					have--
				}
			}
		}
		if up := n.parent.pages; len(up) > 0 && n.from%p.alloc.geo.PageTokens != 0 && pages[0] != 0 && up[g][len(up[g])-1] == pages[0] {
			have-- // both name it
		}
		out.Bytes += int64(have) * p.alloc.geo.Groups[g].PageBytes
	}
	if n.snap != 0 {
		out.Bytes += p.alloc.geo.SnapBytes
	}
	if first := n.pages[0][0]; first != 0 {
		out.InUse = p.alloc.pages[0].holders(int32(first))
	}
	return out
}

// Plain is the element of a key at a position, without the salt, and whether it was under that one. A row of a media item at the
// beginning of a salted key is not known.
func (s *Salt) Plain(pos int, e Elem) (Elem, bool) {
	if pos >= saltedElems {
		return e, true
	}
	plain := s.Elem(pos, e) // which is its own inverse
	return plain, plain>>32 == 0 || *s == (Salt{}) && plain.IsMedia() && plain>>63 == 0
}
