package sample

import "math"

// minP is the largest gap a token may have whose probability is at least p times that of the most likely one.
func minP(p float32) float32 {
	return float32(-math.Log(min(float64(p), 1)))
}
