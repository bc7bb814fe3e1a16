//go:build amd64 && !purego

package kernel

// With AVX2, and with AVX-VNNI that multiplies and adds at once, a tile of 64 keys becomes four strips of 16 keys, each lines of
// a pair of columns; one of 64 values strips of 16 columns, each lines of a pair of positions.

const (
	// shortLine is the bytes of one: 16 pairs.
	shortLine = 64
	// valueLines is what a strip of values takes: a line more than there are, so that strips do not all fall on the same sets of
	// the nearest cache.
	valueLines = (AttnTile/2 + 1) * shortLine
	// shortFew is up to how many queries the routines that do without lines are faster.
	shortFew = 12
)

// fetchNear is whether a few queries fetch what they read next to the nearest cache: on AMD's processors the second one is a
// third slower, on Intel's a tenth faster.
var fetchNear = func() int {
	const intel = 6
	if family() > intel {
		return 1
	}
	return 0
}()

func (w *AttnSpace) shortSteps(r *Rows, at int) i16Args {
	rows, stride := w.whole(r, at)
	w.scales = growAligned(w.scales, AttnTile)
	x := i16Args{rows: ptr(rows), rowStride: stride, steps: ptr(w.scales), vectors: r.Width / 32, near: fetchNear}
	attnI16StepsAVX2(&x)
	return x
}

func (w *AttnSpace) shortScores(a *Attn, k, v *Rows, at, from, to, q0, n int) {
	x := w.shortSteps(k, at)
	x.fetch(v.Data[at*v.Stride:], (to-1)*v.Stride+v.RowBytes())
	x.xStride, x.pairs = 2*k.Width, k.Width/2
	if n <= shortFew {
		for i := 0; i < n; {
			x.x, x.factors, x.sums = ptr(int16s(a.q)[(q0+i)*k.Width:]), f32ptr(a.factors, q0+i), f32ptr(w.s, i*AttnTile)
			each, _ := portion(n-i, shortQueries)
			callShortScoreRows(each, &x)
			i += each
		}
		return
	}
	w.k = growAligned(w.k, AttnTile*k.Width/2)
	x.lineStride, x.lines = k.Width/2*shortLine, ptr(w.k)
	attnI16KeysAVX2(&x)
	from, to = from/16, (to+15)/16
	for i := 0; i < n; {
		var each int
		each, x.groups = portion(n-i, shortTogether)
		x.x, x.factors, x.sums = ptr(int16s(a.q)[(q0+i)*k.Width:]), f32ptr(a.factors, q0+i), f32ptr(w.s, i*AttnTile+16*from)
		x.lines, x.steps, x.strips = f32ptr(w.k, from*x.lineStride/4), f32ptr(w.scales, 16*from), to-from
		if mulSet == setAVXVNNI {
			callVNNIScores(each, &x)
		} else {
			callShortScores(each, &x)
		}
		i += each * x.groups
	}
}

func (a *Attn) shortSoftmax(w *AttnSpace, v *Rows, at, q0, n int, factor float32) {
	x := w.shortSteps(v, at)
	x.sums, x.x, x.factors, x.groups = ptr(w.s), ptr(w.p), ptr(w.f), n
	x.max, x.sum, x.acc = f32ptr(a.max, q0), f32ptr(a.sum, q0), f32ptr(a.acc, q0*v.Width)
	x.accStride, x.strips, x.factor = 4*v.Width, v.Width/16, factor
	attnI16SoftmaxAVX2(&x)
}

func (a *Attn) shortValues(w *AttnSpace, v *Rows, next []byte, at, q0, n int) {
	rows, stride := w.whole(v, at)
	x := i16Args{rows: ptr(rows), rowStride: stride, vectors: v.Width / 32, xStride: 2 * AttnTile, sumStride: 4 * v.Width, pairs: AttnTile / 2, near: fetchNear}
	x.fetch(next, AttnTile*v.Stride)
	if n <= shortFew {
		for i := 0; i < n; {
			x.x, x.factors, x.sums = f32ptr(w.p, i*AttnTile/2), f32ptr(w.f, i), f32ptr(a.acc, (q0+i)*v.Width)
			each, _ := portion(n-i, shortQueries)
			callShortValueRows(each, &x)
			i += each
		}
		return
	}
	w.v = growAligned(w.v, valueLines/4*v.Width/16)
	x.lineStride, x.lines = valueLines, ptr(w.v)
	attnI16LinesAVX2(&x)
	for i := 0; i < n; {
		var each int
		each, x.groups = portion(n-i, shortTogether)
		x.x, x.factors, x.sums = f32ptr(w.p, i*AttnTile/2), f32ptr(w.f, i), f32ptr(a.acc, (q0+i)*v.Width)
		x.lines, x.strips = ptr(w.v), v.Width/16
		if mulSet == setAVXVNNI {
			callVNNIValues(each, &x)
		} else {
			callShortValues(each, &x)
		}
		i += each * x.groups
	}
}
