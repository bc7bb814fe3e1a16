package cpu

import (
	"math"

	"hearth/internal/backend"
	"hearth/internal/kernel"
)

// ssmJob runs the recurrence of state space models: first rows are prepared, then heads, or with a step per column blocks of
// columns, of every sequence run through their rows.
type ssmJob struct {
	s                  *scope
	spec               *backend.SSM
	x, b, c, dt, y     *array
	u                  *array // [rows][x of all heads, times its step]
	gates              *array // [rows][decay of all heads], or with a step per column those
	decay, bias, skips []float32
	rates              []float32 // with a step per column: see below
	runs               []run
	edge               []edge      // per worker
	factors            [][]float32 // per worker: [KDim][DeltaLanes] of one token
	preparing          bool

	// known are the rates -exp(ALog) of specs with a step per column, [block of columns][KDim][DeltaLanes]. A model
	// has a spec per layer, which lives as long as the model.
	known map[*backend.SSM][]float32
}

func (s *scope) SSM(x, b, c, dt backend.Array, m *backend.SSM) backend.Array {
	s.check.SSM(x, b, c, dt, m)
	h, y := s.make(x.Rows(), x.Cols())
	if y.rows == 0 {
		return h
	}
	j := &s.be.ssm
	j.s, j.spec, j.y, j.dt = s, m, y, nil
	j.x, j.b, j.c = s.get(x), s.get(b), s.get(c)
	if !dt.IsZero() {
		j.dt = s.get(dt)
	}
	_, j.u = s.make(y.rows, y.cols)
	_, j.gates = s.make(y.rows, m.Steps())
	j.rates = nil
	j.decay, j.bias, j.skips = vector(m.ALog), vector(m.DtBias), vector(m.D)
	items := m.Heads
	if m.PerColumn {
		j.rates, items = j.ratesOf(m), blocks(m.VDim)
	}
	s.st.fixed.drafts.rule[m.State] = rule{ssm: m, rates: j.rates}
	for len(j.edge) < s.pool.size {
		j.edge, j.factors = append(j.edge, edge{}), append(j.factors, nil)
	}
	for i := range j.factors {
		j.factors[i] = grow(j.factors[i], m.KDim*kernel.DeltaLanes)
	}
	j.preparing = true
	s.pool.run(j, y.rows, max(serialWork/(y.cols+64*m.Steps()), 1), max(y.rows/8, 1))
	j.preparing, j.runs = false, s.runs(j.runs)
	s.pool.run(j, len(j.runs)*items, 1, max(items/64, 1))
	return h
}

func (j *ssmJob) run(worker, from, to int) {
	items := j.spec.Heads
	if j.spec.PerColumn {
		items = blocks(j.spec.VDim)
	}
	for i := from; i < to; i++ {
		switch r := i / max(items, 1); {
		case j.preparing:
			j.prepare(i)
		case j.spec.PerColumn:
			j.through(worker, j.runs[r], 0, i%items, i%items+1)
		default:
			j.through(worker, j.runs[r], i%items, 0, blocks(j.spec.VDim))
		}
	}
}

// ratesOf finds or makes the rates of a spec with a step per column.
func (j *ssmJob) ratesOf(m *backend.SSM) []float32 {
	if r := j.known[m]; r != nil {
		return r
	}
	if j.known == nil {
		j.known = map[*backend.SSM][]float32{}
	}
	r := make([]float32, blocks(m.VDim)*m.KDim*kernel.DeltaLanes)
	for i, a := range vector(m.ALog) {
		col, k := i/m.KDim, i%m.KDim
		r[(col/kernel.DeltaLanes*m.KDim+k)*kernel.DeltaLanes+col%kernel.DeltaLanes] = float32(-math.Exp(float64(a)))
	}
	j.known[m] = r
	return r
}

// prepare finds the steps of a row, in float64, what a state decays by in them and what comes into it.
func (j *ssmJob) prepare(r int) {
	m := j.spec
	gates, u, x := j.gates.row(r), j.u.row(r), j.x.row(r)
	for i := range gates {
		step := 1.0
		if j.dt != nil {
			step = float64(j.dt.row(r)[i])
			if j.bias != nil {
				step += float64(j.bias[i])
			}
			step = max(max(step, 0)+math.Log1p(math.Exp(-math.Abs(step))), float64(m.Min))
			if m.Max > 0 {
				step = min(step, float64(m.Max))
			}
		}
		switch {
		case m.PerColumn:
			gates[i], u[i] = float32(step), float32(step)*x[i]
			continue
		case j.dt == nil:
			gates[i] = float32(math.Exp(-float64(m.Slopes[i])))
		default:
			gates[i] = float32(math.Exp(-math.Exp(float64(j.decay[i])) * step))
		}
		kernel.Scale(u[i*m.VDim:][:m.VDim], x[i*m.VDim:][:m.VDim], float32(step))
	}
	if sp := &j.s.batch.Spans[j.s.spanOf[r]]; sp.Tentative {
		j.log(sp, r)
	}
}

