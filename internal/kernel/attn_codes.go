package kernel

import (
	"math"
	"unsafe"
)

// Attention with Codes: codes of 8 bits are multiplied as they are stored, by whole numbers of 15 bits that stand for queries and
// for weights, and the sums of these products are exact. This file says what every routine gives, to the bit:
//
//	query    n = rint(q·(partReach/top)) with top the head's largest |q|, at least leastPart; q is about n·step, step = top/partReach
//	score    groups ascending from 0: t = bias·Σn + t, then t = scale·Σ(n·code) + t, each rounded once; at last t·step
//	maximum  in units of log2: the largest score times Scale·log2(e)
//	weight   2 to the power of score·Scale·log2(e) - maximum (halfPow); 0 where that is below leastPower
//	sum      of the weights, in sixteen lanes; earlier sums times 2^(old - new maximum) (pow2)
//	value    per group, weight·scale of the tile's positions as whole numbers of 15 bits with a step of their own, as queries have
//	         one: sum = step·Σ(n·code) + sum, rounded once, then Σ(weight·bias), in sixteen lanes, is added
//
// A position whose weight is 0 adds nothing, whatever its scale and bias.

const (
	// partReach is 256 times the largest high part: numbers are 256·high + low, both of them signed bytes.
	partReach = 127 * 256
	// codeGroup is how many codes share a scale and a bias.
	codeGroup  = 64
	leastPart  = 0x1p-100
	leastPower = -100
)

// CodeAttention reports keys and values of which Attn can be Codes: 8-bit codes in groups of 64, on a processor that multiplies
// bytes four at a time in vectors of 64.
func CodeAttention(k, v *Rows) bool { return hasCodes() && codeRows(k) && codeRows(v) }

func codeRows(r *Rows) bool {
	return r.Type == CacheQ8 && r.Group == codeGroup && r.Width%codeGroup == 0
}

// int8s sees numbers as four times as many bytes.
func int8s(x []float32) []int8 {
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}

// query is the parts of query i, the high ones first, and its step, followed by Σn of every group.
func (a *Attn) query(i int) (parts []int8, factors []float32) {
	n := 1 + a.KDim/codeGroup
	return int8s(a.q)[2*i*a.KDim:][:2*a.KDim], a.factors[i*n:][:n]
}

// setCodes makes the numbers of query i.
func (a *Attn) setCodes(i int, q []float32) {
	parts, factors := a.query(i)
	if codeQueryAsm(parts, factors, q) {
		return
	}
	step, inverse := partSteps(q)
	factors[0] = step
	for g := range factors[1:] {
		sum := int32(0)
		for d := g * codeGroup; d < (g+1)*codeGroup; d++ {
			n := part(q[d], inverse)
			parts[d], parts[a.KDim+d] = split15(n)
			sum += n
		}
		factors[1+g] = float32(sum)
	}
}

// partSteps is the step of numbers, NaN if one of them is infinite or a NaN, and what they are multiplied by.
func partSteps(x []float32) (step, inverse float32) {
	most := math.Float32bits(leastPart)
	for _, v := range x {
		most = max(most, math.Float32bits(v)&^(1<<31)) // a NaN is the largest
	}
	top := math.Float32frombits(most)
	return float32(top*(1/float32(partReach))) + (top - top), partReach / top
}

func part(x, inverse float32) int32 {
	if x *= inverse; x == x {
		return int32(rint(x))
	}
	return 0
}

func split15(n int32) (high, low int8) {
	high = int8((n + 128) >> 8)
	return high, int8(n - int32(high)<<8)
}

// codeScores is score with Codes.
func (w *AttnSpace) codeScores(a *Attn, k *Rows, at, from, to, q0, n int) {
	for j := range n {
		parts, factors := a.query(q0 + j)
		for i := from; i < to; i++ {
			row := k.Data[(at+i)*k.Stride:][:k.RowBytes()]
			var t float32
			for g, sum := range factors[1:] {
				products := int32(0)
				for d := g * codeGroup; d < (g+1)*codeGroup; d++ {
					products += (int32(parts[d])<<8 + int32(parts[a.KDim+d])) * int32(row[d])
				}
				scale, bias := k.scale(row, g)
				t = fma32(bias, sum, t)
				t = fma32(float32(products), scale, t)
			}
			w.s[j*AttnTile+i] = t * factors[0]
		}
	}
}

// weights is, of query i of a tile and group g of its values, the parts of 64 weights, the high ones first, and their step and
// Σ(weight·bias).
func (w *AttnSpace) weights(i, g, groups int) (parts []int8, factors []float32) {
	i = i*groups + g
	return int8s(w.p)[2*AttnTile*i:][:2*AttnTile], w.f[2*i:][:2]
}

func (w *AttnSpace) growWeights(n, groups int) {
	w.p, w.f = growAligned(w.p, n*groups*2*AttnTile/4), growAligned(w.f, n*groups*2)
}

// codeSoftmax is softmax with Codes: weights go to w.p. Row at of v is the first of the tile.
func (a *Attn) codeSoftmax(w *AttnSpace, v *Rows, at, from, to, q0, n int, factor float32) {
	groups, vpad := v.Width/codeGroup, pad16(v.Width)
	for j := range n {
		s, old := w.s[j*AttnTile:][:AttnTile], a.max[q0+j]
		top, off := largest(s, old, factor)
		var lanes [16]float32
		for i, x := range s {
			if x = fma32(x, factor, -off); x < leastPower {
				s[i] = 0
				continue
			}
			s[i] = halfPow(x)
			lanes[i%16] += s[i]
		}
		if top != old {
			lower(&a.sum[q0+j], a.acc[(q0+j)*vpad:][:vpad], pow2(old-top))
			a.max[q0+j] = top
		}
		a.sum[q0+j] += foldLanes(&lanes)
		for g := range groups {
			a.codeWeights(w, v, at, from, to, j, g, s)
		}
	}
}

// codeWeights makes the whole numbers of the weights p for a group of values.
func (a *Attn) codeWeights(w *AttnSpace, v *Rows, at, from, to, j, g int, p []float32) {
	var scaled [AttnTile]float32
	var lanes [16]float32
	for i := from; i < to; i++ {
		if p[i] != 0 {
			scale, bias := v.scale(v.Data[(at+i)*v.Stride:][:v.RowBytes()], g)
			scaled[i], lanes[i%16] = p[i]*scale, fma32(p[i], bias, lanes[i%16])
		}
	}
	parts, factors := w.weights(j, g, v.Width/codeGroup)
	step, inverse := partSteps(scaled[:])
	for i, x := range scaled {
		parts[i], parts[AttnTile+i] = split15(part(x, inverse))
	}
	for n := 8; n > 0; n /= 2 {
		for i := range n {
			lanes[i] += lanes[i+n]
		}
	}
	factors[0], factors[1] = step, lanes[0]
}

// codeValues is value with Codes.
func (a *Attn) codeValues(w *AttnSpace, v *Rows, at, from, to, q0, n int) {
	vpad := pad16(v.Width)
	for j := range n {
		acc := a.acc[(q0+j)*vpad:][:vpad]
		for g := range v.Width / codeGroup {
			parts, factors := w.weights(j, g, v.Width/codeGroup)
			for d := g * codeGroup; d < (g+1)*codeGroup; d++ {
				products := int32(0)
				for i := from; i < to; i++ {
					products += (int32(parts[i])<<8 + int32(parts[AttnTile+i])) * int32(v.Data[(at+i)*v.Stride+d])
				}
				acc[d] = fma32(float32(products), factors[0], acc[d]) + factors[1]
			}
		}
	}
}
