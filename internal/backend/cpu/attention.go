package cpu

import (
	"fmt"

	"hearth/internal/backend"
	"hearth/internal/kernel"
)

// splitTokens is where a long context is cut: partial results over [n·splitTokens, (n+1)·splitTokens) of the absolute
// index merge in ascending order. Threads may share the splits of a row, but never move them.
const splitTokens = 1024

// attnJob attends: every item is the query heads of one row that share a key head, over all the row may see or, when
// there are too few rows to keep the threads busy, over one split of it.
type attnJob struct {
	s       *scope
	spec    *backend.Attn
	layer   *layer // nil: stateless, the keys and values are arrays of the step
	spans   []backend.Span
	of      []int32 // span of every batch row
	q, y    *array
	k, v    *array
	sinks   []float32
	splits  int // items per row and key head; 0: an item does all splits of its row one after the other
	perItem []kernel.Attn
	scratch []kernel.Attn // two per worker
}

func (s *scope) Attention(q, k, v backend.Array, a *backend.Attn) backend.Array {
	s.check.Attention(q, k, v, a)
	h, y := s.make(q.Rows(), a.Heads*a.VDim)
	j := &s.be.attn
	j.s, j.spec, j.q, j.y, j.k, j.v = s, a, s.get(q), y, nil, nil
	j.spans, j.of, j.layer, j.sinks, j.splits = s.batch.Spans, s.spanOf, nil, vector(a.Sinks), 0
	if a.Alt {
		j.spans, j.of = s.batch.Alt, s.altOf
	}
	if !k.IsZero() {
		j.k, j.v = s.get(k), s.get(v)
	}
	if a.State != backend.NoState {
		j.layer = &s.st.layers[a.State]
		if j.k != nil {
			s.be.rows = rowJob{op: opStore, store: j}
			s.each(j.k.rows, j.k.cols+j.v.cols)
		}
	}
	j.share()
	return h
}

// share splits the attention among the threads. The step's own keys and values are stored by now: queries read them back
// as stored, rounded, so that it makes no difference where a prompt was cut.
func (j *attnJob) share() {
	rows, pool := j.q.rows, j.s.pool
	items := rows * j.spec.KVHeads
	for len(j.scratch) < 2*pool.size {
		j.scratch = append(j.scratch, kernel.Attn{})
	}
	if items >= 4*pool.size || pool.size == 1 {
		pool.run(j, items, 1, max(items/(16*pool.size), 1))
		return
	}
	for r := range rows {
		_, lo, hi := j.sees(r)
		j.splits = max(j.splits, (hi+splitTokens-1)/splitTokens-lo/splitTokens)
	}
	for len(j.perItem) < items*j.splits {
		j.perItem = append(j.perItem, kernel.Attn{})
	}
	pool.run(j, items*j.splits, 1, 1)
	for i := range items {
		j.finish(i/j.spec.KVHeads, i%j.spec.KVHeads, j.perItem[i*j.splits:][:j.splits])
	}
}

// sees is the span of query row r and the indices [lo, hi) that the query may look at.
func (j *attnJob) sees(r int) (sp *backend.Span, lo, hi int) {
	row := j.s.batchRow(j.q.rows, r)
	sp = &j.spans[j.of[row]]
	start := sp.Start
	if j.layer == nil {
		start = 0
	}
	i := start + row - sp.Row
	hi = i + 1
	if j.spec.Both {
		hi = start + sp.Len
	}
	for _, b := range sp.Both {
		if from, to := b.From-sp.Start+start, b.To-sp.Start+start; from <= i && i < to {
			hi = max(hi, to)
		}
	}
	if w := j.spec.Window; w > 0 {
		lo = max(i-w+1, 0)
	}
	return sp, lo, hi
}

func (j *attnJob) run(worker, from, to int) {
	for i := from; i < to; i++ {
		if j.splits > 0 {
			j.oneSplit(i)
			continue
		}
		// Rows of one key head follow each other: its keys stay in the cache.
		j.allSplits(worker, i%j.q.rows, i/j.q.rows)
	}
}

