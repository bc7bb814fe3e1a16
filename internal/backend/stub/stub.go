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

func (b *Backend) Unpin(a B.Array) {
	slot, _ := a.Slot()
	delete(b.pinned, slot)
}

func (b *Backend) Close() error { return nil }

func (b *Backend) NewStore(specs []B.StateSpec, p B.KVPolicy) (B.Store, error) {
	if p.DType == B.None && p.Bits == 0 {
		p.DType = B.BF16
	}
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &Store{specs: specs, policy: p, at: map[kv.SlotID]int{}, snaps: map[kv.SnapID]int{}}
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
	if s != nil {
		s.(*Store).advance(batch)
	}
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

// Store prices states like a real one and holds nothing. Of fixed state it knows after how many tokens it is, in every slot
// and snapshot, and panics when a span would start from another.
type Store struct {
	at    map[kv.SlotID]int
	snaps map[kv.SnapID]int

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
			bytes := width * int64(map[B.DType]int{B.BF16: 2, B.F16: 2, B.F32: 4, B.F64: 8}[s.policy.DType])
			if s.policy.Bits > 0 {
				groups := sp.KDim/s.policy.GroupOf(sp.KDim) + sp.VDim/s.policy.GroupOf(sp.VDim)
				bytes = width*int64(s.policy.Bits)/8 + int64(sp.Heads*groups)*4
			}
			g.Groups[s.group[i]].PageBytes += bytes * B.PageTokens
		case sp.Kind == B.StateRecurrent:
			g.FixedBytes += int64(sp.Heads*sp.KDim*sp.VDim) * 4
		default:
			g.FixedBytes += int64(sp.Heads*sp.KDim*sp.VDim) * 2
		}
	}
	g.SnapBytes = g.FixedBytes
	if s.policy.MaxDraft > 0 {
		g.DraftBytes = g.FixedBytes // and no log
	}
	return g
}

func (s *Store) Policy() B.KVPolicy       { return s.policy }
func (s *Store) Resize(kv.Capacity) error { return nil }

// advance moves the states of a batch's slots behind its spans. A tentative span leaves them until Commit.
func (s *Store) advance(b *B.Batch) {
	if !B.Fixed(s.specs) {
		return
	}
	for i := range b.Spans {
		sp := &b.Spans[i]
		if at := s.at[sp.Slot]; at != sp.Start {
			panic(fmt.Sprintf("stub: span %d starts at %d, the state of slot %d is of %d tokens", i, sp.Start, sp.Slot, at))
		}
		if !sp.Tentative {
			s.at[sp.Slot] = sp.Start + sp.Len
		}
		if sp.Snapshot != 0 {
			s.snaps[sp.Snapshot] = sp.Start + sp.Len
		}
	}
}

func (s *Store) Open(slot kv.SlotID, m kv.Match, _ []kv.PageID) error {
	s.at[slot] = s.snaps[m.Snap]
	if B.Fixed(s.specs) && s.at[slot] != m.Tokens {
		return fmt.Errorf("stub: snapshot %d is of %d tokens, the match of %d", m.Snap, s.at[slot], m.Tokens)
	}
	return nil
}

func (s *Store) Snapshot(slot kv.SlotID, id kv.SnapID) error {
	s.snaps[id] = s.at[slot]
	return nil
}

func (s *Store) Commit(slot kv.SlotID, n int) { s.at[slot] += n }
func (s *Store) Close(slot kv.SlotID)         { delete(s.at, slot) }
func (s *Store) Drop(ref kv.Ref)              { delete(s.snaps, ref.Snap) }

func (s *Store) Fingerprint() string { return "stub" }

// Export writes a page of zeros.
func (s *Store) Export(w io.Writer, ref kv.Ref) error {
	_, err := w.Write(make([]byte, s.Geometry().Groups[ref.Group].PageBytes))
	return err
}

// Import reads a page.
func (s *Store) Import(r io.Reader, ref kv.Ref) error {
	_, err := io.CopyN(io.Discard, r, s.Geometry().Groups[ref.Group].PageBytes)
	return err
}
