package engine

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hearth/internal/kv"
	"hearth/internal/tier/tiertest"
)

// tree gives what q asks for, and adds up what its nodes have.
func tree(t *testing.T, e *Engine, q TreeQuery) (out Tree, sum TreeNode) {
	t.Helper()
	out, err := e.Tree(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	at := map[int64]int{}
	for i := range out.Nodes {
		n := &out.Nodes[i]
		if up, ok := at[n.Parent]; n.Parent != 0 && !ok || ok && out.Nodes[up].Ends < n.Ends || ok && out.Nodes[up].Sessions < n.Sessions || n.Tokens <= 0 {
			t.Errorf("node %d: %+v", i, n)
		}
		at[n.ID] = i
		sum.Tokens += n.Tokens
		sum.FoldedTokens += n.FoldedTokens
		sum.Bytes += n.Bytes
		sum.Folded += n.Folded
		sum.OnDisk += n.OnDisk
		sum.DiskBytes += n.DiskBytes
		if n.Parent == 0 {
			sum.Ends += n.Ends
		}
	}
	return out, sum
}

// The tree is the one of the cache, as far as it is asked for; each party's tokens are told to who has its salt, without it.
func TestTree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newSteps()
		st.free.Store(true)
		e := start(t, &hooked{begin: st.begin}, nil)
		if out, _ := tree(t, e, TreeQuery{All: true, Most: 10}); len(out.Nodes) != 0 || out.LeftOut != 0 || out.PageTokens != 64 {
			t.Errorf("of nothing: %+v", out)
		}
		alice, bob := kv.Salt{1, 2, 3, 4, 5}, kv.Salt{9, 8, 7, 6, 5}
		base := prompt(130, 1)
		ask := func(salt kv.Salt, session uint64, tail ...int32) {
			read(t, submit(t, e, Prompt{Tokens: append(slices.Clone(base), tail...), MaxTokens: 2, Logprobs: -1, Salt: salt, Session: session}))
		}
		for i := range int32(6) {
			ask(alice, uint64(1+i%3), i, 1, 2)
		}
		ask(bob, 9, 5)
		ask(kv.Salt{}, 7, 6)
		st.free.Store(false)
		running := submit(t, e, Prompt{Tokens: append(slices.Clone(base), 3, 3), MaxTokens: 2, Logprobs: -1, Salt: alice})
		st.wait() // it is admitted, and the first step is about to run
		c := e.Stats().Cache
		go func() { // between two steps
			time.Sleep(time.Millisecond)
			st.free.Store(true)
			st.next()
		}()
		out, sum := tree(t, e, TreeQuery{All: true, First: true, Salt: alice, Most: 100})
		if sum.Bytes != c.Bytes || sum.Ends != c.Entries || out.LeftOut != 0 || sum.Folded != 0 {
			t.Errorf("%+v of %+v; the cache has %+v", sum, out, c)
		}
		roots := 0
		for _, n := range out.Nodes {
			switch {
			case n.Parent != 0:
			case n.First == nil: // bob's and nobody's
				roots++
			case !slices.Equal(n.First, base[:len(n.First)]) || len(n.First) != firstIDs || n.Tokens != 130 || n.Ends != 6 || n.Sessions != 3:
				t.Errorf("alice's is %+v", n)
			default:
				roots += 10
			}
		}
		if roots != 12 {
			t.Errorf("%d roots: %+v", roots, out.Nodes)
		}
		read(t, running)
		for salt, ends := range map[kv.Salt]int{alice: 7, bob: 1, {}: 1} {
			own, sum := tree(t, e, TreeQuery{Salt: salt, First: true, Most: 100})
			if s := e.Stored(salt); sum.Ends != ends || s.Entries != ends || sum.Bytes != s.Bytes || own.LeftOut != 0 {
				t.Errorf("under %x: %+v, stored is %+v", salt[:2], own, s)
			}
			for _, n := range own.Nodes {
				if n.First == nil {
					t.Errorf("under %x: nothing of %+v", salt[:2], n)
				}
			}
		}
		// Folded, nothing is lost but what begins elsewhere.
		whole, all := tree(t, e, TreeQuery{Salt: alice, Most: 100})
		for most := 1; most < len(whole.Nodes); most++ {
			out, sum := tree(t, e, TreeQuery{Salt: alice, Most: most})
			if len(out.Nodes) != most || out.LeftOut != len(whole.Nodes)-most || sum.Folded != out.LeftOut || sum.Bytes != all.Bytes || sum.Tokens+sum.FoldedTokens != all.Tokens || sum.Ends != 7 {
				t.Errorf("at most %d: %+v", most, out)
			}
			for _, n := range out.Nodes {
				if n.First != nil {
					t.Errorf("tokens that nobody asked for: %+v", n)
				}
			}
		}
		closeNow(t, e)
		if _, err := e.Tree(t.Context(), TreeQuery{Most: 1}); err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}

