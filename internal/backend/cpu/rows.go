package cpu

import (
	"cmp"
	"math"

	"hearth/internal/backend"
	"hearth/internal/kernel"
)

type rowOp uint8

const (
	opAdd rowOp = iota
	opScale
	opAct
	opGate
	opRMSNorm
	opLayerNorm
	opRoPE
	opEmbed
	opGather
	opConcat
	opPool
	opAngles
	opStore
	opRoute
	opLow
	opMix
	opScaleLike
	opCombine
	opRotary
)

// rowJob is one elementwise or row-wise op; every row of dst depends on nothing another row writes.
type rowJob struct {
	op        rowOp
	s         *scope
	dst, a, b *array
	w, bias   []float32
	f         float32
	width     int
	act       *backend.Activation
	glu       *backend.GLU
	rows      []int32
	angles    *angles
	table     *weight
	index     backend.Index
	pool      backend.PoolKind
	store     *attnJob
	router    *backend.Router
	low       []low
	picks     *array // what experts are picked by, where that is not their scores
}

// eachRow runs s.be.rows over the rows of its destination.
func (s *scope) eachRow() { s.each(s.be.rows.dst.rows, s.be.rows.dst.cols) }

// each runs s.be.rows over rows that cost as much as adding up cols numbers.
func (s *scope) each(rows, cols int) {
	s.be.rows.s = s
	if s.be.rows.op == opStore {
		cols *= 4 // the cache of keys and values is memory that nobody touched lately
	}
	s.pool.run(&s.be.rows, rows, max(serialWork/cols, 1), max(rows/8, 1))
}

func (j *rowJob) run(_, from, to int) {
	for r := from; r < to; r++ {
		j.row(r)
	}
}

func (j *rowJob) row(r int) {
	switch j.op {
	case opAdd:
		b := j.b.row(min(r, j.b.rows-1))
		kernel.Add(j.dst.row(r), j.a.row(r), b)
	case opScale:
		kernel.Scale(j.dst.row(r), j.a.row(r), j.f)
	case opAct:
		switch j.act.Kind {
		case backend.XIELU:
			xielu(j.act, j.dst.row(r), j.a.row(r))
		case backend.AboveMean:
			aboveMean(j.act.A, j.dst.row(r), j.a.row(r))
		case backend.Clamp:
			clamp(j.act.A, j.act.B, j.dst.row(r), j.a.row(r))
		default:
			activate(j.act.Kind, j.act.A, j.dst.row(r), j.a.row(r))
		}
	case opGate:
		gate(j.glu, j.dst.row(r), j.a.row(r), j.b.row(r))
	case opRMSNorm:
		j.rmsNorm(r)
	case opLayerNorm:
		j.layerNorm(r)
	case opRoPE:
		j.rope(r)
	case opEmbed:
		j.embed(r)
	case opGather:
		copy(j.dst.row(r), j.a.row(int(j.rows[r])))
	case opConcat:
		y := j.dst.row(r)
		copy(y[copy(y, j.a.row(r)):], j.b.row(r))
	case opPool:
		j.poolSpan(r)
	case opAngles:
		j.angles.fill(r)
	case opStore:
		j.store.write(r)
	case opRoute:
		sel := j.a.row(r)
		if j.picks != nil {
			sel = j.picks.row(r)
			pickScores(j.router, sel, j.a.row(r), j.bias)
		}
		route(j.router, j.dst.row(r), j.b.row(r), j.a.row(r), sel)
		if j.w != nil {
			for i, id := range j.dst.row(r) {
				j.b.row(r)[i] *= j.w[int(id)]
			}
		}
	case opLow:
		reduce(j.low, j.b.row(r), j.a.row(r))
		expand(j.low, j.dst.row(r), j.b.row(r), 0, j.dst.cols)
	case opMix:
		j.mix(r)
	case opScaleLike:
		j.match(r)
	case opCombine:
		j.combine(r)
	case opRotary:
		j.rotary(r)
	}
}

func (j *rowJob) rmsNorm(r int) {
	y, x := j.dst.row(r), j.a.row(r)
	for at := 0; at < len(x); at += j.width {
		w := j.w
		if len(w) > j.width {
			w = w[at : at+j.width]
		}
		kernel.RMSNorm(y[at:at+j.width], x[at:at+j.width], w, j.f)
	}
}

