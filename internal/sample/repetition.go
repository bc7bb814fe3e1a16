package sample

import "slices"

// repetition divides positive and multiplies negative logits of recent tokens by the penalty, once per distinct
// token (arXiv 1909.05858).
func repetition(logits []float32, recent []int32, penalty float32) {
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
