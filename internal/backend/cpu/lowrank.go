package cpu

import (
	"sort"

	"hearth/internal/backend"
	"hearth/internal/kernel"
)

// low is a low-rank addition to the outputs [from, from+n) of a weight: up·(down·x).
type low struct {
	from, n, rank int
	down          []float32 // [rank, in]
	up            []float32 // [rank, n]: columns of the adapter follow each other
}

// lows are the additions to rows [from, to) of a stack, counted from from.
func lows(k *backend.Stack, from, to int) []low {
	var all []low
	for _, a := range k.Adapters() {
		rows := len(a.Up) / a.Rank
		lo, hi := max(a.From, from), min(a.From+rows, to)
		if lo >= hi {
			continue
		}
		l := low{from: lo - from, n: hi - lo, rank: a.Rank, down: a.Down, up: make([]float32, 0, (hi-lo)*a.Rank)}
		for j := range a.Rank {
			for r := lo; r < hi; r++ {
				l.up = append(l.up, a.Up[(r-a.From)*a.Rank+j])
			}
		}
		all = append(all, l)
	}
	return all
}

// ranks is how many numbers the additions reduce a row to.
func ranks(all []low) (n int) {
	for _, l := range all {
		n += l.rank
	}
	return n
}

// reduce leaves down·x in z, for all of a weight's additions.
func reduce(all []low, z, x []float32) {
	at := 0
	for _, l := range all {
		for j := range l.rank {
			z[at] = kernel.Dot(l.down[j*len(x):][:len(x)], x)
			at++
		}
	}
}

// expand adds to outputs [lo, hi), which y begins with.
func expand(all []low, y, z []float32, lo, hi int) {
	at := 0
	for _, l := range all {
		from, to := max(lo, l.from), min(hi, l.from+l.n)
		for j := range l.rank {
			if from < to {
				kernel.Axpy(y[from-lo:to-lo], l.up[j*l.n:][from-l.from:to-l.from], z[at])
			}
			at++
		}
	}
}

// adapt adds all of a weight's low-rank additions to y, its product with x.
func (s *scope) adapt(x, y *array, all []low) {
	if len(all) == 0 {
		return
	}
	_, z := s.make(x.rows, ranks(all))
	s.be.rows = rowJob{op: opLow, dst: y, a: x, b: z, low: all}
	s.each(x.rows, x.cols*ranks(all))
}

// readLow adds to row r of a table.
func readLow(all []low, y []float32, r int) {
	for _, l := range all {
		for j := range l.rank {
			if i := r - l.from; i >= 0 && i < l.n {
				kernel.Axpy(y, l.down[j*len(y):][:len(y)], l.up[j*l.n+i])
			}
		}
	}
}

// lowRanks is the most that any expert's additions reduce a row to.
func lowRanks(w backend.Weight) (n int) {
	for _, e := range w.(*experts).each {
		n = max(n, ranks(e.low)+ranks(e.lowUp))
	}
	return n
}

// reduce does what the additions of a block's pairs need before their products.
func (j *moeJob) reduce(from, to int) {
	i := sort.Search(len(j.active), func(i int) bool { return j.active[i].r1 > from })
	for p := from; p < to; p++ {
		if j.active[i].r1 == p {
			i++
		}
		x, all := j.hidden, j.spec.Down
		row := p
		if j.phase == moeReduceUp {
			x, all, row = j.x, j.spec.Up, int(j.src[p])
		}
		w := all.(*experts).each[j.active[i].id]
		reduce(w.low, j.z.row(p), x.row(row))
		reduce(w.lowUp, j.z.row(p)[ranks(w.low):], x.row(row))
	}
}

// expand adds to the outputs of panels [p0, p1) of one expert's pairs.
func (j *moeJob) expand(e *activeExpert, all backend.Weight, p0, p1 int) {
	if j.z == nil {
		return
	}
	w := all.(*experts).each[e.id]
	lo, hi := p0*kernel.PanelRows, min(p1*kernel.PanelRows, e.gate.m.Rows())
	for r := e.r0; r < e.r1; r++ {
		z := j.z.row(r)
		if j.phase == moeDown {
			expand(w.low, j.out.row(r)[lo:hi], z, lo, hi)
			continue
		}
		expand(w.low, j.hidden.row(r)[lo:hi], z, lo, hi)
		expand(w.lowUp, j.tmp.row(r)[lo:hi], z[ranks(w.low):], lo, hi)
	}
}
