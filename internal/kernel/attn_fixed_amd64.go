//go:build amd64 && !purego

package kernel

import "unsafe"

// A tile of 64 keys becomes lines of a pair of columns of each, one of 64 values lines of 64 columns of a pair of positions: then
// a line serves every query, whose pair is the same for all lanes. A few queries read rows as they are stored, each of which is
// made whole numbers in registers: sums of these do not depend on their order. What numbers of a row are multiplied by needs a look
// at all of them before, which brings a tile to the nearest cache.

// fixedArgs are what the routines take; distances are in bytes.
type fixedArgs struct {
	x, rows, lines, scales, factors, sums unsafe.Pointer // whole numbers; rows as they are stored; lines; see steps; steps of x; sums or scores
	max, sum, acc                         unsafe.Pointer
	ahead, aheadEnd                       uintptr // what will be read next; not dereferenced, and moved on
	xStride, rowStride                    int
	sumStride, accStride                  int
	groups, pairs, vectors, strips        int // of rows, of which none are left afterwards; of numbers of a row; of 32 columns; of 16 of acc
	factor, reach, perReach               float32
}

// fixedFew is up to how many queries the routines that do without lines are faster.
const fixedFew = 8

// hasFixed reports products of 16-bit numbers where no bfloat16 ones are taken: see archImpls.
func hasFixed() bool { return mulSet == setVNNI }

func fixedQueryAsm(numbers []int16, step *float32, q []float32, reach float32) bool {
	if !hasFixed() {
		return false
	}
	attnFixedQueryAVX512(&fixedArgs{rows: ptr(q), x: ptr(numbers), factors: unsafe.Pointer(step), vectors: len(q) / 32, reach: reach, perReach: 1 / reach})
	return true
}

// fixedSteps gives what the numbers of 64 rows are multiplied by, then what the whole ones of each count.
func (w *AttnSpace) fixedSteps(r *Rows, rows []byte, stride int) fixedArgs {
	w.scales = growAligned(w.scales, 2*AttnTile)
	x := fixedArgs{rows: ptr(rows), rowStride: stride, scales: ptr(w.scales), vectors: r.Width / 32}
	attnFixedStepsAVX512(&x)
	return x
}

func (w *AttnSpace) fixedScoresAsm(a *Attn, k, v *Rows, at, _, to, q0, n int) bool {
	if !hasFixed() {
		return false
	}
	rows, stride := w.whole(k, at)
	x := w.fixedSteps(k, rows, stride)
	x.xStride, x.pairs = 2*k.Width, k.Width/2
	x.fetch(v.Data[at*v.Stride:], (to-1)*v.Stride+v.RowBytes())
	few := n <= fixedFew
	if !few {
		w.k = growAligned(w.k, AttnTile*k.Width/2)
		x.lines = ptr(w.k)
		attnFixedKeysAVX512(&x)
	}
	for i := 0; i < n; {
		x.x, x.factors, x.sums = unsafe.Pointer(&int16s(a.q)[(q0+i)*k.Width]), f32ptr(a.factors, q0+i), f32ptr(w.s, i*AttnTile)
		each := 0
		if few {
			each, x.groups = portion(n-i, fixedQueries)
			x.groups = 1
			callFixedScoreRows(each, &x)
			i += each
			continue
		}
		each, x.groups = portion(n-i, fixedTogether)
		i += each * x.groups
		callFixedScores(each, &x)
	}
	return true
}

func (a *Attn) fixedSoftmaxAsm(w *AttnSpace, v *Rows, at, q0, n int, factor float32) bool {
	if !hasFixed() {
		return false
	}
	rows, stride := w.whole(v, at)
	x := w.fixedSteps(v, rows, stride)
	x.accStride, x.strips, x.factor = 4*v.Width, v.Width/16, factor
	for i := 0; i < n; {
		numbers, step := w.fixedWeights(i)
		x.x, x.factors, x.sums = ptr(numbers), unsafe.Pointer(step), f32ptr(w.s, i*AttnTile)
		x.max, x.sum, x.acc = f32ptr(a.max, q0+i), f32ptr(a.sum, q0+i), f32ptr(a.acc, (q0+i)*v.Width)
		switch left := n - i; {
		case left >= 4:
			x.groups = left / 4
			i += 4 * x.groups
			attnFixedSoftmax4AVX512(&x)
		case left >= 2:
			x.groups = 1
			attnFixedSoftmax2AVX512(&x)
			i += 2
		default:
			x.groups = 1
			attnFixedSoftmax1AVX512(&x)
			i++
		}
	}
	return true
}

func (a *Attn) fixedValuesAsm(w *AttnSpace, v *Rows, next []byte, at, q0, n int) bool {
	if !hasFixed() {
		return false
	}
	rows, stride := w.whole(v, at)
	x := fixedArgs{rows: ptr(rows), rowStride: stride, scales: ptr(w.scales), vectors: v.Width / 32, // of fixedSoftmaxAsm
		xStride: 2 * AttnTile, sumStride: 4 * v.Width, pairs: AttnTile / 2}
	x.fetch(next, AttnTile*v.Stride)
	if n <= fixedFew {
		for i := 0; i < n; {
			numbers, step := w.fixedWeights(i)
			x.x, x.factors, x.sums = ptr(numbers), unsafe.Pointer(step), f32ptr(a.acc, (q0+i)*v.Width)
			each, _ := portion(n-i, fixedQueries)
			callFixedValueRows(each, &x)
			i += each
		}
		return true
	}
	w.v = growAligned(w.v, AttnTile*v.Width/2)
	x.lines = ptr(w.v)
	attnFixedLinesAVX512(&x)
	for c := 0; c < v.Width; c += 64 {
		x.lines = f32ptr(w.v, AttnTile/2*c)
		for i := 0; i < n; {
			numbers, step := w.fixedWeights(i)
			x.x, x.factors, x.sums = ptr(numbers), unsafe.Pointer(step), f32ptr(a.acc, (q0+i)*v.Width+c)
			var each int
			each, x.groups = portion(n-i, fixedTogether)
			i += each * x.groups
			callFixedValues(each, &x)
		}
	}
	return true
}

// fetch sets what is fetched on the side: up to n bytes.
func (x *fixedArgs) fetch(b []byte, n int) {
	x.ahead = uintptr(ptr(b))
	x.aheadEnd = x.ahead + uintptr(min(n, len(b)))
}
