//go:build amd64 && !purego

package kernel

import "unsafe"

// A tile of 64 keys becomes lines of a pair of columns of each, one of 64 values lines of 64 columns of a pair of positions: then
// a line serves every query, whose pair is the same for all lanes, and no sums have to be folded.

// halfArgs are what the routines take; distances are in bytes.
type halfArgs struct {
	x, rows, lines, sums  unsafe.Pointer // rows of pairs; rows as they are stored; lines of pairs; sums or scores
	max, sum, acc         unsafe.Pointer
	ahead, aheadEnd       uintptr // what will be read next; not dereferenced, and moved on by the products
	jump                  uintptr // from where this call's rows end, aheadEnd, to where the next one's begin
	xStride, rowStride    int
	sumStride, accStride  int
	groups, pairs, strips int // of rows, or blocks of 16 keys; of lines; of columns of acc: 16, of rows as they are stored 32
	more                  int // 0: sums begin at 0
	wild                  int // not 0: a value is infinite or a NaN
	factor                float32
}

// halfStrip is how many columns a line of values has, the last strip's perhaps half of them.
const halfStrip = 64

// halfFew is up to how many queries the routines that do without lines are faster.
const halfFew = 8

func (w *AttnSpace) halfScoresAsm(q []uint16, k, v *Rows, at, from, to, n int) bool {
	if !hasHalf() {
		return false
	}
	if n <= halfFew && (at+(to+15)/16*16-1)*k.Stride+k.RowBytes() <= len(k.Data) {
		w.halfScoreRows(q, k, v, at, from/16, (to+15)/16, n)
		return true
	}
	w.turn(k, at, from/16, (to+15)/16)
	x := halfArgs{lines: ptr(w.k), xStride: 2 * k.Width, sumStride: 4 * AttnTile, pairs: k.Width / 2}
	x.fetch(v.Data[(at+from)*v.Stride:], (to-from)*v.Stride)
	x.products(q, w.s, n, AttnTile)
	return true
}

// halfScoreRows takes a few queries over blocks of 16 keys as they are stored.
func (w *AttnSpace) halfScoreRows(q []uint16, k, v *Rows, at, from, to, n int) {
	x := halfArgs{rows: unsafe.Pointer(&k.Data[(at+16*from)*k.Stride]), xStride: 2 * k.Width, rowStride: k.Stride, pairs: k.Width / 2}
	x.then(uintptr(x.rows)+uintptr(16*(to-from)*k.Stride), v.Data[(at+16*from)*v.Stride:])
	for i := 0; i < n; {
		some, _ := portion(n-i, halfQueries)
		x.x, x.sums, x.groups = unsafe.Pointer(&q[i*k.Width]), f32ptr(w.s, i*AttnTile+16*from), to-from
		callHalfScoreRows(some, &x)
		i += some
	}
}

// turn makes the lines of some blocks of 16 keys: of a word of each, which is a pair of bfloat16 numbers or a float32 one.
func (w *AttnSpace) turn(k *Rows, at, from, to int) {
	words := k.RowBytes() / 4
	wide := pad16(words) // they are read sixteen at a time
	w.k = growAligned(w.k, AttnTile*wide)
	x := halfArgs{pairs: words}
	block := func(rows []byte, stride, from, n int) {
		x.rows, x.lines, x.rowStride, x.groups = unsafe.Pointer(&rows[0]), f32ptr(w.k, 16*from), stride, n
		attnTurnAVX512(&x)
	}
	if last := k.Data[(at+16*to-16)*k.Stride:]; len(last) < 15*k.Stride+4*wide { // it ends in the block
		to--
		w.row = growAligned(w.row, 16*wide)
		rows := FloatRows(w.row, wide, 0).Data
		for i := range 16 {
			if i*k.Stride+k.RowBytes() <= len(last) {
				copy(rows[i*4*wide:], last[i*k.Stride:][:k.RowBytes()])
			}
		}
		block(rows, 4*wide, to, 1)
	}
	if from < to {
		block(k.Data[(at+16*from)*k.Stride:], k.Stride, from, to-from)
	}
}

func halfSoftmaxAsm(s, most, sum, acc []float32, pad int, factor float32) bool {
	if !hasHalf() {
		return false
	}
	x := halfArgs{accStride: 4 * pad, strips: pad / 16, factor: factor}
	for i, n := 0, len(most); i < n; {
		x.sums, x.max, x.sum, x.acc = f32ptr(s, i*AttnTile), f32ptr(most, i), f32ptr(sum, i), f32ptr(acc, i*pad)
		switch left := n - i; {
		case left >= 4:
			x.groups = left / 4
			attnHalfSoftmax4AVX512(&x)
			i += 4 * x.groups
		case left >= 2:
			x.groups = 1
			attnHalfSoftmax2AVX512(&x)
			i += 2
		default:
			x.groups = 1
			attnHalfSoftmax1AVX512(&x)
			i++
		}
	}
	return true
}

