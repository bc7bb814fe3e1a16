package backend

import "fmt"

// ScoreKind is how a router turns scores into weights.
type ScoreKind uint8

const (
	Softmax         ScoreKind = iota // over all experts, then pick
	SoftmaxSelected                  // pick on raw scores, softmax over the picked
	Sigmoid                          // of each score
)

// Router picks K experts of every row: those with the highest scores, ties to the lower id. All in f32 or better.
type Router struct {
	Score  ScoreKind
	K      int
	Renorm bool    // picked weights are divided by their sum
	Least  float32 // of Sigmoid's: added to that sum; 0 means 1e-20
	Scale  float32 // of the weights, after that; 0 means 1
	Each   Weight  // a factor of the weight per expert, after that; nil: none

	Bias Weight // of Softmax's and Sigmoid's, added for picking only; nil: none
	// With Groups, only experts of the TopGroups best groups are picked. A group is worth its best expert or, with
	// Sigmoid, the sum of its two best.
	Groups, TopGroups int
	TwoBest           bool // the sum of two with Softmax as well
}

// Routing is the result of Route, one column per picked expert: ids (I32), which ascend within a row, and weights.
type Routing struct{ IDs, Weights Array }

// Experts are Count MLPs of one shape. Down is a UseExperts weight. Up is a UseExpertGLU weight with GLU, and a
// UseExperts weight with Act, whose kind has no parameters.
type Experts struct {
	Up, Down Weight
	GLU      *GLU
	Act      *Activation
}

// hidden is how many columns come between Up and Down.
func (e *Experts) hidden() int {
	if e.Act != nil {
		return e.Up.Out()
	}
	return e.Up.Out() / 2
}

// Route checks the op of that name.
func (c Check) Route(scores Array, r *Router) {
	if r.K <= 0 || r.K > scores.Cols() {
		fail("Route: %d of %d experts", r.K, scores.Cols())
	}
	if r.Bias != nil && r.Bias.Out() != scores.Cols() {
		fail("Route: a bias of %d entries for %d experts", r.Bias.Out(), scores.Cols())
	}
	if r.Each != nil && r.Each.Out() != scores.Cols() {
		fail("Route: %d factors for %d experts", r.Each.Out(), scores.Cols())
	}
	if r.Groups > 1 && (scores.Cols()%r.Groups != 0 || scores.Cols() == r.Groups || r.TopGroups <= 0 || r.TopGroups > r.Groups) {
		fail("Route: %d of %d groups of %d experts", r.TopGroups, r.Groups, scores.Cols())
	}
	if r.Score == SoftmaxSelected && (r.Bias != nil || r.Groups > 1) || r.Score == Softmax && r.Bias != nil && r.Groups > 1 {
		fail("Route: a bias or groups with scores of kind %d", r.Score)
	}
}

// MoE checks the op of that name.
func (c Check) MoE(x Array, r Routing, e *Experts) {
	if x.Cols() != e.Up.In() || e.GLU != nil && e.Up.Out()%2 != 0 || (e.GLU == nil) == (e.Act == nil) || e.Down.In() != e.hidden() || e.Down.Count() != e.Up.Count() {
		fail("MoE: x has %d columns, %d experts take %d and give %d, %d take %d", x.Cols(),
			e.Up.Count(), e.Up.In(), e.Up.Out(), e.Down.Count(), e.Down.In())
	}
	if r.IDs.Rows() != x.Rows() || r.Weights.Rows() != x.Rows() || r.IDs.Cols() != r.Weights.Cols() || r.IDs.DType() != I32 {
		fail("MoE: %d rows with %d×%d ids (%v) and %d×%d weights", x.Rows(),
			r.IDs.Rows(), r.IDs.Cols(), r.IDs.DType(), r.Weights.Rows(), r.Weights.Cols())
	}
}

// Stacked reports a weight of Count matrices: a backend loads each as what Expert says.
func (s *WeightSpec) Stacked() bool {
	return s.Use == UseExperts || s.Use == UseExpertGLU || s.Use == UseHeads
}

// Expert is the spec of one expert of a stacked weight, which a backend loads like any other: it refers to the same bytes.
// Parts are either stacked tensors, one per output group, or one tensor per expert, all experts of a group after one another.
func (s *WeightSpec) Expert(e int) (WeightSpec, error) {
	one := *s
	if err := s.checkAdapters(); err != nil {
		return one, err
	}
	one.Name, one.Count, one.Parts = fmt.Sprintf("%s, expert %d", s.Name, e), 1, nil
	one.Use = UseLinear
	if s.Use == UseExpertGLU {
		one.Use = UseGLU
	}
	alone := s.Count == 1 && len(s.Parts) > 0 && s.Parts[0].Weight != nil && len(s.Parts[0].Weight.Shape) == 2
	if len(s.Parts) > len(s.Out) || alone {
		if len(s.Parts)%s.Count != 0 {
			return one, fmt.Errorf("%d parts for %d experts", len(s.Parts), s.Count)
		}
		for i := e; i < len(s.Parts); i += s.Count {
			one.Parts = append(one.Parts, s.Parts[i])
		}
		return one, nil
	}
	for i := range s.Parts {
		p, err := s.Parts[i].expert(e, s.Count)
		if err != nil {
			return one, err
		}
		one.Parts = append(one.Parts, p)
	}
	return one, nil
}

// expert is the share of expert e of n in a stacked part.
func (p *Part) expert(e, n int) (one Part, err error) {
	one = *p
	for _, t := range []**Tensor{&one.Weight, &one.Scales, &one.Biases, &one.Global, &one.Bias} {
		if *t == nil {
			continue
		}
		k := **t
		if len(k.Shape) == 0 || k.Shape[0] != n || len(k.Bytes)%n != 0 {
			return one, fmt.Errorf("tensor %s has shape %v, expected %d experts", k.Name, k.Shape, n)
		}
		size := len(k.Bytes) / n
		k.Bytes, k.Shape = k.Bytes[e*size:(e+1)*size], k.Shape[1:]
		*t = &k
	}
	one.Adapter = p.Adapter.expert(e, n)
	return one, nil
}
