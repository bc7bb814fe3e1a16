package cpu

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"hearth/internal/backend"
	"hearth/internal/kernel"
)

// experts are weights of one shape, packed apart. Each is one matrix (gate and up: two), because an expert's rows come from
// one tensor.
type experts struct {
	each []*weight
}

var _ backend.Weight = (*experts)(nil)

func (e *experts) Out() int      { return e.each[0].out }
func (e *experts) In() int       { return e.each[0].in }
func (e *experts) Count() int    { return len(e.each) }
func (e *experts) Partial() bool { return false }

func (l *loader) loadExperts(s backend.WeightSpec) (backend.Weight, error) {
	e := &experts{}
	for i := range s.Count {
		one, err := s.Expert(i)
		if err != nil {
			return nil, err
		}
		w, err := l.Load(one)
		if err != nil {
			return nil, fmt.Errorf("expert %d: %w", i, err)
		}
		k := w.(*weight)
		if len(k.parts) != 1 || s.Use == backend.UseExpertGLU && len(k.up) != 1 {
			return nil, fmt.Errorf("expert %d is stored in several formats", i)
		}
		e.each = append(e.each, k)
	}
	return e, nil
}

// Route keeps ids as whole floats: the engine's arrays have no other type.
func (s *scope) Route(scores backend.Array, r *backend.Router) backend.Routing {
	s.check.Route(scores, r)
	if r.Groups > maxGroups {
		panic("cpu: Route: more groups of experts than any model has")
	}
	h, ids := s.make(scores.Rows(), r.K)
	wh, w := s.make(scores.Rows(), r.K)
	x := s.get(scores)
	var picks *array
	if r.Score == backend.Sigmoid || r.Groups > 1 || r.Bias != nil {
		_, picks = s.make(x.rows, x.cols)
	}
	s.be.rows = rowJob{op: opRoute, dst: ids, b: w, a: x, router: r, picks: picks, w: vector(r.Each), bias: vector(r.Bias)}
	s.each(x.rows, x.cols*(r.K+16))
	slot, gen := h.Slot()
	return backend.Routing{IDs: backend.Handle(slot, gen, x.rows, r.K, backend.I32), Weights: wh}
}

// pickScores fills sel with what the experts of one row are picked by.
func pickScores(r *backend.Router, sel, x, bias []float32) {
	switch {
	case r.Score == backend.Sigmoid:
		for e, v := range x {
			sel[e] = float32(act(backend.SigmoidAct, 0, float64(v)))
		}
	case bias != nil || r.TwoBest && r.Groups > 1:
		softmaxInto(sel, x)
	default:
		copy(sel, x)
	}
	for e, b := range bias {
		sel[e] += b
	}
	if r.Groups <= 1 {
		return
	}
	rank, least := slices.Max[[]float32], float32(math.Inf(-1))
	if r.Score == backend.Sigmoid || r.TwoBest {
		rank = bestTwo
	}
	// A group stays if fewer than TopGroups are better: compared in pairs, for there are few.
	n := len(x) / r.Groups
	var out [maxGroups]bool
	for g := range r.Groups {
		better, own := 0, rank(sel[g*n:][:n])
		for k := range r.Groups {
			if v := rank(sel[k*n:][:n]); v > own || v == own && k < g {
				better++
			}
		}
		out[g] = better >= r.TopGroups
	}
	for g := range r.Groups {
		if out[g] {
			for e := range n {
				sel[g*n+e] = least
			}
		}
	}
}

const maxGroups = 64

// softmaxInto fills y with the softmax of x.
func softmaxInto(y, x []float32) {
	top, sum := float64(slices.Max(x)), 0.0
	for _, v := range x {
		sum += math.Exp(float64(v) - top)
	}
	for i, v := range x {
		y[i] = float32(math.Exp(float64(v)-top) / sum)
	}
}

