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

	// Place, if set, changes a step before it runs: positions, and what stands in the place of embeddings.
	Place func(b *backend.Batch)
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
	store, tables := newStore(t, be, m, 1, limit, p)
	return &Sequence{t: t, be: be, m: m, store: store, table: tables[0], vocab: m.Vocab}
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
	if s.Place != nil {
		s.Place(b)
	}
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
