package cpu

import (
	"math"

	"hearth/internal/backend"
	"hearth/internal/kernel"
)

// convJob convolves rows of the batch. With a state a row reads the tails of its slot, which are as they were before the step
// until all rows are done.
type convJob struct {
	s    *scope
	spec *backend.Conv
	x, y *array
	taps []float32 // [tap][column]
	bias []float32
	ones []float32 // as many as columns
}

// run is the spans of one sequence in a batch, which follow each other.
type run struct{ first, last int }

// runs groups the batch's spans by sequence.
func (s *scope) runs(r []run) []run {
	r = r[:0]
	for i := range s.batch.Spans {
		if i > 0 && s.batch.Spans[i].Slot == s.batch.Spans[i-1].Slot {
			r[len(r)-1].last = i
			continue
		}
		r = append(r, run{i, i})
	}
	return r
}

func (s *scope) Conv(xh backend.Array, wh, bias backend.Weight, c *backend.Conv) backend.Array {
	s.check.Conv(xh, wh, bias, c)
	w := wh.(*weight)
	if w.use != backend.UseConv {
		panic("cpu: Conv: the weight was loaded for another use")
	}
	h, y := s.make(xh.Rows(), xh.Cols())
	j := &s.be.conv
	j.s, j.spec, j.x, j.y, j.taps, j.bias = s, c, s.get(xh), y, w.vec, vector(bias)
	for len(j.ones) < y.cols {
		j.ones = append(j.ones, 1)
	}
	s.pool.run(j, y.rows, max(serialWork/(8*y.cols), 1), max(y.rows/8, 1))
	if c.State != backend.NoState {
		for i := range s.batch.Spans {
			j.settle(&s.batch.Spans[i])
		}
	}
	return h
}

func (j *convJob) run(_, from, to int) {
	for r := from; r < to; r++ {
		j.row(r)
	}
}

func (j *convJob) row(r int) {
	y, cols := j.y.row(r), j.x.cols
	sp := &j.s.batch.Spans[j.s.spanOf[r]]
	first, end, before := sp.Row, sp.Row+sp.Len, []float32(nil)
	if j.spec.State != backend.NoState {
		first = j.first(r)
		before, _ = j.tail(sp)
	}
	clear(y)
	if j.bias != nil {
		copy(y, j.bias)
	}
	for k := range j.spec.Kernel {
		at, taps := r-j.spec.Kernel+1+j.spec.Ahead+k, j.taps[k*cols:][:cols]
		switch {
		case at >= end:
		case at >= first:
			kernel.MulAdd(y, taps, j.x.row(at))
		case before != nil:
			kernel.MulAdd(y, taps, before[(j.spec.Kernel-1+at-first)*cols:][:cols])
		}
	}
	if j.spec.Act == backend.SiLU {
		kernel.SiLUMul(y, y, j.ones[:cols])
	} else {
		activate(j.spec.Act, 0, y, y)
	}
}

// first is the first row of r's sequence in the batch.
func (j *convJob) first(r int) int {
	i := int(j.s.spanOf[r])
	for i > 0 && j.s.batch.Spans[i-1].Slot == j.s.batch.Spans[i].Slot {
		i--
	}
	return j.s.batch.Spans[i].Row
}

func (j *convJob) tail(sp *backend.Span) (slot, end []float32) {
	return j.s.st.fixed.of(j.spec.State, sp, 0, (j.spec.Kernel-1)*j.x.cols)
}

// settle moves the tail of a span's slot behind it.
func (j *convJob) settle(sp *backend.Span) {
	from, end := j.tail(sp)
	tail := from
	if sp.Tentative {
		tail = end
		for t := range sp.Len {
			copy(j.s.st.fixed.drafts.logged(sp.Slot, j.spec.State, t), j.x.row(sp.Row+t))
		}
	}
	cols, keep := j.x.cols, j.spec.Kernel-1
	stay := max(keep-sp.Len, 0)
	copy(tail, from[(keep-stay)*cols:])
	for k := stay; k < keep; k++ {
		copy(tail[k*cols:][:cols], j.x.row(sp.Row+sp.Len-keep+k))
	}
	if end != nil && !sp.Tentative {
		copy(end, tail)
	}
}

