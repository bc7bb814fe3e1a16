package sample

// FrequencyPenalty is subtracted from a token's logit for every time it was generated so far.
var FrequencyPenalty = number("frequency_penalty")

var _ = add(processor{place: 30, counts: true, on: func(p *Params) bool { return p.Numbers[FrequencyPenalty] != 0 }, edit: frequency})

func frequency(s *Sampler, logits []float32) {
	for id, n := range s.counts {
		if int(id) < len(logits) {
			logits[id] -= s.p.Numbers[FrequencyPenalty] * float32(n)
		}
	}
}
