package mlx

import (
	"cmp"
	"slices"

	B "hearth/internal/backend"
)

func (s *scope) Embed(w B.Weight, ix B.Index) B.Array {
	s.check.Embed(w, &ix)
	t, per := w.(*weight), max(ix.PerRow, 1)
	rows := len(ix.IDs) / per
	ids, scales, late := slices.Clone(ix.IDs), slices.Clone(ix.Scale), false
	for i, id := range ids {
		if late = late || id < 0; id >= 0 {
			ids[i] = id + ix.Offset
		}
	}
	var from *node
	if late {
		from = s.get(ix.Late)
	}
	return s.op(rows, t.in, func() handle {
		l := s.l
		at := upload(l, ids, i32, len(ids))
		if late {
			at = s.late(ids, from.h, ix.Offset, at)
		}
		y := t.lookup(l, at, s.be.dtype())
		if scales != nil {
			y = l.mul(y, upload(l, scales, f32, len(scales), 1))
		}
		if per > 1 {
			y = l.reduce(fnSum, l.reshape(y, rows, per, t.in), 1)
		}
		return l.reshape(y, rows, t.in)
	})
}

// late replaces ids below zero by those sampled in the step before.
func (s *scope) late(ids []int32, sampled handle, offset int32, at handle) handle {
	l, rows := s.l, make([]int32, len(ids))
	for i, id := range ids {
		if id < 0 {
			rows[i] = ^id
		}
	}
	n := len(ids)
	got := l.take(l.reshape(sampled, l.shape(sampled)[0]), upload(l, rows, i32, n), 0)
	got = l.add(l.cast(got, i32), upload(l, []int32{offset}, i32, 1))
	return l.where(l.bin(fnLess, at, upload(l, []int32{0}, i32, 1)), got, at)
}

// lookup gives rows of the table as [ids, in].
func (t *weight) lookup(l *lib, ids handle, as dtype) handle {
	b := &t.blocks[0] // Load refuses tables of several
	var y handle
	if b.mode == "" {
		y = l.transpose(l.take(b.w, ids, 1), 1, 0)
	} else {
		var biases handle
		if b.biases != 0 {
			biases = l.take(b.biases, ids, 0)
		}
		y = l.dequantised(l.take(b.w, ids, 0), l.take(b.scales, ids, 0), biases, b.scheme, as)
	}
	if t.factor != 0 {
		y = l.mul(y, l.reshape(l.take(t.factor, ids, 0), -1, 1))
	}
	if t.up != 0 {
		y = l.add(y, l.bin(fnMatmul, l.transpose(l.take(t.up, ids, 1), 1, 0), l.transpose(t.down, 1, 0)))
	}
	return y
}

// product is x·Wᵀ with all that a weight has besides.
func (t *weight) product(l *lib, x handle) handle {
	var parts []handle
	for i := range t.blocks {
		if b := &t.blocks[i]; b.mode == "" {
			parts = append(parts, l.bin(fnMatmul, x, b.w))
		} else {
			parts = append(parts, l.quantised(x, b))
		}
	}
	y := l.concat(1, parts...)
	if t.factor != 0 {
		y = l.mul(y, t.factor)
	}
	if t.up != 0 {
		y = l.add(y, l.bin(fnMatmul, l.bin(fnMatmul, x, t.down), t.up))
	}
	if t.bias != 0 {
		y = l.add(y, t.bias)
	}
	return y
}

func (s *scope) Linear(x B.Array, w B.Weight) B.Array {
	s.check.Linear(x, w)
	t, in := w.(*weight), s.get(x)
	return s.op(x.Rows(), t.out, func() handle {
		s.typed = t.factor == 0 && t.bias == 0
		return t.product(s.l, in.h)
	})
}

func (s *scope) LinearGLU(x B.Array, w B.Weight, g *B.GLU) B.Array {
	s.check.LinearGLU(x, w)
	t, in := w.(*weight), s.get(x)
	n := t.out / 2
	return s.op(x.Rows(), n, func() handle {
		both, rows := t.product(s.l, in.h), x.Rows()
		return s.is(s.gated(g, s.l.part(both, 1, 0, n, rows, 2*n), s.l.part(both, 1, n, 2*n, rows, 2*n)))
	})
}

