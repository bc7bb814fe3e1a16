package kernel

import (
	"math"
	"unsafe"
)

// Attention with I16: keys and values are kept as whole numbers of twelve bits and a sign (CacheI16), queries and weights
// become such numbers as well, and products of pairs of them are added up. These sums are exact. This file says what every
// routine gives, to the bit:
//
//	numbers  of a row of keys or values or of a query: n = rint(x·(1/step)), step = top/reach rounded up to bfloat16,
//	         where top is the largest |x|, at least leastPart; x is about n·step
//	score    Σ(n·n) rounded once, times the key's step, times the query's
//	maximum  in units of log2: the largest score times Scale·log2(e)
//	weight   2 to the power of score·Scale·log2(e) - maximum (halfPow); 0 where that is below leastPower
//	sum      of the weights, in sixteen lanes; earlier sums times 2^(old - new maximum) (pow2)
//	value    weight·step of the tile's positions as whole numbers of thirteen bits, in steps of a power of two (weightSteps):
//	         sum = step·Σ(n·n) + sum, rounded once
//
// A position whose weight is 0 adds nothing, whatever its value.

const (
	i16Reach   = 4095 // of keys and values
	i16Columns = 64   // widths are multiples of it
	i16Widest  = 256  // queries are left eleven bits
)

// I16Cache reports heads whose keys, or values, are best kept in CacheI16: their widths are such that routines take them, on a
// processor that multiplies pairs of 16-bit numbers in vectors, but bfloat16 ones not as fast.
func I16Cache(width int) bool { return hasI16() && i16Width(width) }

func i16Width(width int) bool { return width%i16Columns == 0 && width <= i16Widest }

// int16s sees numbers as twice as many whole ones.
func int16s(x []float32) []int16 {
	return unsafe.Slice((*int16)(unsafe.Pointer(unsafe.SliceData(x))), 2*len(x))
}

// wholeNumbers makes numbers up to reach of x and tells their step.
func wholeNumbers(to []int16, x []float32, reach float32) (step float32) {
	if wholeNumbersAsm(to, &step, x, reach) {
		return step
	}
	most := math.Float32bits(leastPart)
	for _, v := range x {
		most = max(most, math.Float32bits(v)&^(1<<31))
	}
	top := math.Float32frombits(min(most, 0x7f800000))
	step = float32(top*(1/reach)) + (top - top) // a NaN, if it is not finite
	step = math.Float32frombits((math.Float32bits(step) + 0xffff) & 0xffff0000)
	for d, v := range x {
		to[d] = int16(part(v, 1/step))
	}
	return step
}

// setI16 stores a row: its numbers and, in the upper half of a float32, their step.
func (r *Rows) setI16(row []byte, x []float32) {
	words := as[uint16](row)
	words[r.Width] = uint16(math.Float32bits(wholeNumbers(as[int16](row)[:r.Width], x, i16Reach)) >> 16)
}

// i16Row is row i: its numbers and their step.
func (r *Rows) i16Row(i int) (numbers []int16, step float32) {
	row := as[int16](r.Data[i*r.Stride:][:r.RowBytes()])
	return row[:r.Width], widen(uint16(row[r.Width]))
}

// reach is that of queries: sums of products stay within 32 bits.
func (a *Attn) reach() float32 { return float32(math.MaxInt32 / (i16Reach * a.KDim)) }

// setI16 makes the numbers of query i.
func (a *Attn) setI16(i int, q []float32) {
	a.factors[i] = wholeNumbers(int16s(a.q)[i*a.KDim:][:a.KDim], q, a.reach())
}

// i16Scores is score with I16.
func (w *AttnSpace) i16Scores(a *Attn, k *Rows, at, from, to, q0, n int) {
	for i := from; i < to; i++ {
		key, step := k.i16Row(at + i)
		for j := range n {
			sum := int32(0)
			for d, x := range int16s(a.q)[(q0+j)*k.Width:][:k.Width] {
				sum += int32(x) * int32(key[d])
			}
			w.s[j*AttnTile+i] = float32(float32(sum)*step) * a.factors[q0+j]
		}
	}
}

// weightSteps is, of weights whose largest has these bits, the power of two that makes it a number of thirteen bits, and its
// inverse: a NaN, if it is not finite.
func weightSteps(most uint32) (scale, step float32) {
	const least, bias, more, finite, mantissa = 13, 127, 12, 254, 23
	e := most << 1 >> (mantissa + 1)
	up := max(e, least)
	scale, step = math.Float32frombits((2*bias+more-up)<<mantissa), math.Float32frombits((up-more)<<mantissa)
	if e > finite {
		step = float32(math.NaN())
	}
	return scale, step
}

// i16Weights are those of query i of a tile, in the order of weightAt, and their step.
func (w *AttnSpace) i16Weights(i int) (numbers []int16, step *float32) {
	return int16s(w.p)[i*AttnTile:][:AttnTile], &w.f[i]
}

// weightAt is where the weight of a position is: beside that of the position 16 further, so that weights need not change lanes.
func weightAt(i int) int { return i/32*32 + i%16*2 + i/16%2 }

// i16Softmax is softmax with I16: weights go to w.p. Row at of v is the first of the tile.
func (a *Attn) i16Softmax(w *AttnSpace, v *Rows, at, q0, n int, factor float32) {
	vpad := pad16(v.Width)
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
			_, step := v.i16Row(at + i)
			s[i] = x * step
			most = max(most, math.Float32bits(s[i])&^(1<<31))
		}
		if top != old {
			lower(&a.sum[q0+j], a.acc[(q0+j)*vpad:][:vpad], pow2(old-top))
			a.max[q0+j] = top
		}
		a.sum[q0+j] += foldLanes(&lanes)
		numbers, step := w.i16Weights(j)
		var scale float32
		scale, *step = weightSteps(most)
		for i, x := range s {
			numbers[weightAt(i)] = int16(part(x, scale))
		}
	}
}

// i16Values is value with I16.
func (a *Attn) i16Values(w *AttnSpace, v *Rows, at, from, to, q0, n int) {
	vpad := pad16(v.Width)
	for j := range n {
		numbers, step := w.i16Weights(j)
		for d := range v.Width {
			sum := int32(0)
			for i := from; i < to; i++ {
				row, _ := v.i16Row(at + i)
				sum += int32(numbers[weightAt(i)]) * int32(row[d])
			}
			acc := &a.acc[(q0+j)*vpad+d]
			*acc = fma32(float32(sum), *step, *acc)
		}
	}
}
