package mlx

import (
	"math"

	B "hearth/internal/backend"
)

// act applies an activation to float32.
func (l *lib) act(kind B.ActKind, a float32, x handle) handle {
	switch kind {
	case B.SiLU:
		return l.mul(x, l.un(fnSigmoid, x))
	case B.GeluTanh:
		cube := l.mul(x, l.un(fnSquare, x))
		// (1+tanh(u))/2 is σ(2u), which loses no digits where tanh is near -1.
		u := l.mul(l.add(x, l.mul(cube, l.num(0.044715))), l.num(float32(2*math.Sqrt(2/math.Pi))))
		return l.mul(x, l.un(fnSigmoid, u))
	case B.GeluErf:
		e := l.un(fnErf, l.mul(x, l.num(1/math.Sqrt2)))
		return l.mul(l.mul(x, l.num(0.5)), l.add(e, l.num(1)))
	case B.QuickGelu:
		return l.mul(x, l.un(fnSigmoid, l.mul(x, l.num(1.702))))
	case B.ReLU2:
		return l.un(fnSquare, l.bin(fnMaximum, x, l.num(0)))
	case B.SigmoidAct:
		return l.un(fnSigmoid, x)
	case B.SoftplusAct:
		return l.softplus(x)
	case B.TanhCap:
		return l.mul(l.un(fnTanh, l.bin(fnDivide, x, l.num(a))), l.num(a))
	}
	return x
}

// gate is act(g)⊙x with the limits of s, in float32.
func (l *lib) gate(s *B.GLU, g, x handle) handle {
	if s.Limit != 0 {
		if !s.After {
			g = l.bin(fnMinimum, g, l.num(s.Limit))
		}
		x = l.bin(fnMaximum, l.bin(fnMinimum, x, l.num(s.Limit)), l.num(-s.Limit))
	}
	if s.UpPlus1 {
		x = l.add(x, l.num(1))
	}
	g = l.act(s.Act, 0, g)
	if s.After {
		g = l.bin(fnMinimum, g, l.num(s.Limit))
	}
	return l.mul(g, x)
}

func (s *scope) Gate(g, x B.Array, u *B.GLU) B.Array {
	s.check.Gate(g, x)
	of, in := s.get(g), s.get(x)
	n, gates := x.Rows(), g.Cols()
	return s.op(n, x.Cols(), func() handle {
		if gates == 1 || gates == x.Cols() {
			return s.is(s.gated(u, of.h, in.h))
		}
		y := s.gated(u, s.l.reshape(of.h, n, gates, 1), s.l.reshape(in.h, n, gates, x.Cols()/gates))
		return s.l.reshape(y, n, x.Cols())
	})
}

func (s *scope) Act(x B.Array, a *B.Activation) B.Array {
	in := s.get(x)
	return s.op(x.Rows(), x.Cols(), func() handle {
		l := s.l
		switch a.Kind {
		case B.AboveMean:
			return l.aboveMean(a.A, l.cast(in.h, f32))
		case B.Clamp:
			return s.is(l.bin(fnMinimum, l.bin(fnMaximum, l.cast(in.h, f32), l.num(a.A)), l.num(a.B)))
		case B.XIELU:
			return l.xielu(a, l.cast(in.h, f32))
		}
		t := s.be.dtype()
		return l.group(groupKey{op: "act", act: *a, to: t}, func(x []handle) handle { return l.cast(l.act(a.Kind, a.A, l.cast(x[0], f32)), t) }, in.h)
	})
}

// aboveMean is what of x is above its row's mean by more than a deviations.
func (l *lib) aboveMean(a float32, x handle) handle {
	x = l.sub(x, l.reduce(fnMean, x, 1))
	deviation := l.un(fnSqrt, l.reduce(fnMean, l.un(fnSquare, x), 1))
	return l.bin(fnMaximum, l.sub(x, l.mul(deviation, l.num(a))), l.num(0))
}

func (l *lib) xielu(a *B.Activation, x handle) handle {
	above := l.mul(l.un(fnSquare, x), l.num(a.A))
	below := l.mul(l.sub(l.un(fnExpm1, l.bin(fnMinimum, x, l.num(a.E))), x), l.num(a.B))
	return l.add(l.where(l.bin(fnGreater, x, l.num(0)), above, below), l.mul(x, l.num(a.C)))
}