func (s *scope) RMSNorm(x B.Array, w B.Weight, n *B.Norm) B.Array {
	s.check.RMSNorm(x, w, n)
	width, eps := cmp.Or(n.Width, x.Cols()), n.Eps
	of := asWeight(w)
	if x.Rows() == 1 && width != x.Cols() && (of == nil || of.out == width) {
		return s.turned(x.Cols(), turn{in: s.find(x), width: width, normed: true, eps: eps, w: of})
	}
	in := s.get(x)
	return s.op(x.Rows(), x.Cols(), func() handle {
		l, scale := s.l, s.scale(of)
		whole := of != nil && of.out != width
		y := in.h
		if width != x.Cols() {
			y = l.reshape(y, x.Rows(), -1, width)
		}
		if whole {
			y = l.normed(y, 0, eps)
		} else {
			y = l.normed(y, scale, eps)
		}
		if width != x.Cols() {
			y = l.reshape(y, x.Rows(), x.Cols())
		}
		if whole {
			y = l.mul(y, scale)
		}
		return s.is(y)
	})
}

func (s *scope) LayerNorm(x B.Array, w, bias B.Weight, n *B.Norm) B.Array {
	s.check.LayerNorm(x, w, bias, n)
	in, eps, width := s.get(x), n.Eps, n.Width
	if width == 0 || width == x.Cols() {
		return s.op(x.Rows(), x.Cols(), func() handle {
			return s.is(s.l.layerNormed(in.h, s.scale(asWeight(w)), s.scale(asWeight(bias)), eps))
		})
	}
	return s.op(x.Rows(), x.Cols(), func() handle {
		l := s.l
		y := l.layerNormed(l.reshape(in.h, x.Rows(), -1, width), 0, 0, eps)
		for _, v := range []B.Weight{w, bias} {
			of := asWeight(v)
			if of == nil {
				continue
			}
			if of.out == width {
				y = l.reshape(y, x.Rows(), -1, width)
			} else {
				y = l.reshape(y, x.Rows(), x.Cols())
			}
			if v == w {
				y = l.mul(y, s.scale(of))
			} else {
				y = l.add(y, s.scale(of))
			}
		}
		return s.is(l.reshape(y, x.Rows(), x.Cols()))
	})
}

// asWeight is nil for no weight.
func asWeight(w B.Weight) *weight {
	if w == nil {
		return nil
	}
	return w.(*weight)
}

func (l *lib) layerNormed(x, w, bias handle, eps float32) handle {
	return l.doFloat(fnLayerNorm, eps, uintptr(x), uintptr(w), uintptr(bias))
}

func (s *scope) Add(a, b B.Array) B.Array {
	s.check.Add(a, b)
	u, v := s.get(a), s.get(b)
	return s.op(a.Rows(), a.Cols(), func() handle { return s.is(s.l.add(u.h, v.h)) })
}

func (s *scope) Scale(x B.Array, f float32) B.Array {
	in := s.get(x)
	return s.op(x.Rows(), x.Cols(), func() handle { return s.l.mul(in.h, s.l.num(f)) })
}

func (s *scope) Cols(x B.Array, from, to int) B.Array {
	s.check.Cols(x, from, to)
	rows, cols := x.Rows(), x.Cols()
	if in := s.find(x); rows == 1 && in.of == nil && from < to {
		a, n := s.make(1, to-from, s.be.act)
		n.of, n.src, n.from, n.flat = s.get(x), in, from, false
		return a
	}
	return s.view(x, rows, to-from, func(x handle) handle { return s.l.part(x, 1, from, to, rows, cols) })
}

func (s *scope) Concat(a, b B.Array) B.Array {
	s.check.Concat(a, b)
	u, v := s.get(a), s.get(b)
	return s.op(a.Rows(), a.Cols()+b.Cols(), func() handle { return s.l.concat(1, u.h, v.h) })
}

func (s *scope) MergeRows(x B.Array, n int) B.Array {
	s.check.MergeRows(x, n)
	rows, cols := x.Rows()/n, x.Cols()*n
	return s.view(x, rows, cols, func(x handle) handle { return s.l.reshape(x, rows, cols) })
}

