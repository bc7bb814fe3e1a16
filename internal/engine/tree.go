package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"hearth/internal/kv"
)

// TreeQuery is what somebody wants to see of the prefix tree.
type TreeQuery struct {
	Salt  kv.Salt
	All   bool // what is under other salts, too
	First bool // the tokens with which nodes under Salt begin
	Most  int  // nodes
}

// Tree is a part of the prefix tree.
type Tree struct {
	PageTokens int        // of a page
	Nodes      []TreeNode // parents before their children
	LeftOut    int        // nodes that are not among them
}

// TreeNode is a stretch of tokens that all below it begin with.
type TreeNode struct {
	ID, Parent   int64 // Parent 0: prompts begin with it
	Tokens       int
	InMemory     bool  // else it is on disk alone
	Bytes        int64 // in memory, with those of the nodes that are folded into it
	DiskBytes    int64 // of files, likewise
	Folded       int   // nodes below it that are not listed
	FoldedTokens int
	OnDisk       int // of Tokens, those of whole pages that a file has
	InUse        int // running sequences
	Ends         int // of what is stored, in it or below
	Sessions     int // that have left something in it or below
	Unused       time.Duration
	First        []int32 // its first tokens, see TreeQuery
}

const (
	mostNodes = 1 << 12 // of a tree in memory that are looked at: between two steps, for a few milliseconds at most
	firstIDs  = 32      // tokens of TreeNode.First
	treeShare = 100     // looking at the tree takes 1/treeShare of the time at most
)

// trees are what was seen of the prefix tree last.
type trees struct {
	mu     sync.Mutex
	last   *nodes
	coming *look // nil: nobody has asked for another
}

// look is a look at the tree that was asked for.
type look struct {
	done  chan struct{} // closed when there is nodes
	nodes *nodes
}

// nodes is the prefix tree as it was, with what is on disk.
type nodes struct {
	list []*stretch // parents first
	left int
	now  int64 // see kv.Prefix.Expire
	at   time.Time
	took time.Duration
}

// forget makes the next who asks wait for a look at the tree as it is then.
func (t *trees) forget() {
	t.mu.Lock()
	t.last, t.coming = nil, nil
	t.mu.Unlock()
}

// Tree shows the prefix tree as it is, and what is on disk, or, while a long step runs and where it is large, as it was shortly
// before. Errors: ErrClosed, and ctx's.
func (e *Engine) Tree(ctx context.Context, q TreeQuery) (Tree, error) {
	n, err := e.view(ctx)
	if err != nil {
		return Tree{}, err
	}
	t := n.tree(q)
	t.PageTokens = e.alloc.Geometry().PageTokens
	return t, nil
}

// view lists the prefix tree between two steps, unless that was done lately.
func (e *Engine) view(ctx context.Context) (*nodes, error) {
	const patience = 100 * time.Millisecond // if there is an older one
	t := &e.trees
	t.mu.Lock()
	last, coming := t.last, t.coming
	if last != nil && time.Since(last.at) < treeShare*last.took {
		t.mu.Unlock()
		return last, nil
	}
	if coming == nil {
		coming = &look{done: make(chan struct{})}
		t.coming = coming
		e.mu.Lock()
		e.calls = append(e.calls, func() { e.list(coming) })
		e.mu.Unlock()
		e.signal()
	}
	t.mu.Unlock()
	var late <-chan time.Time
	if last != nil {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-coming.done:
		return coming.nodes, nil
	case <-late:
		return last, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.done:
		return nil, ErrClosed
	}
}

// list lists the prefix tree, between two steps. What is on disk is added beside them.
func (e *Engine) list(l *look) {
	began := time.Now()
	n := &nodes{at: began, now: began.UnixMilli()}
	var memory []kv.Node
	if p := e.sched.Prefix(); p != nil {
		memory, n.left = p.Nodes(mostNodes)
	}
	go func() {
		n.list, n.left = join(memory, n.left, e.disk.runs())
		n.took = time.Since(began)
		l.nodes = n
		t := &e.trees
		t.mu.Lock()
		if t.coming == l { // else it is about what was forgotten meanwhile
			t.last, t.coming = n, nil
		}
		t.mu.Unlock()
		close(l.done)
	}()
}

