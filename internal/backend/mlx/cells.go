package mlx

import B "hearth/internal/backend"

// form is how the keys, or the values, of one state are kept: as they are, or as codes with a scale and a bias in bfloat16 for
// every group of a head's numbers. MLX's own products and dequantisation read them, which want groups of 32, 64 or 128: others
// have zeros behind their numbers.
type form struct {
	heads, width int
	t            dtype // of plain numbers
	bits         int   // 0: plain
	group, codes int   // numbers of a group, and with the zeros behind them
	columns      []column
}

// column is one of the arrays that a form takes: [1, heads, positions, n].
type column struct {
	n int
	t dtype
}

// cells are those arrays: numbers alone, or codes, scales and biases.
type cells [3]handle

func newForm(p B.KVPolicy, heads, width, group int) form {
	f := form{heads: heads, width: width, t: f32, bits: p.Bits, group: group}
	switch p.DType {
	case B.BF16:
		f.t = bf16
	case B.F16:
		f.t = f16
	}
	if p.Bits == 0 {
		f.columns = []column{{width, f.t}}
		return f
	}
	for f.codes = 32; f.codes < group; {
		f.codes *= 2
	}
	groups := width / group
	f.columns = []column{{groups * f.codes * p.Bits / 32, u32}, {groups, bf16}, {groups, bf16}}
	return f
}

// size of a number in bytes.
func (t dtype) size() int {
	switch t {
	case f16, bf16:
		return 2
	}
	return 4
}

// bytes of one position.
func (f *form) bytes() (n int) {
	for _, c := range f.columns {
		n += f.heads * c.n * c.t.size()
	}
	return n
}

// each makes cells array by array.
func (f *form) each(do func(i int, c column) handle) (y cells) {
	for i, c := range f.columns {
		y[i] = do(i, c)
	}
	return y
}

func (l *lib) freeCells(c *cells) {
	for _, h := range c {
		l.free(h)
	}
	*c = cells{}
}

// extended puts n more positions behind those of c.
func (l *lib) extended(f *form, c cells, n int) cells {
	return f.each(func(i int, k column) handle { return l.extend(c[i], l.zeros(k.t, 1, f.heads, n, k.n)) })
}

// window is positions [from, to) of the n that c has.
func (l *lib) window(f *form, c cells, from, to, n int) cells {
	return f.each(func(i int, k column) handle { return l.part(c[i], 2, from, to, 1, f.heads, n, k.n) })
}

// kept copies cells, one after the other, to memory of their own.
func (l *lib) kept(f *form, all ...cells) cells {
	return f.each(func(i int, k column) handle {
		var parts []handle
		for _, c := range all {
			parts = append(parts, c[i])
		}
		return l.retain(l.copied(l.concat(2, parts...), k.t))
	})
}

// pasted writes n positions of heads [1, heads, n, width] at a position of c, which it replaces.
func (l *lib) pasted(f *form, c *cells, rows handle, at, n int, same bool) {
	in := cells{rows}
	if f.bits != 0 {
		in = l.coded(f, rows, n)
	} else if !same {
		in[0] = l.cast(rows, f.t)
	}
	for i, k := range f.columns {
		l.pasteOver(c[i], in[i], 2, at, 1, f.heads, n, k.n)
	}
}

// coded quantises: the codes are those nearest for the scale and the bias as they are kept, as in package ref.
func (l *lib) coded(f *form, rows handle, n int) cells {
	groups, top := f.width/f.group, l.num(float32(int(1)<<f.bits-1))
	x := l.reshape(l.cast(rows, f32), 1, f.heads, n, groups, f.group)
	lo, hi := l.reduce(fnMin, x, 4), l.reduce(fnMax, x, 4)
	scale := l.bin(fnMaximum, l.bin(fnDivide, l.sub(hi, lo), top), l.num(1e-7))
	low := l.bin(fnGreater, l.un(fnAbs, lo), l.un(fnAbs, hi))
	scale, edge := l.where(low, scale, l.un(fnNegative, scale)), l.where(low, lo, hi)
	zero := l.do(fnRound, uintptr(l.bin(fnDivide, edge, scale)), 0)
	some := l.bin(fnGreater, l.un(fnAbs, zero), l.num(0.5))
	scale, bias := l.where(some, l.bin(fnDivide, edge, zero), scale), l.where(some, edge, l.num(0))
	scale, bias = l.cast(scale, bf16), l.cast(bias, bf16)
	codes := l.do(fnRound, uintptr(l.bin(fnDivide, l.sub(x, l.cast(bias, f32)), l.cast(scale, f32))), 0)
	codes = l.bin(fnMinimum, l.bin(fnMaximum, codes, l.num(0)), top)
	if f.codes > f.group {
		codes = l.concat(4, codes, l.zeros(f32, 1, f.heads, n, groups, f.codes-f.group))
	}
	per := 32 / f.bits
	words := l.reshape(l.cast(codes, u32), 1, f.heads, n, f.columns[0].n, per)
	words = l.reduce(fnSum, l.mul(words, l.placeValues(f.bits)), 4)
	return cells{l.reshape(words, 1, f.heads, n, f.columns[0].n), l.reshape(scale, 1, f.heads, n, groups), l.reshape(bias, 1, f.heads, n, groups)}
}

// placeValues are what the codes of a word are multiplied by, made once.
func (l *lib) placeValues(bits int) handle {
	at := bits / 8
	if l.words[at] == 0 && l.err == nil {
		x := make([]uint32, 32/bits)
		for i := range x {
			x[i] = 1 << (i * bits)
		}
		l.words[at] = l.retain(upload(l, x, u32, len(x)))
		l.live-- // like numbers that are made once
	}
	return l.words[at]
}

// numbers gives [1, heads, n, width] of n positions.
func (l *lib) numbers(f *form, c cells, n int, t dtype) handle {
	if f.bits == 0 {
		return c[0]
	}
	groups := f.width / f.group
	y := l.dequantised(c[0], l.cast(c[1], t), l.cast(c[2], t), scheme{"affine", f.bits, f.codes}, t)
	if f.codes > f.group {
		y = l.part(l.reshape(y, 1, f.heads, n, groups, f.codes), 4, 0, f.group, 1, f.heads, n, groups, f.codes)
		y = l.reshape(y, 1, f.heads, n, f.width)
	}
	return y
}

// attendCoded is attention of one row [1, heads, 1, width] to all positions of c, without making numbers of them.
func (l *lib) attendCoded(a *B.Attn, kf, vf *form, k, v cells, q handle) handle {
	q = l.mul(l.reshape(l.cast(q, f32), 1, a.KVHeads, a.Heads/a.KVHeads, a.KDim), l.num(a.Scale))
	product := func(x handle, f *form, c cells, transposed bool) handle {
		return l.do(fnQuantizedMatmul, uintptr(x), uintptr(c[0]), uintptr(l.cast(c[1], f32)), uintptr(l.cast(c[2], f32)), flag(transposed),
			some(f.codes), some(f.bits), uintptr(l.cText("affine")))
	}
	y := product(l.softmax(product(q, kf, k, true), 3), vf, v, false)
	return l.reshape(y, 1, a.Heads, 1, a.VDim)
}

// codedAlone reports whether attendCoded can do what a wants for a part.
func codedAlone(a *B.Attn, kf, vf *form, p *part) bool {
	return kf.bits != 0 && len(p.rows) == 1 && p.mask == nil && a.Cap == 0 && a.Sinks == nil && kf.codes == kf.group && vf.codes == vf.group
}
