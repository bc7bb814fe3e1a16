//go:build amd64 && !purego

package kernel

import "unsafe"

// Two ways lead to the same sums. A block of rows widens 64 keys and values to float32 once and takes them in register tiles
// of 3 queries by 4 keys and 6 queries by 16 columns; in AVX-512 6 by 4 and 12 by 32. The few queries of a step that decodes
// read rows as they are stored, 4 keys by up to 3 or 4 queries at a time. With AVX2 they fetch values while they score and the
// next keys while they add, with AVX-512 what they will read seven kilobytes later.
// What was tried, with figures, is in docs/benchmarks.md under "Attention".

// attnArgs are what the tile routines take; distances are in bytes.
type attnArgs struct {
	q, k, v, s, acc, max, sum unsafe.Pointer // queries, tiles or rows, scores or weights [.][AttnTile]
	last                      unsafe.Pointer // row of keys that is there
	pairs                     unsafe.Pointer // room for scales and biases of four keys, a vector each, on a cache line
	ahead, aheadEnd           uintptr        // what will be read next; not dereferenced, and moved on by the tile routines
	jump                      uintptr        // from where this call's rows end, aheadEnd, to where the next one's begin
	qStride, accStride        int            // between queries
	kStride, vStride          int            // between rows; between strips of a tile of values
	groups                    int            // of queries
	keys                      int            // groups of four
	steps, strips             int            // of 16 columns of queries and acc, in rows of values 32; of codes under one scale
	scales, tail              int            // of codes: groups of a row, and where in it their scales begin
	positions                 int
	scale, cap                float32
}

// widenArgs are rows of one type and where to put them: see tileSteps, here in bytes.
type widenArgs struct {
	src, dst              unsafe.Pointer
	stride, rows          int
	row, group, odd, pair int
	pairs                 int // of vectors: in a row, of codes under one scale
	scales, tail          int // of codes: groups of a row, and where in it their scales begin
}

func f32ptr(s []float32, at int) unsafe.Pointer { return unsafe.Pointer(&s[at]) }

// A tile of keys is [AttnTile/4][pad16(KDim)/8][4][8] float32 numbers: four keys next to each other, by eights; for
// AVX-512 [AttnTile/4][pad16(KDim)/16][4][16], by sixteens. A tile of values is [pad16(VDim)/16] strips of valueStrip, each
// [AttnTile][16], and a line between strips, which would otherwise all fall on the same sets of the nearest cache.
const valueStrip = (AttnTile + 1) * 16

// tileSteps are distances between vectors of eight numbers, in numbers: to the next row, its group of four, the second
// vector of a pair and the next pair of vectors.
type tileSteps struct{ row, group, odd, pair int }

func keySteps(pad int) tileSteps {
	if useAVX512 {
		return tileSteps{16, 4 * pad, 8, 64}
	}
	return tileSteps{8, 4 * pad, 32, 64}
}

var valueSteps = tileSteps{16, 64, 8, valueStrip}

// widen reads the rows [lo, hi) of the tile whose first row is at, lo a multiple of four. Columns up to the next multiple of
// 16 become zeros.
func (w *AttnSpace) widen(dst []float32, r *Rows, at, lo, hi int, t tileSteps) {
	dst = dst[lo/4*t.group:]
	if r.span()%16 == 0 {
		callWiden(r.Type, &widenArgs{tail: r.tail(), src: unsafe.Pointer(&r.Data[(at+lo)*r.Stride]), dst: ptr(dst), stride: r.Stride,
			rows: hi - lo, row: 4 * t.row, group: 4 * t.group, odd: 4 * t.odd, pair: 4 * t.pair, pairs: r.span() / 16, scales: r.Width / r.span()})
		return
	}
	row := w.row[:pad16(r.Width)]
	clear(row[r.Width:])
	for i := range hi - lo {
		r.Get(row[:r.Width], at+lo+i)
		to := dst[i/4*t.group+i%4*t.row:]
		for d := 0; d < len(row); d += 16 {
			copy(to[d/16*t.pair:][:8], row[d:])
			copy(to[d/16*t.pair+t.odd:][:8], row[d+8:])
		}
	}
}

