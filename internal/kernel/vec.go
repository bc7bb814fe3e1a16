package kernel

import "math"

// Functions in this file work on equal-length slices and panic when lengths differ. dst may be one of the sources.
// An element's result depends on its operands only; sums run in fixed lanes, so their order depends on the length alone.

// Add writes dst = a + b.
func Add(dst, a, b []float32) {
	same(len(dst), len(a), len(b))
	if len(dst) > 0 && addAsm(dst, a, b) {
		return
	}
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

// Mul writes dst = a · b.
func Mul(dst, a, b []float32) {
	same(len(dst), len(a), len(b))
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

// Scale writes dst = f · a.
func Scale(dst, a []float32, f float32) {
	same(len(dst), len(a), len(a))
	if len(dst) > 0 && &dst[0] != &a[0] {
		clear(dst)
		if axpyAsm(dst, a, f) {
			return
		}
	}
	for i := range dst {
		dst[i] = f * a[i]
	}
}

// Axpy adds f · x to y.
func Axpy(y, x []float32, f float32) {
	same(len(y), len(x), len(x))
	if len(y) > 0 && axpyAsm(y, x, f) {
		return
	}
	for i := range y {
		y[i] += f * x[i]
	}
}

// Dot is Σ a·b.
func Dot(a, b []float32) float32 {
	same(len(a), len(b), len(b))
	if len(a) == 0 {
		return 0
	}
	if d, ok := dotAsm(a, b); ok {
		return d
	}
	return dotGeneric(a, b)
}

// RMSNorm writes dst = x / sqrt(mean(x²) + eps) · w; a nil w counts as ones.
func RMSNorm(dst, x, w []float32, eps float32) {
	same(len(dst), len(x), len(x))
	if len(x) == 0 {
		return
	}
	inv := float32(1 / math.Sqrt(float64(Dot(x, x))/float64(len(x))+float64(eps)))
	if w == nil {
		Scale(dst, x, inv)
		return
	}
	same(len(dst), len(w), len(w))
	if scaleMulAsm(dst, x, w, inv) {
		return
	}
	for i := range dst {
		dst[i] = x[i] * inv * w[i]
	}
}

// RoPE rotates the pairs (x[i], x[i+split]) for i < len(cos), or (x[2i], x[2i+1]) when traditional:
// (a, b) becomes (a·cos - b·sin, a·sin + b·cos). Other elements stay.
func RoPE(x, cos, sin []float32, split int, traditional bool) {
	same(len(cos), len(sin), len(sin))
	if len(cos) == 0 {
		return
	}
	if traditional {
		for i, c := range cos {
			a, b := x[2*i], x[2*i+1]
			x[2*i], x[2*i+1] = a*c-b*sin[i], a*sin[i]+b*c
		}
		return
	}
	lo, hi := x[:len(cos)], x[split:][:len(cos)]
	if split >= len(cos) && ropeAsm(lo, hi, cos, sin) {
		return
	}
	for i, c := range cos {
		a, b := lo[i], hi[i]
		lo[i], hi[i] = a*c-b*sin[i], a*sin[i]+b*c
	}
}

// SiLUMul writes dst = gate/(1+exp(-gate)) · up.
func SiLUMul(dst, gate, up []float32) {
	same(len(dst), len(gate), len(up))
	if len(dst) > 0 && siluMulAsm(dst, gate, up) {
		return
	}
	for i, g := range gate {
		dst[i] = g / (1 + exp32(-g)) * up[i]
	}
}

// Swish writes dst = x/(1 + exp(-(a·x + b·x³))), in float64 and rounded once: with b = 0 silu of a·x, and gelu by tanh is one,
// too. Neither a nor b is negative, and a not 0.
func Swish(dst, x []float32, a, b float64) {
	same(len(dst), len(x), len(x))
	if HasSwish() && len(dst) > 0 {
		swishAsm(dst, x, a, b)
		return
	}
	for i, v := range x {
		x := float64(v)
		dst[i] = float32(x / (1 + math.Exp(-x*(a+b*min(x*x, swishMost)))))
	}
}

// swishMost is a square of x from which on dst is x or 0.
const swishMost = 700

// ExpSum writes dst = exp(x - off) and returns the sum of dst.
func ExpSum(dst, x []float32, off float32) float32 {
	same(len(dst), len(x), len(x))
	if len(dst) == 0 {
		return 0
	}
	if s, ok := expSumAsm(dst, x, off); ok {
		return s
	}
	var lane [8]float32
	for i, v := range x {
		dst[i] = exp32(v - off)
		lane[i&7] += dst[i]
	}
	return sumLanes(&lane)
}

// ToBF16 rounds to nearest even; a NaN stays a NaN.
func ToBF16(dst []uint16, src []float32) {
	same(len(dst), len(src), len(src))
	if len(dst) > 0 && toBF16Asm(dst, src) {
		return
	}
	for i, f := range src {
		dst[i] = bf16(f)
	}
}

// FromBF16 widens exactly.
func FromBF16(dst []float32, src []uint16) {
	same(len(dst), len(src), len(src))
	if len(dst) > 0 && fromBF16Asm(dst, src) {
		return
	}
	for i, h := range src {
		dst[i] = widen(h)
	}
}

func same(a, b, c int) {
	if a != b || a != c {
		panic("kernel: vectors of different lengths")
	}
}