func (j *rowJob) layerNorm(r int) {
	y, x := j.dst.row(r), j.a.row(r)
	for at := 0; at < len(x); at += j.width {
		w, bias := j.w, j.bias
		if len(w) > j.width {
			w = w[at : at+j.width]
		}
		if len(bias) > j.width {
			bias = bias[at : at+j.width]
		}
		layerNorm(y[at:at+j.width], x[at:at+j.width], w, bias, j.f)
	}
}

// layerNorm sums in order of columns, in float64: encoders only, and rows of a thousand.
func layerNorm(y, x, w, bias []float32, eps float32) {
	var sum, square float64
	for _, v := range x {
		sum += float64(v)
	}
	mean := sum / float64(len(x))
	for _, v := range x {
		square += (float64(v) - mean) * (float64(v) - mean)
	}
	inv := 1 / math.Sqrt(square/float64(len(x))+float64(eps))
	for i, v := range x {
		t := (float64(v) - mean) * inv
		if w != nil {
			t *= float64(w[i])
		}
		if bias != nil {
			t += float64(bias[i])
		}
		y[i] = float32(t)
	}
}

func (j *rowJob) embed(r int) {
	per := max(j.index.PerRow, 1)
	y := j.dst.row(r)
	for i := r * per; i < (r+1)*per; i++ {
		id := int(j.index.IDs[i] + j.index.Offset)
		first := i == r*per
		if first {
			j.table.row(y, id)
			if j.index.Scale != nil {
				kernel.Scale(y, y, j.index.Scale[i])
			}
			continue
		}
		f := float32(1)
		if j.index.Scale != nil {
			f = j.index.Scale[i]
		}
		tmp := j.b.row(r)
		j.table.row(tmp, id)
		kernel.Axpy(y, tmp, f)
	}
}

// poolSpan folds the rows of span i that are there.
func (j *rowJob) poolSpan(i int) {
	y, sp, n := j.dst.row(i), &j.s.batch.Spans[i], 0
	clear(y)
	from, to := 0, j.a.rows
	if to == j.s.batch.Rows() {
		from, to = sp.Row, sp.Row+sp.Len
	}
	for r := from; r < to; r++ {
		if row := j.s.batchRow(j.a.rows, r); row < sp.Row || row >= sp.Row+sp.Len {
			continue
		}
		n++
		switch {
		case j.pool == backend.PoolMean:
			kernel.Add(y, y, j.a.row(r))
		case j.pool == backend.PoolLast || n == 1:
			copy(y, j.a.row(r))
		}
	}
	if j.pool == backend.PoolMean && n > 0 {
		kernel.Scale(y, y, 1/float32(n))
	}
}

func (s *scope) Embed(wh backend.Weight, ix backend.Index) backend.Array {
	s.check.Embed(wh, &ix)
	w, per := wh.(*weight), max(ix.PerRow, 1)
	if w.use != backend.UseTable {
		panic("cpu: Embed: the weight was not loaded as a table")
	}
	if !ix.Late.IsZero() {
		panic("cpu: Embed: late tokens are not supported")
	}
	h, y := s.make(len(ix.IDs)/per, w.in)
	var tmp *array
	if per > 1 {
		_, tmp = s.make(y.rows, w.in)
	}
	s.be.rows = rowJob{op: opEmbed, dst: y, b: tmp, table: w, index: ix}
	s.eachRow()
	return h
}

func vector(w backend.Weight) []float32 {
	if w == nil {
		return nil
	}
	v := w.(*weight)
	if v.use != backend.UseVector {
		panic("cpu: a norm, bias or sink weight was not loaded as a vector")
	}
	return v.vec
}

func (s *scope) RMSNorm(x backend.Array, w backend.Weight, n *backend.Norm) backend.Array {
	s.check.RMSNorm(x, w, n)
	width := cmp.Or(n.Width, x.Cols())
	h, y := s.make(x.Rows(), x.Cols())
	s.be.rows = rowJob{op: opRMSNorm, dst: y, a: s.get(x), w: vector(w), f: n.Eps, width: width}
	s.eachRow()
	return h
}

