package mlx

import (
	"fmt"
	"slices"

	B "hearth/internal/backend"
)

// node is one array of a scope. Its handles are set when the closures that compute them have run.
//
// Invariants: h is [rows, cols]. That of an array of one row may be left out until somebody resolves it with get: heads of it
// are then in split, or to be made, or it is columns of another array. What only attention's ops see never exists as h.
type node struct {
	h          handle
	rows, cols int
	split      handle // [1, cols/width, 1, width], or 0
	width      int    // of split's heads
	todo       *turn  // what makes split; nil: it is there, or on its way
	src        *node  // whose columns from from on these are
	from       int
	flat       bool  // h is there, or on its way
	of         *node // what this was made as a view of: it lives as long
	kept, dead bool
}

// longStep is the rows from which on a step's memory is given back after it: the next one has other shapes.
const longStep = 256

// pinGen marks handles of pinned arrays.
const pinGen = 1 << 31

func isPin(a B.Array) bool {
	_, gen := a.Slot()
	return gen == pinGen
}

// scope is one step.
type scope struct {
	be     *Backend
	l      *lib
	b      *B.Batch
	st     *Store
	wrote  []*buffer // of the store
	check  B.Check
	gen    uint32
	nodes  []*node
	alive  []*node // those that were not swept
	typed  bool    // the array that is being made is known to be of the activation type
	clean  bool    // what this step has written to the store is being computed
	tables map[tableKey]*tableData
	masks  map[maskKey]*mask
	err    error
	ended  bool
}

// make is a new array without numbers.
func (s *scope) make(rows, cols int, t B.DType) (B.Array, *node) {
	if s.ended {
		panic("mlx: op after End")
	}
	n := &node{}
	if last := len(s.be.free) - 1; last >= 0 {
		n, s.be.free = s.be.free[last], s.be.free[:last]
	}
	*n = node{rows: rows, cols: cols, flat: true}
	s.nodes, s.alive, s.clean = append(s.nodes, n), append(s.alive, n), false
	return B.Handle(uint32(len(s.nodes)-1), s.gen, rows, cols, t), n
}

// get resolves a handle to a node that has h, or panics when its life is over.
func (s *scope) get(a B.Array) *node {
	n := s.find(a)
	if !n.flat {
		n.flat = true
		s.later(func() {
			if n.src != nil {
				n.h = s.l.retain(s.l.part(n.src.h, 1, n.from, n.from+n.cols, 1, n.src.cols))
			} else {
				n.h = s.l.retain(s.l.reshape(n.split, 1, n.cols))
			}
		})
	}
	return n
}

// find is get for those who read heads.
func (s *scope) find(a B.Array) *node {
	n := s.look(a)
	s.settle(n)
	return n
}

// look is get for those who read no numbers.
func (s *scope) look(a B.Array) *node {
	slot, gen := a.Slot()
	if isPin(a) {
		if n := s.be.pinned[slot]; n != nil {
			return n
		}
	} else if !s.ended && gen == s.gen && gen != 0 && int(slot) < len(s.nodes) && !s.nodes[slot].dead {
		return s.nodes[slot]
	}
	panic(fmt.Sprintf("mlx: array %d (%d×%d) used after it was swept or its step ended", slot, a.Rows(), a.Cols()))
}

// heads gives [1, heads, rows, width] of rows of an array that find or, for more than one row, get has resolved.
func (s *scope) heads(n *node, width int) handle {
	l := s.l
	switch {
	case n.split != 0 && n.width == width:
		return n.split
	case n.h == 0 && n.src != nil && n.from%width == 0 && n.cols%width == 0 && n.src.cols%width == 0:
		p := n.src
		return l.part(s.divide(p, width), 1, n.from/width, (n.from+n.cols)/width, 1, p.cols/width, 1, width)
	case n.h == 0 && n.src != nil:
		return l.reshape(l.part(n.src.h, 1, n.from, n.from+n.cols, 1, n.src.cols), 1, n.cols/width, 1, width)
	case n.h == 0:
		return l.reshape(n.split, 1, n.cols/width, 1, width)
	case n.rows == 1:
		return s.divide(n, width)
	}
	return l.transpose(l.reshape(n.h, 1, n.rows, n.cols/width, width), 0, 2, 1, 3)
}

// divide makes heads of an array of one row, and keeps them with it if it has none.
func (s *scope) divide(n *node, width int) handle {
	if n.split != 0 && n.width == width {
		return n.split
	}
	h := s.l.reshape(n.h, 1, n.cols/width, 1, width)
	if n.split == 0 {
		n.split, n.width = s.l.retain(h), width
	}
	return h
}

// one is op for an array of one row that f computes as heads of such a width.
func (s *scope) one(cols, width int, f func() handle) B.Array {
	a, n := s.make(1, cols, s.be.act)
	n.width, n.flat = width, false
	s.into(n, f)
	return a
}

// later runs f on the owner's thread unless the step has failed.
func (s *scope) later(f func()) { s.be.queue = append(s.be.queue, task{s: s, run: f}) }

// do is on the owner's thread.
func (s *scope) do(t *task) {
	if s.err == nil {
		s.err, s.be.err = s.be.err, nil
	}
	if s.err != nil {
		return
	}
	if t.n != nil {
		s.fill(t.n, t.make())
	} else {
		t.run()
	}
	s.err = s.l.takeErr()
}

