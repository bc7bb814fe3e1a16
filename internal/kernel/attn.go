package kernel

import (
	"fmt"
	"math"
)

// AttnTile is the number of positions whose scores are taken together. Tiles start at multiples of it in the absolute
// index, so that what a query sees never depends on where a chunk, page or call began.
const AttnTile = 16

// Attn is the state of one query token's heads that share a KV head, over key positions in ascending order: running
// maximum and sum per head, and the sum of weighted values. A long context may be cut in splits at fixed absolute
// indices, one Attn each, merged in ascending order with Merge. Not for concurrent use.
type Attn struct {
	Heads, KDim, VDim int
	Scale             float32   // on the scores
	Cap               float32   // scores become Cap·tanh(score/Cap); 0: none
	max, sum          []float32 // [Heads]
	acc               []float32 // [Heads][VDim]
}

// Reset empties the state for a new query; it allocates only when the shape grows.
func (a *Attn) Reset() {
	a.max, a.sum, a.acc = grow(a.max, a.Heads), grow(a.sum, a.Heads), grow(a.acc, a.Heads*a.VDim)
	for h := range a.max {
		a.max[h] = float32(math.Inf(-1))
	}
	clear(a.sum)
	clear(a.acc)
}

// KV is an element type of cached keys and values: float32, or the bits of a bfloat16.
type KV interface{ ~float32 | ~uint16 }

// Attend lets the heads of q [Heads·KDim] see positions [from, to) of one contiguous run of cache rows. Row i of k and
// v (strides ldk and ldv) is position base+i, and base is a multiple of AttnTile. Calls come in ascending order of
// position, and a boundary between two calls lies on a multiple of AttnTile.
//
// Per tile and head: scores by Dot; new maximum; earlier sums scaled by exp(old-new); weights exp(score-max) with zeros
// for unseen positions; values added position by position.
func Attend[T KV](a *Attn, q []float32, k []T, ldk int, v []T, ldv int, base, from, to int) {
	if base%AttnTile != 0 || from < base || len(q) != a.Heads*a.KDim || from < to && (len(k) < (to-base-1)*ldk+a.KDim || len(v) < (to-base-1)*ldv+a.VDim) {
		panic(fmt.Sprintf("kernel: attend [%d,%d) over a run at %d with %d keys and %d values", from, to, base, len(k), len(v)))
	}
	for t := from / AttnTile * AttnTile; t < to; t += AttnTile {
		lo, hi := max(t, from)-t, min(t+AttnTile, to)-t
		kt, vt := k[(t+lo-base)*ldk:], v[(t+lo-base)*ldv:]
		for h := range a.Heads {
			var s [AttnTile]float32
			scores(s[lo:hi], q[h*a.KDim:][:a.KDim], kt, ldk)
			a.tile(h, &s, lo, hi)
			addValues(a.acc[h*a.VDim:][:a.VDim], s[lo:hi], vt, ldv)
		}
	}
}

// tile turns the raw scores s[lo:hi] of one tile into weights and updates maximum, sum and the scale of acc.
func (a *Attn) tile(h int, s *[AttnTile]float32, lo, hi int) {
	top := a.max[h]
	for i := lo; i < hi; i++ {
		s[i] *= a.Scale
		if a.Cap != 0 {
			s[i] = a.Cap * float32(math.Tanh(float64(s[i]/a.Cap)))
		}
		if s[i] > top {
			top = s[i]
		}
	}
	if math.IsInf(float64(top), -1) {
		top = 0 // every score is -Inf or NaN: weights 0 or NaN, not Inf-Inf
	}
	var all [AttnTile]float32
	for i := range all {
		all[i] = float32(math.Inf(-1))
	}
	copy(all[lo:hi], s[lo:hi])
	sum := ExpSum(s[:], all[:], top)
	if top != a.max[h] {
		f := exp32(a.max[h] - top)
		a.sum[h] *= f
		acc := a.acc[h*a.VDim:][:a.VDim]
		Scale(acc, acc, f)
		a.max[h] = top
	}
	a.sum[h] += sum
}

// Merge adds the state of the next split, b, to a.
func (a *Attn) Merge(b *Attn) {
	for h := range a.max {
		top := max(a.max[h], b.max[h])
		if math.IsInf(float64(top), -1) {
			continue // neither has seen a position
		}
		fa, fb := exp32(a.max[h]-top), exp32(b.max[h]-top)
		a.sum[h] = a.sum[h]*fa + b.sum[h]*fb
		acc := a.acc[h*a.VDim:][:a.VDim]
		Scale(acc, acc, fa)
		Axpy(acc, b.acc[h*a.VDim:][:a.VDim], fb)
		a.max[h] = top
	}
}

// Finish writes the weighted means to dst [Heads·VDim]. sinks, if any, has one score per head that takes part in the
// denominator only. A head that saw nothing gives zeros.
func (a *Attn) Finish(dst, sinks []float32) {
	same(len(dst), len(a.acc), len(a.acc))
	for h := range a.max {
		sum, f := a.sum[h], float32(1)
		if sinks != nil {
			top := max(a.max[h], sinks[h])
			f = exp32(a.max[h] - top)
			sum = sum*f + exp32(sinks[h]-top)
		}
		if sum != 0 {
			f /= sum
		}
		Scale(dst[h*a.VDim:][:a.VDim], a.acc[h*a.VDim:][:a.VDim], f)
	}
}

// scores writes s[i] = q · (row i of k), with the bits of Dot.
func scores[T KV](s, q []float32, k []T, ldk int) {
	if scoresAsm(s, q, k, ldk) {
		return
	}
	for i := range s {
		switch row := any(k[i*ldk:][:len(q)]).(type) {
		case []float32:
			s[i] = Dot(q, row)
		case []uint16:
			s[i] = DotBF16(q, row)
		}
	}
}

// addValues adds Σ_i p[i] · (row i of v) to acc, ascending, with the bits of Axpy.
func addValues[T KV](acc, p []float32, v []T, ldv int) {
	if addValuesAsm(acc, p, v, ldv) {
		return
	}
	for i, f := range p {
		switch row := any(v[i*ldv:][:len(acc)]).(type) {
		case []float32:
			Axpy(acc, row, f)
		case []uint16:
			AxpyBF16(acc, row, f)
		}
	}
}

// DotBF16 is Dot with b in bfloat16.
func DotBF16(a []float32, b []uint16) float32 {
	same(len(a), len(b), len(b))
	if len(a) == 0 {
		return 0
	}
	if d, ok := dotBF16Asm(a, b); ok {
		return d
	}
	var lane [dotLanes]float32
	for i := range a {
		lane[i%dotLanes] += a[i] * widen(b[i])
	}
	return sumDot(&lane)
}

// AxpyBF16 is Axpy with x in bfloat16.
func AxpyBF16(y []float32, x []uint16, f float32) {
	same(len(y), len(x), len(x))
	if len(y) > 0 && axpyBF16Asm(y, x, f) {
		return
	}
	for i := range y {
		y[i] += f * widen(x[i])
	}
}
