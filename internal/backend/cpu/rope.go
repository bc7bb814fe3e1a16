package cpu

import (
	"math"

	"hearth/internal/backend"
	"hearth/internal/kernel"
)

// angles are the cosines and sines of one rotation for every row of a batch, amplitude included: computed in float64 at
// the first use of the spec in a step, then shared by all layers.
type angles struct {
	spec     *backend.Rope
	batch    *backend.Batch
	cos, sin []float32 // [rows][pairs]
	factor   []float32 // per row, nil unless the spec scales with position
}

func (s *scope) anglesOf(p *backend.Rope) *angles {
	for _, a := range s.angles[:s.nAngle] {
		if a.spec == p {
			return a
		}
	}
	if s.nAngle == len(s.angles) {
		s.angles = append(s.angles, &angles{})
	}
	a := s.angles[s.nAngle]
	s.nAngle++
	a.spec, a.batch = p, s.batch
	n := s.batch.Rows() * len(p.InvFreq)
	a.cos, a.sin, a.factor = grow(a.cos, n), grow(a.sin, n), a.factor[:0]
	if p.QBeta != 0 {
		a.factor = grow(a.factor, s.batch.Rows())
	}
	s.be.rows = rowJob{op: opAngles, angles: a}
	s.each(s.batch.Rows(), 32*len(p.InvFreq)+1) // a sine and cosine cost some thirty additions
	return a
}

func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func (a *angles) fill(r int) {
	p := a.spec
	n, amp := len(p.InvFreq), float64(p.Amp)
	if amp == 0 {
		amp = 1
	}
	for i, f := range p.InvFreq {
		axis := uint8(0)
		if p.Axis != nil {
			axis = p.Axis[i]
		}
		sin, cos := math.Sincos(float64(a.batch.Axis(axis)[r]) * float64(f))
		a.cos[r*n+i], a.sin[r*n+i] = float32(amp*cos), float32(amp*sin)
		if f == 0 {
			a.cos[r*n+i] = 1
		}
	}
	if p.QBeta != 0 {
		a.factor[r] = float32(1 + float64(p.QBeta)*math.Log(1+math.Floor(float64(int(a.batch.Pos[0][r])+p.QFrom)/float64(p.QOrig))))
	}
}

func (s *scope) RoPE(x backend.Array, p *backend.Rope) backend.Array {
	s.check.RoPE(x, p)
	t := s.anglesOf(p)
	h, y := s.make(x.Rows(), x.Cols())
	s.be.rows = rowJob{op: opRoPE, dst: y, a: s.get(x), angles: t}
	s.eachRow()
	return h
}

func (j *rowJob) rope(r int) {
	p, y, n := j.angles.spec, j.dst.row(r), len(j.angles.spec.InvFreq)
	copy(y, j.a.row(r))
	row := j.s.batchRow(j.dst.rows, r)
	cos, sin, split := j.angles.cos[row*n:][:n], j.angles.sin[row*n:][:n], p.Split
	if split == 0 {
		split = n
	}
	for at := 0; at < len(y); at += p.Head {
		kernel.RoPE(y[at+p.Offset:at+p.Head], cos, sin, split, p.Traditional)
	}
	if p.QBeta != 0 {
		kernel.Scale(y, y, j.angles.factor[row])
	}
}
