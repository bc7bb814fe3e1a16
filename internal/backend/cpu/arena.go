package cpu

import "hearth/internal/kernel"

// arena hands out uninitialised float memory that dies together. It grows by whole chunks and, once emptied, becomes
// one chunk of everything it needed, so a repeated step allocates nothing. Its memory comes from the system and not
// from the heap, where chunks that were outgrown would stay until a collection.
type arena struct {
	mem    kernel.Memory
	chunks [][]float32
	used   int // of the last chunk
	total  int
	live   int // floats handed out since the last reset
	most   int // of live, since free
}

// leastChunk is 4 MiB: a decode step of any model fits in a few of them.
const leastChunk = 1 << 20

// lane rounds every array to a cache line.
const lane = 16

func (a *arena) alloc(n int) []float32 {
	n = (n + lane - 1) / lane * lane
	if len(a.chunks) == 0 || len(a.chunks[len(a.chunks)-1])-a.used < n {
		size := max(n, leastChunk)
		a.chunks = append(a.chunks, a.mem.Floats(size))
		a.total += size
		a.used = 0
	}
	c := a.chunks[len(a.chunks)-1]
	a.used += n
	a.live += n
	a.most = max(a.most, a.live)
	return c[a.used-n : a.used : a.used]
}

// reset forgets all arrays.
func (a *arena) reset() {
	if len(a.chunks) > 1 {
		a.mem.Free()
		a.chunks = append(a.chunks[:0], a.mem.Floats(a.total))
	}
	a.used, a.live = 0, 0
}

// free gives the memory back.
func (a *arena) free() {
	a.mem.Free()
	a.chunks, a.used, a.total, a.live, a.most = nil, 0, 0, 0, 0
}