func (s *scope) LayerNorm(x backend.Array, w, bias backend.Weight, n *backend.Norm) backend.Array {
	s.check.LayerNorm(x, w, bias, n)
	h, y := s.make(x.Rows(), x.Cols())
	width := cmp.Or(n.Width, x.Cols())
	s.be.rows = rowJob{op: opLayerNorm, dst: y, a: s.get(x), w: vector(w), bias: vector(bias), f: n.Eps, width: width}
	s.eachRow()
	return h
}

func (s *scope) Add(a, b backend.Array) backend.Array {
	s.check.Add(a, b)
	h, y := s.make(a.Rows(), a.Cols())
	s.be.rows = rowJob{op: opAdd, dst: y, a: s.get(a), b: s.get(b)}
	s.eachRow()
	return h
}

func (s *scope) Scale(x backend.Array, f float32) backend.Array {
	h, y := s.make(x.Rows(), x.Cols())
	s.be.rows = rowJob{op: opScale, dst: y, a: s.get(x), f: f}
	s.eachRow()
	return h
}

func (s *scope) Act(x backend.Array, a *backend.Activation) backend.Array {
	h, y := s.make(x.Rows(), x.Cols())
	s.be.rows = rowJob{op: opAct, dst: y, a: s.get(x), act: a}
	s.eachRow()
	return h
}

func (s *scope) Gate(g, x backend.Array, u *backend.GLU) backend.Array {
	s.check.Gate(g, x)
	h, y := s.make(x.Rows(), x.Cols())
	s.be.rows = rowJob{op: opGate, dst: y, a: s.get(g), b: s.get(x), glu: u}
	s.eachRow()
	return h
}

func (s *scope) Cols(x backend.Array, from, to int) backend.Array {
	s.check.Cols(x, from, to)
	return s.view(x, x.Rows(), to-from, s.get(x).stride, from)
}

func (s *scope) Concat(a, b backend.Array) backend.Array {
	s.check.Concat(a, b)
	h, y := s.make(a.Rows(), a.Cols()+b.Cols())
	s.be.rows = rowJob{op: opConcat, dst: y, a: s.get(a), b: s.get(b)}
	s.eachRow()
	return h
}

// MergeRows is a view where rows follow each other without gaps, else a copy.
func (s *scope) MergeRows(xh backend.Array, n int) backend.Array {
	s.check.MergeRows(xh, n)
	x := s.get(xh)
	if x.stride == x.cols {
		return s.view(xh, x.rows/n, x.cols*n, x.cols*n, 0)
	}
	h, y := s.make(x.rows/n, x.cols*n)
	for r := range x.rows {
		copy(y.data[r*x.cols:][:x.cols], x.row(r))
	}
	return h
}

func (s *scope) Gather(x backend.Array, rows []int32) backend.Array {
	s.check.Gather(x, rows)
	h, y := s.make(len(rows), x.Cols())
	s.be.rows = rowJob{op: opGather, dst: y, a: s.get(x), rows: rows}
	s.eachRow()
	return h
}

func (s *scope) Put(xh, src backend.Array, from int, rows []int32, add bool) backend.Array {
	s.check.Put(xh, src, from, rows)
	h, y := s.make(xh.Rows(), xh.Cols())
	x, in := s.get(xh), s.get(src)
	for r := range y.rows {
		copy(y.row(r), x.row(r))
	}
	for i, r := range rows {
		if add {
			kernel.Add(y.row(int(r)), y.row(int(r)), in.row(from+i))
		} else {
			copy(y.row(int(r)), in.row(from+i))
		}
	}
	return h
}

func (s *scope) Pool(x backend.Array, kind backend.PoolKind) backend.Array {
	s.check.Pool(x)
	h, y := s.make(len(s.batch.Spans), x.Cols())
	s.be.rows = rowJob{op: opPool, dst: y, a: s.get(x), pool: kind}
	s.eachRow()
	return h
}

// AllSum has one rank to add: the result is the operand.
func (s *scope) AllSum(x backend.Array) backend.Array {
	return s.view(x, x.Rows(), x.Cols(), s.get(x).stride, 0)
}
