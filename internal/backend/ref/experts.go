package ref

import (
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
	for row := range n {
		x := s.get(scores).row(row)
		sel := x
		switch {
		case r.Score == B.Sigmoid:
			sel = sigmoidScores(r, x)
		case r.Bias != nil:
			sel = softmaxScores(x, r.Bias.(*weight).w)
		case r.Groups > 1:
			sel = bestGroups(r, x)
		}
		all := make([]int, len(x))
		for i := range all {
			all[i] = i
		}
		slices.SortStableFunc(all, func(a, b int) int { return -compare(sel[a], sel[b]) })
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

// sigmoidScores are what a row's experts are picked by.
func sigmoidScores(r *B.Router, x []float64) []float64 {
	sel := make([]float64, len(x))
	for e, v := range x {
		sel[e] = act(B.SigmoidAct, 0, v)
		if r.Bias != nil {
			sel[e] += r.Bias.(*weight).w[e]
		}
	}
	if r.Groups <= 1 {
		return sel
	}
	return bestPairs(r, sel)
}

// bestPairs leaves the scores of the groups whose two best experts add up to most.
func bestPairs(r *B.Router, sel []float64) []float64 {
	n := len(sel) / r.Groups
	var best []float64
	order := make([]int, r.Groups)
	for g := range order {
		group := slices.Sorted(slices.Values(sel[g*n : (g+1)*n]))
		order[g], best = g, append(best, group[n-1]+group[n-2])
	}
	slices.SortStableFunc(order, func(a, b int) int { return -compare(best[a], best[b]) })
	for _, g := range order[r.TopGroups:] {
		fill(sel[g*n:(g+1)*n], math.Inf(-1))
	}
	return sel
}

// softmaxScores are what a row's experts are picked by where a bias corrects the choice of a softmax.
func softmaxScores(x, bias []float64) []float64 {
	top, sum := slices.Max(x), 0.0
	for _, v := range x {
		sum += math.Exp(v - top)
	}
	sel := make([]float64, len(x))
	for e, v := range x {
		sel[e] = math.Exp(v-top)/sum + bias[e]
	}
	return sel
}

// bestGroups leaves the scores of the groups that have the best experts.
func bestGroups(r *B.Router, x []float64) []float64 {
	if r.TwoBest {
		return bestPairs(r, softmaxScores(x, make([]float64, len(x))))
	}
	n := len(x) / r.Groups
	groups := slices.Collect(slices.Chunk(slices.Clone(x), n))
	order := slices.Clone(groups)
	slices.SortStableFunc(order, func(a, b []float64) int { return -compare(slices.Max(a), slices.Max(b)) })
	for _, g := range order[r.TopGroups:] {
		fill(g, math.Inf(-1))
	}
	return slices.Concat(groups...)
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
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