// part is what tree finds out of a node.
type part struct {
	wanted   bool // it is the caller's to see
	own      bool // it is under the caller's salt
	tokens   int  // of it and all below
	ends     int
	sessions map[uint64]struct{}
	listed   int // in Tree.Nodes: it, or the nearest one above that is; -1: none is
}

// tree is what q asks for of n. It runs beside steps.
func (n *nodes) tree(q TreeQuery) Tree {
	parts := n.parts(&q)
	sessions := make([]int, len(parts))
	var order []int
	for i := len(parts) - 1; i >= 0; i-- { // children come behind their parents
		x, p := n.list[i], &parts[i]
		p.tokens += x.to - x.from
		if len(x.below) == 0 {
			p.ends++
		}
		if x.session != 0 {
			p.sessions = union(p.sessions, map[uint64]struct{}{x.session: {}})
		}
		if sessions[i] = len(p.sessions); x.up != nil {
			up := &parts[x.up.at]
			up.tokens, up.ends, up.sessions = up.tokens+p.tokens, up.ends+p.ends, union(up.sessions, p.sessions)
		}
		if p.sessions = nil; p.wanted {
			order = append(order, i)
		}
	}
	out := Tree{LeftOut: max(len(order)-q.Most, 0)}
	if q.All {
		out.LeftOut += n.left
	}
	// What has most in and below it stays: that is no less than what its children have, and it comes before them.
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(parts[b].tokens, parts[a].tokens), cmp.Compare(a, b)) })
	order = order[:min(len(order), q.Most)]
	slices.Sort(order)
	for at, i := range order {
		x, p := n.list[i], &parts[i]
		p.listed = at
		t := TreeNode{ID: x.id, Tokens: x.to - x.from, InMemory: !x.alone(), OnDisk: max(min(x.onDisk, x.to)-x.from, 0), InUse: x.inUse, Ends: p.ends, Sessions: sessions[i],
			Unused: time.Duration(max(n.now-x.used, 0)) * time.Millisecond}
		if x.up != nil {
			t.Parent = x.up.id
		}
		if q.First && p.own {
			t.First = plain(x.first(firstIDs), x.from, &q.Salt)
		}
		out.Nodes = append(out.Nodes, t)
	}
	for i := range parts {
		x, p := n.list[i], &parts[i]
		folded := p.listed < 0
		if folded && x.up != nil {
			p.listed = parts[x.up.at].listed
		}
		if p.listed < 0 {
			continue
		}
		t := &out.Nodes[p.listed]
		t.Bytes, t.DiskBytes = t.Bytes+x.bytes, t.DiskBytes+x.filed
		if folded {
			t.Folded, t.FoldedTokens = t.Folded+1, t.FoldedTokens+x.to-x.from
		}
	}
	return out
}

// parts begins with what the salts of nodes say.
func (n *nodes) parts(q *TreeQuery) []part {
	parts := make([]part, len(n.list))
	for i, x := range n.list {
		p := &parts[i]
		p.listed = -1
		var key []kv.Elem // what may be salted
		if x.from < firstIDs {
			key = x.first(firstIDs)
		}
		if x.up != nil {
			p.wanted, p.own = parts[x.up.at].wanted, parts[x.up.at].own
		} else {
			tag := kv.Tag(0) // also where a row of an image comes first, which is on disk alone: with a salt none is there
			if len(key) > 0 {
				tag = kv.TagOf(key[0])
			}
			p.own = tag == q.Salt.Tag()
			p.wanted = p.own || q.All
		}
		for k := 0; k < len(key) && p.own; k++ {
			_, p.own = q.Salt.Plain(x.from+k, key[k])
		}
	}
	return parts
}

// union adds the smaller set to the larger one.
func union(a, b map[uint64]struct{}) map[uint64]struct{} {
	if len(a) < len(b) {
		a, b = b, a
	}
	for s := range b {
		a[s] = struct{}{}
	}
	return a
}

// plain is the tokens of a part of a key that is under the salt, without images.
func plain(key []kv.Elem, from int, salt *kv.Salt) (ids []int32) {
	for k, e := range key {
		if e, _ = salt.Plain(from+k, e); !e.IsMedia() {
			ids = append(ids, int32(e))
		}
	}
	return ids
}
