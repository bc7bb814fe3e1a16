package sample

import (
	"math"
	"slices"
)

// cand is a token that may be drawn. gap is how far its logit lies below the largest one; mass is e^-gap.
type cand struct {
	gap  float32
	id   int32
	mass float64
}

// near is the gap within which the candidates of usual filters lie. Only when a filter wants more is every token made a
// candidate. So a row of logits costs one pass, and the filters work on hundreds of candidates, not on the vocabulary.
const near = 12

// everything is the gap within which all tokens that can come lie. A logit of -Inf lies infinitely far below: not even rounding
// may draw its token.
const everything float32 = math.MaxFloat32

// candidates returns the tokens that pass all filters, by ascending id. top_p, min_p and top_k each keep those above some logit
// of one and the same distribution, so applying them to the whole one in any order gives what mlx-lm gets one after the other.
// Processors come after top_p and min_p and need all that those keep.
func (s *Sampler) candidates(logits []float32, peak float32, w *Work) []cand {
	limit := everything
	if s.p.MinP > 0 {
		limit = minP(s.p.MinP)
	}
	topP, topK := s.p.TopP > 0 && s.p.TopP < 1, s.p.TopK > 0 && s.p.TopK < len(logits)
	first := limit
	if (topP || topK) && !slices.ContainsFunc(s.filters, s.due) {
		first = min(limit, near)
	}
	total := w.gather(logits, peak, first, topP)
	if first < limit && (topK && len(w.cands) < s.p.TopK || topP && w.mass() < float64(s.p.TopP)*total) {
		w.gather(logits, peak, limit, false)
	}
	if topP {
		w.truncate(w.topP(float64(s.p.TopP) * total))
	}
	for _, pr := range s.filters {
		if s.due(pr) {
			pr.filter(s, w)
		}
	}
	if topK && len(w.cands) > s.p.TopK {
		w.topK(s.p.TopK)
	}
	return w.cands
}

// due tells whether a filter acts on the next token.
func (s *Sampler) due(pr *processor) bool { return pr.due == nil || pr.due(s) }

// gather makes candidates of the tokens within limit of the peak. With all it also returns the mass of the whole
// vocabulary.
func (w *Work) gather(logits []float32, peak, limit float32, all bool) (total float64) {
	cands := w.cands[:0]
	for i, v := range logits {
		gap := peak - v
		if gap > limit && !all {
			continue
		}
		mass := decay(gap)
		total += mass
		if gap <= limit {
			cands = append(cands, cand{gap, int32(i), mass})
		}
	}
	w.cands = cands
	return total
}

func (w *Work) mass() (sum float64) {
	for i := range w.cands {
		sum += w.cands[i].mass
	}
	return sum
}

// truncate drops the candidates that lie further than limit below the largest logit.
func (w *Work) truncate(limit float32) {
	kept := w.cands[:0]
	for _, c := range w.cands {
		if c.gap <= limit {
			kept = append(kept, c)
		}
	}
	w.cands = kept
}

// pick draws from the candidates at a temperature: the first one at which the running sum of weights passes u of the
// total.
func pick(kept []cand, temperature float32, u float64) int32 {
	var total float64
	for i := range kept {
		c := &kept[i]
		if temperature != 1 {
			c.mass = decay(c.gap / temperature)
		}
		total += c.mass
	}
	last := int32(0)
	left := u * total
	for _, c := range kept {
		if c.mass == 0 {
			continue
		}
		last = c.id
		if left -= c.mass; left < 0 {
			break
		}
	}
	return last
}
