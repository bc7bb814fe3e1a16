package golden

import (
	"testing"

	"hearth/internal/backend"
	"hearth/internal/kv"
	"hearth/internal/model"
)

// Sequences steps several sequences of a model together.
type Sequences struct {
	t      testing.TB
	be     backend.Backend
	m      model.Generator
	store  backend.Store
	tables []kv.Table
}

// NewSequences makes room for n sequences of limit tokens, with keys and values as NewSequence keeps them.
func NewSequences(t testing.TB, be backend.Backend, m *model.Loaded, n, limit int) *Sequences {
	t.Helper()
	store, tables := newStore(t, be, m, n, limit, backend.KVPolicy{DType: backend.F32})
	return &Sequences{t: t, be: be, m: m, store: store, tables: tables}
}

// newStore makes a store with a slot and all pages for each of n sequences of limit tokens.
func newStore(t testing.TB, be backend.Backend, m *model.Loaded, n, limit int, p backend.KVPolicy) (backend.Store, []kv.Table) {
	t.Helper()
	store, err := be.NewStore(m.States(), p)
	if err != nil {
		t.Fatal(err)
	}
	tables, c := store.Geometry().Preallocate(n, limit)
	if err := store.Resize(c); err != nil {
		t.Fatal(err)
	}
	for i := range tables {
		if err := store.Open(kv.SlotID(i), kv.Match{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	return store, tables
}

// Step runs the tokens of every sequence, if it has any, in one batch and returns the logits of the last one of each.
func (s *Sequences) Step(tokens [][]int32) []float32 {
	s.t.Helper()
	b := &backend.Batch{}
	for i, t := range tokens {
		if len(t) == 0 {
			continue
		}
		tab := &s.tables[i]
		b.Spans = append(b.Spans, backend.Span{Slot: kv.SlotID(i), Row: len(b.Tokens), Len: len(t), Start: tab.Len, Table: tab})
		b.Tokens = append(b.Tokens, t...)
		for j := range t {
			b.Pos[0] = append(b.Pos[0], int32(tab.Len+j))
		}
		b.Out = append(b.Out, int32(len(b.Tokens)-1))
	}
	scope := s.be.Begin(s.store, b)
	defer scope.End()
	f, err := scope.Floats(s.m.Logits(scope, s.m.Forward(scope, b)))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range b.Spans {
		b.Spans[i].Table.Len += b.Spans[i].Len
	}
	return append([]float32(nil), f...)
}
