package golden

import (
	"testing"

	"hearth/internal/backend"
	"hearth/internal/kv"
	"hearth/internal/model"
)

// Sequence steps one sequence of a model the way an engine would, with every page it may need handed out at once.
type Sequence struct {
	t     testing.TB
	be    backend.Backend
	m     model.Generator
	store backend.Store
	table kv.Table
	batch backend.Batch
	vocab int
}

// NewSequence makes room for limit tokens. Keys and values are kept in float32, so that only the arithmetic differs
// from the reference.
func NewSequence(t testing.TB, be backend.Backend, m *model.Loaded, limit int) *Sequence {
	t.Helper()
	return NewSequenceKV(t, be, m, limit, backend.KVPolicy{DType: backend.F32})
}

// NewSequenceKV is NewSequence with keys and values kept as p says.
func NewSequenceKV(t testing.TB, be backend.Backend, m *model.Loaded, limit int, p backend.KVPolicy) *Sequence {
	t.Helper()
	store, err := be.NewStore(m.States(), p)
	if err != nil {
		t.Fatal(err)
	}
	s := &Sequence{t: t, be: be, m: m, store: store, vocab: m.Vocab}
	g := store.Geometry()
	n := (limit + g.PageTokens - 1) / g.PageTokens
	c := kv.Capacity{Slots: 1}
	for range g.Groups {
		c.Pages = append(c.Pages, n)
		var ids []kv.PageID
		for i := range n {
			ids = append(ids, kv.PageID(i+1))
		}
		s.table.Pages = append(s.table.Pages, ids)
	}
	if err := store.Resize(c); err != nil {
		t.Fatal(err)
	}
	if err := store.Open(0, kv.Match{}, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// Step runs tokens after those of earlier steps and returns the logits of the rows named in out, counted from the first
// of tokens, back to back.
func (s *Sequence) Step(tokens []int32, out ...int32) []float32 {
	s.t.Helper()
	b := &s.batch
	*b = backend.Batch{Tokens: tokens, Out: out}
	for i := range tokens {
		b.Pos[0] = append(b.Pos[0], int32(s.table.Len+i))
	}
	b.Spans = []backend.Span{{Slot: 0, Len: len(tokens), Start: s.table.Len, Table: &s.table}}
	scope := s.be.Begin(s.store, b)
	defer scope.End()
	h := s.m.Forward(scope, b)
	var y []float32
	if len(out) > 0 {
		f, err := scope.Floats(s.m.Logits(scope, h))
		if err != nil {
			s.t.Fatal(err)
		}
		y = append(y, f...)
	}
	if err := scope.Err(); err != nil {
		s.t.Fatal(err)
	}
	if len(y) != len(out)*s.vocab {
		s.t.Fatalf("step of %d rows gave %d logits, want %d×%d", len(tokens), len(y), len(out), s.vocab)
	}
	s.table.Len += len(tokens)
	return y
}
