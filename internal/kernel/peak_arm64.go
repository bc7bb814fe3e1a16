//go:build arm64 && !purego

package kernel

// peakSums is how many instructions a turn of a loop has.
const peakSums = 24

// int8Loop runs n turns and tells how many operations one of them is.
func int8Loop(n int) int {
	switch mulSet {
	case 0:
		int8LoopNEON(n)
		return peakSums * 2 * 8
	case 1:
		int8LoopDotProd(n)
		return peakSums * 2 * 16
	case 2:
		int8LoopI8MM(n)
		return peakSums * 2 * 32
	}
	return 0
}

// floatLoop is int8Loop for float32.
func floatLoop(n int) int {
	if mulSet < 0 {
		return 0
	}
	floatLoopNEON(n)
	return peakSums * 2 * 4
}

// halfLoop is int8Loop for bfloat16.
func halfLoop(int) int { return 0 }
