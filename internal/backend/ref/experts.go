package ref

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	B "hearth/internal/backend"
)

// experts are weights apart.
type experts struct {
	*weight // the first, for its sizes
	each    []*weight
}

func (e *experts) Count() int { return len(e.each) }

func (loader) loadExperts(s B.WeightSpec) (B.Weight, error) {
	w := &experts{}
	for e := range s.Count {
		one, err := s.Expert(e)
		if err != nil {
			return nil, err
		}
		k, err := loader{}.Load(one)
		if err != nil {
			return nil, fmt.Errorf("expert %d: %w", e, err)
		}
		w.each = append(w.each, k.(*weight))
	}
	w.weight = w.each[0]
	return w, nil
}

func (s *scope) Route(scores B.Array, r *B.Router) B.Routing {
	s.check.Route(scores, r)
	n := scores.Rows()
	ids, id := s.make(n, r.K)
	weights, w := s.make(n, r.K)
	slot, gen := ids.Slot()
	ids = B.Handle(slot, gen, n, r.K, B.I32)
	var bias []float64
	if r.Bias != nil {
		bias = r.Bias.(*weight).w
	}
	for row := range n {
		x := s.get(scores).row(row)
		sel := x
		switch {
		case r.Score == B.Sigmoid:
			sel = sigmoidScores(x, bias)
		case bias != nil || r.TwoBest && r.Groups > 1:
			sel = softmaxScores(x, bias)
		}
		if r.Groups > 1 {
			sel = bestGroups(r, sel)
		}
		all := make([]int, len(x))
		for i := range all {
			all[i] = i
		}
		slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(sel[b], sel[a]) })
		picked := all[:r.K]
		slices.Sort(picked)
		over := picked
		if r.Score == B.Softmax {
			over = all
		}
		top, sum := math.Inf(-1), 0.0
		for _, e := range over {
			top = max(top, x[e])
		}
		for _, e := range over {
			sum += math.Exp(x[e] - top)
		}
		total := 0.0
		for i, e := range picked {
			id.row(row)[i] = float64(e)
			w.row(row)[i] = math.Exp(x[e]-top) / sum
			if r.Score == B.Sigmoid {
				w.row(row)[i] = act(B.SigmoidAct, 0, x[e])
			}
			total += w.row(row)[i]
		}
		for i := range picked {
			if r.Renorm {
				w.row(row)[i] /= total + max(float64(r.Least), 1e-20)
			}
			if r.Scale != 0 {
				w.row(row)[i] *= float64(r.Scale)
			}
			if r.Each != nil {
				w.row(row)[i] *= r.Each.(*weight).w[picked[i]]
			}
		}
	}
	return B.Routing{IDs: ids, Weights: weights}
}

// sigmoidScores are what a row's experts are picked by; bias may be nil.
func sigmoidScores(x, bias []float64) []float64 {
	sel := make([]float64, len(x))
	for e, v := range x {
		sel[e] = act(B.SigmoidAct, 0, v)
	}
	return plus(sel, bias)
}

// softmaxScores are the same of a softmax.
func softmaxScores(x, bias []float64) []float64 {
	top, sum := slices.Max(x), 0.0
	for _, v := range x {
		sum += math.Exp(v - top)
	}
	sel := make([]float64, len(x))
	for e, v := range x {
		sel[e] = math.Exp(v-top) / sum
	}
	return plus(sel, bias)
}

func plus(x, bias []float64) []float64 {
	for e, v := range bias {
		x[e] += v
	}
	return x
}

// bestGroups leaves the scores of the groups that have the best experts, or whose two best ones add up to most.
func bestGroups(r *B.Router, x []float64) []float64 {
	sel := slices.Clone(x)
	groups := slices.Collect(slices.Chunk(sel, len(sel)/r.Groups))
	worth := func(group []float64) float64 {
		best := slices.Sorted(slices.Values(group))
		if n := len(best); r.Score == B.Sigmoid || r.TwoBest {
			return best[n-1] + best[n-2]
		}
		return best[len(best)-1]
	}
	slices.SortStableFunc(groups, func(a, b []float64) int { return cmp.Compare(worth(b), worth(a)) })
	for _, g := range groups[r.TopGroups:] {
		fill(g, math.Inf(-1))
	}
	return sel
}

func (s *scope) MoE(x B.Array, r B.Routing, e *B.Experts) B.Array {
	s.check.MoE(x, r, e)
	up, down := e.Up.(*experts), e.Down.(*experts)
	h, y := s.make(x.Rows(), down.out)
	for row := range x.Rows() {
		for i, id := range s.get(r.IDs).row(row) {
			both := linear(&array{cols: x.Cols(), v: s.get(x).row(row)}, up.each[int(id)])
			n := down.in
			hidden := &array{cols: n, v: make([]float64, n)}
			for c := range n {
				if e.Act != nil {
					hidden.v[c] = act(e.Act.Kind, 0, both.v[c])
				} else {
					hidden.v[c] = gate(e.GLU, both.v[c], both.v[n+c])
				}
			}
			for c, v := range linear(hidden, down.each[int(id)]).v {
				y.row(row)[c] += s.get(r.Weights).row(row)[i] * v
			}
		}
	}
	return h
}
