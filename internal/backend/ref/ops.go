package ref

import (
	"cmp"
	"math"

	B "hearth/internal/backend"
)

func (s *scope) Embed(w B.Weight, ix B.Index) B.Array {
	s.check.Embed(w, &ix)
	t, per := w.(*weight), max(ix.PerRow, 1)
	h, y := s.make(len(ix.IDs)/per, t.in)
	for i, id := range ix.IDs {
		if id < 0 {
			id = int32(s.get(ix.Late).row(int(^id))[0])
		}
		scale := 1.0
		if ix.Scale != nil {
			scale = float64(ix.Scale[i])
		}
		out := y.row(i / per)
		for k, v := range t.row(int(id + ix.Offset)) {
			out[k] += scale * v
		}
	}
	return h
}

// linear is x·Wᵀ + bias as an array without a handle.
func linear(x *array, w *weight) *array {
	y := &array{cols: w.out, v: make([]float64, x.rows()*w.out)}
	for r := range x.rows() {
		in, out := x.row(r), y.row(r)
		for n := range out {
			sum := 0.0
			for k, v := range w.row(n) {
				sum += in[k] * v
			}
			if w.bias != nil {
				sum += w.bias[n]
			}
			out[n] = sum
		}
	}
	return y
}

func (s *scope) Linear(x B.Array, w B.Weight) B.Array {
	s.check.Linear(x, w)
	h, y := s.make(x.Rows(), w.Out())
	y.v = linear(s.get(x), w.(*weight)).v
	return h
}

func (s *scope) LinearGLU(x B.Array, w B.Weight, g *B.GLU) B.Array {
	s.check.LinearGLU(x, w)
	both := linear(s.get(x), w.(*weight))
	n := w.Out() / 2
	h, y := s.make(x.Rows(), n)
	for r := range x.Rows() {
		in, out := both.row(r), y.row(r)
		for i := range out {
			out[i] = gate(g, in[i], in[n+i])
		}
	}
	return h
}

func (s *scope) RMSNorm(x B.Array, w B.Weight, n *B.Norm) B.Array {
	s.check.RMSNorm(x, w, n)
	width := cmp.Or(n.Width, x.Cols())
	h, y := s.make(x.Rows(), x.Cols())
	in := s.get(x)
	for at := 0; at < len(in.v); at += width {
		part, sum := in.v[at:at+width], 0.0
		for _, v := range part {
			sum += v * v
		}
		inv := 1 / math.Sqrt(sum/float64(width)+float64(n.Eps))
		for i, v := range part {
			y.v[at+i] = v * inv
			if w != nil {
				y.v[at+i] *= w.(*weight).w[(at+i)%w.Out()]
			}
		}
	}
	return h
}

func (s *scope) LayerNorm(x B.Array, w, bias B.Weight, n *B.Norm) B.Array {
	s.check.LayerNorm(x, w, bias, n)
	width := cmp.Or(n.Width, x.Cols())
	h, y := s.make(x.Rows(), x.Cols())
	a := s.get(x)
	for at := 0; at < len(a.v); at += width {
		in, out := a.v[at:at+width], y.v[at:at+width]
		mean, sum := 0.0, 0.0
		for _, v := range in {
			mean += v / float64(width)
		}
		for _, v := range in {
			sum += (v - mean) * (v - mean)
		}
		inv := 1 / math.Sqrt(sum/float64(width)+float64(n.Eps))
		for i, v := range in {
			out[i] = (v - mean) * inv
			if w != nil {
				out[i] *= w.(*weight).w[(at+i)%w.Out()]
			}
			if bias != nil {
				out[i] += bias.(*weight).w[(at+i)%bias.Out()]
			}
		}
	}
	return h
}

// batchRow maps row r of an array that has all rows, or the wanted ones, to its row in the batch.
func (s *scope) batchRow(a B.Array, r int) int {
	if a.Rows() == s.b.Rows() {
		return r
	}
	return int(s.b.Out[r])
}

func (s *scope) RoPE(x B.Array, p *B.Rope) B.Array {
	s.check.RoPE(x, p)
	h, y := s.make(x.Rows(), x.Cols())
	copy(y.v, s.get(x).v)
	for r := range x.Rows() {
		row := s.batchRow(x, r)
		for at := 0; at < x.Cols(); at += p.Head {
			rotate(p, y.row(r)[at:at+p.Head], s.b, row)
		}
	}
	return h
}

func rotate(p *B.Rope, head []float64, b *B.Batch, row int) {
	amp, split := float64(p.Amp), p.Split
	if amp == 0 {
		amp = 1
	}
	if split == 0 {
		split = len(p.InvFreq)
	}
	for i, f := range p.InvFreq {
		if f == 0 {
			continue
		}
		axis := uint8(0)
		if p.Axis != nil {
			axis = p.Axis[i]
		}
		sin, cos := math.Sincos(float64(b.Axis(axis)[row]) * float64(f))
		m, n := p.Offset+i, p.Offset+i+split
		if p.Traditional {
			m, n = p.Offset+2*i, p.Offset+2*i+1
		}
		u, v := head[m], head[n]
		head[m], head[n] = amp*(u*cos-v*sin), amp*(u*sin+v*cos)
	}
	if p.QBeta != 0 {
		f := 1 + float64(p.QBeta)*math.Log(1+math.Floor(float64(int(b.Pos[0][row])+p.QFrom)/float64(p.QOrig)))
		for i := range head {
			head[i] *= f
		}
	}
}

