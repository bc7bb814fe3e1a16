package kernel

import (
	"math"
	"slices"
	"unsafe"
)

// Attention with Half: queries and weights are rounded to bfloat16, as keys and values are, and two products of such numbers
// are added at a time. This file says what every routine gives, to the bit:
//
//	score    pairs of columns ascending, one sum: first the product of the odd column, then that of the even one (addProduct)
//	maximum  in units of log2: the largest score times Scale·log2(e)
//	weight   2 to the power of score·Scale·log2(e) - maximum (halfPow), to bfloat16; too small a number is 0
//	sum      of the weights, in sixteen lanes of pairs (halfSum); earlier sums times 2^(old - new maximum) (pow2)
//	value    pairs of positions ascending, one sum: first the odd position's product, then the even one's
//
// A position that a row does not see adds nothing. Routines that add 0 times a finite number may change the sign of a sum that
// is 0: Finish gives no sign to zeros, and nothing else asks for it.

// Coefficients of 2^x between -1/2 and 1/2, behind the 1: to 1e-4, a twentieth of what rounding to bfloat16 may cost, and 2e-9.
var (
	halfPowers = [...]float32{0.6932829, 0.24221097, 0.05500893}
	powers     = [...]float32{0.6931472, 0.24022648, 0.055503323, 0.009618437, 0.0013398875, 0.00015353362}
)

// HalfAttention reports keys and values of which Attn can be Half: bfloat16 numbers, on a processor that multiplies such, and
// widths of whole vectors.
func HalfAttention(k, v *Rows) bool { return hasHalf() && halfRows(k) && halfRows(v) }

func halfRows(r *Rows) bool { return r.Type == CacheBF16 && r.Width%32 == 0 }

// bf16s sees numbers as twice as many of bfloat16.
func bf16s(x []float32) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(x))), 2*len(x))
}

// halfScores is score with Half.
func (w *AttnSpace) halfScores(q []uint16, k *Rows, at, from, to, n int) {
	for i := from; i < to; i++ {
		key := as[uint16](k.Data[(at+i)*k.Stride:][:k.RowBytes()])
		for j := range n {
			var s float32
			for d, q := 0, q[j*k.Width:][:k.Width]; d+1 < len(q); d += 2 {
				s = addHalf(s, key[d+1], q[d+1])
				s = addHalf(s, key[d], q[d])
			}
			w.s[j*AttnTile+i] = s
		}
	}
}

func addHalf(sum float32, x, y uint16) float32 {
	return addProduct(sum, flush(widen(x)), flush(widen(y)))
}

// halfSoftmax is softmax with Half. The weights take the first half of their scores' place.
func halfSoftmax(s, most, sum, acc []float32, vpad int, factor float32) {
	for i, old := range most {
		s := s[i*AttnTile:][:AttnTile]
		top, off := largest(s, old, factor)
		p := bf16s(s)[:AttnTile]
		for j, x := range s { // what is written has been read
			p[j] = bf16(flush(halfPow(fma32(x, factor, -off))))
		}
		if top != old {
			lower(&sum[i], acc[i*vpad:][:vpad], pow2(old-top))
			most[i] = top
		}
		sum[i] += halfSum(p)
	}
}

// largest is the largest of old and the scores times factor, and what is taken off these: 0 where none is seen yet.
func largest(s []float32, old, factor float32) (top, off float32) {
	top = old
	for _, x := range s {
		if x *= factor; x > top {
			top = x
		}
	}
	if !math.IsInf(float64(top), -1) {
		off = top
	}
	return top, off
}

// lower multiplies earlier sums by f.
func lower(sum *float32, acc []float32, f float32) {
	*sum *= f
	for d, x := range acc {
		acc[d] = x * f
	}
}

func halfSum(p []uint16) float32 {
	const one = 0x3f80
	var l [16]float32
	for i := range p {
		at := i ^ 1 // the odd one first
		l[at/2%16] = addHalf(l[at/2%16], p[at], one)
	}
	return foldLanes(&l)
}

// foldLanes adds sixteen lanes as vectors of 512 bits do: within those of 128 bits, then the opposite ones.
func foldLanes(l *[16]float32) float32 {
	var f [4]float32
	for g := range f {
		f[g] = (l[4*g] + l[4*g+2]) + (l[4*g+1] + l[4*g+3])
	}
	return (f[0] + f[2]) + (f[1] + f[3])
}

// halfValues is value with Half.
func (a *Attn) halfValues(w *AttnSpace, v *Rows, at, from, to, t, r0, r1 int) {
	pad := pad16(v.Width)
	for i := from / 2; i < (to+1)/2; i++ {
		for r := r0; r < r1; r++ {
			for h := range a.Heads {
				acc := a.acc[(r*a.Heads+h)*pad:][:v.Width]
				p := bf16s(w.s[((r-r0)*a.Heads+h)*AttnTile:][:AttnTile])
				for _, i := range []int{2*i + 1, 2 * i} {
					if i < from || i >= to || t+i < a.lo[r] || t+i >= a.hi[r] {
						continue
					}
					for d, x := range as[uint16](v.Data[(at+i)*v.Stride:][:v.RowBytes()]) {
						acc[d] = addHalf(acc[d], x, p[i])
					}
				}
			}
		}
	}
}

// halfPow is 2^x, as far as bfloat16 can tell, for x up to 0 or a little more; NaN stays that.
func halfPow(x float32) float32 { return power(x, halfPowers[:]) }

// pow2 is the same within 2 units in the last place.
func pow2(x float32) float32 { return power(x, powers[:]) }

func power(x float32, coefficients []float32) float32 {
	const least = -200 // 2 to it is 0
	if x != x {
		return x
	}
	x = max(x, least)
	n := rint(x)
	var p float32
	for _, c := range slices.Backward(coefficients) {
		p = fma32(p, x-n, c)
	}
	return float32(float64(fma32(p, x-n, 1)) * math.Float64frombits(uint64(int(n)+1023)<<52))
}

// fma32 is x·y + z, rounded once: a float64 that is rounded to odd has room to tell how the sum rounds.
func fma32(x, y, z float32) float32 {
	p, c := float64(x)*float64(y), float64(z)
	s := p + c
	if b := s - p; !math.IsInf(s, 0) && s == s {
		if e := (p - (s - b)) + (c - b); e != 0 && math.Float64bits(s)&1 == 0 {
			s = math.Nextafter(s, math.Inf(int(math.Copysign(1, e))))
		}
	}
	return float32(s)
}
