// Package ref is the oracle: every op of the backend contract in float64, one row after the other, with no cleverness
// and no shared code with the backends it judges. Tests call it (backendtest, model goldens); nothing that serves does.
// It keeps sequence state by page like a real store, so that page tables and restores are judged too.
package ref

import (
	"fmt"

	B "hearth/internal/backend"
)

// Backend is the oracle. The zero value is not usable; see New.
type Backend struct {
	next   uint32
	gen    uint32
	pinned map[uint32]*array
}

var _ B.Backend = (*Backend)(nil)

// New makes an oracle.
func New() *Backend { return &Backend{pinned: map[uint32]*array{}} }

func (b *Backend) Name() string { return "ref" }

func (b *Backend) Caps() B.Caps { return B.Caps{Eager: true, Invariant: true, World: 1} }

func (b *Backend) NewLoader(B.Options) B.Loader { return loader{} }

func (b *Backend) Close() error { return nil }

func (b *Backend) Unpin(a B.Array) {
	slot, _ := a.Slot()
	delete(b.pinned, slot)
}

func (b *Backend) Begin(s B.Store, batch *B.Batch) B.Scope {
	b.gen++
	sc := &scope{be: b, b: batch, gen: b.gen, live: map[uint32]*array{}}
	sc.check.Batch = batch
	groups := 0
	if s != nil {
		sc.st = s.(*Store)
		sc.check.States = sc.st.specs
		groups = len(sc.st.windows)
	}
	sc.check.Begin(groups, B.PageTokens)
	if sc.st != nil {
		sc.st.advance(batch)
	}
	return sc
}

// array is a matrix: rows of cols numbers.
type array struct {
	cols int
	v    []float64
	of   *array // what this was made as a view of: it lives as long
	kept bool
}

func (a *array) rows() int           { return len(a.v) / a.cols }
func (a *array) row(r int) []float64 { return a.v[r*a.cols : (r+1)*a.cols] }

// scope is one step. Views are copies here: nothing aliases.
type scope struct {
	be    *Backend
	b     *B.Batch
	st    *Store
	check B.Check
	gen   uint32
	ended bool
	live  map[uint32]*array
}

func (s *scope) make(rows, cols int) (B.Array, *array) {
	if s.ended {
		panic("ref: op after End")
	}
	s.be.next++
	a := &array{cols: cols, v: make([]float64, rows*cols)}
	s.live[s.be.next] = a
	return B.Handle(s.be.next, s.gen, rows, cols, B.F64), a
}

// get resolves a handle, or panics when its life is over.
func (s *scope) get(h B.Array) *array {
	slot, gen := h.Slot()
	if a := s.be.pinned[slot]; a != nil && !h.IsZero() {
		return a
	}
	a := s.live[slot]
	if s.ended || gen != s.gen || a == nil {
		panic(fmt.Sprintf("ref: array %d (%d×%d) used after it was swept or its step ended", slot, h.Rows(), h.Cols()))
	}
	return a
}

// view is a copy that keeps x alive as a view would.
func (s *scope) view(x B.Array, rows, cols int) (B.Array, *array) {
	h, y := s.make(rows, cols)
	if y.of = s.get(x); y.of.of != nil {
		y.of = y.of.of
	}
	return h, y
}

func (s *scope) Keep(h B.Array) B.Array {
	s.get(h).kept = true
	return h
}

func (s *scope) Sweep(h B.Array) {
	last := s.get(h)
	for slot, a := range s.live {
		if a != last && a != last.of && !a.kept {
			delete(s.live, slot)
		}
	}
}

func (s *scope) Pin(h B.Array) B.Array {
	slot, _ := h.Slot()
	s.be.pinned[slot] = s.get(h)
	return h
}

func (s *scope) Upload(data []float32, rows, cols int) B.Array {
	s.check.Upload(data, rows, cols)
	h, y := s.make(rows, cols)
	for i, v := range data {
		y.v[i] = float64(v)
	}
	return h
}

func (s *scope) Submit(a ...B.Array) {
	for _, h := range a {
		s.get(h)
	}
}

func (s *scope) Floats(h B.Array) ([]float32, error) {
	a := s.get(h)
	f := make([]float32, len(a.v))
	for i, v := range a.v {
		f[i] = float32(v)
	}
	return f, nil
}

func (s *scope) Ints(h B.Array) ([]int32, error) {
	a := s.get(h)
	n := make([]int32, len(a.v))
	for i, v := range a.v {
		n[i] = int32(v)
	}
	return n, nil
}

// Float64s is Floats without the rounding, for tests that measure others against the oracle.
func Float64s(s B.Scope, h B.Array) []float64 { return s.(*scope).get(h).v }

func (s *scope) Err() error { return nil }

func (s *scope) End() { s.ended = true }
