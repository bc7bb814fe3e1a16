package sample

import "math"

// decay is e^-gap for gap >= 0, relative error under 1e-8; 0 beyond 700 and NaN for NaN. A row has up to 260,000 logits and
// each needs one, so it has to be inlined, which math.Exp is not.
// Method: e^-gap = 2^(n/256)·2^r with n an integer and -1/256 < r <= 0: a table for n modulo 256, the exponent for the
// rest, and three terms of the series for r.
func decay(gap float32) float64 {
	const c = math.Ln2 / 256
	t := float64(gap) * (-1 / c)
	if t < -258_560 { // 2^-1010; the max builtin costs more
		t = -258_560
	}
	n := int64(t)
	r := (t - float64(n)) * c
	return math.Float64frombits(math.Float64bits(roots[n&255]*(1+r+r*r/2)) + uint64(n>>8)<<52)
}

// roots holds 2^(i/256).
var roots = func() (t [256]float64) {
	for i := range t {
		t[i] = math.Exp2(float64(i) / 256)
	}
	return t
}()
