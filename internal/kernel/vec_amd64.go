//go:build amd64 && !purego

package kernel

import "unsafe"

// The routines of vec_amd64.s take a multiple of 8 elements (dots: of 32), at least one. Here the rest of a slice goes
// through the same routine in a zero-padded copy, so that an element's bits do not depend on where in a slice it is.

//go:noescape
func addAVX2(dst, a, b unsafe.Pointer, n int)

//go:noescape
func axpyAVX2(y, x unsafe.Pointer, n int, f float32)

//go:noescape
func dotAVX2(a, b, sum unsafe.Pointer, n int)

//go:noescape
func scaleMulAVX2(dst, x, w unsafe.Pointer, n int, f float32)

//go:noescape
func ropeAVX2(lo, hi, cos, sin unsafe.Pointer, n int)

//go:noescape
func siluMulAVX2(dst, gate, up unsafe.Pointer, n int)

//go:noescape
func expAVX2(dst, x, sum unsafe.Pointer, n int, off float32)

//go:noescape
func toBF16AVX2(dst, src unsafe.Pointer, n int)

//go:noescape
func fromBF16AVX2(dst, src unsafe.Pointer, n int)

//go:noescape
func quantizeAVX2(q, scale, sum, offset, x unsafe.Pointer, groups, group int)

//go:noescape
func quantize16AVX2(q, scale, sum, offset, x unsafe.Pointer, groups int)

//go:noescape
func readAVX2(b unsafe.Pointer, n int)

// The routines of vec512_amd64.s take any number of elements, at least one.

//go:noescape
func dotAVX512(a, b unsafe.Pointer, n int) float32

//go:noescape
func siluMulAVX512(dst, gate, up unsafe.Pointer, n int)

//go:noescape
func swishAVX512(dst, x unsafe.Pointer, n int, a, b float64)

//go:noescape
func quantizeAVX512(q, scale, sum, offset, x unsafe.Pointer, groups, group int)

func ptr[T any](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }

// rest splits n into the part routines take in steps and what is left.
func rest(n, step int) (whole, left int) { return n &^ (step - 1), n & (step - 1) }

func addAsm(dst, a, b []float32) bool {
	if !useAVX2 {
		return false
	}
	n, left := rest(len(dst), 8)
	if n > 0 {
		addAVX2(ptr(dst), ptr(a), ptr(b), n)
	}
	for i := n; i < n+left; i++ {
		dst[i] = a[i] + b[i]
	}
	return true
}

func axpyAsm(y, x []float32, f float32) bool {
	if !useAVX2 {
		return false
	}
	n, left := rest(len(y), 8)
	if n > 0 {
		axpyAVX2(ptr(y), ptr(x), n, f)
	}
	if left > 0 {
		var py, px [8]float32
		copy(py[:], y[n:])
		copy(px[:], x[n:])
		axpyAVX2(ptr(py[:]), ptr(px[:]), 8, f)
		copy(y[n:], py[:])
	}
	return true
}

func dotAsm(a, b []float32) (float32, bool) {
	if !useAVX2 {
		return 0, false
	}
	if useAVX512 {
		return dotAVX512(ptr(a), ptr(b), len(a)), true
	}
	var lane [dotLanes]float32
	n, left := rest(len(a), dotLanes)
	if n > 0 {
		dotAVX2(ptr(a), ptr(b), ptr(lane[:]), n)
	}
	if left > 0 {
		var pa, pb [dotLanes]float32
		copy(pa[:], a[n:])
		copy(pb[:], b[n:])
		dotAVX2(ptr(pa[:]), ptr(pb[:]), ptr(lane[:]), dotLanes)
	}
	return sumDot(&lane), true
}

func scaleMulAsm(dst, x, w []float32, f float32) bool {
	if !useAVX2 {
		return false
	}
	n, left := rest(len(dst), 8)
	if n > 0 {
		scaleMulAVX2(ptr(dst), ptr(x), ptr(w), n, f)
	}
	for i := n; i < n+left; i++ {
		dst[i] = x[i] * f * w[i]
	}
	return true
}

