package cpu

import (
	"fmt"

	"hearth/internal/backend"
	"hearth/internal/kernel"
)

// splitTokens is where a long context is cut: partial results over [n·splitTokens, (n+1)·splitTokens) of the absolute
// index merge in ascending order. Threads may share the splits of a row, but never move them.
const splitTokens = 1024

// How many queries share the loads of a tile of keys and values, at most: until reading the tile no longer shows, and
// while they and their sums, so many numbers, leave the tile room in the second cache.
const (
	blockQueries = 96
	blockNumbers = 64 << 10
	splitNumbers = 512 << 10 // of states that wait to be merged
	wholeRows    = 6         // so many rows fill register tiles, whatever the number of heads
)

// attnJob attends: every item is the query heads of a block of rows that share a key head, over all that the rows may see or,
// when there are too few blocks to keep the threads busy, over one split of it.
type attnJob struct {
	s       *scope
	spec    *backend.Attn
	layer   *layer // nil: stateless, the keys and values are arrays of the step
	half    bool   // products of bfloat16 numbers
	codes   bool   // products of codes
	i16     bool   // products of whole numbers of 16 bits
	spans   []backend.Span
	of      []int32 // span of every batch row
	q, y    *array
	k, v    *array
	sinks   []float32
	blocks  []attnBlock
	splits  int // items per block and key head at once; 0: an item does all splits of its block one after the other
	base    int // how many splits are done
	perItem []kernel.Attn
	sums    []kernel.Attn      // per block and key head, of the splits done
	scratch []kernel.Attn      // two per worker
	space   []kernel.AttnSpace // one per worker
}

// attnBlock is some query rows of one span, one after the other.
type attnBlock struct{ row, rows int }

func (s *scope) Attention(q, k, v backend.Array, a *backend.Attn) backend.Array {
	s.check.Attention(q, k, v, a)
	return s.attention(q, k, v, a)
}

// attention is the op, checked. With a latent state every key head has the same keys, whose beginning is the values.
func (s *scope) attention(q, k, v backend.Array, a *backend.Attn) backend.Array {
	h, y := s.make(q.Rows(), a.Heads*a.VDim)
	j := &s.be.attn
	j.s, j.spec, j.q, j.y, j.k, j.v, j.half, j.codes, j.i16 = s, a, s.get(q), y, nil, nil, false, false, false
	j.spans, j.of, j.layer, j.sinks, j.splits = s.batch.Spans, s.spanOf, nil, vector(a.Sinks), 0
	if a.Alt {
		j.spans, j.of = s.batch.Alt, s.altOf
	}
	if !k.IsZero() {
		j.k, j.v = s.get(k), s.get(v)
	}
	if a.State != backend.NoState {
		j.layer = &s.st.layers[a.State]
		j.i16 = j.layer.k.Type == kernel.CacheI16
		if s.st.prec <= backend.Outliers {
			j.half, j.codes = kernel.HalfAttention(&j.layer.k, &j.layer.v), kernel.CodeAttention(&j.layer.k, &j.layer.v)
		}
		if j.k != nil {
			s.be.rows = rowJob{op: opStore, store: j}
			s.each(j.k.rows, j.k.cols+j.v.cols)
		}
	}
	s.be.work.Attend += j.operations()
	j.share()
	return h
}

// operations is two per query and number of a key or a value that it looks at.
func (j *attnJob) operations() int64 {
	seen := 0
	for r := range j.q.rows {
		_, lo, hi := j.sees(r)
		seen += hi - lo
	}
	return 2 * int64(seen) * int64(j.spec.Heads) * int64(j.spec.KDim+j.spec.VDim)
}

