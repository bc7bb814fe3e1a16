package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/ref"
	"hearth/internal/kv"
)

// recurrent is a backend with a toy recurrent state: a hash of all tokens of a slot so far. It keeps pages
// beside it, which nothing reads.
type recurrent struct {
	*ref.Backend
	rows   []uint64 // of the step: the state after each row
	copies int      // snapshots taken
	fail   int      // every so many snapshots fail; 0: none
}

type recurrentStore struct {
	backend.Store
	be    *recurrent
	slots map[kv.SlotID]hash
	snaps map[kv.SnapID]hash
}

type hash struct {
	n int
	h uint64
}

func (s hash) next(id int32) hash {
	x := (s.h ^ uint64(id)) * 0x9e3779b97f4a7c15
	return hash{s.n + 1, x ^ x>>29}
}

func (r *recurrent) Sizes() (vocab, context int) { return toyVocab, 0 }

func (r *recurrent) NewStore(specs []backend.StateSpec, p backend.KVPolicy) (backend.Store, error) {
	st, err := r.Backend.NewStore(specs, p)
	return &recurrentStore{st, r, map[kv.SlotID]hash{}, map[kv.SnapID]hash{}}, err
}

func (s *recurrentStore) Geometry() kv.Geometry {
	g := s.Store.Geometry()
	g.FixedBytes, g.SnapBytes = 5000, 5000
	return g
}

func (s *recurrentStore) Open(slot kv.SlotID, m kv.Match, dst []kv.PageID) error {
	s.slots[slot] = hash{}
	if m.Snap != 0 {
		s.slots[slot] = s.snaps[m.Snap]
	}
	if now := s.slots[slot]; now.n != m.Tokens {
		return fmt.Errorf("restored a state of %d tokens for a match of %d", now.n, m.Tokens)
	}
	return s.Store.Open(slot, m, dst)
}

func (s *recurrentStore) Snapshot(slot kv.SlotID, id kv.SnapID) error {
	if s.be.copies++; s.be.fail > 0 && s.be.copies%s.be.fail == 0 {
		return errors.New("no memory")
	}
	s.snaps[id] = s.slots[slot]
	return nil
}

func (s *recurrentStore) Close(slot kv.SlotID) { delete(s.slots, slot) }

// Begin runs the recurrence.
func (r *recurrent) Begin(store backend.Store, b *backend.Batch) backend.Scope {
	s := store.(*recurrentStore)
	r.rows = r.rows[:0]
	for _, sp := range b.Spans {
		now := s.slots[sp.Slot]
		if now.n != sp.Start {
			panic(fmt.Sprintf("a span starts at %d, the state of its slot is of %d tokens", sp.Start, now.n))
		}
		for _, id := range b.Tokens[sp.Row : sp.Row+sp.Len] {
			now = now.next(id)
			r.rows = append(r.rows, now.h)
		}
		if s.slots[sp.Slot] = now; sp.Snapshot != 0 {
			s.be.copies++
			s.snaps[sp.Snapshot] = now
		}
	}
	return r.Backend.Begin(s.Store, b)
}

// Of the model: a row's logits are made of its state.

const toyVocab = 97

func (r *recurrent) States() []backend.StateSpec {
	return []backend.StateSpec{{Name: "0.kv", Heads: 1, KDim: 2, VDim: 2}}
}

func (r *recurrent) Forward(o backend.Ops, b *backend.Batch) backend.Array {
	x := make([]float32, len(b.Out)*toyVocab)
	for i, row := range b.Out {
		for k := range toyVocab {
			x[i*toyVocab+k] = float32(r.rows[row]*uint64(2*k+1)>>40%64) / 16
		}
	}
	return o.(backend.Scope).Upload(x, len(b.Out), toyVocab)
}

func (r *recurrent) Logits(_ backend.Ops, h backend.Array) backend.Array { return h }

func startRecurrent(t *testing.T, change func(*Config, *recurrent)) (*Engine, *recurrent) {
	t.Helper()
	be := &recurrent{Backend: ref.New()}
	cfg := Config{Model: be, Vocab: toyVocab, Backend: be, Budget: 1 << 24, MaxContext: 500, MaxSequences: 8, MaxQueue: 64}
	change(&cfg, be)
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if s := e.Stats(); s.PagesUsed != 0 || s.Used != 0 {
			t.Errorf("after Close: %+v", s)
		}
	})
	return e, be
}

// TestSnapshots: recurrent state gives the same answers restored from snapshots as from the beginning, under
// random schedules, with hardly enough memory, and when some snapshots cannot be taken.
func TestSnapshots(t *testing.T) {
	alone, _ := startRecurrent(t, func(c *Config, _ *recurrent) { c.MaxSequences, c.NoCache = 1, true })
	all := conversations(t, alone)
	want := make([][]Token, len(all))
	for i := range all {
		want[i] = read(t, submit(t, alone, all[i]))
	}
	var sum CacheStats
	copies := 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 19))
		e, be := startRecurrent(t, func(c *Config, be *recurrent) {
			c.MaxSequences, c.PrefillChunk, c.Budget = 1+r.IntN(6), 5+r.IntN(200), int64(40000+r.IntN(200000))
			be.fail = r.IntN(3) * 5
		})
		disturb(t, e, r, all, want)
		s := e.Stats().Cache
		sum.Hits += s.Hits
		sum.Tokens += s.Tokens
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		copies += be.copies
	}
	if sum.Hits == 0 || copies == 0 {
		t.Errorf("nothing was ever restored: %+v, %d snapshots", sum, copies)
	}
	t.Logf("%d hits, %d tokens, %d snapshots", sum.Hits, sum.Tokens, copies)
}