// bestTwo adds up the two largest of at least two numbers.
func bestTwo(x []float32) float32 {
	first, second := max(x[0], x[1]), min(x[0], x[1])
	for _, v := range x[2:] {
		if v > first {
			first, second = v, first
		} else if v > second {
			second = v
		}
	}
	return first + second
}

// route picks for one row: every pass finds what comes next in the order of falling sel and rising ids.
func route(r *backend.Router, ids, weights, x, sel []float32) {
	prev, last := float32(math.Inf(1)), -1
	for i := range ids {
		best := -1
		for e, v := range sel {
			if (v < prev || v == prev && e > last) && (best < 0 || v > sel[best]) {
				best = e
			}
		}
		if best < 0 {
			best = i // scores that are not numbers have no order
		}
		prev, last = sel[best], best
		at := i
		for ; at > 0 && ids[at-1] > float32(best); at-- {
			ids[at] = ids[at-1]
		}
		ids[at] = float32(best)
	}
	routeWeights(r, ids, weights, x)
}

func routeWeights(r *backend.Router, ids, weights, x []float32) {
	scale := float64(r.Scale)
	if scale == 0 {
		scale = 1
	}
	if r.Score == backend.Sigmoid {
		total := 0.0
		for _, id := range ids {
			total += act(backend.SigmoidAct, 0, float64(x[int(id)]))
		}
		if r.Renorm {
			scale /= total + cmp.Or(float64(r.Least), 1e-20) // as the reference; the sum is 0 where all sigmoids are
		}
		for i, id := range ids {
			weights[i] = float32(act(backend.SigmoidAct, 0, float64(x[int(id)])) * scale)
		}
		return
	}
	top, sum, total := math.Inf(-1), 0.0, 0.0
	for _, id := range ids {
		top = max(top, float64(x[int(id)]))
	}
	for _, id := range ids {
		total += math.Exp(float64(x[int(id)]) - top)
	}
	if sum = total; r.Score == backend.Softmax && !r.Renorm {
		sum = 0
		for _, v := range x {
			sum += math.Exp(float64(v) - top)
		}
	}
	if r.Bias != nil && r.Renorm { // what is picked may weigh next to nothing among all
		all, most := 0.0, float64(slices.Max(x))
		for _, v := range x {
			all += math.Exp(float64(v) - most)
		}
		sum += 1e-20 * all * math.Exp(most-top)
	}
	for i, id := range ids {
		weights[i] = float32(math.Exp(float64(x[int(id)])-top) / sum * scale)
	}
}

// moePairs bounds the pairs of a row and an expert that are computed together: memory grows with them, and beyond some 30 rows
// per expert nothing is gained.
const moePairs = 4096

// moeJob multiplies pairs, sorted by expert, with the experts' matrices: first gate and up, then down.
type moeJob struct {
	phase  moePhase
	spec   *backend.Experts
	x      *array
	ids    *array
	first  int // row of x that the block starts with
	active []activeExpert
	next   []int32 // per expert: where its next pair goes
	src    []int32 // per pair: row of x
	pos    []int32 // per row and pick: pair
	z      *array  // per pair: what its row is for low-rank additions; nil: there are none

	hidden, tmp, out *array
	acts             []*acts // gathered rows of x, then hidden rows, by form
	used             int     // of acts
	from             *kernel.Acts
	to               *acts
}

type moePhase uint8

const (
	moeGather  moePhase = iota // rows of prepared x, one per pair
	moePrepare                 // rows of hidden
	moeUp
	moeDown
	moeReduceUp // rows of x, for additions
	moeReduceDown
)

// activeExpert has pairs [r0, r1); its panels end at number end of all active ones.
type activeExpert struct {
	id, r0, r1, end int
	gate, up        *part // of Up, or gate alone of Down
	actG, actU      *kernel.Acts
}

