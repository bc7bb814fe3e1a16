package sample

// PresencePenalty is subtracted once from the logit of every token generated so far.
var PresencePenalty = number("presence_penalty")

var _ = add(processor{place: 20, counts: true, on: func(p *Params) bool { return p.Numbers[PresencePenalty] != 0 }, edit: presence})

func presence(s *Sampler, logits []float32) {
	for id := range s.counts {
		if int(id) < len(logits) {
			logits[id] -= s.p.Numbers[PresencePenalty]
		}
	}
}
