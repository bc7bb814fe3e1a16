package cpu

import (
	"fmt"
	"slices"

	"hearth/internal/backend"
)

// scope is one step. Arrays live in two arenas in turn: Sweep empties the one that does not hold the survivor and
// continues there. Kept arrays move to a third, which lasts until End.
type scope struct {
	be    *Backend
	pool  *pool
	st    *Store
	batch *backend.Batch
	check backend.Check
	open  bool

	arenas [3]arena
	cur    int8
	live   []uint32

	spanOf []int32 // span of every batch row
	altOf  []int32
	angles []*angles // rotation tables by spec
	nAngle int
}

const keepArena = 2

var _ backend.Scope = (*scope)(nil)

func (s *scope) begin(st backend.Store, b *backend.Batch) {
	s.st, s.batch, s.nAngle = nil, b, 0
	s.check = backend.Check{Batch: b}
	groups := 0
	if st != nil {
		s.st = st.(*Store)
		s.check.States = s.st.specs
		groups = len(s.st.groups)
	}
	s.check.Begin(groups, backend.PageTokens)
	if s.st != nil {
		s.st.fixed.advance(b)
	}
	s.spanOf = spanRows(s.spanOf[:0], b.Spans)
	s.altOf = spanRows(s.altOf[:0], b.Alt)
	s.open = true
}

func spanRows(of []int32, spans []backend.Span) []int32 {
	for i := range spans {
		for range spans[i].Len {
			of = append(of, int32(i))
		}
	}
	return of
}

// batchRow maps row r of an array with all rows, or the wanted ones, to its row in the batch.
func (s *scope) batchRow(rows, r int) int {
	if rows == s.batch.Rows() {
		return r
	}
	return int(s.batch.Out[r])
}

// make gives a new array uninitialised memory.
func (s *scope) make(rows, cols int) (backend.Array, *array) {
	h, a := s.handle(rows, cols)
	a.data, a.arena = s.arenas[s.cur].alloc(rows*cols), s.cur
	return h, a
}

// view gives a new array the memory of another.
func (s *scope) view(of backend.Array, rows, cols, stride, from int) backend.Array {
	x := s.get(of)
	h, a := s.handle(rows, cols)
	a.data, a.stride, a.owner, a.arena = x.data[min(from, len(x.data)):], stride, x.owner, x.arena
	return h
}

func (s *scope) handle(rows, cols int) (backend.Array, *array) {
	if !s.open {
		panic("cpu: op after End")
	}
	slot, a := s.be.slot(rows, cols)
	s.live = append(s.live, slot)
	return backend.Handle(slot, a.gen, rows, cols, backend.F32), a
}

// get resolves a handle, or panics when its life is over.
func (s *scope) get(h backend.Array) *array {
	slot, gen := h.Slot()
	a := s.be.array(slot, gen)
	if a == nil || !s.open {
		panic(fmt.Sprintf("cpu: array %d (%d×%d) used after it was swept or its step ended", slot, h.Rows(), h.Cols()))
	}
	return a
}

// move copies a to memory of its own.
func (a *array) move(slot uint32, to []float32) {
	for r := range a.rows {
		copy(to[r*a.cols:][:a.cols], a.row(r))
	}
	a.data, a.stride, a.owner = to, a.cols, slot
}

func (s *scope) Keep(h backend.Array) backend.Array {
	a := s.get(h)
	slot, _ := h.Slot()
	if !a.kept && !a.pinned {
		a.move(slot, s.arenas[keepArena].alloc(a.rows*a.cols))
		a.arena, a.kept = keepArena, true
	}
	return h
}

func (s *scope) Sweep(h backend.Array) {
	last := s.get(h)
	slot, _ := h.Slot()
	left := s.live[:0]
	for _, n := range s.live {
		a := s.be.arrays[n]
		switch {
		case n == slot || n == last.owner || a.kept:
			left = append(left, n)
		default:
			s.be.release(n)
		}
	}
	s.live = left
	if last.arena == s.cur {
		s.cur ^= 1
	}
	s.arenas[s.cur].reset()
}

// Pin copies: the pinned array belongs to the backend and outlives the step's arenas.
func (s *scope) Pin(h backend.Array) backend.Array {
	a := s.get(h)
	slot, _ := h.Slot()
	if !a.pinned {
		a.move(slot, make([]float32, a.rows*a.cols))
		a.arena, a.pinned = keepArena, true
		i := slices.Index(s.live, slot)
		s.live = slices.Delete(s.live, i, i+1)
	}
	return h
}

func (s *scope) End() {
	if !s.open {
		return
	}
	for _, n := range s.live {
		s.be.release(n)
	}
	s.live = s.live[:0]
	for i := range s.arenas {
		s.arenas[i].reset()
	}
	s.cur, s.open, s.batch, s.st = 0, false, nil, nil
}

func (s *scope) Upload(data []float32, rows, cols int) backend.Array {
	s.check.Upload(data, rows, cols)
	h, a := s.make(rows, cols)
	if !s.be.rehearsing { // else memory is only reserved
		copy(a.data, data)
	}
	return h
}

func (s *scope) Submit(a ...backend.Array) {
	for _, h := range a {
		s.get(h)
	}
}

// Floats gives the array's own memory unless it is a view of some columns.
func (s *scope) Floats(h backend.Array) ([]float32, error) {
	a := s.get(h)
	if a.stride == a.cols || a.rows <= 1 {
		return a.data[:a.rows*a.cols], nil
	}
	_, c := s.make(a.rows, a.cols)
	for r := range a.rows {
		copy(c.row(r), a.row(r))
	}
	return c.data[:a.rows*a.cols], nil
}

func (s *scope) Ints(h backend.Array) ([]int32, error) {
	if h.DType() != backend.I32 {
		return nil, fmt.Errorf("read integers: the array has %v", h.DType())
	}
	f, err := s.Floats(h)
	ids := make([]int32, len(f))
	for i, v := range f {
		ids[i] = int32(v)
	}
	return ids, err
}

func (s *scope) Err() error { return nil }
