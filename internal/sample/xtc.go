package sample

import "slices"

// XTC, with a probability per token, drops all tokens that are likelier than a threshold but the least likely of them.
var (
	XTCProbability = number("xtc_probability")
	XTCThreshold   = number("xtc_threshold") // a probability among what the filters before it keep
)

var _ = add(processor{place: 10, on: func(p *Params) bool { return p.Numbers[XTCProbability] > 0 }, due: xtcStrikes, filter: xtc})

// xtcStream sets the draws that decide about XTC apart from those of tokens.
const xtcStream = 0x787463

// xtcStrikes tells whether XTC acts on the next token.
func xtcStrikes(s *Sampler) bool {
	return uniform(s.p.Seed^xtcStream, s.index) <= float64(s.p.Numbers[XTCProbability])
}

// xtc drops the candidates whose share of the candidates' mass is above the threshold, but for the least likely of them,
// its equals, and those to spare.
func xtc(s *Sampler, w *Work) {
	least := float64(s.p.Numbers[XTCThreshold]) * w.mass()
	last := float32(-1) // the largest gap among the likely
	for i := range w.cands {
		if c := &w.cands[i]; c.mass > least {
			last = max(last, c.gap)
		}
	}
	kept := w.cands[:0]
	for _, c := range w.cands {
		if c.gap >= last || slices.Contains(s.p.XTCSpare, c.id) {
			kept = append(kept, c)
		}
	}
	w.cands = kept
}