func (j *attnJob) reset(a *kernel.Attn) {
	a.Heads, a.KDim, a.VDim = j.spec.Heads/j.spec.KVHeads, j.spec.KDim, j.spec.VDim
	a.Scale, a.Cap = j.spec.Scale, j.spec.Cap
	a.Reset()
}

func (j *attnJob) oneSplit(i int) {
	a, n := &j.perItem[i], i%j.splits
	i /= j.splits
	r, head := i/j.spec.KVHeads, i%j.spec.KVHeads
	sp, lo, hi := j.sees(r)
	n += lo / splitTokens
	j.reset(a)
	j.attend(a, r, head, sp, max(lo, n*splitTokens), min(hi, (n+1)*splitTokens))
}

func (j *attnJob) allSplits(worker, r, head int) {
	both := j.scratch[2*worker:][:2]
	sp, lo, hi := j.sees(r)
	for n := lo / splitTokens; n*splitTokens < hi; n++ {
		a := &both[1]
		if n == lo/splitTokens {
			a = &both[0]
		}
		j.reset(a)
		j.attend(a, r, head, sp, max(lo, n*splitTokens), min(hi, (n+1)*splitTokens))
		if a != &both[0] {
			both[0].Merge(a)
		}
	}
	j.finish(r, head, both[:1])
}

// finish merges the splits of one row and key head and writes the result. Splits past the row's last have seen nothing
// and change nothing.
func (j *attnJob) finish(r, head int, splits []kernel.Attn) {
	for n := range splits[1:] {
		if _, lo, hi := j.sees(r); (lo/splitTokens+n+1)*splitTokens < hi {
			splits[0].Merge(&splits[n+1])
		}
	}
	n := j.spec.Heads / j.spec.KVHeads
	var sinks []float32
	if j.sinks != nil {
		sinks = j.sinks[head*n:][:n]
	}
	splits[0].Finish(j.y.row(r)[head*n*j.spec.VDim:][:n*j.spec.VDim], sinks)
}

// attend runs the queries of row r and key head over indices [from, to).
func (j *attnJob) attend(a *kernel.Attn, r, head int, sp *backend.Span, from, to int) {
	if from >= to {
		return
	}
	n := a.Heads * a.KDim
	q := j.q.row(r)[head*n:][:n]
	if j.layer == nil {
		k := kernel.FloatRows(j.k.data[sp.Row*j.k.stride+head*a.KDim:], a.KDim, j.k.stride)
		v := kernel.FloatRows(j.v.data[sp.Row*j.v.stride+head*a.VDim:], a.VDim, j.v.stride)
		kernel.Attend(a, q, &k, &v, 0, from, to)
		return
	}
	pages := sp.Table.Pages[j.layer.group]
	for p := from / backend.PageTokens; p*backend.PageTokens < to; p++ {
		base := p * backend.PageTokens
		if pages[p] <= 0 {
			panic(fmt.Sprintf("cpu: Attention: index %d of state %s is on a released page", base, j.s.st.specs[j.layer.state].Name))
		}
		k, v := j.s.st.head(j.layer, pages[p], head)
		kernel.Attend(a, q, &k, &v, base, max(from, base), min(to, base+backend.PageTokens))
	}
}

// write stores the key and value of batch row r.
func (j *attnJob) write(r int) {
	sp := &j.spans[j.of[r]]
	at := sp.Start + r - sp.Row
	page := sp.Table.Pages[j.layer.group][at/backend.PageTokens]
	for h := range j.layer.heads {
		k, v := j.s.st.head(j.layer, page, h)
		k.Set(at%backend.PageTokens, j.k.row(r)[h*k.Width:][:k.Width])
		v.Set(at%backend.PageTokens, j.v.row(r)[h*v.Width:][:v.Width])
	}
}
