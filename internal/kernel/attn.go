package kernel

import (
	"fmt"
	"math"
)

// AttnTile is the number of positions whose scores are taken together. Tiles start at multiples of it in the absolute
// index, so that what a query sees never depends on where a chunk, page or call began.
const AttnTile = 64

// Attn is the state of the query heads that share a key head, for some rows (tokens) of a sequence, over key positions in
// ascending order: running maximum and sum per head, and the sum of weighted values. A long context may be cut in splits
// at fixed absolute indices, one Attn each, merged in ascending order with Merge. Not for concurrent use.
//
// Rows share the loads of keys and values, and that is all they share: a row has the bits it has alone.
type Attn struct {
	Heads, KDim, VDim int
	Scale             float32   // on the scores; above 0
	Cap               float32   // scores become Cap·tanh(score/Cap); 0: none
	Half              bool      // queries and weights rounded to bfloat16: see HalfAttention
	Codes             bool      // queries and weights as whole numbers that codes are multiplied by: see CodeAttention
	Columns           bool      // scores are added up column by column where that is faster; all rows of a sequence have it or none
	I16               bool      // queries and weights as whole numbers, as CacheI16 keeps keys and values: see attn_i16.go
	lo, hi            []int     // what a row sees
	q                 []float32 // [rows·Heads][pad16(KDim)]; with Half or I16 the first half of them, twice as many, with Codes the parts of query
	factors           []float32 // [rows·Heads][1+KDim/codeGroup] with Codes: see query; [rows·Heads] with I16
	max, sum          []float32 // [rows·Heads]
	acc               []float32 // [rows·Heads][pad16(VDim)]
}

// AttnSpace is scratch memory of Attend: one for every thread.
type AttnSpace struct {
	Next         []byte // where the keys of the next call begin, if that is known: they are fetched meanwhile
	k, v, s, row []float32
	p, f         []float32 // see weights
	scales       []float32 // see codeScales
	some         []byte    // see whole
}

// Reset empties the state for new queries, which SetRow gives; it allocates only when the shape grows.
func (a *Attn) Reset(rows int) {
	n := rows * a.Heads
	a.lo, a.hi = grow(a.lo, rows), grow(a.hi, rows)
	a.max, a.sum = grow(a.max, n), grow(a.sum, n)
	if a.Codes {
		a.factors = grow(a.factors, n*(1+a.KDim/codeGroup))
	}
	if a.I16 {
		a.factors = grow(a.factors, n)
	}
	a.q, a.acc = growAligned(a.q, n*pad16(a.KDim)), growAligned(a.acc, n*pad16(a.VDim))
	a.Restart()
}

// Restart empties the state for the same queries, over other positions.
func (a *Attn) Restart() {
	for i := range a.max {
		a.max[i] = float32(math.Inf(-1))
	}
	clear(a.sum)
	clear(a.acc)
}

// SetRow gives the queries of a row, q [Heads·KDim], and the positions [lo, hi) it sees. From row to row neither bound
// descends.
func (a *Attn) SetRow(row int, q []float32, lo, hi int) {
	if len(q) != a.Heads*a.KDim || row > 0 && (lo < a.lo[row-1] || hi < a.hi[row-1]) {
		panic(fmt.Sprintf("kernel: row %d sees [%d,%d) with %d query numbers, want %d and no bound below the last row's", row, lo, hi, len(q), a.Heads*a.KDim))
	}
	a.lo[row], a.hi[row] = lo, hi
	pad := pad16(a.KDim)
	if a.Half {
		ToBF16(bf16s(a.q)[row*len(q):][:len(q)], q)
		return
	}
	for h := range a.Heads {
		if a.Codes {
			a.setCodes(row*a.Heads+h, q[h*a.KDim:][:a.KDim])
			continue
		}
		if a.I16 {
			a.setI16(row*a.Heads+h, q[h*a.KDim:][:a.KDim])
			continue
		}
		to := a.q[(row*a.Heads+h)*pad:][:pad]
		clear(to[copy(to, q[h*a.KDim:][:a.KDim]):])
	}
}

