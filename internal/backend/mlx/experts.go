package mlx

import (
	"math"

	B "hearth/internal/backend"
)

func (s *scope) Route(scores B.Array, r *B.Router) B.Routing {
	s.check.Route(scores, r)
	in, n, experts := s.get(scores), scores.Rows(), scores.Cols()
	ids, id := s.make(n, r.K, B.I32)
	weights, w := s.make(n, r.K, B.F32)
	if n > 0 {
		s.later(func() {
			l := s.l
			x := l.cast(in.h, f32)
			sel := l.selection(r, x, n, experts)
			// The sort keeps the order of equal scores, so a tie goes to the lower id.
			order := l.do(fnArgsort, uintptr(l.un(fnNegative, sel)), uintptr(1))
			picked := l.do(fnSort, uintptr(l.cast(l.slice(order, 1, 0, r.K), i32)), uintptr(1))
			id.h, w.h = l.retain(picked), l.retain(l.weights(r, x, picked))
		})
	}
	return B.Routing{IDs: ids, Weights: weights}
}

// selection is what experts are picked by, [rows, experts].
func (l *lib) selection(r *B.Router, x handle, n, experts int) handle {
	sel, none := x, float32(math.Inf(-1))
	switch {
	case r.Score == B.Sigmoid:
		sel = l.un(fnSigmoid, x)
	case r.Bias != nil || r.TwoBest && r.Groups > 1:
		sel = l.softmax(x, 1)
	}
	if r.Bias != nil {
		sel = l.add(sel, r.Bias.(*weight).vector)
	}
	if r.Groups <= 1 {
		return sel
	}
	each := experts / r.Groups
	groups := l.reshape(sel, n, r.Groups, each)
	best := l.reduce(fnMax, groups, 2)
	if r.Score == B.Sigmoid || r.TwoBest {
		sorted := l.do(fnSort, uintptr(groups), uintptr(2))
		best = l.add(l.slice(sorted, 2, each-1, each), l.slice(sorted, 2, each-2, each-1))
	}
	order := l.do(fnArgsort, uintptr(l.un(fnNegative, l.reshape(best, n, r.Groups))), uintptr(1))
	rank := l.cast(l.do(fnArgsort, uintptr(order), uintptr(1)), f32)
	in := l.reshape(l.bin(fnLess, rank, l.num(float32(r.TopGroups))), n, r.Groups, 1)
	return l.reshape(l.where(in, groups, l.num(none)), n, experts)
}

// weights of the picked experts.
func (l *lib) weights(r *B.Router, x, picked handle) handle {
	var w handle
	switch r.Score {
	case B.Softmax:
		w = l.takeAlong(l.softmax(x, 1), picked, 1)
	case B.SoftmaxSelected:
		w = l.softmax(l.takeAlong(x, picked, 1), 1)
	default:
		w = l.takeAlong(l.un(fnSigmoid, x), picked, 1)
	}
	if r.Renorm {
		w = l.bin(fnDivide, w, l.add(l.reduce(fnSum, w, 1), l.num(max(r.Least, 1e-20))))
	}
	if r.Scale != 0 {
		w = l.mul(w, l.num(r.Scale))
	}
	if r.Each != nil {
		w = l.mul(w, l.take(r.Each.(*weight).vector, picked, 0))
	}
	return w
}

func (s *scope) MoE(x B.Array, r B.Routing, e *B.Experts) B.Array {
	s.check.MoE(x, r, e)
	in, ids, ws := s.get(x), s.get(r.IDs), s.get(r.Weights)
	up, down := e.Up.(*weight), e.Down.(*weight)
	n, k := x.Rows(), r.IDs.Cols()
	return s.op(n, down.out, func() handle {
		l := s.l
		both := up.gathered(l, l.reshape(in.h, n, 1, 1, up.in), ids.h, n, k)
		if e.Act != nil {
			return s.combined(down, l.cast(l.act(e.Act.Kind, 0, l.cast(both, f32)), s.be.dtype()), ids.h, ws.h, n, k)
		}
		half := up.out / 2
		hidden := s.gated(e.GLU, l.slice(both, 3, 0, half), l.slice(both, 3, half, up.out))
		return s.combined(down, hidden, ids.h, ws.h, n, k)
	})
}

// combined is the sum of what the picked experts give, by their weights.
func (s *scope) combined(down *weight, hidden, ids, weights handle, n, k int) handle {
	l := s.l
	y := l.reshape(down.gathered(l, hidden, ids, n, k), n, k, down.out)
	y = l.mul(l.cast(y, f32), l.reshape(weights, n, k, 1))
	return l.reshape(l.reduce(fnSum, y, 1), n, down.out)
}

// gathered multiplies x [rows, 1 or picks, 1, in] with the matrices of the picked experts: [rows, picks, 1, out].
func (t *weight) gathered(l *lib, x, ids handle, n, k int) handle {
	var parts []handle
	for i := range t.blocks {
		parts = append(parts, l.gathered(x, &t.blocks[i], ids))
	}
	y := l.concat(3, parts...)
	if t.factor != 0 {
		y = l.mul(y, l.reshape(l.take(t.factor, ids, 0), n, k, 1, t.out))
	}
	if t.up != 0 {
		low := l.gathered(x, &block{w: t.down}, ids)
		y = l.add(y, l.gathered(low, &block{w: t.up}, ids))
	}
	if t.bias != 0 {
		y = l.add(y, l.reshape(l.take(t.bias, ids, 0), n, k, 1, t.out))
	}
	return y
}