func (s *scope) MoE(xh backend.Array, r backend.Routing, e *backend.Experts) backend.Array {
	s.check.MoE(xh, r, e)
	j := &s.be.moe
	j.spec, j.x, j.ids = e, s.get(xh), s.get(r.IDs)
	k := j.ids.cols
	h, y := s.make(xh.Rows(), e.Down.Out())
	block := min(j.x.rows, max(moePairs/k, 1))
	if block == 0 {
		return h
	}
	_, j.hidden = s.make(block*k, e.Down.In())
	_, j.tmp = s.make(block*k, e.Down.In())
	_, j.out = s.make(block*k, y.cols)
	j.z = nil
	if n := max(lowRanks(e.Up), lowRanks(e.Down)); n > 0 {
		_, j.z = s.make(block*k, n)
	}
	for from := 0; from < j.x.rows; from += block {
		n := min(block, j.x.rows-from)
		j.sort(from, n, k)
		j.used = 0
		j.gatherX(s)
		j.product(s, moeUp)
		j.gatherHidden(s)
		j.product(s, moeDown)
		s.be.rows = rowJob{op: opCombine, dst: y, a: s.get(r.Weights), b: j.out}
		s.combineRows(from, n)
	}
	return h
}

// sort orders the pairs of rows [from, from+n) by expert, then by row.
func (j *moeJob) sort(from, n, k int) {
	experts := j.spec.Up.Count()
	j.first = from
	j.next, j.src, j.pos = grow(j.next, experts), grow(j.src, n*k), grow(j.pos, n*k)
	clear(j.next)
	for r := range n {
		for _, id := range j.ids.row(from + r) {
			j.next[int(id)]++
		}
	}
	j.active = j.active[:0]
	at := 0
	for e, count := range j.next {
		if count > 0 {
			j.active = append(j.active, activeExpert{id: e, r0: at, r1: at + int(count)})
		}
		j.next[e] = int32(at)
		at += int(count)
	}
	for r := range n {
		for i, id := range j.ids.row(from + r) {
			p := j.next[int(id)]
			j.next[int(id)]++
			j.src[p], j.pos[r*k+i] = int32(from+r), p
		}
	}
}

// form finds the rows of this block in a form that is there, or makes room for them.
func (j *moeJob) form(since int, m *kernel.Matrix, prec kernel.Precision, cols int) (a *acts, fresh bool) {
	prec = m.Format().Form(prec)
	for _, a := range j.acts[since:j.used] {
		if a.prec == prec && a.group == m.Group() {
			return a, false
		}
	}
	if j.used == len(j.acts) {
		j.acts = append(j.acts, &acts{})
	}
	a = j.acts[j.used]
	j.used++
	a.prec, a.group = prec, m.Group()
	a.Reset(prec, len(j.src), cols, a.group)
	return a, true
}

// gatherX copies prepared rows of x to where the pairs are.
func (j *moeJob) gatherX(s *scope) {
	for i := range j.active {
		e := &j.active[i]
		w := j.spec.Up.(*experts).each[e.id]
		e.gate, e.up = &w.parts[0], nil
		e.actG = j.gathered(s, w, e.gate)
		if j.spec.Act == nil {
			e.up = &w.up[0]
			e.actU = j.gathered(s, w, e.up)
		}
	}
}

func (j *moeJob) gathered(s *scope, w *weight, p *part) *kernel.Acts {
	a, fresh := j.form(0, p.m, w.prec, w.in)
	if fresh {
		j.phase, j.from, j.to = moeGather, s.prepared(j.x, p.m, w.prec), a
		s.pool.run(j, len(j.src), max(serialWork/w.in, 1), len(j.src))
	}
	return &a.Acts
}

