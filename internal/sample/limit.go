package sample

import (
	"math"
	"math/bits"
)

// Limit restricts the next token, and no later one, to a set, which must stay as it is until that is drawn. A token that
// Take is told comes whatever it is. With nil every token may come.
func (s *Sampler) Limit(only Set) { s.only = only }

// limit makes the tokens outside a set impossible. It adds where it could assign, so that logits that are broken are found
// wherever they are: NaN stays, and +Inf becomes it.
func limit(logits []float32, only Set) {
	never := float32(math.Inf(-1))
	for len(logits) > 0 {
		block, out := logits[:min(64, len(logits))], ^uint64(0)
		if len(only) > 0 {
			out, only = ^only[0], only[1:]
		}
		logits = logits[len(block):]
		if out == ^uint64(0) {
			for i := range block {
				block[i] += never
			}
			continue
		}
		for ; out != 0; out &= out - 1 {
			if i := bits.TrailingZeros64(out); i < len(block) {
				block[i] += never
			}
		}
	}
}
