package sample

import (
	"math"
	"slices"
)

// Logprob is a token with its log probability.
type Logprob struct {
	ID      int32
	Logprob float32
}

// Top appends the n most likely tokens of one row of logits to dst, most likely first, ties by lower id, and gives
// the log of the sum of exponentials, which is NaN or infinite for logits that are.
func Top(logits []float32, n int, dst []Logprob) ([]Logprob, float64) {
	n = min(n, len(logits))
	base := len(dst)
	peak := float32(math.Inf(-1))
	for i, v := range logits {
		peak = max(peak, v) // NaN wins
		if top := dst[base:]; n > 0 && (len(top) < n || v > top[n-1].Logprob) {
			at, _ := slices.BinarySearchFunc(top, v, func(t Logprob, v float32) int {
				if t.Logprob >= v {
					return -1
				}
				return 1
			})
			if len(top) == n {
				dst = dst[:len(dst)-1]
			}
			dst = slices.Insert(dst, base+at, Logprob{int32(i), v})
		}
	}
	var sum float64
	for _, v := range logits {
		sum += decay(peak - v)
	}
	lse := float64(peak) + math.Log(sum)
	for i := range dst[base:] {
		dst[base+i].Logprob = float32(float64(dst[base+i].Logprob) - lse)
	}
	return dst, lse
}
