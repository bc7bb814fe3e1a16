package ref

import (
	"math"

	B "hearth/internal/backend"
)

// stored rounds one head's key or value to what a policy keeps of it.
func stored(p B.KVPolicy, x []float64) {
	switch {
	case p.Bits != 0:
		g := p.GroupOf(len(x))
		for at := 0; at < len(x); at += g {
			affine(x[at:at+g], p.Bits)
		}
	case p.DType != B.F64:
		for i, v := range x {
			x[i] = float64(round(float32(v), p.DType))
		}
	}
}

// storedLatent is stored for a latent and its rotary key, whose groups are of one width.
func storedLatent(p B.KVPolicy, latent, rot []float64) {
	g := p.LatentGroup(len(latent), len(rot))
	for _, x := range [][]float64{latent, rot} {
		for at := 0; at < len(x); at += g {
			stored(p, x[at:at+g])
		}
	}
}

// round rounds to nearest even. A float16 stays within its largest number.
func round(x float32, t B.DType) float32 {
	u := math.Float32bits(x)
	switch {
	case x != x || t == B.F32:
		return x
	case t == B.BF16:
		u += 0x7fff + u>>16&1
		return math.Float32frombits(u &^ 0xffff)
	}
	const largest = 65504
	// Below 2^-14 a float16 has a fixed step, above it ten bits.
	step := math.Exp2(max(math.Floor(math.Log2(math.Abs(float64(x))))-10, -24))
	return float32(max(min(math.RoundToEven(float64(x)/step)*step, largest), -largest))
}

// affine quantises a group as mlx does, with the codes nearest for the scale and bias that bfloat16 holds: in the
// float32 steps that decide a code, so that others can be held to equal codes.
func affine(x []float64, bits int) {
	lo, hi := float32(math.Inf(1)), float32(math.Inf(-1))
	for _, v := range x {
		if math.IsNaN(v) || math.IsInf(float64(float32(v)), 0) {
			fill(x, math.NaN())
			return
		}
		lo, hi = min(lo, float32(v)), max(hi, float32(v))
	}
	top := float32(int(1)<<bits - 1)
	scale, edge := max((hi-lo)/top, 1e-7), lo
	if math.Abs(float64(lo)) <= math.Abs(float64(hi)) {
		scale, edge = -scale, hi
	}
	var bias float32
	if zero := math.RoundToEven(float64(edge / scale)); zero != 0 {
		scale, bias = edge/float32(zero), edge
	}
	scale, bias = round(scale, B.BF16), round(bias, B.BF16)
	for i, v := range x {
		code := math.RoundToEven(float64((float32(v) - bias) / scale))
		x[i] = float64(scale)*min(max(code, 0), float64(top)) + float64(bias)
	}
}

func fill(x []float64, v float64) {
	for i := range x {
		x[i] = v
	}
}
