package kernel

import (
	"fmt"
	"math"

	"hearth/internal/quant"
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
	qsum              []float32 // [Heads][groups of a key]: sums of the query; empty until keys with codes are seen
}

// Reset empties the state for a new query; it allocates only when the shape grows.
func (a *Attn) Reset() {
	a.max, a.sum, a.acc = grow(a.max, a.Heads), grow(a.sum, a.Heads), grow(a.acc, a.Heads*a.VDim)
	for h := range a.max {
		a.max[h] = float32(math.Inf(-1))
	}
	clear(a.sum)
	clear(a.acc)
	a.qsum = a.qsum[:0]
}

// Attend lets the heads of q [Heads·KDim] see positions [from, to) of one run of cache rows. Row i of k and v is
// position base+i, and base is a multiple of AttnTile. Calls come in ascending order of position, a boundary between
// two calls lies on a multiple of AttnTile, and all runs of one query store alike.
//
// Per tile and head: scores by Dot; new maximum; earlier sums scaled by exp(old-new); weights exp(score-max) with zeros
// for unseen positions; values added position by position.
//
// With codes, a score is, per group ascending, scale·Σ code·q in the lanes of Dot, plus Σ bias·(Σ q); values add
// (weight·scale)·code position by position, and then, per group, Σ weight·bias of the tile.
func Attend(a *Attn, q []float32, k, v *Rows, base, from, to int) {
	if from >= to {
		return
	}
	if base%AttnTile != 0 || from < base || len(q) != a.Heads*a.KDim || k.Width != a.KDim || v.Width != a.VDim ||
		len(k.Data) < (to-base-1)*k.Stride+k.RowBytes() || len(v.Data) < (to-base-1)*v.Stride+v.RowBytes() {
		panic(fmt.Sprintf("kernel: attend [%d,%d) over a run at %d with %d bytes of keys and %d of values", from, to, base, len(k.Data), len(v.Data)))
	}
	groups := 0
	if k.Type.Quantised() {
		groups = k.Width / k.Group
		if len(a.qsum) == 0 {
			a.qsum = grow(a.qsum, a.Heads*groups)
			sumGroups(a.qsum, q, k.Group)
		}
	}
	for t := from / AttnTile * AttnTile; t < to; t += AttnTile {
		lo, hi := max(t, from)-t, min(t+AttnTile, to)-t
		for h := range a.Heads {
			var s [AttnTile]float32
			scores(s[lo:hi], q[h*a.KDim:][:a.KDim], a.qsum[h*groups:][:groups], k, t+lo-base)
			a.tile(h, &s, lo, hi)
			addValues(a.acc[h*a.VDim:][:a.VDim], s[lo:hi], v, t+lo-base)
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

// scores writes s[i] = q · (row at+i of k), for floats with the bits of Dot.
func scores(s, q, qsum []float32, k *Rows, at int) {
	if scoresAsm(s, q, qsum, k, at) {
		return
	}
	for i := range s {
		row := k.Data[(at+i)*k.Stride:][:k.RowBytes()]
		switch k.Type {
		case CacheF32:
			s[i] = Dot(q, as[float32](row))
		case CacheBF16:
			s[i] = DotBF16(q, as[uint16](row))
		case CacheF16:
			s[i] = dotF16(q, as[uint16](row))
		default:
			s[i] = k.dotCodes(q, qsum, row)
		}
	}
}

// addValues adds Σ_i p[i] · (row at+i of v) to acc, ascending, for floats with the bits of Axpy.
func addValues(acc, p []float32, v *Rows, at int) {
	if addValuesAsm(acc, p, v, at) {
		return
	}
	if v.Type.Quantised() {
		v.addCodes(acc, p, at)
		return
	}
	for i, f := range p {
		row := v.Data[(at+i)*v.Stride:][:v.RowBytes()]
		switch v.Type {
		case CacheF32:
			Axpy(acc, as[float32](row), f)
		case CacheBF16:
			AxpyBF16(acc, as[uint16](row), f)
		default:
			for d, h := range as[uint16](row) {
				acc[d] += f * quant.F16ToF32(h)
			}
		}
	}
}

func dotF16(q []float32, row []uint16) float32 {
	var lane [dotLanes]float32
	for i, h := range row {
		lane[i%dotLanes] += q[i] * quant.F16ToF32(h)
	}
	return sumDot(&lane)
}

func (r *Rows) dotCodes(q, qsum []float32, row []byte) float32 {
	var acc [dotLanes]float32
	var bias float32
	for g, sum := range qsum {
		var lane [dotLanes]float32
		for i := range r.Group {
			k := g*r.Group + i
			lane[i%dotLanes] += q[k] * float32(r.code(row, k))
		}
		s, b := r.scale(row, g)
		for i := range acc {
			acc[i] += s * lane[i]
		}
		bias += b * sum
	}
	return sumDot(&acc) + bias
}

func (r *Rows) addCodes(acc, p []float32, at int) {
	for g := range r.Width / r.Group {
		var bias float32
		for i, f := range p {
			row := r.Data[(at+i)*r.Stride:]
			s, b := r.scale(row, g)
			bias += f * b
			s *= f
			for k := g * r.Group; k < (g+1)*r.Group; k++ {
				acc[k] += s * float32(r.code(row, k))
			}
		}
		for k := g * r.Group; k < (g+1)*r.Group; k++ {
			acc[k] += bias
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
