// Package stub is a backend without numbers: it checks shapes, row alignment, state declarations and array lifetimes of
// every op, counts them, and returns arrays of the right shape. It is the first test every architecture file passes;
// nothing but tests imports it. What it cannot see is a wrong number of the right shape: goldens are for that.
package stub

import (
	"fmt"
	"io"

	B "hearth/internal/backend"
	"hearth/internal/kv"
)

// Backend is the shape checker. Calls and Peak are for tests to read.
type Backend struct {
	Calls map[string]int // ops run, by name
	Peak  int            // most arrays alive at once in one step: a layer loop without Sweep shows here

	world  int
	gen    uint32
	next   uint32
	pinned map[uint32]bool
}

var _ B.Backend = (*Backend)(nil)

// New makes a checker that claims world tensor-parallel ranks.
func New(world int) *Backend {
	return &Backend{world: world, pinned: map[uint32]bool{}, Calls: map[string]int{}}
}

func (b *Backend) Name() string { return "stub" }

func (b *Backend) Caps() B.Caps {
	return B.Caps{Eager: true, LateTokens: true, Invariant: true, World: b.world}
}

func (b *Backend) NewLoader(B.Options) B.Loader { return loader{b.world} }

func (b *Backend) Scratch(rows, outs int) int64 { return 0 }

func (b *Backend) Unpin(a B.Array) {
	slot, _ := a.Slot()
	delete(b.pinned, slot)
}

func (b *Backend) Close() error { return nil }

func (b *Backend) NewStore(specs []B.StateSpec, p B.KVPolicy) (B.Store, error) {
	s := &Store{specs: specs, policy: p}
	s.windows, s.group = B.PageGroups(specs)
	return s, nil
}

func (b *Backend) Begin(s B.Store, batch *B.Batch) B.Scope {
	b.gen++
	sc := &scope{be: b, b: batch, gen: b.gen, live: map[uint32]bool{}}
	sc.check.Batch = batch
	groups := 0
	if s != nil {
		sc.check.States = s.(*Store).specs
		groups = len(s.(*Store).windows)
	}
	sc.check.Begin(groups, B.PageTokens)
	return sc
}

type weight struct {
	out, in, count int
	partial        bool
	use            B.Use
}

func (w weight) Out() int      { return w.out }
func (w weight) In() int       { return w.in }
func (w weight) Count() int    { return w.count }
func (w weight) Partial() bool { return w.partial }

type loader struct{ world int }

func (l loader) Close() error { return nil }

// Load believes the spec's sizes: a stub model needs no checkpoint.
func (l loader) Load(s B.WeightSpec) (B.Weight, error) {
	out, part := 0, 0
	for _, n := range s.Out {
		out += n
	}
	for _, n := range s.Out {
		if n == 0 || part >= len(s.Parts) {
			continue
		}
		rows := n
		if len(s.Parts) == 1 {
			rows = out
		}
		if err := s.Parts[part].CheckPerm(rows); err != nil {
			return nil, fmt.Errorf("part %d: %w", part, err)
		}
		part++
	}
	return weight{out, s.In, max(s.Count, 1), s.Shard == B.RowPar && l.world > 1, s.Use}, nil
}

// Store prices states like a real one and holds nothing.
type Store struct {
	specs   []B.StateSpec
	policy  B.KVPolicy
	windows []int
	group   []int
}

var _ B.Store = (*Store)(nil)

func (s *Store) Geometry() kv.Geometry {
	g := kv.Geometry{PageTokens: B.PageTokens}
	for _, w := range s.windows {
		g.Groups = append(g.Groups, kv.Group{Window: w})
	}
	for i, sp := range s.specs {
		switch {
		case sp.Paged():
			width := int64(sp.Heads * (sp.KDim + sp.VDim))
			bytes := width * 2
			if s.policy.Bits > 0 {
				bytes = width*int64(s.policy.Bits)/8 + width/int64(s.policy.Group)*4
			}
			g.Groups[s.group[i]].PageBytes += bytes * B.PageTokens
		case sp.Kind == B.StateRecurrent:
			g.FixedBytes += int64(sp.Heads*sp.KDim*sp.VDim) * 4
		default:
			g.FixedBytes += int64(sp.Heads*sp.KDim*sp.VDim) * 2
		}
	}
	g.SnapBytes = g.FixedBytes
	return g
}

func (s *Store) Resize(kv.Capacity) error                              { return nil }
func (s *Store) Open(kv.SlotID, kv.Match, []kv.PageID) error           { return nil }
func (s *Store) Commit(kv.SlotID, int)                                 {}
func (s *Store) Fork(_, _ kv.SlotID, _ *kv.Table, _ []kv.PageID) error { return nil }
func (s *Store) Seal(_ kv.SlotID, _ *kv.Table, _, _ int) error         { return nil }
func (s *Store) Snapshot(kv.SlotID, kv.SnapID) error                   { return nil }
func (s *Store) Close(kv.SlotID)                                       {}
func (s *Store) Drop(kv.Ref)                                           {}
func (s *Store) Export(io.Writer, kv.Ref) error                        { return nil }
func (s *Store) Import(io.Reader, kv.Ref) error                        { return nil }
func (s *Store) Fingerprint() string                                   { return "stub" }
