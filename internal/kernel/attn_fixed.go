package kernel

import (
	"math"
	"unsafe"
)

// Attention with Fixed: the bfloat16 numbers of a key or a value become whole ones of twelve bits and a sign, which share a power
// of two, and queries and weights become whole ones as well. Products of such numbers and their sums are exact. This file says
// what every routine gives, to the bit:
//
//	key      n = rint(k/step), step a power of two such that the largest |n| of the row has twelve bits; where that is below
//	         2^-63, as if it were that
//	query    n = rint(q·(reach/top)) with top the head's largest |q|, at least leastPart; q is about n·step, step = top/reach
//	score    Σ(n·n), rounded once, times the key's step, times the query's
//	maximum  in units of log2: the largest score times Scale·log2(e)
//	weight   2 to the power of score·Scale·log2(e) - maximum (halfPow); 0 where that is below leastPower
//	sum      of the weights, in sixteen lanes; earlier sums times 2^(old - new maximum) (pow2)
//	value    a row's numbers as a key's; weight·step of the tile's positions as whole numbers, in steps of a power of two such
//	         that the largest has thirteen bits: sum = step·Σ(n·n) + sum, rounded once
//
// A position whose weight is 0 adds nothing, whatever its value.

const (
	fixedMost      = 255 << 4 // a bfloat16 number has eight bits, here followed by four
	fixedBits      = 11       // the first of twelve
	fixedWeight    = 12       // the first of thirteen
	leastExponent  = 64
	leastTop       = 13
	fixedWidths    = 64
	widestFixed    = 256 // queries are left eleven bits
	floatBias      = 127
	floatExponents = 23 // where they begin
)

// FixedAttention reports keys and values of which Attn can be Fixed: bfloat16 numbers in heads of 64 to 256, on a processor that
// multiplies pairs of 16-bit numbers in vectors of 32 but no bfloat16 ones, or not as fast.
func FixedAttention(k, v *Rows) bool { return hasFixed() && fixedRows(k) && fixedRows(v) }

func fixedRows(r *Rows) bool {
	return r.Type == CacheBF16 && r.Width%fixedWidths == 0 && r.Width <= widestFixed
}

// int16s sees numbers as twice as many whole ones.
func int16s(x []float32) []int16 {
	return unsafe.Slice((*int16)(unsafe.Pointer(unsafe.SliceData(x))), 2*len(x))
}

// reach is the largest number of a query: sums of products stay within 32 bits.
func (a *Attn) reach() float32 { return float32(math.MaxInt32 / (fixedMost * a.KDim)) }

// setFixed makes the numbers of query i.
func (a *Attn) setFixed(i int, q []float32) {
	to, reach := int16s(a.q)[i*a.KDim:][:a.KDim], a.reach()
	if fixedQueryAsm(to, &a.factors[i], q, reach) {
		return
	}
	step, inverse := stepsTo(q, reach)
	a.factors[i] = step
	for d, x := range q {
		to[d] = int16(part(x, inverse))
	}
}

// exponentSteps is, of numbers whose largest has an exponent, the power of two that makes it a number of so many bits and one, and
// the inverse: a NaN, if it is not finite.
func exponentSteps(e, least uint32, bits uint32) (scale, step float32) {
	finite := e < 255
	e = max(e, least)
	scale, step = math.Float32frombits((2*floatBias+bits-e)<<floatExponents), math.Float32frombits((e-bits)<<floatExponents)
	if !finite {
		step = float32(math.NaN())
	}
	return scale, step
}

// rowSteps is exponentSteps of a row of keys or values.
func rowSteps(row []uint16) (scale, step float32) {
	var e uint32
	for _, x := range row {
		e = max(e, uint32(x>>7&255))
	}
	return exponentSteps(e, leastExponent, fixedBits)
}

// fix makes a whole number, of what is not finite 0.
func fix(x, scale float32) int32 {
	if x *= scale; x-x == 0 {
		return int32(rint(x))
	}
	return 0
}

// fixedScores is score with Fixed.
func (w *AttnSpace) fixedScores(a *Attn, k *Rows, at, from, to, q0, n int) {
	numbers := int16s(w.row)[:k.Width]
	for i := from; i < to; i++ {
		key := as[uint16](k.Data[(at+i)*k.Stride:][:k.RowBytes()])
		scale, step := rowSteps(key)
		for d, x := range key {
			numbers[d] = int16(fix(widen(x), scale))
		}
		for j := range n {
			sum := int32(0)
			for d, x := range int16s(a.q)[(q0+j)*k.Width:][:k.Width] {
				sum += int32(x) * int32(numbers[d])
			}
			w.s[j*AttnTile+i] = float32(float32(sum)*step) * a.factors[q0+j]
		}
	}
}

// fixedWeights are those of query i of a tile, two positions of each quarter and the next one side by side, and their step.
func (w *AttnSpace) fixedWeights(i int) (numbers []int16, step *float32) {
	return int16s(w.p)[i*AttnTile:][:AttnTile], &w.f[i]
}

// weightAt is where the weight of a position is.
func weightAt(i int) int { return i/32*32 + i%16*2 + i/16%2 }

// fixedSoftmax is softmax with Fixed: weights go to w.p. Row at of v is the first of the tile.
func (a *Attn) fixedSoftmax(w *AttnSpace, v *Rows, at, from, to, q0, n int, factor float32) {
	vpad := pad16(v.Width)
	var steps [AttnTile]float32
	for i := from; i < to; i++ {
		_, steps[i] = rowSteps(as[uint16](v.Data[(at+i)*v.Stride:][:v.RowBytes()]))
	}
	for j := range n {
		s, old := w.s[j*AttnTile:][:AttnTile], a.max[q0+j]
		top, off := largest(s, old, factor)
		var lanes [16]float32
		var most uint32
		for i, x := range s {
			if x = fma32(x, factor, -off); x < leastPower {
				s[i] = 0
				continue
			}
			x = halfPow(x)
			lanes[i%16] += x
			s[i] = x * steps[i]
			most = max(most, math.Float32bits(s[i])&^(1<<31))
		}
		if top != old {
			lower(&a.sum[q0+j], a.acc[(q0+j)*vpad:][:vpad], pow2(old-top))
			a.max[q0+j] = top
		}
		a.sum[q0+j] += foldLanes(&lanes)
		numbers, step := w.fixedWeights(j)
		var scale float32
		scale, *step = exponentSteps(most>>floatExponents, leastTop, fixedWeight)
		for i, x := range s {
			numbers[weightAt(i)] = int16(fix(x, scale))
		}
	}
}

// fixedValues is value with Fixed.
func (a *Attn) fixedValues(w *AttnSpace, v *Rows, at, from, to, q0, n int) {
	vpad := pad16(v.Width)
	sums := make([]int32, n*v.Width)
	for i := from; i < to; i++ {
		row := as[uint16](v.Data[(at+i)*v.Stride:][:v.RowBytes()])
		scale, _ := rowSteps(row)
		for d, x := range row {
			x := fix(widen(x), scale)
			for j := range n {
				numbers, _ := w.fixedWeights(j)
				sums[j*v.Width+d] += int32(numbers[weightAt(i)]) * x
			}
		}
	}
	for j := range n {
		_, step := w.fixedWeights(j)
		for d := range v.Width {
			acc := &a.acc[(q0+j)*vpad+d]
			*acc = fma32(float32(sums[j*v.Width+d]), *step, *acc)
		}
	}
}
