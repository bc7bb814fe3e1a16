package sample

import (
	"math"
	"math/bits"
)

// Limit restricts the next token, and no later one, to a set, which must not change until that token is drawn. It does not bind
// Take. With nil every token may come.
func (s *Sampler) Limit(mask Set) { s.mask = mask }

// limit makes the tokens outside a set impossible. It adds -Inf where it could assign it, so that broken logits are found
// wherever they are: NaN stays NaN, and +Inf becomes NaN.
func limit(logits []float32, mask Set) {
	never := float32(math.Inf(-1))
	for len(logits) > 0 {
		part, out := logits[:min(64, len(logits))], ^uint64(0)
		if len(mask) > 0 {
			out, mask = ^mask[0], mask[1:]
		}
		logits = logits[len(part):]
		if out == ^uint64(0) {
			for i := range part {
				part[i] += never
			}
			continue
		}
		for ; out != 0; out &= out - 1 {
			if i := bits.TrailingZeros64(out); i < len(part) {
				part[i] += never
			}
		}
	}
}