// share splits the attention among the threads. The step's own keys and values are stored by now: queries read them back
// as stored, rounded, so that it makes no difference where a prompt was cut.
func (j *attnJob) share() {
	pool := j.s.pool
	j.tile()
	items := len(j.blocks) * j.spec.KVHeads
	for len(j.scratch) < 2*pool.size {
		j.scratch = append(j.scratch, kernel.Attn{})
		j.space = append(j.space, kernel.AttnSpace{})
	}
	if items >= 4*pool.size || pool.size == 1 {
		pool.run(j, items, 1, max(items/(16*pool.size), 1))
		return
	}
	for _, b := range j.blocks {
		first, last := j.reach(b)
		j.splits = max(j.splits, last-first)
	}
	all, most := j.splits, j.atOnce(items)
	for len(j.perItem) < items*min(all, most) {
		j.perItem = append(j.perItem, kernel.Attn{})
	}
	for len(j.sums) < items {
		j.sums = append(j.sums, kernel.Attn{})
	}
	for j.base = 0; j.base < all; j.base += most {
		j.splits = min(most, all-j.base)
		pool.run(j, items*j.splits, 1, 1)
		for i := range items {
			some := j.perItem[i*j.splits:][:j.splits]
			if j.base == 0 {
				j.sums[i], some[0], some = some[0], j.sums[i], some[1:]
			}
			for n := range some {
				j.sums[i].Merge(&some[n])
			}
		}
	}
	for i := range items {
		j.finish(&j.sums[i], j.blocks[i%len(j.blocks)], i/len(j.blocks))
	}
}

// atOnce is how many splits of every item run before they are merged: enough for every thread, and more while their
// queries and sums take little memory. A deep prompt has hundreds.
func (j *attnJob) atOnce(items int) int {
	rows := 0
	for _, b := range j.blocks {
		rows += b.rows
	}
	numbers := rows * j.spec.Heads * (j.spec.KDim + j.spec.VDim)
	return max(splitNumbers/max(numbers, 1), (4*j.s.pool.size+items-1)/max(items, 1))
}

// tile makes blocks of rows, as large as leaves work for every thread. A row's result is the same in any block.
func (j *attnJob) tile() {
	rows, spec := j.q.rows, j.spec
	queries := blockQueries
	switch {
	case j.half || j.codes || j.i16:
		queries *= 2 // their products take half as long, reading the tile does not
	case j.layer == nil:
		queries *= 4 // it takes longer to read: see kernel.Attn.Columns
	}
	most := min(queries, blockNumbers/(spec.KDim+spec.VDim)) * spec.KVHeads / spec.Heads
	if size := j.s.pool.size; size > 1 {
		most = min(most, rows*spec.KVHeads/(4*size))
	}
	most = max(most, 1)
	j.blocks = j.blocks[:0]
	for from, to := 0, 0; from < rows; from = to {
		span := j.of[j.s.batchRow(rows, from)]
		for to = from + 1; to < rows && j.of[j.s.batchRow(rows, to)] == span; {
			to++
		}
		blocks := (to - from + most - 1) / most
		each := (to - from + blocks - 1) / blocks
		if each > wholeRows {
			each = (each + wholeRows - 1) / wholeRows * wholeRows
		}
		for at := from; at < to; at += each {
			j.blocks = append(j.blocks, attnBlock{at, min(each, to-at)})
		}
	}
}

// reach is the splits [first, last) that rows of a block may look at.
func (j *attnJob) reach(b attnBlock) (first, last int) {
	_, lo, _ := j.sees(b.row)
	_, _, hi := j.sees(b.row + b.rows - 1)
	return lo / splitTokens, (hi + splitTokens - 1) / splitTokens
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
	for _, b := range j.both(sp) {
		if from, to := b.From-sp.Start+start, b.To-sp.Start+start; from <= i && i < to {
			hi = max(hi, to)
		}
	}
	if w := j.spec.Window; w > 0 {
		lo = max(i-w+1, 0)
		if j.spec.Chunks {
			lo = i / w * w
		}
		if j.spec.Both {
			hi = min(hi, i+w)
		}
	}
	return sp, lo, hi
}

// both are the ranges of a span whose tokens see each other here.
func (j *attnJob) both(sp *backend.Span) []backend.Range {
	if j.spec.OneWay {
		return nil
	}
	return sp.Both
}

