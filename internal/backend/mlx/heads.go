package mlx

import B "hearth/internal/backend"

// turn is what makes heads of an array of one row from columns of another: a norm, a rotation, or first the one and then the
// other. It waits until somebody reads the heads, because queries and keys are best turned together: see pair.
type turn struct {
	in     *node // settled
	width  int
	normed bool
	eps    float32 // of the norm
	w      *weight // of the norm, the same for every head; nil: none
	rope   *B.Rope // nil: none
	first  int     // position
}

// turned is an array whose heads are made when they are read.
func (s *scope) turned(cols int, t turn) B.Array {
	a, n := s.make(1, cols, s.be.act)
	n.width, n.flat, n.todo = t.width, false, &t
	return a
}

// rotated is the array of one row x, whose heads may be normalised yet, turned by p.
func (s *scope) rotated(x B.Array, p *B.Rope, first int) B.Array {
	n := s.look(x)
	if t := n.todo; t != nil && t.rope == nil && t.width == p.Head {
		both := *t
		both.rope, both.first = p, first
		return s.turned(x.Cols(), both)
	}
	return s.turned(x.Cols(), turn{in: s.find(x), width: p.Head, rope: p, first: first})
}

// settle queues what makes the heads of n.
func (s *scope) settle(n *node) {
	if t := n.todo; t != nil {
		n.todo = nil
		s.into(n, func() handle {
			h := s.heads(t.in, t.width)
			if t.normed {
				h = s.l.normed(h, s.scale(t.w), t.eps)
			}
			return s.is(s.spun(t, h))
		})
	}
}

// spun is heads after the rotation of t.
func (s *scope) spun(t *turn, h handle) handle {
	if t.rope == nil {
		return h
	}
	return s.l.roped(h, 2*len(t.rope.InvFreq), t.rope.Traditional, t.first, s.periods(t.rope))
}

// pair turns queries and keys as one array where they are to be turned alike and lie side by side in another, as
// projections that are fused leave them: the norm is without weights, which are multiplied by afterwards. That is as
// many ops as apart, but half of the norms and rotations: one kernel less on a GPU, and two fifths of the graph less
// on MLX's CPU device, which makes dozens of ops of each.
func (s *scope) pair(q, k *node) {
	a, b := q.todo, k.todo
	if a == nil || b == nil || !a.beside(b) {
		return
	}
	q.todo, k.todo = nil, nil
	s.later(func() {
		l, from, nq, nk := s.l, a.in.from/a.width, a.in.cols/a.width, b.in.cols/a.width
		of := a.in.src
		h := l.part(s.divide(of, a.width), 1, from, from+nq+nk, 1, of.cols/a.width, 1, a.width)
		if a.normed {
			h = l.normed(h, 0, a.eps)
			if a.w != nil {
				h = l.mul(h, s.scales(scalesKey{a.w, b.w, nq, nk}))
			}
		}
		h = s.spun(a, h)
		q.split = l.retain(l.part(h, 1, 0, nq, 1, nq+nk, 1, a.width))
		k.split = l.retain(l.part(h, 1, nq, nq+nk, 1, nq+nk, 1, a.width))
	})
}

// beside reports whether t and u do the same to columns that follow each other.
func (t *turn) beside(u *turn) bool {
	a, b := t.in, u.in
	return a.src != nil && a.src == b.src && !a.flat && !b.flat && a.from+a.cols == b.from &&
		a.from%t.width == 0 && a.cols%t.width == 0 && b.cols%t.width == 0 && a.src.cols%t.width == 0 &&
		t.width == u.width && t.rope == u.rope && t.first == u.first && (t.w == nil) == (u.w == nil) &&
		t.normed == u.normed && t.eps == u.eps
}

// scalesKey says of which norms, and for how many heads each.
type scalesKey struct {
	q, k   *weight
	nq, nk int
}

// scales are a norm's weights for heads of queries and then of keys, [1, heads, 1, width] in the activation type, made once.
func (s *scope) scales(key scalesKey) handle {
	h := s.be.scales[key]
	if h != 0 {
		return h
	}
	l := s.l
	var all []handle
	for range key.nq {
		all = append(all, s.scale(key.q))
	}
	for range key.nk {
		all = append(all, s.scale(key.k))
	}
	h = l.retain(l.reshape(l.concat(0, all...), 1, key.nq+key.nk, 1, key.q.out))
	s.be.scales[key] = h
	s.be.owned = append(s.be.owned, h)
	return h
}

// scale is a vector in the activation type, for ops whose result is of the wider type of their operands. It is made once.
func (s *scope) scale(w *weight) handle {
	switch {
	case w == nil:
		return 0
	case s.be.act == B.F32:
		return w.vector
	}
	if w.typed == 0 {
		w.typed = s.l.retain(s.l.cast(w.vector, s.be.dtype()))
		s.be.owned = append(s.be.owned, w.typed)
	}
	return w.typed
}