// scoreAsm is score: over a widened tile or, for few queries, over rows as they are stored. Groups of four keys are whole;
// whoever asks for less masks the rest.
func (w *AttnSpace) scoreAsm(q []float32, k, v *Rows, at, from, to, n int) bool {
	if !useAVX2 {
		return false
	}
	pad, g0, g1 := pad16(k.Width), from/4, (to+3)/4
	if k.few(n) && k.span()%16 == 0 {
		w.scoreRows(q, k, v, at, to, n, g0, g1)
		return true
	}
	w.k = growAligned(w.k, AttnTile*pad)
	w.widen(w.k, k, at, 4*g0, to, keySteps(pad))
	x := attnArgs{qStride: 4 * pad, steps: pad / 16}
	x.fetch(v.Data[(at+4*g0)*v.Stride:], (to-4*g0)*v.Stride)
	step := max(keyBlock/(4*pad), 1)
	for g := g0; g < g1; g += step {
		x.k, x.keys = f32ptr(w.k, g*4*pad), min(step, g1-g)
		for i := 0; i < n; {
			rows, groups := portion(n-i, limits().scores)
			x.q, x.s, x.groups = f32ptr(q, i*pad), f32ptr(w.s, i*AttnTile+4*g), groups
			callScores(rows, &x)
			i += rows * groups
		}
	}
	return true
}

func softcapAsm(s []float32, scale, to float32) bool {
	if !useAVX2 {
		return false
	}
	x := attnArgs{s: ptr(s), groups: len(s) / AttnTile, scale: scale, cap: to}
	if useAVX512 {
		attnSoftcapAVX512(&x)
	} else {
		attnSoftcapAVX2(&x)
	}
	return true
}

func softmaxAsm(s, most, sum, acc []float32, pad int, scale float32) bool {
	if !useAVX2 {
		return false
	}
	x := attnArgs{s: ptr(s), max: ptr(most), sum: ptr(sum), acc: ptr(acc), groups: len(most),
		accStride: 4 * pad, strips: pad / 16, scale: scale}
	if useAVX512 {
		attnSoftmaxAVX512(&x)
	} else {
		attnSoftmaxAVX2(&x)
	}
	return true
}

// valueAsm is value: over rows as they are stored, for few queries, or over a widened tile. Rows that see different positions
// take those together that a few neighbours share, and the rest one by one. A weight of 0 would not do, since a value
// that is not seen may be anything.
func (a *Attn) valueAsm(w *AttnSpace, v *Rows, next []byte, at, from, to, t, r0, r1 int) bool {
	if !useAVX2 {
		return false
	}
	pad, q0, n := pad16(v.Width), r0*a.Heads, (r1-r0)*a.Heads
	bounds := func(q int) (lo, hi int) { return max(from, a.lo[q/a.Heads]-t), min(to, a.hi[q/a.Heads]-t) }
	whole := false // every row sees all of [from, to)
	if lo, _ := bounds(q0 + n - 1); lo == from {
		_, hi := bounds(q0)
		whole = hi == to
	}
	if v.few(n) && whole && v.span()%32 == 0 {
		valueRows(a.acc[q0*pad:], w.s, v, next, at, n, from, to)
		return true
	}
	w.v = growAligned(w.v, pad/16*valueStrip)
	w.widen(w.v, v, at, from&^3, to, valueSteps)
	x := attnArgs{accStride: 4 * pad, vStride: 4 * valueStrip, strips: pad / 16}
	x.fetch(next, AttnTile*v.Stride)
	add := func(q, n, lo, hi int) {
		if lo < hi {
			x.values(a.acc[q*pad:], w.s[(q-q0)*AttnTile:], w.v, n, pad, lo, hi)
		}
	}
	if whole {
		add(q0, n, from, to)
		return true
	}
	most := limits().values
	for q := q0; q < q0+n; q += most {
		end := min(q+most, q0+n)
		lo, _ := bounds(end - 1)
		_, hi := bounds(q)
		hi = max(lo, hi)
		for q := q; q < end; q++ {
			first, last := bounds(q)
			add(q, 1, first, min(lo, last))
		}
		add(q, end-q, lo, hi)
		for q := q; q < end; q++ {
			_, last := bounds(q)
			add(q, 1, hi, last)
		}
	}
	return true
}