// Attend lets every row see those of its positions that lie in [from, to), in one run of cache rows. Row i of k and v is
// position base+i, and base is a multiple of AttnTile. Calls come in ascending order of position, a boundary between two
// calls lies on a multiple of AttnTile.
//
// Keys and values are seen as Rows.Get reads them. Per tile and query: scores in eight lanes (reduceScore), with AVX-512 in
// sixteen; new maximum; earlier sums scaled by exp(old-new); weights exp(score-max); values added position by position. With
// Half it is what attn_half.go says, with Codes what attn_codes.go does, with I16 what attn_i16.go does.
func Attend(a *Attn, w *AttnSpace, k, v *Rows, base, from, to int) {
	if from >= to {
		return
	}
	if a.Half && !(halfRows(k) && halfRows(v)) || a.Codes && !(codeRows(k) && codeRows(v)) || a.I16 != (k.Type == CacheI16) || a.I16 != (v.Type == CacheI16) || base%AttnTile != 0 || from < base || k.Width != a.KDim || v.Width != a.VDim ||
		len(k.Data) < (to-base-1)*k.Stride+k.RowBytes() || len(v.Data) < (to-base-1)*v.Stride+v.RowBytes() {
		panic(fmt.Sprintf("kernel: attend [%d,%d) over a run at %d with %d bytes of keys and %d of values", from, to, base, len(k.Data), len(v.Data)))
	}
	w.s, w.row = growAligned(w.s, len(a.max)*AttnTile), growAligned(w.row, pad16(max(a.KDim, a.VDim, 64)))
	for t := from / AttnTile * AttnTile; t < to; t += AttnTile {
		a.tile(w, k, v, base, t, max(t, from), min(t+AttnTile, to))
	}
}

// tile is Attend within the tile at t.
func (a *Attn) tile(w *AttnSpace, k, v *Rows, base, t, from, to int) {
	r0, r1 := a.seeing(from, to)
	if r0 >= r1 {
		return
	}
	from, to = max(from, a.lo[r0])-t, min(to, a.hi[r1-1])-t
	q0, n := r0*a.Heads, (r1-r0)*a.Heads
	vpad := pad16(a.VDim)
	acc := a.acc[q0*vpad:][:n*vpad]
	next := w.Next
	if at := (t + AttnTile - base) * k.Stride; at < len(k.Data) {
		next = k.Data[at:]
	}
	a.scores(w, k, v, t-base, from, to, q0, n)
	scale := a.Scale
	if a.Cap != 0 {
		softcap(w.s[:n*AttnTile], scale, a.Cap)
		scale = 1
	}
	for r := r0; r < r1; r++ {
		lo, hi := max(from, a.lo[r]-t), min(to, a.hi[r]-t)
		if lo == 0 && hi == AttnTile {
			continue
		}
		for h := range a.Heads {
			mask(w.s[((r-r0)*a.Heads+h)*AttnTile:][:AttnTile], lo, hi)
		}
	}
	switch {
	case a.Codes:
		w.growWeights(n, a.VDim/codeGroup)
		if !a.codeSoftmaxAsm(w, v, t-base, q0, n, scale*log2e) {
			a.codeSoftmax(w, v, t-base, from, to, q0, n, scale*log2e)
		}
	case a.I16:
		w.p, w.f = growAligned(w.p, n*AttnTile/2), growAligned(w.f, n)
		if !a.i16SoftmaxAsm(w, v, next, t-base, q0, n, scale*log2e) {
			a.i16Softmax(w, v, t-base, q0, n, scale*log2e)
		}
	default:
		a.softmax(w.s, a.max[q0:][:n], a.sum[q0:][:n], acc, vpad, scale)
	}
	a.values(w, v, next, t-base, from, to, t, r0, r1)
}

// scores writes those of n queries from q0 on.
func (a *Attn) scores(w *AttnSpace, k, v *Rows, at, from, to, q0, n int) {
	if a.Codes {
		if !w.codeScoresAsm(a, k, v, at, from, to, q0, n) {
			w.codeScores(a, k, at, from, to, q0, n)
		}
		return
	}
	if a.I16 {
		if !w.i16ScoresAsm(a, k, v, at, from, to, q0, n) {
			w.i16Scores(a, k, at, from, to, q0, n)
		}
		return
	}
	if a.Half {
		if q := bf16s(a.q)[q0*a.KDim:][:n*a.KDim]; !w.halfScoresAsm(q, k, v, at, from, to, n) {
			w.halfScores(q, k, at, from, to, n)
		}
		return
	}
	pad := pad16(a.KDim)
	q := a.q[q0*pad:][:n*pad]
	if a.Columns && w.columnScoresAsm(q, k, at, from, to, n) {
		return
	}
	if !w.scoreAsm(q, k, v, at, from, to, n) {
		w.score(q, k, at, from, to, n)
	}
}

