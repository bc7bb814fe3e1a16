package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"hearth/internal/kv"
	"hearth/internal/tier"
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
	Bytes        int64 // with those of the nodes that are folded into it
	Folded       int   // nodes below it that are not listed
	FoldedTokens int
	OnDisk       int // of Tokens, those of whole pages that a file has too; -1: that was not looked at
	InUse        int // running sequences
	Ends         int // of what is stored, in it or below
	Sessions     int // that have left something in it or below
	Unused       time.Duration
	First        []int32 // its first tokens, see TreeQuery
}

const (
	mostNodes  = 1 << 12 // of a tree that are looked at: between two steps, for a few milliseconds at most
	mostOnDisk = 1 << 13 // pages that are looked for in the tier
	firstIDs   = 32      // tokens of TreeNode.First
	treeShare  = 100     // looking at the tree takes 1/treeShare of the time at most
)

// trees are what was seen of the prefix tree last.
type trees struct {
	mu     sync.Mutex
	last   *nodes
	coming chan struct{} // closed when the next one is there; nil: nobody has asked for it
}

// nodes is the prefix tree as it was.
type nodes struct {
	list []kv.Node
	left int
	now  int64 // see kv.Prefix.Expire
	at   time.Time
	took time.Duration
}

// Tree shows the prefix tree as it is, or, while a long step runs and where it is large, as it was shortly before. Errors:
// ErrClosed, and ctx's.
func (e *Engine) Tree(ctx context.Context, q TreeQuery) (Tree, error) {
	n, err := e.view(ctx)
	if err != nil {
		return Tree{}, err
	}
	t := n.tree(q, e.disk)
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
		coming = make(chan struct{})
		t.coming = coming
		e.mu.Lock()
		e.calls = append(e.calls, e.list)
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
	case <-coming:
	case <-late:
		return last, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.done:
		return nil, ErrClosed
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last, nil
}

// list lists the prefix tree, between two steps.
func (e *Engine) list() {
	began := time.Now()
	n := &nodes{at: began, now: began.UnixMilli()}
	if p := e.sched.Prefix(); p != nil {
		n.list, n.left = p.Nodes(mostNodes)
	}
	n.took = time.Since(began)
	e.trees.mu.Lock()
	e.trees.last = n
	close(e.trees.coming)
	e.trees.coming = nil
	e.trees.mu.Unlock()
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
func (n *nodes) tree(q TreeQuery, d *disk) Tree {
	parts := n.parts(&q)
	sessions := make([]int, len(parts))
	var order []int
	for i := len(parts) - 1; i >= 0; i-- { // children come behind their parents
		x, p := &n.list[i], &parts[i]
		p.tokens += len(x.Key)
		if x.End {
			p.ends++
		}
		if x.Session != 0 {
			p.sessions = union(p.sessions, map[uint64]struct{}{x.Session: {}})
		}
		if sessions[i] = len(p.sessions); x.Parent >= 0 {
			up := &parts[x.Parent]
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
		x, p := &n.list[i], &parts[i]
		p.listed = at
		t := TreeNode{ID: x.ID, Tokens: len(x.Key), InUse: x.InUse, Ends: p.ends, Sessions: sessions[i], Unused: time.Duration(max(n.now-x.Used, 0)) * time.Millisecond}
		if x.Parent >= 0 {
			t.Parent = n.list[x.Parent].ID
		}
		if q.First && p.own {
			t.First = first(x, &q.Salt)
		}
		out.Nodes = append(out.Nodes, t)
	}
	for i := range parts {
		x, p := &n.list[i], &parts[i]
		folded := p.listed < 0
		if folded && x.Parent >= 0 {
			p.listed = parts[x.Parent].listed
		}
		if p.listed < 0 {
			continue
		}
		t := &out.Nodes[p.listed]
		if t.Bytes += x.Bytes; folded {
			t.Folded, t.FoldedTokens = t.Folded+1, t.FoldedTokens+len(x.Key)
		}
	}
	n.lookOnDisk(order, out.Nodes, d)
	return out
}

// parts begins with what the salts of nodes say.
func (n *nodes) parts(q *TreeQuery) []part {
	parts := make([]part, len(n.list))
	for i := range n.list {
		x, p := &n.list[i], &parts[i]
		if p.listed = -1; x.Parent >= 0 {
			p.wanted, p.own = parts[x.Parent].wanted, parts[x.Parent].own
		} else {
			p.wanted, p.own = q.All || kv.TagOf(x.Key[0]) == q.Salt.Tag(), true
		}
		for k := 0; k < len(x.Key) && k < firstIDs && p.own; k++ {
			_, p.own = q.Salt.Plain(x.From+k, x.Key[k])
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

// first is the first tokens of a node that is under the salt.
func first(x *kv.Node, salt *kv.Salt) []int32 {
	var ids []int32
	for k, e := range x.Key[:min(len(x.Key), firstIDs)] {
		if e, _ = salt.Plain(x.From+k, e); !e.IsMedia() {
			ids = append(ids, int32(e))
		}
	}
	return ids
}

// lookOnDisk fills in what of the listed nodes the tier has.
func (n *nodes) lookOnDisk(listed []int, out []TreeNode, d *disk) {
	if d == nil {
		return
	}
	left := mostOnDisk
	ends := make(map[int]tier.Spot, len(listed))
	for at, i := range listed {
		x := &n.list[i]
		spot, known := ends[x.Parent]
		if out[at].OnDisk = -1; !known && x.Parent >= 0 || left <= 0 {
			continue
		}
		end, tokens := d.tier.Along(spot, x.Key, &left)
		if left >= 0 {
			ends[i], out[at].OnDisk = end, tokens
		}
	}
}
