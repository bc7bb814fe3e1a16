package kernel

import "math"

// score writes s[i][from:to] for n queries: Σ q·k in eight lanes by column mod 8, ascending, then reduceScore. Row at of k is
// the first of the tile.
func (w *AttnSpace) score(q []float32, k *Rows, at, from, to, n int) {
	pad := pad16(k.Width)
	row := w.row[:pad]
	clear(row[k.Width:])
	for i := from; i < to; i++ {
		k.Get(row[:k.Width], at+i)
		for j := range n {
			var l [8]float32
			for q, k := q[j*pad:][:pad], row; len(q) >= 8 && len(k) >= 8; q, k = q[8:], k[8:] {
				l[0] += q[0] * k[0]
				l[1] += q[1] * k[1]
				l[2] += q[2] * k[2]
				l[3] += q[3] * k[3]
				l[4] += q[4] * k[4]
				l[5] += q[5] * k[5]
				l[6] += q[6] * k[6]
				l[7] += q[7] * k[7]
			}
			w.s[j*AttnTile+i] = reduceScore(&l)
		}
	}
}

func reduceScore(l *[8]float32) float32 {
	return ((l[0] + l[2]) + (l[1] + l[3])) + ((l[4] + l[6]) + (l[5] + l[7]))
}

// softcap writes s = to·tanh(s·scale/to).
func softcap(s []float32, scale, to float32) {
	if softcapAsm(s, scale, to) {
		return
	}
	for i, x := range s {
		s[i] = tanh32(x*scale/to) * to
	}
}

// tanh32 is Cephes tanhf with exp(-2|x|) in place of exp(2x): within 2 units in the last place.
func tanh32(x float32) float32 {
	if a := abs32(x); !(a < 0.625) {
		e := exp32(-2 * a)
		return float32(math.Copysign(float64(1-(e+e)/(1+e)), float64(x)))
	}
	z := x * x
	p := float32(-5.70498872745e-3)
	p = p*z + 2.06390887954e-2
	p = p*z + -5.37397155531e-2
	p = p*z + 1.33314422036e-1
	p = p*z + -3.33332819422e-1
	return p*z*x + x
}

// softmax turns rows of AttnTile scores into weights exp(scale·score - maximum) and updates maximum, sum and the scale of
// acc. Weights are summed in eight lanes by position mod 8.
func softmax(s, most, sum, acc []float32, vpad int, scale float32) {
	if softmaxAsm(s, most, sum, acc, vpad, scale) {
		return
	}
	for i, old := range most {
		s := s[i*AttnTile:][:AttnTile]
		top := old
		for j := range s {
			s[j] *= scale
			if s[j] > top {
				top = s[j]
			}
		}
		if math.IsInf(float64(top), -1) {
			top = 0 // every score is -Inf or NaN: weights 0 or NaN, not Inf-Inf
		}
		more := ExpSum(s, s, top)
		if top != old {
			f := exp32(old - top)
			sum[i] *= f
			acc := acc[i*vpad:][:vpad]
			Scale(acc, acc, f)
			most[i] = top
		}
		sum[i] += more
	}
}

// value adds the weighted values of [from, to) of the tile at t to the sums of the rows that see them, ascending.
func (a *Attn) value(w *AttnSpace, v *Rows, at, from, to, t, r0, r1 int) {
	pad := pad16(v.Width)
	row := w.row[:v.Width]
	for i := from; i < to; i++ {
		v.Get(row, at+i)
		for r := r0; r < r1; r++ {
			if t+i < a.lo[r] || t+i >= a.hi[r] {
				continue
			}
			for h := range a.Heads {
				acc := a.acc[(r*a.Heads+h)*pad:][:len(row)]
				f := w.s[((r-r0)*a.Heads+h)*AttnTile+i]
				for d, x := range row {
					acc[d] += f * x
				}
			}
		}
	}
}
