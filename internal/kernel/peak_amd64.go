//go:build amd64 && !purego

package kernel

//go:noescape
func int8LoopAVX2(n int)

//go:noescape
func int8LoopAVXVNNI(n int)

//go:noescape
func int8LoopAVX512(n int)

//go:noescape
func int8LoopVNNI(n int)

//go:noescape
func floatLoopAVX2(n int)

//go:noescape
func floatLoopAVX512(n int)

//go:noescape
func halfLoopBF16(n int)

// int8Loop runs n turns and tells how many operations one of them is.
func int8Loop(n int) int {
	switch mulSet {
	case setAVX2:
		int8LoopAVX2(n)
		return 8 * 2 * 32
	case setAVXVNNI:
		int8LoopAVXVNNI(n)
		return 12 * 2 * 32
	case setAVX512:
		int8LoopAVX512(n)
		return 8 * 2 * 64
	case setVNNI, setBF16:
		int8LoopVNNI(n)
		return 12 * 2 * 64
	}
	return 0
}

// floatLoop is int8Loop for float32.
func floatLoop(n int) int {
	switch mulSet {
	case setAVX2, setAVXVNNI:
		floatLoopAVX2(n)
		return 12 * 2 * 8
	case setAVX512, setVNNI, setBF16:
		floatLoopAVX512(n)
		return 12 * 2 * 16
	}
	return 0
}

// halfLoop is int8Loop for bfloat16.
func halfLoop(n int) int {
	if !hasHalf() {
		return 0
	}
	halfLoopBF16(n)
	return 12 * 2 * 32
}
