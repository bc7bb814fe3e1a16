package mlx

import (
	"math"

	B "hearth/internal/backend"
)

// Conv sums shifted rows, tap after tap, over the kept rows and the new ones, or with zeros on either side.
func (s *scope) Conv(x B.Array, w, bias B.Weight, c *B.Conv) B.Array {
	s.check.Conv(x, w, bias, c)
	in, spans := s.get(x), s.b.Spans
	return s.op(x.Rows(), x.Cols(), func() handle {
		l, parts := s.l, []handle{}
		taps := l.transpose(w.(*weight).vector, 1, 0)
		for i := range spans {
			sp := &spans[i]
			rows := l.cast(l.slice(in.h, 0, sp.Row, sp.Row+sp.Len), f32)
			var all handle
			if c.State == B.NoState {
				padded := []handle{rows}
				if n := c.Kernel - 1 - c.Ahead; n > 0 {
					padded = append([]handle{l.zeros(f32, n, x.Cols())}, rows)
				}
				if c.Ahead > 0 {
					padded = append(padded, l.zeros(f32, c.Ahead, x.Cols()))
				}
				all = l.concat(0, padded...)
			} else {
				all = l.concat(0, s.st.running(c.State, sp), rows)
			}
			var y handle
			for k := range c.Kernel {
				if term := l.mul(l.slice(all, 0, k, k+sp.Len), l.slice(taps, 0, k, k+1)); k == 0 {
					y = term
				} else {
					y = l.add(y, term)
				}
			}
			if bias != nil {
				y = l.add(y, bias.(*weight).vector)
			}
			parts = append(parts, l.act(c.Act, 0, y))
			if c.State != B.NoState {
				s.st.ran(c.State, sp, []handle{all}, func(n int) handle { return l.copied(l.slice(all, 0, n, n+c.Kernel-1), f32) })
			}
		}
		return l.concat(0, parts...)
	})
}

// GatedDelta runs token by token, all heads at once, composed of ordinary ops.
func (s *scope) GatedDelta(q, k, v, a, beta B.Array, d *B.Delta) B.Array {
	s.check.GatedDelta(q, k, v, a, beta, d)
	qn, kn, vn, an, bn, spans := s.get(q), s.get(k), s.get(v), s.get(a), s.get(beta), s.b.Spans
	n := q.Rows()
	return s.op(n, d.VHeads*d.VDim, func() handle {
		l := s.l
		qs := l.mul(l.unit(qn.h, n, d), l.num(float32(1/math.Sqrt(float64(d.KDim)))))
		ks := l.unit(kn.h, n, d)
		vs := l.reshape(l.cast(vn.h, f32), n, d.VHeads, 1, d.VDim)
		rate := l.reshape(l.un(fnSigmoid, l.cast(bn.h, f32)), n, d.VHeads, 1, 1)
		soft := l.softplus(l.add(l.cast(an.h, f32), d.DtBias.(*weight).vector))
		each := d.Decays() / d.VHeads
		rates := l.reshape(l.un(fnExp, d.ALog.(*weight).vector), 1, d.VHeads, 1)
		decay := l.un(fnExp, l.un(fnNegative, l.mul(rates, l.reshape(soft, n, d.VHeads, each))))
		decay = l.reshape(decay, n, d.VHeads, each, 1)
		var out []handle
		for i := range spans {
			sp := &spans[i]
			states := []handle{s.st.running(d.State, sp)}
			for r := sp.Row; r < sp.Row+sp.Len; r++ {
				at := func(h handle, shape ...int) handle { return l.reshape(l.slice(h, 0, r, r+1), shape...) }
				key := at(ks, d.VHeads, d.KDim, 1)
				S := l.mul(states[len(states)-1], at(decay, d.VHeads, each, 1))
				delta := l.sub(at(vs, d.VHeads, 1, d.VDim), l.reduce(fnSum, l.mul(S, key), 1))
				S = l.add(S, l.mul(key, l.mul(delta, at(rate, d.VHeads, 1, 1))))
				out = append(out, l.reshape(l.reduce(fnSum, l.mul(S, at(qs, d.VHeads, d.KDim, 1)), 1), 1, d.VHeads*d.VDim))
				states = append(states, S)
			}
			held := []handle{states[len(states)-1]}
			if sp.Tentative {
				held = states[1:]
			}
			s.st.ran(d.State, sp, held, func(n int) handle { return states[n] })
		}
		return l.concat(0, out...)
	})
}

func (l *lib) softplus(x handle) handle {
	return l.add(l.bin(fnMaximum, x, l.num(0)), l.un(fnLog1p, l.un(fnExp, l.un(fnNegative, l.un(fnAbs, x)))))
}

// unit makes every head's row of length one, and repeats key heads for the value heads that share them: [rows, VHeads, KDim].
func (l *lib) unit(x handle, n int, d *B.Delta) handle {
	x = l.reshape(l.cast(x, f32), n, d.KHeads, 1, d.KDim)
	x = l.mul(x, l.un(fnRsqrt, l.add(l.reduce(fnSum, l.un(fnSquare, x), 3), l.num(B.DeltaEps))))
	if each := d.VHeads / d.KHeads; each > 1 {
		x = l.add(x, l.zeros(f32, 1, 1, each, 1))
	}
	return l.reshape(x, n, d.VHeads, d.KDim)
}
