package mlx

import (
	"math"

	B "hearth/internal/backend"
)

// tableData is what rotates rows by their positions: cos and sin [rows, 1, pairs], with the amplitude in them, and a factor of
// whole heads [rows, 1, 1] or zero. Its handles are set when the first op that needs it runs.
type tableData struct{ cos, sin, factor handle }

// tableKey: specs are constants of a layer, and an array has all rows or the wanted ones.
type tableKey struct {
	spec *B.Rope
	rows int
}

func (s *scope) RoPE(x B.Array, p *B.Rope) B.Array {
	s.check.RoPE(x, p)
	n := x.Rows()
	first, ok := s.follows(n)
	fast := ok && plain(p) && (p.Axis == nil || s.b.Flat())
	if fast && n == 1 {
		return s.rotated(x, p, first)
	}
	in := s.get(x)
	if fast {
		return s.op(n, x.Cols(), func() handle { return s.is(s.fastRope(in.h, n, first, p)) })
	}
	t := s.table(p, n)
	return s.op(n, x.Cols(), func() handle {
		l := s.l
		y := l.cast(l.reshape(in.h, n, -1, p.Head), f32)
		y = l.rotate(y, t, p)
		if t.factor != 0 {
			y = l.mul(y, t.factor)
		}
		return l.reshape(y, n, x.Cols())
	})
}

// plain reports whether MLX's own rope does what p says, where all axes have one position.
func plain(p *B.Rope) bool {
	return p.Offset == 0 && (p.Amp == 0 || p.Amp == 1) && p.QBeta == 0 &&
		(p.Traditional || p.Split == 0 || p.Split == len(p.InvFreq))
}

// follows reports whether the rows of an array of n are at positions that follow each other, and the first of them.
func (s *scope) follows(n int) (first int, ok bool) {
	pos := s.b.Pos[0]
	for r := range n {
		if pos[s.batchRow(n, r)] != pos[s.batchRow(n, 0)]+int32(r) {
			return 0, false
		}
	}
	if n == 0 {
		return 0, false
	}
	return int(pos[s.batchRow(n, 0)]), true
}

func (s *scope) fastRope(x handle, n, first int, p *B.Rope) handle {
	l := s.l
	x = l.transpose(l.reshape(x, 1, n, -1, p.Head), 0, 2, 1, 3)
	return l.reshape(l.transpose(l.roped(x, 2*len(p.InvFreq), p.Traditional, first, s.periods(p)), 0, 2, 1, 3), n, -1)
}

// periods are made once per spec.
func (s *scope) periods(p *B.Rope) handle {
	l := s.l
	freqs := s.be.freqs[p]
	if freqs == 0 {
		period := make([]float32, len(p.InvFreq))
		for i, f := range p.InvFreq {
			period[i] = 1 / f // MLX divides by it: 1/0 leaves a pair alone
		}
		freqs = l.retain(upload(l, period, f32, len(period)))
		s.be.freqs[p] = freqs
	}
	return freqs
}

// roped is fast rope of the first dims columns of x [1, heads, rows, width], whose rows are at positions from first on.
func (l *lib) roped(x handle, dims int, traditional bool, first int, periods handle) handle {
	const noBase = 0
	return l.doFloat(fnRope, 1, uintptr(x), uintptr(dims), flag(traditional), noBase, uintptr(first), uintptr(periods))
}

// table is computed on the host in float64, once per step and spec.
func (s *scope) table(p *B.Rope, n int) *tableData {
	key := tableKey{p, n}
	if t, ok := s.tables[key]; ok {
		return t
	}
	t := &tableData{}
	s.tables[key] = t
	pairs := len(p.InvFreq)
	cos, sin := make([]float32, n*pairs), make([]float32, n*pairs)
	var factor []float32
	for r := range n {
		row := s.batchRow(n, r)
		for i, f := range p.InvFreq {
			amp, axis := float64(p.Amp), uint8(0)
			if amp == 0 || f == 0 {
				amp = 1
			}
			if p.Axis != nil {
				axis = p.Axis[i]
			}
			s, c := math.Sincos(float64(s.b.Axis(axis)[row]) * float64(f))
			cos[r*pairs+i], sin[r*pairs+i] = float32(amp*c), float32(amp*s)
		}
		if p.QBeta != 0 {
			far := math.Floor(float64(int(s.b.Pos[0][row])+p.QFrom) / float64(p.QOrig))
			factor = append(factor, float32(1+float64(p.QBeta)*math.Log(1+far)))
		}
	}
	if n > 0 {
		s.later(func() {
			l := s.l
			t.cos, t.sin = l.retain(upload(l, cos, f32, n, 1, pairs)), l.retain(upload(l, sin, f32, n, 1, pairs))
			if factor != nil {
				t.factor = l.retain(upload(l, factor, f32, n, 1, 1))
			}
		})
	}
	return t
}

// rotate turns pairs of columns of x [rows, heads, head].
func (l *lib) rotate(x handle, t *tableData, p *B.Rope) handle {
	pairs, off := len(p.InvFreq), p.Offset
	var parts []handle
	rest := func(from, to int) {
		if from < to {
			parts = append(parts, l.slice(x, 2, from, to))
		}
	}
	turn := func(u, v handle, cos, sin handle) (handle, handle) {
		return l.sub(l.mul(u, cos), l.mul(v, sin)), l.add(l.mul(u, sin), l.mul(v, cos))
	}
	rest(0, off)
	if p.Traditional {
		shape := l.shape(x)
		if shape == nil {
			return 0
		}
		both := l.reshape(l.slice(x, 2, off, off+2*pairs), shape[0], shape[1], pairs, 2)
		cos, sin := l.reshape(t.cos, shape[0], 1, pairs, 1), l.reshape(t.sin, shape[0], 1, pairs, 1)
		u, v := turn(l.slice(both, 3, 0, 1), l.slice(both, 3, 1, 2), cos, sin)
		parts = append(parts, l.reshape(l.concat(3, u, v), shape[0], shape[1], 2*pairs))
		rest(off+2*pairs, p.Head)
		return l.concat(2, parts...)
	}
	split := p.Split
	if split == 0 {
		split = pairs
	}
	u, v := turn(l.slice(x, 2, off, off+pairs), l.slice(x, 2, off+split, off+split+pairs), t.cos, t.sin)
	parts = append(parts, u)
	rest(off+pairs, off+split)
	parts = append(parts, v)
	rest(off+split+pairs, p.Head)
	return l.concat(2, parts...)
}