func (j *attnJob) run(worker, from, to int) {
	w := &j.space[worker]
	for i := from; i < to; i++ {
		item, n := i, 0
		if j.splits > 0 {
			item, n = i/j.splits, i%j.splits
		}
		// Blocks of one key head follow each other: its keys stay in the cache.
		b, head := j.blocks[item%len(j.blocks)], item/len(j.blocks)
		first, last := j.reach(b)
		if j.splits > 0 {
			j.ask(&j.perItem[i], b, head)
			j.attend(&j.perItem[i], w, b, head, first+j.base+n, j.opening(i+1))
			continue
		}
		both := j.scratch[2*worker:][:2]
		j.ask(&both[0], b, head)
		j.attend(&both[0], w, b, head, first, nil)
		for n := first + 1; n < last; n++ {
			if n == first+1 {
				j.ask(&both[1], b, head)
			} else {
				both[1].Restart()
			}
			j.attend(&both[1], w, b, head, n, nil)
			both[0].Merge(&both[1])
		}
		j.finish(&both[0], b, head)
	}
}

// opening is the first keys of item i, a split, or nil. A thread fetches them while it ends the item before.
func (j *attnJob) opening(i int) []byte {
	item, n := i/j.splits, i%j.splits
	head := item / len(j.blocks)
	if head >= j.spec.KVHeads || j.layer == nil {
		return nil
	}
	b := j.blocks[item%len(j.blocks)]
	first, last := j.reach(b)
	if n += first + j.base; n >= last {
		return nil
	}
	sp, lo, _ := j.sees(b.row)
	return j.keys(sp, max(lo, n*splitTokens)/backend.PageTokens, head)
}

// keys are those of a head on page p of a span, nil if the page is released.
func (j *attnJob) keys(sp *backend.Span, p, head int) []byte {
	page := sp.Table.Pages[j.layer.group][p]
	if page <= 0 {
		return nil
	}
	k, _ := j.s.st.head(j.layer, page, head)
	return k.Data
}

// ask gives a the queries of a block and key head.
func (j *attnJob) ask(a *kernel.Attn, b attnBlock, head int) {
	a.Heads, a.KDim, a.VDim = j.spec.Heads/j.spec.KVHeads, j.spec.KDim, j.spec.VDim
	a.Scale, a.Cap, a.Half, a.Codes, a.I16, a.Columns = j.spec.Scale, j.spec.Cap, j.half, j.codes, j.i16, j.layer == nil
	a.Reset(b.rows)
	cols := a.Heads * a.KDim
	for r := range b.rows {
		_, lo, hi := j.sees(b.row + r)
		a.SetRow(r, j.q.row(b.row + r)[head*cols:][:cols], lo, hi)
	}
}

// attend runs them over split n. The thread is likely to go on with the keys at after.
func (j *attnJob) attend(a *kernel.Attn, w *kernel.AttnSpace, b attnBlock, head, n int, after []byte) {
	sp, from, _ := j.sees(b.row)
	_, _, to := j.sees(b.row + b.rows - 1)
	from, to = max(from, n*splitTokens), min(to, (n+1)*splitTokens)
	if from >= to {
		return
	}
	if j.layer == nil {
		k := kernel.FloatRows(j.k.data[sp.Row*j.k.stride+head*a.KDim:], a.KDim, j.k.stride)
		v := kernel.FloatRows(j.v.data[sp.Row*j.v.stride+head*a.VDim:], a.VDim, j.v.stride)
		kernel.Attend(a, w, &k, &v, 0, from, to)
		return
	}
	pages := sp.Table.Pages[j.layer.group]
	for p := from / backend.PageTokens; p*backend.PageTokens < to; p++ {
		base := p * backend.PageTokens
		if pages[p] <= 0 {
			panic(fmt.Sprintf("cpu: Attention: index %d of state %s is on a released page", base, j.s.st.specs[j.layer.state].Name))
		}
		k, v := j.s.st.head(j.layer, pages[p], head)
		w.Next = after
		if base+backend.PageTokens < to {
			w.Next = j.keys(sp, p+1, head)
		}
		kernel.Attend(a, w, &k, &v, base, max(from, base), min(to, base+backend.PageTokens))
	}
}

// finish writes the results of a block and key head.
func (j *attnJob) finish(a *kernel.Attn, b attnBlock, head int) {
	n := j.spec.Heads / j.spec.KVHeads
	var sinks []float32
	if j.sinks != nil {
		sinks = j.sinks[head*n:][:n]
	}
	cols := n * j.spec.VDim
	for r := range b.rows {
		a.Finish(r, j.y.row(b.row + r)[head*cols:][:cols], sinks)
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
