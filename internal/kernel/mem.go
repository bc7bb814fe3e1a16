package kernel

import (
	"os"
	"sync"
	"unsafe"
)

// align is the start of every buffer that products stream: one cache line, one AVX-512 register.
const align = 64

// AlignedBytes allocates n zero bytes that start on a cache line, on the garbage collector's heap.
func AlignedBytes(n int) []byte {
	b := make([]byte, n+align-1)
	off := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (align - 1))
	return b[off:][:n:n]
}

// AlignedFloats allocates n zero floats that start on a cache line, on the garbage collector's heap.
func AlignedFloats(n int) []float32 {
	b := AlignedBytes(n * 4)
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// Memory is what lives as long as a loaded model: weights and the KV cache. It comes from the system and not from the
// garbage collector's heap, because the collector lets the heap grow in proportion to what is live on it: gigabytes of
// weights there would permit as many gigabytes of garbage. Pages are zero and take no memory until they are touched.
//
// Allocations share mappings of 64 MiB, so that matrices of a few megabytes lie on huge pages too; with small pages a
// matrix-vector product spends about a sixth of its time on TLB misses. The zero value is ready; methods may be called
// from several goroutines.
type Memory struct {
	mu    sync.Mutex
	chunk []byte // the rest of the last shared mapping
	maps  [][]byte
	given int64
}

// Given is how many bytes Bytes and its like have given since Free.
func (m *Memory) Given() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.given
}

const (
	leastMap  = 64 << 10 // smaller allocations come from the heap
	chunkSize = 64 << 20
)

// Bytes gives n zero bytes that start on a cache line; they are valid until Free.
func (m *Memory) Bytes(n int) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.given += int64(n)
	if n < leastMap {
		return AlignedBytes(n)
	}
	size := roundUp(n, align)
	if size > len(m.chunk) {
		b, ok := m.grow(max(size, chunkSize))
		if !ok {
			return AlignedBytes(n) // a system that refuses to map may still have a heap
		}
		if size >= chunkSize {
			return b[:n:n]
		}
		m.chunk = b
	}
	b := m.chunk[:n:n]
	m.chunk = m.chunk[size:]
	return b
}

func (m *Memory) grow(n int) ([]byte, bool) {
	b, all, err := mapAnonymous(n)
	if err == nil {
		m.maps = append(m.maps, all)
	}
	return b, err == nil
}

// Discard gives the system's pages that lie within b, of a Memory, back to the system. What they held is lost: they are zero when
// they are read next, or what they were. Where the system has no such call nothing happens.
func Discard(b []byte) {
	page := uintptr(os.Getpagesize())
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (page - 1)
	if uintptr(len(b)) < skip+page {
		return
	}
	discard(b[skip:][:(uintptr(len(b))-skip)&^(page-1)])
}

// NewMatrix reserves a zero matrix, with its panels in m. It panics on a spec no layout exists for.
func (m *Memory) NewMatrix(s Spec) *Matrix { return newMatrix(s, m.Bytes) }

// Free gives everything back to the system. Nothing that came from m may be used afterwards.
func (m *Memory) Free() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.maps {
		unmap(b)
	}
	m.maps, m.chunk, m.given = nil, nil, 0
}