// softmax turns scores into weights and updates maxima, sums and the scale of acc.
func (a *Attn) softmax(s, most, sum, acc []float32, vpad int, scale float32) {
	switch {
	case !a.Half:
		softmax(s, most, sum, acc, vpad, scale)
	case !halfSoftmaxAsm(s, most, sum, acc, vpad, scale*log2e):
		halfSoftmax(s, most, sum, acc, vpad, scale*log2e)
	}
}

// values adds the weighted values of [from, to) to the sums of the rows that see them. The next keys are at next.
func (a *Attn) values(w *AttnSpace, v *Rows, next []byte, at, from, to, t, r0, r1 int) {
	switch {
	case a.Codes:
		if q0, n := r0*a.Heads, (r1-r0)*a.Heads; !a.codeValuesAsm(w, v, next, at, q0, n) {
			a.codeValues(w, v, at, from, to, q0, n)
		}
	case a.I16:
		if q0, n := r0*a.Heads, (r1-r0)*a.Heads; !a.i16ValuesAsm(w, v, next, at, q0, n) {
			a.i16Values(w, v, at, from, to, q0, n)
		}
	case a.Half:
		if !a.halfValuesAsm(w, v, next, at, from, to, t, r0, r1) {
			a.halfValues(w, v, at, from, to, t, r0, r1)
		}
	case !a.valueAsm(w, v, next, at, from, to, t, r0, r1):
		a.value(w, v, at, from, to, t, r0, r1)
	}
}

// seeing is the rows that see any of [from, to).
func (a *Attn) seeing(from, to int) (r0, r1 int) {
	for r0 < len(a.hi) && a.hi[r0] <= from {
		r0++
	}
	r1 = r0
	for r1 < len(a.lo) && a.lo[r1] < to {
		r1++
	}
	return r0, r1
}

// mask hides the scores outside [lo, hi).
func mask(s []float32, lo, hi int) {
	inf := float32(math.Inf(-1))
	for i := range lo {
		s[i] = inf
	}
	for i := hi; i < len(s); i++ {
		s[i] = inf
	}
}

// Merge adds the state of the next split, b, to a: that of the same rows.
func (a *Attn) Merge(b *Attn) {
	none, vpad := float32(math.Inf(-1)), pad16(a.VDim)
	for i := range a.max {
		acc, more := a.acc[i*vpad:][:vpad], b.acc[i*vpad:][:vpad]
		switch {
		case b.max[i] == none: // has seen no position
		case a.max[i] == none:
			a.max[i], a.sum[i] = b.max[i], b.sum[i]
			copy(acc, more)
		default:
			top := max(a.max[i], b.max[i])
			fa, fb := a.power(a.max[i]-top), a.power(b.max[i]-top)
			a.sum[i] = a.sum[i]*fa + b.sum[i]*fb
			if fa != 1 {
				Scale(acc, acc, fa)
			}
			Axpy(acc, more, fb)
			a.max[i] = top
		}
	}
}

// log2 reports weights that are powers of 2, not of e.
func (a *Attn) log2() bool { return a.Half || a.Codes || a.I16 }

// power is e to x, or 2 to it.
func (a *Attn) power(x float32) float32 {
	if a.log2() {
		return float32(math.Exp2(float64(x)))
	}
	return exp32(x)
}

// Finish writes the weighted means of a row to dst [Heads·VDim]. sinks, if any, has one score per head that takes part
// in the denominator only. A head that saw nothing gives zeros.
func (a *Attn) Finish(row int, dst, sinks []float32) {
	same(len(dst), a.Heads*a.VDim, a.Heads*a.VDim)
	vpad := pad16(a.VDim)
	for h := range a.Heads {
		i := row*a.Heads + h
		sum, f := a.sum[i], float32(1)
		if sinks != nil {
			sink := sinks[h]
			if a.log2() {
				sink *= log2e
			}
			top := max(a.max[i], sink)
			f = a.power(a.max[i] - top)
			sum = sum*f + a.power(sink-top)
		}
		if sum != 0 {
			f /= sum
		}
		Scale(dst[h*a.VDim:][:a.VDim], a.acc[i*vpad:][:a.VDim], f)
	}
}

func pad16(n int) int { return roundUp(n, 16) }

func growAligned(s []float32, n int) []float32 {
	if cap(s) >= n {
		return s[:n]
	}
	return AlignedFloats(n)
}
