//go:build amd64 && !purego

package kernel

import "unsafe"

// Strides are in bytes; dim is a multiple of 32.

//go:noescape
func scoresBF16AVX2(s, q, k unsafe.Pointer, n, dim, stride int)

//go:noescape
func scoresF32AVX2(s, q, k unsafe.Pointer, n, dim, stride int)

//go:noescape
func addValuesBF16AVX2(acc, p, v unsafe.Pointer, n, dim, stride int)

//go:noescape
func addValuesF32AVX2(acc, p, v unsafe.Pointer, n, dim, stride int)

func scoresAsm[T KV](s, q []float32, k []T, ldk int) bool {
	if !useAVX2 || len(q)%32 != 0 || len(q) == 0 {
		return false
	}
	if unsafe.Sizeof(k[0]) == 2 {
		scoresBF16AVX2(ptr(s), ptr(q), ptr(k), len(s), len(q), ldk*2)
	} else {
		scoresF32AVX2(ptr(s), ptr(q), ptr(k), len(s), len(q), ldk*4)
	}
	return true
}

func addValuesAsm[T KV](acc, p []float32, v []T, ldv int) bool {
	if !useAVX2 || len(acc)%32 != 0 || len(acc) == 0 {
		return false
	}
	if unsafe.Sizeof(v[0]) == 2 {
		addValuesBF16AVX2(ptr(acc), ptr(p), ptr(v), len(p), len(acc), ldv*2)
	} else {
		addValuesF32AVX2(ptr(acc), ptr(p), ptr(v), len(p), len(acc), ldv*4)
	}
	return true
}
