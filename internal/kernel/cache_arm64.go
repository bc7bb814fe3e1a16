//go:build arm64 && !purego

package kernel

import "unsafe"

// n is a multiple of 8, of 16 for 4-bit codes.

func toF16Asm(dst []uint16, src []float32) bool {
	if !useNEON {
		return false
	}
	n, left := rest(len(dst), 8)
	if n > 0 {
		toF16NEON(ptr(dst), ptr(src), n, largestHalf)
	}
	for i := n; i < n+left; i++ {
		dst[i] = half(src[i])
	}
	return true
}

func extremesAsm(x []float32) (lo, hi float32, finite, ok bool) {
	if !useNEON || len(x)%8 != 0 || len(x) == 0 {
		return
	}
	var out [3]float32
	extremesNEON(ptr(out[:]), ptr(x), len(x))
	return out[0], out[1], out[2] == 0, true
}

// putCodesAsm takes groups that begin and end where bytes of codes do.
func putCodesAsm(codes []byte, x []float32, at int, t CacheType, scale, bias float32) bool {
	switch {
	case !useNEON || len(x) == 0:
		return false
	case t == CacheQ8 && len(x)%8 == 0:
		codes8NEON(unsafe.Pointer(&codes[at]), ptr(x), len(x), scale, bias)
	case t == CacheQ4 && len(x)%16 == 0 && at%16 == 0:
		codes4NEON(unsafe.Pointer(&codes[at/2]), ptr(x), len(x), scale, bias)
	default:
		return false
	}
	return true
}
