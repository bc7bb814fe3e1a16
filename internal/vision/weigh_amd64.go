//go:build amd64 && !purego

package vision

import "golang.org/x/sys/cpu"

// haveAVX2 is what the processor has; tests take it away.
var haveAVX2 = cpu.X86.HasAVX2

// weighFast is weigh where there is a routine for it: whole vectors, the last one once more over bytes that were done.
func weighFast(dst, src []byte, stride int, weights []int32) bool {
	if !haveAVX2 || len(dst) < 16 {
		return false
	}
	weighAVX2(&dst[0], &src[0], stride, len(dst), &weights[0], len(weights))
	return true
}

// weighAVX2 weighs n bytes of so many rows, at least 16 and one.
//
//go:noescape
func weighAVX2(dst, src *byte, stride, n int, weights *int32, taps int)
