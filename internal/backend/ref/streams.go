package ref

import (
	"math"

	B "hearth/internal/backend"
)

func (s *scope) Mix(x, coefs B.Array, m *B.Mix) B.Array {
	s.check.Mix(x, coefs, m)
	n := x.Cols() / m.In
	h, y := s.make(x.Rows(), n*m.Out)
	for r := range x.Rows() {
		in, c := s.get(x).row(r), s.get(coefs).row(r)
		for k := range m.Out {
			for j := range m.In {
				for d := range n {
					y.row(r)[k*n+d] += (c[k*m.In+j] + float64(m.Plus)) * in[j*n+d]
				}
			}
		}
	}
	return h
}

func (s *scope) ScaleLike(x, like B.Array) B.Array {
	s.check.ScaleLike(x, like)
	h, y := s.make(x.Rows(), x.Cols())
	for r := range x.Rows() {
		in := s.get(x).row(r)
		own, want := meanSquare(in), meanSquare(s.get(like).row(r))
		for i, v := range in {
			if own > 0 {
				y.row(r)[i] = v * math.Sqrt(want/own)
			}
		}
	}
	return h
}

func meanSquare(x []float64) (sum float64) {
	for _, v := range x {
		sum += v * v
	}
	return sum / float64(len(x))
}

// aboveMean is what of x is above its mean by more than a standard deviations.
func aboveMean(a float64, y, x []float64) {
	mean, square := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		square += (v - mean) * (v - mean)
	}
	for i, v := range x {
		y[i] = max(v-mean-a*math.Sqrt(square/float64(len(x))), 0)
	}
}