func (s *scope) Gather(x B.Array, rows []int32) B.Array {
	s.check.Gather(x, rows)
	in, rows := s.get(x), slices.Clone(rows)
	return s.op(len(rows), x.Cols(), func() handle { return s.l.rows(in.h, rows) })
}

// rows picks rows, by a slice where they follow each other.
func (l *lib) rows(x handle, rows []int32) handle {
	n := len(rows)
	if int(rows[n-1]-rows[0]) == n-1 && slices.IsSorted(rows) {
		return l.slice(x, 0, int(rows[0]), int(rows[0])+n)
	}
	return l.take(x, upload(l, rows, i32, n), 0)
}

func (s *scope) Put(x, src B.Array, from int, rows []int32, add bool) B.Array {
	s.check.Put(x, src, from, rows)
	in, of, rows := s.get(x), s.get(src), slices.Clone(rows)
	return s.op(x.Rows(), x.Cols(), func() handle {
		l, y := s.l, in.h
		for i, r := range rows {
			row := l.slice(of.h, 0, from+i, from+i+1)
			if add {
				row = l.add(row, l.slice(y, 0, int(r), int(r)+1))
			}
			y = l.paste(y, row, 0, int(r), 1, x.Cols())
		}
		if y == in.h {
			y = l.again(y)
		}
		return y
	})
}

func (s *scope) Pool(x B.Array, kind B.PoolKind) B.Array {
	s.check.Pool(x)
	in, spans := s.get(x), make([][]int32, len(s.b.Spans))
	for i, sp := range s.b.Spans {
		for r := range x.Rows() {
			if row := s.batchRow(x.Rows(), r); row >= sp.Row && row < sp.Row+sp.Len {
				spans[i] = append(spans[i], int32(r))
			}
		}
	}
	return s.op(len(spans), x.Cols(), func() handle {
		l, parts := s.l, []handle{}
		for _, rows := range spans {
			n := len(rows)
			switch {
			case n == 0:
				parts = append(parts, l.zeros(f32, 1, x.Cols()))
			case kind == B.PoolMean:
				parts = append(parts, l.reduce(fnMean, l.rows(in.h, rows), 0))
			case kind == B.PoolFirst:
				parts = append(parts, l.rows(in.h, rows[:1]))
			default:
				parts = append(parts, l.rows(in.h, rows[n-1:]))
			}
		}
		return l.concat(0, parts...)
	})
}

// batchRow is the row of the batch that row r of an array of n rows belongs to.
func (s *scope) batchRow(n, r int) int {
	if n == s.b.Rows() {
		return r
	}
	return int(s.b.Out[r])
}

func (s *scope) AllSum(x B.Array) B.Array {
	if s.l.world > 1 {
		in := s.get(x)
		return s.op(x.Rows(), x.Cols(), func() handle { return s.l.allSum(in.h) })
	}
	return s.view(x, x.Rows(), x.Cols(), func(x handle) handle { return s.l.again(x) })
}

func (s *scope) Mix(x, coefs B.Array, m *B.Mix) B.Array {
	s.check.Mix(x, coefs, m)
	in, c := s.get(x), s.get(coefs)
	rows, n := x.Rows(), x.Cols()/m.In
	return s.op(rows, n*m.Out, func() handle {
		l := s.l
		k := l.add(l.cast(l.reshape(c.h, rows, m.Out, m.In), f32), l.num(m.Plus))
		return l.reshape(l.bin(fnMatmul, k, l.cast(l.reshape(in.h, rows, m.In, n), f32)), rows, n*m.Out)
	})
}

func (s *scope) ScaleLike(x, like B.Array) B.Array {
	s.check.ScaleLike(x, like)
	in, of := s.get(x), s.get(like)
	return s.op(x.Rows(), x.Cols(), func() handle {
		l := s.l
		square := func(h handle) handle { return l.reduce(fnMean, l.un(fnSquare, l.cast(h, f32)), 1) }
		own := square(in.h)
		f := l.un(fnSqrt, l.bin(fnDivide, square(of.h), own))
		return l.mul(in.h, l.where(l.bin(fnGreater, own, l.num(0)), f, l.num(0)))
	})
}
