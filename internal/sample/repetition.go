package sample

import "slices"

// RepetitionPenalty divides positive and multiplies negative logits of the last RepetitionWindow tokens, once per distinct
// token (arXiv 1909.05858); 1 is off too.
var RepetitionPenalty = number("repetition_penalty")

// RepetitionWindow is how many of the last tokens, prompt included, the repetition penalty looks at.
const RepetitionWindow = 20

var _ = add(processor{place: 10, on: func(p *Params) bool { x := p.Numbers[RepetitionPenalty]; return x != 0 && x != 1 }, edit: repetition})

func repetition(s *Sampler, logits []float32) {
	penalty, recent := s.p.Numbers[RepetitionPenalty], s.recent[:min(s.seen, RepetitionWindow)]
	for i, id := range recent {
		if id < 0 || int(id) >= len(logits) || slices.Contains(recent[:i], id) {
			continue
		}
		if logits[id] < 0 {
			logits[id] *= penalty
		} else {
			logits[id] /= penalty
		}
	}
}
