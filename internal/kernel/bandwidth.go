package kernel

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// ReadBandwidth measures how many bytes per second threads goroutines together read from a buffer of about the given
// size with plain vector loads: the limit that a matrix-vector product is held against. It is the median of nine passes;
// choose a size several times the last-level cache.
func ReadBandwidth(bytes, threads int) float64 {
	const repeats = 9
	threads = max(threads, 1)
	part := roundUp(max(bytes/threads, 1), 4096)
	var mem Memory
	defer mem.Free()
	buf := mem.Bytes(part * threads)
	for i := 0; i < len(buf); i += 4096 {
		buf[i] = 1 // touch: an untouched page reads from one shared zero page
	}
	var rates []float64
	for range repeats {
		start := time.Now()
		var done sync.WaitGroup
		for t := range threads {
			done.Go(func() { touchAll(buf[t*part:][:part]) })
		}
		done.Wait()
		rates = append(rates, float64(len(buf))/time.Since(start).Seconds())
	}
	slices.Sort(rates)
	return rates[repeats/2]
}

// sink keeps the compiler from dropping reads whose result nobody needs.
var sink atomic.Uint64

func touchAll(b []byte) {
	const chunk = 1 << 20 // assembly cannot be preempted: return to Go now and then
	for ; len(b) > 0; b = b[min(chunk, len(b)):] {
		part := b[:min(chunk, len(b))]
		if readAsm(part) {
			continue
		}
		var x uint64
		for _, w := range unsafe.Slice((*uint64)(unsafe.Pointer(&part[0])), len(part)/8) {
			x |= w
		}
		if x == 1<<63 {
			sink.Store(x)
		}
	}
}
