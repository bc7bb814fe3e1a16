//go:build amd64 && !purego

package kernel

import "unsafe"

// A tile of 64 keys becomes lines of a pair of columns of each, one of 64 values lines of 64 columns of a pair of positions: then
// a line serves every query, whose pair is the same for all lanes. A few queries multiply rows as they are stored. Sums of whole
// numbers do not depend on their order.

// i16Args are what the routines take; distances are in bytes.
type i16Args struct {
	x, rows, lines, steps, factors, sums unsafe.Pointer // whole numbers; rows as they are stored; lines; steps of rows and of x; sums or scores
	max, sum, acc                        unsafe.Pointer
	ahead, aheadEnd                      uintptr // what will be read next; not dereferenced, and moved on
	xStride, rowStride                   int
	sumStride, accStride                 int
	lineStride                           int // between strips of lines
	near                                 int // not 0: a few queries fetch to the nearest cache
	groups, pairs, vectors, strips       int // of rows, of which none are left afterwards; of numbers of a row; of 32 columns; of 16 of acc
	factor, perReach                     float32
}

// i16Few is up to how many queries the routines that do without lines are faster.
const i16Few = 8

// hasI16 reports products of 16-bit numbers where no bfloat16 ones are taken: see archImpls.
func hasI16() bool { return mulSet == setVNNI || shortI16() }

// shortI16 reports those of AVX2.
func shortI16() bool { return useAVX2 && !useAVX512 }

func wholeNumbersAsm(to []int16, step *float32, x []float32, reach float32) bool {
	if !hasI16() {
		return false
	}
	args := i16Args{rows: ptr(x), x: ptr(to), steps: unsafe.Pointer(step), vectors: len(x) / 32, perReach: 1 / reach}
	if shortI16() {
		attnI16NumbersAVX2(&args)
	} else {
		attnI16NumbersAVX512(&args)
	}
	return true
}

// i16Steps reads the steps of 64 rows and begins to fetch up to n bytes of next.
func (w *AttnSpace) i16Steps(r *Rows, at int, next []byte, n int) i16Args {
	rows, stride := w.whole(r, at)
	w.scales = growAligned(w.scales, AttnTile)
	x := i16Args{rows: ptr(rows), rowStride: stride, steps: ptr(w.scales), vectors: r.Width / 32}
	x.fetch(next, n)
	attnI16StepsAVX512(&x)
	return x
}

func (w *AttnSpace) i16ScoresAsm(a *Attn, k, v *Rows, at, from, to, q0, n int) bool {
	if !hasI16() {
		return false
	}
	if shortI16() {
		w.shortScores(a, k, v, at, from, to, q0, n)
		return true
	}
	x := w.i16Steps(k, at, v.Data[at*v.Stride:], (to-1)*v.Stride+v.RowBytes())
	x.xStride, x.pairs = 2*k.Width, k.Width/2
	few := n <= i16Few
	if !few {
		w.k = growAligned(w.k, AttnTile*k.Width/2)
		x.lines = ptr(w.k)
		attnI16KeysAVX512(&x)
	}
	for i := 0; i < n; {
		x.x, x.factors, x.sums = unsafe.Pointer(&int16s(a.q)[(q0+i)*k.Width]), f32ptr(a.factors, q0+i), f32ptr(w.s, i*AttnTile)
		if few {
			each, _ := portion(n-i, i16Queries)
			callI16ScoreRows(each, &x)
			i += each
			continue
		}
		var each int
		each, x.groups = portion(n-i, i16Together)
		i += each * x.groups
		callI16Scores(each, &x)
	}
	return true
}

func (a *Attn) i16SoftmaxAsm(w *AttnSpace, v *Rows, next []byte, at, q0, n int, factor float32) bool {
	if !hasI16() {
		return false
	}
	if shortI16() {
		a.shortSoftmax(w, v, at, q0, n, factor)
		return true
	}
	x := w.i16Steps(v, at, next, AttnTile*v.Stride)
	x.accStride, x.strips, x.factor = 4*v.Width, v.Width/16, factor
	for i := 0; i < n; {
		numbers, step := w.i16Weights(i)
		x.x, x.factors, x.sums = ptr(numbers), unsafe.Pointer(step), f32ptr(w.s, i*AttnTile)
		x.max, x.sum, x.acc = f32ptr(a.max, q0+i), f32ptr(a.sum, q0+i), f32ptr(a.acc, (q0+i)*v.Width)
		switch left := n - i; {
		case left >= 4:
			x.groups = left / 4
			i += 4 * x.groups
			attnI16Softmax4AVX512(&x)
		case left >= 2:
			x.groups = 1
			attnI16Softmax2AVX512(&x)
			i += 2
		default:
			x.groups = 1
			attnI16Softmax1AVX512(&x)
			i++
		}
	}
	return true
}

func (a *Attn) i16ValuesAsm(w *AttnSpace, v *Rows, next []byte, at, q0, n int) bool {
	if !hasI16() {
		return false
	}
	if shortI16() {
		a.shortValues(w, v, next, at, q0, n)
		return true
	}
	rows, stride := w.whole(v, at)
	x := i16Args{rows: ptr(rows), rowStride: stride, vectors: v.Width / 32, xStride: 2 * AttnTile, sumStride: 4 * v.Width, pairs: AttnTile / 2}
	x.fetch(next, AttnTile*v.Stride)
	if n <= i16Few {
		for i := 0; i < n; {
			numbers, step := w.i16Weights(i)
			x.x, x.factors, x.sums = ptr(numbers), unsafe.Pointer(step), f32ptr(a.acc, (q0+i)*v.Width)
			each, _ := portion(n-i, i16Queries)
			callI16ValueRows(each, &x)
			i += each
		}
		return true
	}
	w.v = growAligned(w.v, AttnTile*v.Width/2)
	x.lines = ptr(w.v)
	attnI16LinesAVX512(&x)
	for c := 0; c < v.Width; c += 64 {
		x.lines = f32ptr(w.v, AttnTile/2*c)
		for i := 0; i < n; {
			numbers, step := w.i16Weights(i)
			x.x, x.factors, x.sums = ptr(numbers), unsafe.Pointer(step), f32ptr(a.acc, (q0+i)*v.Width+c)
			var each int
			each, x.groups = portion(n-i, i16Together)
			i += each * x.groups
			callI16Values(each, &x)
		}
	}
	return true
}

// fetch sets what is fetched on the side: up to n bytes.
func (x *i16Args) fetch(b []byte, n int) {
	x.ahead = uintptr(ptr(b))
	x.aheadEnd = x.ahead + uintptr(min(n, len(b)))
}
