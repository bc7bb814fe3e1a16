package kernel

import (
	"slices"
	"sync/atomic"
	"time"
	"unsafe"
)

// Spread does f for every i below n on some threads and returns when all are done; backend.Spreader has it.
type Spread func(n int, f func(worker, i int))

// Probe measures what the threads that a Spread stands for can do at most: the limits that products are held against. It is not
// for several goroutines at once.
type Probe struct {
	mem Memory
	buf []byte
}

// readPart is what a thread reads at a time, about as much as a chunk of a product.
const readPart = 1 << 20

// NewProbe takes memory of about the given size, which should be several times the last-level cache. Close frees it.
func NewProbe(bytes int) *Probe {
	p := &Probe{}
	p.buf = p.mem.Bytes(roundUp(max(bytes, 1), readPart))
	for i := 0; i < len(p.buf); i += 4096 {
		p.buf[i] = 1 // an untouched page reads from one shared zero page
	}
	return p
}

// Close frees the memory.
func (p *Probe) Close() { p.mem.Free() }

// Read gives the bytes per second that plain vector loads read, the median of three passes.
func (p *Probe) Read(s Spread) float64 {
	return rate(3, float64(len(p.buf)), func() {
		s(len(p.buf)/readPart, func(_, i int) { touchAll(p.buf[i*readPart:][:readPart]) })
	})
}

const (
	peakParts = 64
	peakLoops = 4096 // some 20 microseconds
)

// Int8 gives the operations per second, two a product, of the instructions that products of codes with rounded activations
// consist of, operands in registers; 0 where the implementation in use has no such instructions.
func (p *Probe) Int8(s Spread) float64 { return peak(s, int8Loop) }

// Float is Int8 for float32.
func (p *Probe) Float(s Spread) float64 { return peak(s, floatLoop) }

// Half is Int8 for bfloat16.
func (p *Probe) Half(s Spread) float64 { return peak(s, halfLoop) }

// peak: loop runs that often and tells how many operations a turn is.
func peak(s Spread, loop func(n int) int) float64 {
	each := loop(1)
	return rate(9, float64(each)*peakParts*peakLoops, func() {
		s(peakParts, func(_, _ int) { loop(peakLoops) })
	})
}

// rate is the median of how much is done per second.
func rate(passes int, amount float64, pass func()) float64 {
	var rates []float64
	for range passes {
		start := time.Now()
		pass()
		rates = append(rates, amount/time.Since(start).Seconds())
	}
	slices.Sort(rates)
	return rates[passes/2]
}

// sink keeps the compiler from dropping reads whose result nobody needs.
var sink atomic.Uint64

// touchAll reads at most readPart, because assembly cannot be preempted.
func touchAll(b []byte) {
	if readAsm(b) {
		return
	}
	var x uint64
	for _, w := range unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), len(b)/8) {
		x |= w
	}
	if x == 1<<63 {
		sink.Store(x)
	}
}