// gatherHidden prepares what the gates let through.
func (j *moeJob) gatherHidden(s *scope) {
	since := j.used
	for i := range j.active {
		e := &j.active[i]
		w := j.spec.Down.(*experts).each[e.id]
		e.gate, e.up = &w.parts[0], nil
		a, fresh := j.form(since, e.gate.m, w.prec, w.in)
		if fresh {
			j.phase, j.to = moePrepare, a
			s.pool.run(j, len(j.src), max(serialWork/w.in, 1), len(j.src))
		}
		e.actG = &a.Acts
	}
}

// product splits the panels of all active experts among the threads.
func (j *moeJob) product(s *scope, phase moePhase) {
	if j.z != nil {
		j.phase = phase - moeUp + moeReduceUp
		s.pool.run(j, len(j.src), 1, len(j.src))
	}
	j.phase = phase
	panels, bytes := 0, 0
	for i := range j.active {
		e := &j.active[i]
		panels += e.gate.m.Panels()
		e.end = panels
		bytes += e.gate.m.Bytes()
		s.be.count(e.gate.m, e.actG.Precision(), e.r1-e.r0)
		if e.up != nil {
			bytes += e.up.m.Bytes()
			s.be.count(e.up.m, e.actU.Precision(), e.r1-e.r0)
		}
	}
	each := max(bytes/panels, 1) * max(len(j.src)/len(j.active), 1) // per panel, times the rows it meets
	s.pool.run(j, panels, max(leastChunkBytes/each, 1), max(chunkBytes/each, 1))
}

func (j *moeJob) run(_, from, to int) {
	switch j.phase {
	case moeGather:
		for p := from; p < to; p++ {
			j.to.CopyRow(p, j.from, int(j.src[p]))
		}
	case moePrepare:
		for p := from; p < to; p++ {
			j.to.SetRow(p, j.hidden.row(p))
		}
	case moeReduceUp, moeReduceDown:
		j.reduce(from, to)
	default:
		for i := sort.Search(len(j.active), func(i int) bool { return j.active[i].end > from }); from < to; i++ {
			e := &j.active[i]
			start := e.end - e.gate.m.Panels()
			last := min(to, e.end)
			j.panels(e, from-start, last-start)
			from = last
		}
	}
}

// panels multiplies the pairs of one expert with some of its panels.
func (j *moeJob) panels(e *activeExpert, p0, p1 int) {
	if j.phase == moeDown {
		e.gate.mul(j.out.data, j.out.stride, e.actG, e.r0, e.r1, p0, p1)
		j.expand(e, j.spec.Down, p0, p1)
		return
	}
	g, u, ld := j.hidden.data, j.tmp.data, j.hidden.stride
	e.gate.mul(g, ld, e.actG, e.r0, e.r1, p0, p1)
	if e.up != nil {
		e.up.mul(u, ld, e.actU, e.r0, e.r1, p0, p1)
	}
	j.expand(e, j.spec.Up, p0, p1)
	lo, hi := p0*kernel.PanelRows, min(p1*kernel.PanelRows, e.gate.m.Rows())
	for r := e.r0; r < e.r1; r++ {
		row := g[r*ld:][lo:hi]
		if j.spec.Act != nil {
			activate(j.spec.Act.Kind, 0, row, row)
			continue
		}
		gate(j.spec.GLU, row, row, u[r*ld:][lo:hi])
	}
}

// combineRows adds up rows [from, from+n) of the result.
func (s *scope) combineRows(from, n int) {
	j := &s.be.rows
	j.s, j.width = s, from
	s.pool.run(j, n, max(serialWork/(j.dst.cols*j.a.cols), 1), max(n/8, 1))
}

// combine sums what the experts of one row gave, in ascending order of their ids.
func (j *rowJob) combine(r int) {
	m := &j.s.be.moe
	y, w := j.dst.row(j.width+r), j.a.row(j.width+r)
	for i, p := range m.pos[r*len(w):][:len(w)] {
		if i == 0 {
			kernel.Scale(y, j.b.row(int(p)), w[i])
		} else {
			kernel.Axpy(y, j.b.row(int(p)), w[i])
		}
	}
}