// While a step runs that does not end there is an older tree or, where there is none, the caller's patience.
func TestTreeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newSteps()
		e := start(t, &hooked{begin: st.begin}, nil)
		s := submit(t, e, Prompt{Tokens: prompt(100, 1), MaxTokens: 2, Logprobs: -1})
		st.wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := e.Tree(ctx, TreeQuery{All: true, Most: 1}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("before there is one: %v", err)
		}
		st.next() // then the first one is made
		st.wait()
		began := time.Now()
		out, sum := tree(t, e, TreeQuery{All: true, Most: 9})
		if took := time.Since(began); took > time.Second || len(out.Nodes) != 1 || sum.Tokens != 64 || out.Nodes[0].InUse != 1 {
			t.Errorf("after %v: %+v", took, out)
		}
		st.release()
		read(t, s)
		synctest.Wait()
		if _, sum := tree(t, e, TreeQuery{All: true, Most: 9}); sum.Tokens != 101 {
			t.Errorf("at the end: %+v", sum)
		}
		e.trees.mu.Lock() // one that took long is good for a while
		e.trees.last.took = time.Second
		e.trees.mu.Unlock()
		read(t, submit(t, e, Prompt{Tokens: prompt(80, 2), MaxTokens: 1, Logprobs: -1}))
		if out, _ := tree(t, e, TreeQuery{All: true, Most: 9}); len(out.Nodes) != 1 {
			t.Errorf("at once again: %+v", out)
		}
		time.Sleep(treeShare * time.Second)
		if out, _ := tree(t, e, TreeQuery{All: true, Most: 9}); len(out.Nodes) != 2 {
			t.Errorf("later: %+v", out)
		}
	})
}

// What is on disk is what the tier says, of whole pages: after a restart all of it, though nothing is in memory, and then what
// memory does not have. It goes with what is dropped.
func TestTreeOnDisk(t *testing.T) {
	var n tiertest.Notes
	dir := t.TempDir()
	base := prompt(200, 1)
	ask := func(e *Engine, salt kv.Salt, tail int32) {
		p := Prompt{Tokens: append(slices.Clone(base), tail, 1, 2), MaxTokens: 2, Logprobs: -1, Salt: salt}
		p.Tokens = append(p.Tokens, prompt(100, uint64(10+tail))...)
		read(t, submit(t, e, p))
	}
	e := start(t, &hooked{}, onDisk(dir, &n, nil))
	for tail := range int32(3) {
		ask(e, kv.Salt{1}, tail)
	}
	ask(e, kv.Salt{2}, 5)
	closeNow(t, e) // writes all of it
	e = start(t, &hooked{}, onDisk(dir, &n, nil))
	// Each of three is 256 tokens in whole pages, of which the first 192 are the same.
	type part struct{ tokens, onDisk, ends, below int }
	shape := func(out *Tree, memory bool) (all []part) {
		for i := range out.Nodes {
			if x := &out.Nodes[i]; x.InMemory == memory {
				below := 0
				for k := range out.Nodes {
					if out.Nodes[k].Parent == x.ID {
						below++
					}
				}
				all = append(all, part{x.Tokens, x.OnDisk, x.Ends, below})
			}
		}
		return all
	}
	until := func(what string, salt kv.Salt, memory, disk []part) (sum TreeNode) {
		t.Helper()
		deadline := time.Now().Add(20 * time.Second)
		for {
			var out Tree
			out, sum = tree(t, e, TreeQuery{Salt: salt, First: true, Most: 100})
			if slices.Equal(shape(&out, true), memory) && slices.Equal(shape(&out, false), disk) && sum.DiskBytes == e.Stored(salt).DiskBytes && sum.Bytes == e.Stored(salt).Bytes {
				if x := &out.Nodes[0]; !slices.Equal(x.First, base[:firstIDs]) {
					t.Errorf("%s: it begins with %v", what, x.First)
				}
				return sum
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %+v", what, out)
			}
			time.Sleep(time.Millisecond)
		}
	}
	until("after a restart", kv.Salt{1}, nil, []part{{192, 192, 3, 3}, {64, 64, 1, 0}, {64, 64, 1, 0}, {64, 64, 1, 0}})
	until("of another", kv.Salt{2}, nil, []part{{256, 256, 1, 0}})
	all, _ := tree(t, e, TreeQuery{All: true, First: true, Salt: kv.Salt{2}, Most: 100})
	for _, x := range all.Nodes {
		if mine := x.Parent == 0 && x.Ends == 1; len(all.Nodes) != 5 || mine != (x.First != nil) {
			t.Errorf("all of it: %+v", all)
		}
	}
	// One of them is read back: the others part from it at their first token that is another, whatever the pages are.
	ask(e, kv.Salt{1}, 1)
	until("beside memory", kv.Salt{1}, []part{{200, 200, 3, 3}, {104, 56, 1, 0}}, []part{{56, 56, 1, 0}, {56, 56, 1, 0}})
	// Folded, nothing is lost.
	if out, sum := tree(t, e, TreeQuery{Salt: kv.Salt{1}, Most: 2}); sum.DiskBytes != e.Stored(kv.Salt{1}).DiskBytes || sum.Tokens+sum.FoldedTokens != 416 || out.LeftOut != 2 {
		t.Errorf("two nodes: %+v", out)
	}
	if _, err := e.DropSalt(t.Context(), kv.Salt{1}); err != nil {
		t.Fatal(err)
	}
	if out, _ := tree(t, e, TreeQuery{Salt: kv.Salt{1}, Most: 100}); len(out.Nodes) != 0 {
		t.Errorf("after it is dropped: %+v", out)
	}
	if _, err := e.DropCache(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out, _ := tree(t, e, TreeQuery{All: true, Most: 100}); len(out.Nodes) != 0 || out.LeftOut != 0 {
		t.Errorf("after all is dropped: %+v", out)
	}
}
