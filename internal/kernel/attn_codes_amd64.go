//go:build amd64 && !purego

package kernel

import "unsafe"

// A tile of 64 keys becomes lines of a quad of columns of each, one of 64 values lines of 64 columns of a quad of positions: then
// four products at a time add up to what one lane needs, and a line serves every query. Sums of whole numbers do not depend on
// their order, so that the same bits could be had otherwise.

// codeArgs are what the routines take; distances are in bytes.
type codeArgs struct {
	x, rows, lines, scales, factors, sums unsafe.Pointer // parts; rows as they are stored; lines; see codeScales, query and weights; sums or scores
	max, sum, acc                         unsafe.Pointer
	ahead, aheadEnd                       uintptr // what will be read next; not dereferenced, and moved on
	xStride, low                          int     // between rows of parts, and from their high parts to the low ones
	rowStride, sumStride, accStride       int
	factorStride                          int
	groups, spans, strips                 int // of rows, of which none are left afterwards; of codes under one scale; of 16 columns of acc
	factor                                float32
}

func hasCodes() bool { return mulSet >= setVNNI }

func codeQueryAsm(parts []int8, factors, q []float32) bool {
	if !hasCodes() {
		return false
	}
	attnCodeQueryAVX512(&codeArgs{rows: ptr(q), x: ptr(parts), factors: ptr(factors), spans: len(factors) - 1})
	return true
}

// whole gives the 64 rows of the tile whose first is at: those that are not there are zeros.
func (w *AttnSpace) whole(r *Rows, at int) (rows []byte, stride int) {
	rows, size := r.Data[at*r.Stride:], r.RowBytes()
	if len(rows) >= (AttnTile-1)*r.Stride+size {
		return rows, r.Stride
	}
	if len(w.some) < AttnTile*size {
		w.some = make([]byte, AttnTile*size)
	}
	clear(w.some)
	for i := 0; i*r.Stride+size <= len(rows); i++ {
		copy(w.some[i*size:], rows[i*r.Stride:][:size])
	}
	return w.some, size
}

// codeScales reads the scales, then the biases of 64 rows, group by group.
func (w *AttnSpace) codeScales(r *Rows, rows []byte, stride int) {
	spans := r.Width / codeGroup
	w.scales = growAligned(w.scales, spans*2*AttnTile)
	attnCodeScalesAVX512(&codeArgs{rows: unsafe.Pointer(&rows[r.codeBytes()]), rowStride: stride, scales: ptr(w.scales), spans: spans})
}

func (w *AttnSpace) codeScoresAsm(a *Attn, k, v *Rows, at, _, to, q0, n int) bool {
	if !hasCodes() {
		return false
	}
	rows, stride := w.whole(k, at)
	w.k = growAligned(w.k, AttnTile*k.Width/4)
	w.codeScales(k, rows, stride)
	x := codeArgs{rows: ptr(rows), rowStride: stride, lines: ptr(w.k), scales: ptr(w.scales), spans: k.Width / codeGroup,
		xStride: 2 * k.Width, low: k.Width, factorStride: 4 * (1 + k.Width/codeGroup)}
	x.fetch(v.Data[at*v.Stride:], (to-1)*v.Stride+v.RowBytes())
	if n <= codeQueries {
		parts, factors := a.query(q0)
		x.x, x.factors, x.sums = ptr(parts), ptr(factors), ptr(w.s)
		callCodeScoreRows(n, &x)
		return true
	}
	attnCodeKeysAVX512(&x)
	for i := 0; i < n; {
		each, groups := portion(n-i, codesTogether)
		parts, factors := a.query(q0 + i)
		x.x, x.factors, x.sums, x.groups = ptr(parts), ptr(factors), f32ptr(w.s, i*AttnTile), groups
		callCodeScores(each, &x)
		i += each * groups
	}
	return true
}

func (a *Attn) codeSoftmaxAsm(w *AttnSpace, v *Rows, at, q0, n int, factor float32) bool {
	if !hasCodes() {
		return false
	}
	rows, stride := w.whole(v, at)
	w.codeScales(v, rows, stride)
	spans := v.Width / codeGroup
	x := codeArgs{accStride: 4 * v.Width, strips: v.Width / 16, factor: factor, scales: ptr(w.scales), spans: spans}
	for i := 0; i < n; {
		parts, factors := w.weights(i, 0, spans)
		x.x, x.factors, x.sums = ptr(parts), ptr(factors), f32ptr(w.s, i*AttnTile)
		x.max, x.sum, x.acc = f32ptr(a.max, q0+i), f32ptr(a.sum, q0+i), f32ptr(a.acc, (q0+i)*v.Width)
		switch left := n - i; {
		case left >= 4:
			x.groups = left / 4
			attnCodeSoftmax4AVX512(&x)
			i += 4 * x.groups
		case left >= 2:
			x.groups = 1
			attnCodeSoftmax2AVX512(&x)
			i += 2
		default:
			x.groups = 1
			attnCodeSoftmax1AVX512(&x)
			i++
		}
	}
	return true
}

func (a *Attn) codeValuesAsm(w *AttnSpace, v *Rows, next []byte, at, q0, n int) bool {
	if !hasCodes() {
		return false
	}
	rows, stride := w.whole(v, at)
	w.v = growAligned(w.v, AttnTile*v.Width/4)
	spans := v.Width / codeGroup
	x := codeArgs{rows: ptr(rows), rowStride: stride, lines: ptr(w.v), spans: spans, xStride: 2 * AttnTile * spans, low: AttnTile,
		sumStride: 4 * v.Width, factorStride: 8 * spans}
	x.fetch(next, AttnTile*v.Stride)
	if n <= codeQueries {
		parts, factors := w.weights(0, 0, spans)
		x.x, x.factors, x.sums = ptr(parts), ptr(factors), f32ptr(a.acc, q0*v.Width)
		callCodeValueRows(n, &x)
		return true
	}
	attnCodeLinesAVX512(&x)
	for g := range spans {
		x.lines = f32ptr(w.v, g*AttnTile*codeGroup/4)
		for i := 0; i < n; {
			each, groups := portion(n-i, codesTogether)
			parts, factors := w.weights(i, g, spans)
			x.x, x.factors, x.sums, x.groups = ptr(parts), ptr(factors), f32ptr(a.acc, (q0+i)*v.Width+g*codeGroup), groups
			callCodeValues(each, &x)
			i += each * groups
		}
	}
	return true
}

// fetch sets what is fetched on the side: up to n bytes.
func (x *codeArgs) fetch(b []byte, n int) {
	x.ahead = uintptr(ptr(b))
	x.aheadEnd = x.ahead + uintptr(min(n, len(b)))
}