func ropeAsm(lo, hi, cos, sin []float32) bool {
	if !useAVX2 {
		return false
	}
	n, left := rest(len(lo), 8)
	if n > 0 {
		ropeAVX2(ptr(lo), ptr(hi), ptr(cos), ptr(sin), n)
	}
	if left > 0 {
		var p [4][8]float32
		for i, s := range [4][]float32{lo, hi, cos, sin} {
			copy(p[i][:], s[n:])
		}
		ropeAVX2(ptr(p[0][:]), ptr(p[1][:]), ptr(p[2][:]), ptr(p[3][:]), 8)
		copy(lo[n:], p[0][:])
		copy(hi[n:], p[1][:])
	}
	return true
}

func siluMulAsm(dst, gate, up []float32) bool {
	if !useAVX2 {
		return false
	}
	if useAVX512 {
		siluMulAVX512(ptr(dst), ptr(gate), ptr(up), len(dst))
		return true
	}
	n, left := rest(len(dst), 8)
	if n > 0 {
		siluMulAVX2(ptr(dst), ptr(gate), ptr(up), n)
	}
	if left > 0 {
		var g, u [8]float32
		copy(g[:], gate[n:])
		copy(u[:], up[n:])
		siluMulAVX2(ptr(g[:]), ptr(g[:]), ptr(u[:]), 8)
		copy(dst[n:], g[:])
	}
	return true
}

// HasSwish reports a routine for Swish, without which a table is faster.
func HasSwish() bool { return useAVX512 }

func swishAsm(dst, x []float32, a, b float64) { swishAVX512(ptr(dst), ptr(x), len(dst), a, b) }

func expSumAsm(dst, x []float32, off float32) (float32, bool) {
	if !useAVX2 {
		return 0, false
	}
	var lane [8]float32
	n, left := rest(len(dst), 8)
	if n > 0 {
		expAVX2(ptr(dst), ptr(x), ptr(lane[:]), n, off)
	}
	if left > 0 {
		var p, unused [8]float32
		copy(p[:], x[n:])
		expAVX2(ptr(p[:]), ptr(p[:]), ptr(unused[:]), 8, off)
		for i := range left {
			dst[n+i] = p[i]
			lane[i] += p[i]
		}
	}
	return sumLanes(&lane), true
}

func toBF16Asm(dst []uint16, src []float32) bool {
	if !useAVX2 {
		return false
	}
	n, left := rest(len(dst), 8)
	if n > 0 {
		toBF16AVX2(ptr(dst), ptr(src), n)
	}
	for i := n; i < n+left; i++ {
		dst[i] = bf16(src[i])
	}
	return true
}

func fromBF16Asm(dst []float32, src []uint16) bool {
	if !useAVX2 {
		return false
	}
	n, left := rest(len(dst), 8)
	if n > 0 {
		fromBF16AVX2(ptr(dst), ptr(src), n)
	}
	for i := n; i < n+left; i++ {
		dst[i] = widen(src[i])
	}
	return true
}

func quantizeAsm(q []int8, scale, sum []float32, offset []int32, x []float32, group int) bool {
	if !useAVX2 || len(scale) == 0 {
		return false
	}
	switch {
	case group == 16:
		quantize16AVX2(ptr(q), ptr(scale), ptr(sum), ptr(offset), ptr(x), len(scale))
	case useAVX512:
		quantizeAVX512(ptr(q), ptr(scale), ptr(sum), ptr(offset), ptr(x), len(scale), group)
	default:
		quantizeAVX2(ptr(q), ptr(scale), ptr(sum), ptr(offset), ptr(x), len(scale), group)
	}
	return true
}

// readAsm loads every byte of b, a multiple of 256 of them.
func readAsm(b []byte) bool {
	if !useAVX2 {
		return false
	}
	readAVX2(ptr(b), len(b))
	return true
}