// deltaJob runs the gated delta rule: first rows are prepared, then heads of every sequence run through their rows.
type deltaJob struct {
	s             *scope
	spec          *backend.Delta
	q, k, v, a, b *array
	y             *array
	unit          *array // [rows][k of all key heads, q of all key heads], normalised
	gates         *array // [rows][decay of all value heads, rate of all value heads], or see perKey
	decay, bias   []float32
	runs          []run
	edge          []edge // per worker
	preparing     bool
}

// deltaTile is how many tokens a head runs through one block of its state before it goes to the next: their k and q stay
// in the second level cache meanwhile.
const deltaTile = 64

func (s *scope) GatedDelta(q, k, v, a, beta backend.Array, d *backend.Delta) backend.Array {
	s.check.GatedDelta(q, k, v, a, beta, d)
	h, y := s.make(q.Rows(), d.VHeads*d.VDim)
	if y.rows == 0 {
		return h
	}
	j := &s.be.delta
	j.s, j.spec, j.y = s, d, y
	j.q, j.k, j.v, j.a, j.b = s.get(q), s.get(k), s.get(v), s.get(a), s.get(beta)
	_, j.unit = s.make(y.rows, 2*d.KHeads*d.KDim)
	n := 2 * d.VHeads
	if d.PerKey {
		n = d.VHeads * (2*d.KDim + 1)
	}
	_, j.gates = s.make(y.rows, n)
	s.st.fixed.drafts.rule[d.State] = rule{perKey: d.PerKey}
	j.decay, j.bias = vector(d.ALog), vector(d.DtBias)
	for len(j.edge) < s.pool.size {
		j.edge = append(j.edge, edge{})
	}
	j.preparing = true
	s.pool.run(j, y.rows, max(serialWork/(2*j.unit.cols+64*d.VHeads), 1), max(y.rows/8, 1))
	j.preparing, j.runs = false, s.runs(j.runs)
	s.pool.run(j, len(j.runs)*d.VHeads, 1, 1)
	return h
}

func (j *deltaJob) run(worker, from, to int) {
	for i := from; i < to; i++ {
		if j.preparing {
			j.prepare(i)
		} else {
			j.head(worker, j.runs[i/j.spec.VHeads], i%j.spec.VHeads)
		}
	}
}

// prepare normalises k and q of a row and finds its decays and rates, these in float64.
func (j *deltaJob) prepare(r int) {
	d := j.spec
	ks, qs := j.unit.row(r)[:d.KHeads*d.KDim], j.unit.row(r)[d.KHeads*d.KDim:]
	for at := 0; at < len(ks); at += d.KDim {
		norm(ks[at:][:d.KDim], j.k.row(r)[at:][:d.KDim], 1)
		norm(qs[at:][:d.KDim], j.q.row(r)[at:][:d.KDim], float64(d.KDim))
	}
	gates := j.gates.row(r)
	rates, each := gates[d.Decays():], d.Decays()/d.VHeads
	for i, a := range j.a.row(r) {
		x := float64(a) + float64(j.bias[i])
		softplus := max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
		gates[i] = float32(math.Exp(-math.Exp(float64(j.decay[i/each])) * softplus))
	}
	for h, b := range j.b.row(r) {
		rates[h] = float32(act(backend.SigmoidAct, 0, float64(b)))
		if d.PerKey {
			kernel.Mul(rates[d.VHeads+h*d.KDim:][:d.KDim], gates[h*d.KDim:][:d.KDim], ks[h/(d.VHeads/d.KHeads)*d.KDim:][:d.KDim])
		}
	}
	if sp := &j.s.batch.Spans[j.s.spanOf[r]]; sp.Tentative {
		j.logDelta(sp, r)
	}
}

// norm writes x/√(Σx²+ε)/√by.
func norm(y, x []float32, by float64) {
	kernel.Scale(y, x, float32(1/math.Sqrt((float64(kernel.Dot(x, x))+backend.DeltaEps)*by)))
}

// head runs one value head through the spans of one sequence.
func (j *deltaJob) head(worker int, r run, h int) {
	d := j.spec
	n := blocks(d.VDim) * d.KDim * kernel.DeltaLanes
	for i := r.first; i <= r.last; i++ {
		sp := &j.s.batch.Spans[i]
		state, end := j.s.st.fixed.of(d.State, sp, h*n, n)
		if sp.Tentative {
			copy(end, state)
			state = end
		}
		for row := sp.Row; row < sp.Row+sp.Len; row += deltaTile {
			j.tile(worker, state, h, row, min(deltaTile, sp.Row+sp.Len-row))
		}
		if end != nil && !sp.Tentative {
			copy(end, state)
		}
	}
}

