//go:build amd64 && !purego

package kernel

import "unsafe"

// Strides are in bytes; dim is a multiple of 32; so are groups, which have lines of 32 numbers. tail is where in a row
// the scales and biases are.

//go:noescape
func scoresBF16AVX2(s, q, k unsafe.Pointer, n, dim, stride int)

//go:noescape
func scoresF16AVX2(s, q, k unsafe.Pointer, n, dim, stride int)

//go:noescape
func scoresF32AVX2(s, q, k unsafe.Pointer, n, dim, stride int)

//go:noescape
func scoresQ8AVX2(s, q, sum, k unsafe.Pointer, n, groups, lines, stride, tail int)

//go:noescape
func scoresQ4AVX2(s, q, sum, k unsafe.Pointer, n, groups, lines, stride, tail int)

//go:noescape
func addValuesBF16AVX2(acc, p, v unsafe.Pointer, n, dim, stride int)

//go:noescape
func addValuesF16AVX2(acc, p, v unsafe.Pointer, n, dim, stride int)

//go:noescape
func addValuesF32AVX2(acc, p, v unsafe.Pointer, n, dim, stride int)

//go:noescape
func addValuesQ8AVX2(acc, p, v unsafe.Pointer, n, groups, lines, stride, tail int)

//go:noescape
func addValuesQ4AVX2(acc, p, v unsafe.Pointer, n, groups, lines, stride, tail int)

// n is a multiple of 8, of 16 for 4-bit codes.

//go:noescape
func toF16AVX2(dst, src unsafe.Pointer, n int, limit float32)

//go:noescape
func extremesAVX2(out, x unsafe.Pointer, n int)

//go:noescape
func codes8AVX2(dst, x unsafe.Pointer, n int, scale, bias float32)

//go:noescape
func codes4AVX2(dst, x unsafe.Pointer, n int, scale, bias float32)

// tiled reports rows that the tile routines take.
func (r *Rows) tiled() bool {
	return useAVX2 && r.Width > 0 && (r.Width%32 == 0 && !r.Type.Quantised() || r.Type.Quantised() && r.Group%32 == 0)
}

func scoresAsm(s, q, qsum []float32, k *Rows, at int) bool {
	if !k.tiled() || len(s) == 0 {
		return false
	}
	first := unsafe.Pointer(&k.Data[at*k.Stride])
	switch k.Type {
	case CacheF32:
		scoresF32AVX2(ptr(s), ptr(q), first, len(s), len(q), k.Stride)
	case CacheBF16:
		scoresBF16AVX2(ptr(s), ptr(q), first, len(s), len(q), k.Stride)
	case CacheF16:
		scoresF16AVX2(ptr(s), ptr(q), first, len(s), len(q), k.Stride)
	case CacheQ8:
		scoresQ8AVX2(ptr(s), ptr(q), ptr(qsum), first, len(s), len(qsum), k.Group/32, k.Stride, k.codeBytes())
	case CacheQ4:
		scoresQ4AVX2(ptr(s), ptr(q), ptr(qsum), first, len(s), len(qsum), k.Group/32, k.Stride, k.codeBytes())
	}
	return true
}

func addValuesAsm(acc, p []float32, v *Rows, at int) bool {
	if !v.tiled() || len(p) == 0 {
		return false
	}
	first := unsafe.Pointer(&v.Data[at*v.Stride])
	switch v.Type {
	case CacheF32:
		addValuesF32AVX2(ptr(acc), ptr(p), first, len(p), len(acc), v.Stride)
	case CacheBF16:
		addValuesBF16AVX2(ptr(acc), ptr(p), first, len(p), len(acc), v.Stride)
	case CacheF16:
		addValuesF16AVX2(ptr(acc), ptr(p), first, len(p), len(acc), v.Stride)
	case CacheQ8:
		addValuesQ8AVX2(ptr(acc), ptr(p), first, len(p), v.Width/v.Group, v.Group/32, v.Stride, v.codeBytes())
	case CacheQ4:
		addValuesQ4AVX2(ptr(acc), ptr(p), first, len(p), v.Width/v.Group, v.Group/32, v.Stride, v.codeBytes())
	}
	return true
}

func toF16Asm(dst []uint16, src []float32) bool {
	if !useAVX2 {
		return false
	}
	n, left := rest(len(dst), 8)
	if n > 0 {
		toF16AVX2(ptr(dst), ptr(src), n, largestHalf)
	}
	for i := n; i < n+left; i++ {
		dst[i] = half(src[i])
	}
	return true
}

func extremesAsm(x []float32) (lo, hi float32, finite, ok bool) {
	if !useAVX2 || len(x)%8 != 0 || len(x) == 0 {
		return
	}
	var out [3]float32
	extremesAVX2(ptr(out[:]), ptr(x), len(x))
	return out[0], out[1], out[2] == 0, true
}

// putCodesAsm takes groups that begin and end where bytes of codes do.
func putCodesAsm(codes []byte, x []float32, at int, t CacheType, scale, bias float32) bool {
	switch {
	case !useAVX2 || len(x) == 0:
		return false
	case t == CacheQ8 && len(x)%8 == 0:
		codes8AVX2(unsafe.Pointer(&codes[at]), ptr(x), len(x), scale, bias)
	case t == CacheQ4 && len(x)%16 == 0 && at%16 == 0:
		codes4AVX2(unsafe.Pointer(&codes[at/2]), ptr(x), len(x), scale, bias)
	default:
		return false
	}
	return true
}