// through runs blocks [from, to) of one head through the spans of one sequence.
func (j *ssmJob) through(worker int, r run, h, from, to int) {
	m := j.spec
	block := m.KDim * kernel.DeltaLanes
	at, n := (h*blocks(m.VDim)+from)*block, (to-from)*block
	for i := r.first; i <= r.last; i++ {
		sp := &j.s.batch.Spans[i]
		state, end := j.s.st.fixed.of(m.State, sp, at, n)
		if sp.Tentative {
			copy(end, state)
			state = end
		}
		for row := sp.Row; row < sp.Row+sp.Len; row += deltaTile {
			tile := min(deltaTile, sp.Row+sp.Len-row)
			for b := from; b < to; b++ {
				j.block(worker, state[(b-from)*block:][:block], h, b, row, tile)
			}
			j.skip(h, from*kernel.DeltaLanes, min(to*kernel.DeltaLanes, m.VDim), row, tile)
		}
		if end != nil && !sp.Tentative {
			copy(end, state)
		}
	}
}

// block runs n rows through one block of a head's state.
func (j *ssmJob) block(worker int, state []float32, h, b, row, n int) {
	m := j.spec
	key, col := h/(m.Heads/m.Groups)*m.KDim, h*m.VDim+b*kernel.DeltaLanes
	k := kernel.Scan{
		State: state, N: n, KDim: m.KDim,
		K: j.b.data[row*j.b.stride+key:], KStride: j.b.stride,
		Q: j.c.data[row*j.c.stride+key:], QStride: j.c.stride,
		V: j.u.data[row*j.u.stride+col:], VStride: j.u.stride,
		Y: j.y.data[row*j.y.stride+col:], YStride: j.y.stride,
		Gate: j.gates.data[row*j.gates.stride+h:], GStride: j.gates.stride,
	}
	wide := min(m.VDim-b*kernel.DeltaLanes, kernel.DeltaLanes)
	if wide == kernel.DeltaLanes {
		j.scan(worker, &k, b, row, wide)
		return
	}
	out := k.Y
	k.V, k.Y = j.edge[worker].apart(k.V, k.VStride, n, wide)
	k.VStride, k.YStride = kernel.DeltaLanes, kernel.DeltaLanes
	j.scan(worker, &k, b, row, wide)
	join(out, k.Y, j.y.stride, n, wide)
}

// scan runs a block with a decay per head, or token by token with one per number of the state.
func (j *ssmJob) scan(worker int, k *kernel.Scan, b, row, wide int) {
	if !j.spec.PerColumn {
		k.Run()
		return
	}
	for t := range k.N {
		steps := j.gates.row(row + t)[b*kernel.DeltaLanes:][:wide]
		one := *k
		one.N, one.Wide, one.Gate = 1, true, decays(j.factors[worker], j.rates, b, k.KDim, steps)
		one.K, one.Q, one.V, one.Y = k.K[t*k.KStride:], k.Q[t*k.QStride:], k.V[t*k.VStride:], k.Y[t*k.YStride:]
		one.Run()
	}
}

// decays fills the factors of one token and block from the steps of its columns.
func decays(to, rates []float32, b, kdim int, steps []float32) []float32 {
	var by [kernel.DeltaLanes]float32
	copy(by[:], steps)
	n := kdim * kernel.DeltaLanes
	kernel.Decays(to[:n], rates[b*n:][:n], by[:])
	return to[:n]
}

// skip adds D·x to columns [from, to) of a head in n rows.
func (j *ssmJob) skip(h, from, to, row, n int) {
	if j.skips == nil {
		return
	}
	for t := row; t < row+n; t++ {
		x, y := j.x.row(t)[h*j.spec.VDim:], j.y.row(t)[h*j.spec.VDim:]
		if j.spec.PerColumn {
			kernel.MulAdd(y[from:to], j.skips[from:to], x[from:to])
		} else {
			kernel.Axpy(y[from:to], x[from:to], j.skips[h])
		}
	}
}

// log copies what row r of a tentative span puts into a state.
func (j *ssmJob) log(sp *backend.Span, r int) {
	m, d := j.spec, &j.s.st.fixed.drafts
	to := d.logged(sp.Slot, m.State, r-sp.Row)
	for h := range m.Heads {
		to = to[copy(to, j.b.row(r)[h/(m.Heads/m.Groups)*m.KDim:][:m.KDim]):]
	}
	to = to[copy(to, j.u.row(r)):]
	copy(to, j.gates.row(r))
}

// scan runs logged tokens of one head of a state space model again.
func (j *replayJob) scan(worker int, it *replayItem) {
	sp, d, n := it.spec, &j.f.drafts, it.spec.KDim*kernel.DeltaLanes
	state, log, values, gates := j.logged(it)
	j.factors[worker] = grow(j.factors[worker], n)
	var y [kernel.DeltaLanes]float32
	for b := range blocks(sp.VDim) {
		k := kernel.Scan{
			State: state[b*n:][:n], K: log[it.head*sp.KDim:], Q: log[it.head*sp.KDim:], KStride: d.floats, QStride: d.floats,
			V: values[it.head*sp.VDim+b*kernel.DeltaLanes:], VStride: d.floats, Y: y[:], // nobody reads it
			Gate: gates[it.head:], GStride: d.floats, N: j.n, KDim: sp.KDim,
		}
		rates := d.rule[it.id].rates
		if rates == nil {
			k.Run()
			continue
		}
		wide := min(sp.VDim-b*kernel.DeltaLanes, kernel.DeltaLanes)
		for t := range j.n {
			one := k
			one.N, one.Wide = 1, true
			one.Gate = decays(j.factors[worker], rates, b, sp.KDim, gates[t*d.floats+b*kernel.DeltaLanes:][:wide])
			one.K, one.Q, one.V = k.K[t*d.floats:], k.Q[t*d.floats:], k.V[t*d.floats:]
			one.Run()
		}
	}
}
