package mlx

import (
	B "hearth/internal/backend"
)

// SSM is composed of ordinary ops: spans of several rows in chunks, by products (arXiv:2405.21060, section 6), others
// and those with steps per column token by token, all heads at once.
func (s *scope) SSM(x, b, c, dt B.Array, m *B.SSM) B.Array {
	s.check.SSM(x, b, c, dt, m)
	xn, bn, cn, spans := s.get(x), s.get(b), s.get(c), s.b.Spans
	tn := xn
	if !dt.IsZero() {
		tn = s.get(dt)
	}
	n := x.Rows()
	return s.op(n, m.Heads*m.VDim, func() handle {
		l := s.l
		xs := l.reshape(l.cast(xn.h, f32), n, m.Heads, 1, m.VDim)
		r := ssmRows{l: l, m: m, in: xs, b: l.cast(bn.h, f32), c: l.cast(cn.h, f32)}
		if dt.IsZero() {
			r.logs = l.un(fnNegative, l.reshape(upload(l, m.Slopes, f32, m.Heads), 1, m.Heads, 1, 1))
			r.logs = l.add(r.logs, l.zeros(f32, n, 1, 1, 1))
		} else {
			step := l.reshape(l.steps(tn.h, m), n, m.Heads, 1, m.Steps()/m.Heads)
			r.in = l.mul(xs, step)
			r.logs = l.un(fnNegative, l.mul(l.rates(m), step))
		}
		var out []handle
		for i := range spans {
			sp := &spans[i]
			states := []handle{s.st.running(m.State, sp)}
			most := ssmChunk
			if m.PerColumn || sp.Tentative {
				most = 1
			}
			for at := sp.Row; at < sp.Row+sp.Len; at += most {
				var y, S handle
				if k := min(most, sp.Row+sp.Len-at); k > 1 {
					y, S = r.chunk(states[len(states)-1], at, at+k)
				} else {
					y, S = r.token(states[len(states)-1], at)
				}
				out, states = append(out, y), append(states, S)
			}
			held := []handle{states[len(states)-1]}
			if sp.Tentative {
				held = states[1:]
			}
			last := states[len(states)-1]
			s.st.ran(m.State, sp, held, func(n int) handle {
				if sp.Tentative {
					return states[n]
				}
				return last
			})
		}
		y := l.reshape(l.concat(0, out...), n, m.Heads, 1, m.VDim)
		if m.D != nil {
			y = l.add(y, l.mul(xs, l.reshape(m.D.(*weight).vector, 1, m.Heads, 1, m.Steps()/m.Heads)))
		}
		return l.reshape(y, n, m.Heads*m.VDim)
	})
}

// ssmChunk is how many rows go through one round of products: their matrices of decays are that wide, per head.
const ssmChunk = 64

// ssmRows are what the rows of a step put into states: in [rows, heads, 1, VDim], logarithms of decays [rows, heads,
// 1, 1], or with steps per column [rows, 1, KDim, VDim], and b and c [rows, groups·KDim].
type ssmRows struct {
	l              *lib
	m              *B.SSM
	in, logs, b, c handle
}

// token runs one row: [1, heads·VDim] and the state after it.
func (r *ssmRows) token(state handle, at int) (y, after handle) {
	l, m := r.l, r.m
	row := func(h handle) handle { return l.slice(h, 0, at, at+1) }
	S := l.mul(l.reshape(state, 1, m.Heads, m.KDim, m.VDim), l.un(fnExp, row(r.logs)))
	S = l.add(S, l.mul(l.shared(row(r.b), m), row(r.in)))
	y = l.reduce(fnSum, l.mul(S, l.shared(row(r.c), m)), 2)
	return l.reshape(y, 1, m.Heads*m.VDim), l.reshape(S, m.Heads, m.KDim, m.VDim)
}