// values adds Σ p[i][j]·v[j] over the positions [lo, hi) of a tile to n rows of acc.
func (x *attnArgs) values(acc, p, v []float32, n, pad, lo, hi int) {
	x.v, x.positions = f32ptr(v, lo*16), hi-lo
	for i := 0; i < n; {
		rows, groups := portion(n-i, limits().values)
		x.acc, x.s, x.groups = f32ptr(acc, i*pad), f32ptr(p, i*AttnTile+lo), groups
		callValues(rows, x)
		i += rows * groups
	}
}

// fetch sets what the tile routines fetch on the side: up to n bytes.
func (x *attnArgs) fetch(b []byte, n int) {
	x.ahead = uintptr(ptr(b))
	x.aheadEnd = x.ahead + uintptr(min(n, len(b)))
}

// attnLimits are the most queries that the routines of an instruction set take together.
type attnLimits struct {
	scores, values       int              // of a widened tile
	rowScores, rowValues [CacheQ4 + 1]int // of rows as they are stored
}

func limits() *attnLimits {
	if useAVX512 {
		return &attnAVX512
	}
	return &attnAVX2
}

func callScores(rows int, x *attnArgs) {
	if useAVX512 {
		callScoresAVX512(rows, x)
		return
	}
	callScoresAVX2(rows, x)
}

func callValues(rows int, x *attnArgs) {
	if useAVX512 {
		callValuesAVX512(rows, x)
		return
	}
	callValuesAVX2(rows, x)
}

func callWiden(t CacheType, x *widenArgs) {
	if useAVX512 {
		callWidenAVX512(t, x)
		return
	}
	callWidenAVX2(t, x)
}

func callScoreRows(t CacheType, rows int, x *attnArgs) {
	if useAVX512 {
		callScoreRowsAVX512(t, rows, x)
		return
	}
	callScoreRowsAVX2(t, rows, x)
}

func callValueRows(t CacheType, rows int, x *attnArgs) {
	if useAVX512 {
		callValueRowsAVX512(t, rows, x)
		return
	}
	callValueRowsAVX2(t, rows, x)
}

// few reports so few queries that the routines that do without a tile are faster.
func (r *Rows) few(queries int) bool {
	switch quantised := r.Type.Quantised(); {
	case useAVX512 && quantised:
		return queries <= 8
	case useAVX512:
		return queries <= 24
	case quantised:
		return queries <= 2
	}
	return queries <= 4
}

// scoreRows is scoreTile on rows as they are stored: row at of k is the first of the tile, and those before end are there.
func (w *AttnSpace) scoreRows(q []float32, k, v *Rows, at, end, n, g0, g1 int) {
	x := attnArgs{qStride: 4 * k.Width, pairs: ptr(w.row), k: unsafe.Pointer(&k.Data[(at+4*g0)*k.Stride]), last: unsafe.Pointer(&k.Data[(at+end-1)*k.Stride]),
		v: unsafe.Pointer(&v.Data[(at+4*g0)*v.Stride]), kStride: k.Stride, steps: k.span() / 16, scales: k.Width / k.span(), tail: k.tail()}
	x.then(uintptr(x.last)+uintptr(k.Stride), x.v)
	for i := 0; i < n; i += x.groups {
		x.groups, _ = portion(n-i, limits().rowScores[k.Type])
		x.q, x.s, x.keys = f32ptr(q, i*k.Width), f32ptr(w.s, i*AttnTile+4*g0), g1-g0
		callScoreRows(k.Type, x.groups, &x)
	}
}

// then sets what they go on with where their rows end.
func (x *attnArgs) then(end uintptr, next unsafe.Pointer) {
	x.aheadEnd = end
	if next != nil {
		x.jump = uintptr(next) - end
	}
}

// valueRows is valueTile on rows as they are stored.
func valueRows(acc, p []float32, v *Rows, next []byte, at, n, lo, hi int) {
	x := attnArgs{accStride: 4 * v.Width, v: unsafe.Pointer(&v.Data[(at+lo)*v.Stride]), vStride: v.Stride, strips: v.span() / 32,
		k: ptr(next), scales: v.Width / v.span(), tail: v.tail(), positions: hi - lo}
	x.then(uintptr(x.v)+uintptr(v.Stride*(hi-lo)), x.k)
	for i := 0; i < n; i += x.groups {
		x.groups, _ = portion(n-i, limits().rowValues[v.Type])
		x.acc, x.s = f32ptr(acc, i*v.Width), f32ptr(p, i*AttnTile+lo)
		callValueRows(v.Type, x.groups, &x)
	}
}