// tile runs n rows of one head through its state, block by block.
func (j *deltaJob) tile(worker int, state []float32, h, row, n int) {
	d := j.spec
	key := h / (d.VHeads / d.KHeads) * d.KDim
	unit, gates := j.unit.data[row*j.unit.stride:], j.gates.data[row*j.gates.stride:]
	for b := range blocks(d.VDim) {
		col := h*d.VDim + b*kernel.DeltaLanes
		if d.PerKey {
			j.keyBlock(worker, state[b*d.KDim*kernel.DeltaLanes:][:d.KDim*kernel.DeltaLanes], h, col, row, n)
			continue
		}
		k := kernel.Delta{
			State: state[b*d.KDim*kernel.DeltaLanes:][:d.KDim*kernel.DeltaLanes],
			K:     unit[key:], Q: unit[d.KHeads*d.KDim+key:], KStride: j.unit.stride,
			Gate: gates[h:], Beta: gates[d.VHeads+h:], GStride: j.gates.stride,
			V: j.v.data[row*j.v.stride+col:], VStride: j.v.stride,
			Y: j.y.data[row*j.y.stride+col:], YStride: j.y.stride,
			N: n, KDim: d.KDim,
		}
		wide := min(d.VDim-b*kernel.DeltaLanes, kernel.DeltaLanes)
		if wide == kernel.DeltaLanes {
			k.Run()
			continue
		}
		out := k.Y
		k.V, k.Y = j.edge[worker].apart(k.V, k.VStride, n, wide)
		k.VStride, k.YStride = kernel.DeltaLanes, kernel.DeltaLanes
		k.Run()
		join(out, k.Y, j.y.stride, n, wide)
	}
}

// edge has room for the values and the results of deltaTile rows of a block that is not full: the columns beside it in the
// arrays are another head's.
type edge [2 * deltaTile * kernel.DeltaLanes]float32

// apart copies the wide columns of n rows, stride apart, and gives them with room for as many results.
func (e *edge) apart(from []float32, stride, n, wide int) (v, y []float32) {
	v, y = e[:deltaTile*kernel.DeltaLanes], e[deltaTile*kernel.DeltaLanes:]
	clear(v)
	for t := range n {
		copy(v[t*kernel.DeltaLanes:][:wide], from[t*stride:])
	}
	return v, y
}

// join copies the results of such a block to where they belong.
func join(out, y []float32, stride, n, wide int) {
	for t := range n {
		copy(out[t*stride:][:wide], y[t*kernel.DeltaLanes:])
	}
}

// keyBlock runs n rows through one block of a head's state with a decay per key. A row of gates is then [decay of
// every key of all value heads][rate of all value heads][k times those decays].
func (j *deltaJob) keyBlock(worker int, state []float32, h, col, row, n int) {
	d := j.spec
	key := h / (d.VHeads / d.KHeads) * d.KDim
	unit, gates := j.unit.data[row*j.unit.stride:], j.gates.data[row*j.gates.stride:]
	rates := gates[d.Decays():]
	k := kernel.KeyDelta{
		State: state, K: unit[key:], Q: unit[d.KHeads*d.KDim+key:], KStride: j.unit.stride,
		Gate: gates[h*d.KDim:], KG: rates[d.VHeads+h*d.KDim:], GStride: j.gates.stride,
		Beta: rates[h:], BStride: j.gates.stride,
		V: j.v.data[row*j.v.stride+col:], VStride: j.v.stride,
		Y: j.y.data[row*j.y.stride+col:], YStride: j.y.stride,
		N: n, KDim: d.KDim,
	}
	wide := min((h+1)*d.VDim-col, kernel.DeltaLanes)
	if wide == kernel.DeltaLanes {
		k.Run()
		return
	}
	out := k.Y
	k.V, k.Y = j.edge[worker].apart(k.V, k.VStride, n, wide)
	k.VStride, k.YStride = kernel.DeltaLanes, kernel.DeltaLanes
	k.Run()
	join(out, k.Y, j.y.stride, n, wide)
}

// loadConv keeps the taps of a convolution in float32, tap by tap.
func (w *weight) loadConv(k *backend.Stack) {
	w.vec = make([]float32, k.Out*k.In)
	row := make([]float32, k.In)
	for c := range k.Out {
		m, r := k.At(c)
		m.Row(row, r)
		for t, v := range row {
			w.vec[t*k.Out+c] = v
		}
	}
}
