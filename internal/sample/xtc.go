package sample

import "slices"

// xtcStream sets the draws that decide about XTC apart from those of tokens.
const xtcStream = 0x787463

// excludes tells whether XTC strikes at the next token.
func (s *Sampler) excludes() bool {
	return s.p.XTCProbability > 0 && uniform(s.p.Seed^xtcStream, s.index) <= float64(s.p.XTCProbability)
}

// exclude drops the candidates whose share of the candidates' mass is above threshold, but for the least likely of them,
// its equals, and those to spare.
func (w *Work) exclude(threshold float32, spare []int32) {
	least := float64(threshold) * w.mass()
	last := float32(-1) // the largest gap among the likely
	for i := range w.cands {
		if c := &w.cands[i]; c.mass > least {
			last = max(last, c.gap)
		}
	}
	kept := w.cands[:0]
	for _, c := range w.cands {
		if c.gap >= last || slices.Contains(spare, c.id) {
			kept = append(kept, c)
		}
	}
	w.cands = kept
}
