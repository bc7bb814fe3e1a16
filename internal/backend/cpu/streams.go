package cpu

import (
	"math"

	"hearth/internal/backend"
	"hearth/internal/kernel"
)

func (s *scope) Mix(x, coefs backend.Array, m *backend.Mix) backend.Array {
	s.check.Mix(x, coefs, m)
	h, y := s.make(x.Rows(), x.Cols()/m.In*m.Out)
	s.be.rows = rowJob{op: opMix, dst: y, a: s.get(x), b: s.get(coefs), width: m.In, f: m.Plus}
	s.each(y.rows, y.cols*m.In)
	return h
}

// mix makes the streams of row r.
func (j *rowJob) mix(r int) {
	y, x, c := j.dst.row(r), j.a.row(r), j.b.row(r)
	n := len(x) / j.width
	for k := range len(y) / n {
		to := y[k*n:][:n]
		for i := range j.width {
			f := c[k*j.width+i] + j.f
			if i == 0 {
				kernel.Scale(to, x[:n], f)
			} else {
				kernel.Axpy(to, x[i*n:][:n], f)
			}
		}
	}
}

func (s *scope) ScaleLike(x, like backend.Array) backend.Array {
	s.check.ScaleLike(x, like)
	h, y := s.make(x.Rows(), x.Cols())
	s.be.rows = rowJob{op: opScaleLike, dst: y, a: s.get(x), b: s.get(like)}
	s.eachRow()
	return h
}

// match scales row r of x to the root mean square of that of like; a row of zeros stays one.
func (j *rowJob) match(r int) {
	x, like := j.a.row(r), j.b.row(r)
	own, want := float64(kernel.Dot(x, x))/float64(len(x)), float64(kernel.Dot(like, like))/float64(len(like))
	f := 0.0
	if own > 0 {
		f = math.Sqrt(want / own)
	}
	kernel.Scale(j.dst.row(r), x, float32(f))
}

// aboveMean writes what of x is above its mean by more than a standard deviations.
func aboveMean(a float32, y, x []float32) {
	var sum, square float64
	for _, v := range x {
		sum += float64(v)
	}
	mean := sum / float64(len(x))
	for _, v := range x {
		square += (float64(v) - mean) * (float64(v) - mean)
	}
	from := mean + float64(a)*math.Sqrt(square/float64(len(x)))
	for i, v := range x {
		y[i] = float32(max(float64(v)-from, 0))
	}
}