func act(kind B.ActKind, a float32, x float64) float64 {
	switch kind {
	case B.SiLU:
		return x / (1 + math.Exp(-x))
	case B.GeluTanh:
		return x / (1 + math.Exp(-2*math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) // 1 + tanh would lose digits far below 0
	case B.GeluErf:
		return 0.5 * x * (1 + math.Erf(x/math.Sqrt2))
	case B.QuickGelu:
		return x / (1 + math.Exp(-1.702*x))
	case B.ReLU2:
		return max(x, 0) * max(x, 0)
	case B.SigmoidAct:
		return 1 / (1 + math.Exp(-x))
	case B.SoftplusAct:
		return softplus(x)
	case B.TanhCap:
		return float64(a) * math.Tanh(x/float64(a))
	}
	return x
}

func gate(s *B.GLU, g, x float64) float64 {
	if l := float64(s.Limit); l != 0 {
		if x = max(min(x, l), -l); s.After {
			return min(act(s.Act, 0, g), l) * x
		}
		g = min(g, l)
	}
	if s.UpPlus1 {
		x++
	}
	return act(s.Act, 0, g) * x
}

func (s *scope) Add(a, b B.Array) B.Array {
	s.check.Add(a, b)
	h, y := s.make(a.Rows(), a.Cols())
	u, v := s.get(a), s.get(b)
	for i := range y.v {
		y.v[i] = u.v[i] + v.v[i%len(v.v)]
	}
	return h
}

func (s *scope) each(x B.Array, f func(float64) float64) B.Array {
	h, y := s.make(x.Rows(), x.Cols())
	for i, v := range s.get(x).v {
		y.v[i] = f(v)
	}
	return h
}

func (s *scope) Scale(x B.Array, f float32) B.Array {
	return s.each(x, func(v float64) float64 { return float64(f) * v })
}

func (s *scope) Act(x B.Array, a *B.Activation) B.Array {
	if a.Kind == B.AboveMean {
		h, y := s.make(x.Rows(), x.Cols())
		for r := range x.Rows() {
			aboveMean(float64(a.A), y.row(r), s.get(x).row(r))
		}
		return h
	}
	return s.each(x, func(v float64) float64 {
		switch {
		case a.Kind == B.Clamp:
			return min(max(v, float64(a.A)), float64(a.B))
		case a.Kind != B.XIELU:
			return act(a.Kind, a.A, v)
		case v > 0:
			return float64(a.A)*v*v + float64(a.C)*v
		}
		return float64(a.B)*(math.Expm1(min(v, float64(a.E)))-v) + float64(a.C)*v
	})
}

func (s *scope) Gate(g, x B.Array, u *B.GLU) B.Array {
	s.check.Gate(g, x)
	h, y := s.make(x.Rows(), x.Cols())
	gs, xs := s.get(g), s.get(x)
	for r := range x.Rows() {
		for c, v := range xs.row(r) {
			y.row(r)[c] = gate(u, gs.row(r)[c/(xs.cols/gs.cols)], v)
		}
	}
	return h
}

func (s *scope) Cols(x B.Array, from, to int) B.Array {
	s.check.Cols(x, from, to)
	h, y := s.view(x, x.Rows(), to-from)
	for r := range x.Rows() {
		copy(y.row(r), s.get(x).row(r)[from:to])
	}
	return h
}

func (s *scope) Concat(a, b B.Array) B.Array {
	s.check.Concat(a, b)
	h, y := s.make(a.Rows(), a.Cols()+b.Cols())
	for r := range a.Rows() {
		copy(y.row(r), s.get(a).row(r))
		copy(y.row(r)[a.Cols():], s.get(b).row(r))
	}
	return h
}

func (s *scope) MergeRows(x B.Array, n int) B.Array {
	s.check.MergeRows(x, n)
	h, y := s.view(x, x.Rows()/n, x.Cols()*n)
	copy(y.v, s.get(x).v)
	return h
}

func (s *scope) Gather(x B.Array, rows []int32) B.Array {
	s.check.Gather(x, rows)
	h, y := s.make(len(rows), x.Cols())
	for i, r := range rows {
		copy(y.row(i), s.get(x).row(int(r)))
	}
	return h
}

func (s *scope) Put(x, src B.Array, from int, rows []int32, add bool) B.Array {
	s.check.Put(x, src, from, rows)
	h, y := s.make(x.Rows(), x.Cols())
	copy(y.v, s.get(x).v)
	for i, r := range rows {
		for c, v := range s.get(src).row(from + i) {
			if add {
				v += y.row(int(r))[c]
			}
			y.row(int(r))[c] = v
		}
	}
	return h
}

func (s *scope) Pool(x B.Array, kind B.PoolKind) B.Array {
	s.check.Pool(x)
	h, y := s.make(len(s.b.Spans), x.Cols())
	a := s.get(x)
	for i, sp := range s.b.Spans {
		n, out := 0.0, y.row(i)
		for r := range x.Rows() {
			if row := s.batchRow(x, r); row < sp.Row || row >= sp.Row+sp.Len {
				continue
			}
			n++
			for c, v := range a.row(r) {
				switch {
				case kind == B.PoolMean:
					out[c] += v
				case kind == B.PoolLast || n == 1:
					out[c] = v
				}
			}
		}
		if kind == B.PoolMean && n > 0 {
			for c := range out {
				out[c] /= n
			}
		}
	}
	return h
}

func (s *scope) AllSum(x B.Array) B.Array { return s.Cols(x, 0, x.Cols()) }