// fill gives a node its array, or its heads, in float32 or the activation type.
func (s *scope) fill(n *node, h handle) {
	if !s.typed && s.be.act != B.F32 {
		h = s.l.cast(h, s.be.dtype())
	}
	s.typed = false
	if h = s.l.retain(h); n.width != 0 {
		n.split = h
	} else {
		n.h = h
	}
}

// into queues what computes n. Arrays without numbers are not computed.
func (s *scope) into(n *node, f func() handle) {
	if n.rows*n.cols != 0 {
		s.be.queue = append(s.be.queue, task{s: s, make: f, n: n})
	}
}

// op queues what computes a new array from arrays that f reads when it runs.
func (s *scope) op(rows, cols int, f func() handle) B.Array {
	a, n := s.make(rows, cols, s.be.act)
	s.into(n, f)
	return a
}

// is says, inside of what op was given, that h is of the activation type: MLX need not be asked.
func (s *scope) is(h handle) handle {
	s.typed = true
	return h
}

// view is op for an array that keeps x alive as a view would.
func (s *scope) view(x B.Array, rows, cols int, f func(x handle) handle) B.Array {
	a, n := s.make(rows, cols, s.be.act)
	in := s.get(x)
	if n.of = in; in.of != nil {
		n.of = in.of
	}
	if rows*cols > 0 {
		s.later(func() { n.h = s.l.retain(f(in.h)) })
	}
	return a
}

func (s *scope) Keep(a B.Array) B.Array {
	s.get(a).kept = true
	return a
}

func (s *scope) Sweep(a B.Array) {
	last := s.find(a)
	var gone []*node
	left := s.alive[:0]
	for _, n := range s.alive {
		if n != last && n != last.of && !n.kept {
			n.dead = true
			gone = append(gone, n)
		} else {
			left = append(left, n)
		}
	}
	s.alive = left
	s.be.later(func() {
		for _, n := range gone {
			s.l.drop(n.h)
			s.l.drop(n.split)
			n.h, n.split = 0, 0
		}
	})
}

func (s *scope) Pin(a B.Array) B.Array {
	n := s.get(a)
	s.be.pins++
	p := &node{rows: n.rows, cols: n.cols, flat: true}
	s.be.pinned[s.be.pins] = p
	if n.rows*n.cols > 0 {
		s.later(func() {
			p.h = s.l.retain(s.l.again(n.h))
			s.l.eval(true, p.h)
		})
	}
	return B.Handle(s.be.pins, pinGen, n.rows, n.cols, a.DType())
}

func (s *scope) Upload(data []float32, rows, cols int) B.Array {
	s.check.Upload(data, rows, cols)
	data = slices.Clone(data)
	return s.op(rows, cols, func() handle { return upload(s.l, data, f32, rows, cols) })
}

// Submit starts computing without waiting.
func (s *scope) Submit(all ...B.Array) {
	var nodes []*node
	for _, a := range all {
		if n := s.get(a); n.rows*n.cols > 0 {
			nodes = append(nodes, n)
		}
	}
	s.later(func() {
		hs := s.state()
		for _, n := range nodes {
			hs = append(hs, n.h)
		}
		s.l.eval(true, hs...)
	})
	s.be.flush()
	s.clean = true
}

// state are the buffers this step has changed: computing them with the results keeps their graphs from growing.
func (s *scope) state() []handle {
	if s.st == nil {
		return nil
	}
	return s.st.pending(s.wrote)
}

func (s *scope) Floats(a B.Array) ([]float32, error) { return fetch(s, a, s.l.download) }

func (s *scope) Ints(a B.Array) ([]int32, error) { return fetch(s, a, s.l.downloadInts) }

// fetch computes a, and with it the state if nothing has yet: End then has nothing to wait for.
func fetch[T float32 | int32](s *scope, a B.Array, download func(h handle, dst []T, also ...handle)) ([]T, error) {
	n := s.get(a)
	dst := make([]T, n.rows*n.cols)
	if len(dst) > 0 {
		clean := s.clean
		s.later(func() {
			if clean {
				download(n.h, dst)
			} else {
				download(n.h, dst, s.state()...)
			}
		})
	}
	s.be.flush()
	s.clean = s.clean || len(dst) > 0
	return dst, s.err
}

func (s *scope) Err() error {
	s.be.flush()
	return s.err
}

// End computes the state that the step has written, so that its graph goes with the step, and frees the arrays: at once if there
// is something to compute or much to free, else when the owner is next woken, which is for the next step's result or by Idle.
func (s *scope) End() {
	if s.ended {
		return
	}
	s.ended = true
	long := s.b.Rows() >= longStep
	now := long || !s.clean
	if now {
		s.later(func() { s.l.eval(!long, s.state()...) })
	}
	s.be.later(func() { s.leave(long) })
	if now {
		s.be.flush()
	}
}

// leave frees what a step has made. It runs on the owner's thread, while whoever builds steps waits for that.
func (s *scope) leave(long bool) {
	s.l.built()
	for _, n := range s.nodes {
		s.l.free(n.h)
		s.l.free(n.split)
		n.h, n.split, n.of, n.src = 0, 0, nil, nil
	}
	for _, t := range s.tables {
		s.l.free(t.cos)
		s.l.free(t.sin)
		s.l.free(t.factor)
	}
	for _, m := range s.masks {
		s.l.free(m.h)
	}
	if long {
		s.l.Call(s.l.fns[fnClearCache])
	}
	s.l.gauge()
	s.be.free = append(s.be.free, s.nodes...)
	s.nodes, s.alive = nil, nil
}