func (a *Attn) halfValuesAsm(w *AttnSpace, v *Rows, next []byte, at, from, to, t, r0, r1 int) bool {
	if !hasHalf() {
		return false
	}
	n := (r1 - r0) * a.Heads
	acc, p := a.acc[r0*a.Heads*v.Width:][:n*v.Width], bf16s(w.s)
	whole := a.lo[r1-1]-t <= from && a.hi[r0]-t >= to // every row sees all of [from, to)
	if whole && n <= halfFew {
		w.halfValueRows(acc, p, v, next, at, from, to, n)
		return true
	}
	if wild := w.halfLines(v, at, from, to); whole || !wild {
		var x halfArgs
		x.fetch(next, AttnTile*v.Stride)
		x.values(acc, p, w.v, n, v.Width, from, to)
		return true
	}
	for r := r0; r < r1; r++ { // 0 times what is not seen would be something
		from, to := max(from, a.lo[r]-t), min(to, a.hi[r]-t)
		w.halfLines(v, at, from, to)
		var x halfArgs
		i := (r - r0) * a.Heads
		x.values(acc[i*v.Width:], p[2*i*AttnTile:], w.v, a.Heads, v.Width, from, to)
	}
	return true
}

// inPairs gives the values [from, to) by pairs of positions: n of them, the first of which is the j-th of the tile. Where one of
// a pair is not wanted, it is a row of zeros.
func (w *AttnSpace) inPairs(v *Rows, at, from, to int, do func(rows []byte, stride, j, n int)) {
	lone := func(i int) {
		two := FloatRows(w.row[:v.Width], v.Width, 0).Data
		clear(two)
		copy(two[i%2*v.RowBytes():], v.Data[(at+i)*v.Stride:][:v.RowBytes()])
		do(two, v.RowBytes(), i/2, 1)
	}
	if from%2 == 1 {
		lone(from)
		from++
	}
	if n := (to - from) / 2; n > 0 {
		do(v.Data[(at+from)*v.Stride:], v.Stride, from/2, n)
	}
	if to%2 == 1 && to > from {
		lone(to - 1)
	}
}

// halfLines makes the lines of the values [from, to) and tells whether one of them is infinite or a NaN.
func (w *AttnSpace) halfLines(v *Rows, at, from, to int) (wild bool) {
	w.v = growAligned(w.v, AttnTile/2*v.Width)
	var x halfArgs
	w.inPairs(v, at, from, to, func(rows []byte, stride, j, n int) {
		x.rowStride, x.pairs = stride, n
		for c := 0; c < v.Width; c += halfStrip {
			columns := min(halfStrip, v.Width-c)
			x.rows, x.lines = unsafe.Pointer(&rows[2*c]), f32ptr(w.v, AttnTile/2*c+columns*j)
			if columns == halfStrip {
				attnHalfValues4AVX512(&x)
			} else {
				attnHalfValues2AVX512(&x)
			}
		}
	})
	return x.wild != 0
}

// halfValueRows adds the values [from, to), weighted, to the sums of a few queries that see them all.
func (w *AttnSpace) halfValueRows(acc []float32, p []uint16, v *Rows, next []byte, at, from, to, n int) {
	x := halfArgs{sumStride: 4 * v.Width, strips: v.Width / 32}
	w.inPairs(v, at, from, to, func(rows []byte, stride, j, pairs int) {
		x.rows, x.rowStride, x.pairs = unsafe.Pointer(&rows[0]), stride, pairs
		x.then(uintptr(x.rows)+uintptr(2*pairs*stride), next)
		for i := 0; i < n; {
			some, _ := portion(n-i, halfQueries)
			x.x, x.sums = unsafe.Pointer(&p[2*(i*AttnTile+j)]), f32ptr(acc, i*v.Width)
			callHalfValueRows(some, &x)
			i += some
		}
	})
}

// values adds to n sums those of the positions [from, to), weighted.
func (x *halfArgs) values(acc []float32, p []uint16, lines []float32, n, width, from, to int) {
	from, to = from/2, (to+1)/2
	x.xStride, x.sumStride, x.pairs, x.more = 4*AttnTile, 4*width, to-from, 1
	for c := 0; c < width; c += halfStrip {
		columns := min(halfStrip, width-c)
		x.lines = f32ptr(lines, AttnTile/2*c+columns*from)
		x.products(p[2*from:], acc[c:], n, columns)
	}
}

// products goes through n rows of x, xStride apart, and their sums.
func (x *halfArgs) products(rows []uint16, sums []float32, n, columns int) {
	for i := 0; i < n; {
		var each int
		each, x.groups = portion(n-i, halfTogether)
		x.x, x.sums = unsafe.Pointer(&rows[i*x.xStride/2]), f32ptr(sums, i*x.sumStride/4)
		if columns == halfStrip {
			callHalfProducts4(each, x)
		} else {
			callHalfProducts2(each, x)
		}
		i += each * x.groups
	}
}

// fetch sets what the products fetch on the side: up to n bytes.
func (x *halfArgs) fetch(b []byte, n int) {
	x.ahead = uintptr(ptr(b))
	x.aheadEnd = x.ahead + uintptr(min(n, len(b)))
}

// then sets what the routines on stored rows go on with where these end.
func (x *halfArgs) then(end uintptr, next []byte) {
	x.aheadEnd, x.jump = end, 0
	if len(next) > 0 {
		x.jump = uintptr(ptr(next)) - end
	}
}