// chunk runs rows [from, to): row t sees what row s ≤ t put in, times the decays of the rows after s up to t, and the
// state before all of them. Logarithms are summed row by row, for differences of long sums would be off.
func (r *ssmRows) chunk(state handle, from, to int) (y, after handle) {
	l, m, n := r.l, r.m, to-from
	each := m.Heads / m.Groups
	upTo, behind := make([]float32, n*n), make([]float32, n*n) // by row and column: column ≤ row, row > column
	for t := range n {
		for s := range n {
			if s <= t {
				upTo[t*n+s] = 1
			} else {
				behind[s*n+t] = 1
			}
		}
	}
	lower, strict := upload(l, upTo, f32, n, n), upload(l, behind, f32, n, n)
	logs := l.transpose(l.reshape(l.slice(r.logs, 0, from, to), n, m.Heads, 1), 1, 0, 2)
	decay := l.mul(l.un(fnExp, l.bin(fnMatmul, lower, l.mul(logs, strict))), lower) // [heads, t, s]
	whole := l.un(fnExp, l.bin(fnMatmul, lower, logs))                              // [heads, t, 1]
	x := l.transpose(l.reshape(l.slice(r.in, 0, from, to), n, m.Heads, m.VDim), 1, 0, 2)
	groups := func(h handle) handle {
		return l.transpose(l.reshape(l.slice(h, 0, from, to), n, m.Groups, m.KDim), 1, 0, 2)
	}
	b, c := groups(r.b), groups(r.c)
	seen := l.reshape(l.bin(fnMatmul, c, l.transpose(b, 0, 2, 1)), m.Groups, 1, n, n)
	seen = l.reshape(l.mul(seen, l.reshape(decay, m.Groups, each, n, n)), m.Heads, n, n)
	y = l.bin(fnMatmul, seen, x)
	before := l.bin(fnMatmul, l.reshape(c, m.Groups, 1, n, m.KDim), l.reshape(state, m.Groups, each, m.KDim, m.VDim))
	y = l.add(y, l.mul(whole, l.reshape(before, m.Heads, n, m.VDim)))

	left := l.mul(x, l.transpose(l.slice(decay, 1, n-1, n), 0, 2, 1))
	after = l.bin(fnMatmul, l.reshape(l.transpose(b, 0, 2, 1), m.Groups, 1, m.KDim, n), l.reshape(left, m.Groups, each, n, m.VDim))
	after = l.add(l.reshape(after, m.Heads, m.KDim, m.VDim), l.mul(state, l.slice(whole, 1, n-1, n)))
	return l.reshape(l.transpose(y, 1, 0, 2), n, m.Heads*m.VDim), after
}

// rates are what the logarithms of states fall by in a step of length one.
func (l *lib) rates(m *B.SSM) handle {
	rates := l.un(fnExp, m.ALog.(*weight).vector)
	if !m.PerColumn {
		return l.reshape(rates, 1, m.Heads, 1, 1)
	}
	return l.reshape(l.transpose(l.reshape(rates, m.VDim, m.KDim), 1, 0), 1, 1, m.KDim, m.VDim)
}

// steps are those of the heads, or columns, of all rows.
func (l *lib) steps(dt handle, m *B.SSM) handle {
	x := l.cast(dt, f32)
	if m.DtBias != nil {
		x = l.add(x, m.DtBias.(*weight).vector)
	}
	x = l.bin(fnMaximum, l.softplus(x), l.num(m.Min))
	if m.Max > 0 {
		x = l.bin(fnMinimum, x, l.num(m.Max))
	}
	return x
}

// shared repeats what a group of heads has in common in one row: [1, heads, KDim, 1].
func (l *lib) shared(x handle, m *B.SSM) handle {
	x = l.reshape(x, 1, m.Groups, 1, m.KDim)
	if each := m.Heads / m.Groups; each > 1 {
		x = l.add(x, l.zeros(f32, 1, 1, each, 1))
	}
	return l.reshape(x, 1, m.Heads, m.KDim, 1)
}
