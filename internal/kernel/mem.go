package kernel

import "unsafe"

// align is the start of every buffer that products stream: one cache line, one AVX-512 register.
const align = 64

// AlignedBytes allocates n zero bytes that start on a cache line. Large ones ask the kernel for huge pages, which
// spares a streaming read most of its TLB misses.
func AlignedBytes(n int) []byte {
	b := make([]byte, n+align-1)
	off := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (align - 1))
	b = b[off:][:n:n]
	adviseHuge(b)
	return b
}

// AlignedFloats allocates n zero floats that start on a cache line.
func AlignedFloats(n int) []float32 {
	b := AlignedBytes(n * 4)
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), n)
}
