package cpu

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"hearth/internal/backend"
)

// job is work on items [0, n) that may be split anywhere. The values live in the backend and are reused, so that
// starting a region allocates nothing.
type job interface {
	// run does items [from, to). worker is below pool.size and unique among concurrent calls.
	run(worker, from, to int)
}

// pool runs jobs on a fixed set of threads: the caller and size-1 workers locked to threads of their own. Every thread has
// a share of the items, next to each other, and does them in order, chunk by chunk: weights then are one stream per thread,
// which the hardware prefetches across chunks. Who has nothing left takes half of what the thread with the most has not
// begun. So a thread that loses its core to another process holds up one chunk, and a worker that has not come back from
// sleep in time is not waited for at all.
//
// A region is open while the upper half of state (its number) is odd; the lower half counts the workers inside. The
// caller writes the fields below only when the region is closed and empty, workers read them only inside.
type pool struct {
	size    int
	idle    bool // runs nothing
	workers []*worker
	stopped sync.WaitGroup
	quit    atomic.Bool

	job   job
	least int // smallest chunk
	most  int // largest chunk

	failure atomic.Pointer[any]
	ahead   atomic.Pointer[part] // what the next product is likely to read

	_     [64]byte
	state atomic.Uint64
	_     [64]byte
	left  []share // by thread
}

// share is what is left for a thread: items [from, to), in the upper and the lower half. Taking items is one change of it,
// whoever takes them; only its thread fills it, when it is empty.
type share struct {
	items atomic.Uint64
	_     [56]byte
}

func (s *share) get() (from, to int, was uint64) {
	was = s.items.Load()
	return int(was >> 32), int(uint32(was)), was
}

func (s *share) set(from, to int) { s.items.Store(uint64(from)<<32 | uint64(to)) }

func (s *share) swap(was uint64, from, to int) bool {
	return s.items.CompareAndSwap(was, uint64(from)<<32|uint64(to))
}

type worker struct {
	asleep atomic.Bool
	wake   chan struct{}
	_      [64]byte
}

// Pauses before a thread sleeps. A worker between regions waits some 40 microseconds or, where pauses are long, 90: longer than
// the gaps between the regions of a step. Who is done in a region that is open waits for the last chunks, of which those of
// attention take 70 microseconds when memory is slow. That is shorter than a scheduler's time slice: a caller that waits
// longer has lost a worker's core to another process, and napping gives that worker a core to finish on.
const (
	spins     = 2_000
	lastSpins = 3 * spins
	nap       = 20 * time.Microsecond
)

const region = 1 << 32 // one region number in state

func newPool(size int) *pool {
	p := &pool{size: size, left: make([]share, size)}
	for i := 1; i < size; i++ {
		w := &worker{wake: make(chan struct{}, 1)}
		p.workers = append(p.workers, w)
		p.stopped.Add(1)
		go p.loop(w, i)
	}
	return p
}

// close ends the workers. No region may be open.
func (p *pool) close() {
	p.quit.Store(true)
	for _, w := range p.workers {
		w.rouse()
	}
	p.stopped.Wait()
}

// run does items [0, n) of j in chunks of least to most items and returns when all are done.
func (p *pool) run(j job, n, least, most int) {
	if n <= 0 || p.idle {
		return
	}
	if p.size == 1 || n <= least {
		j.run(0, 0, n)
		return
	}
	p.job, p.least, p.most = j, max(least, 1), max(most, least, 1)
	for i := range p.left {
		p.left[i].set(n*i/p.size, n*(i+1)/p.size)
	}
	p.state.Add(region) // open
	for _, w := range p.workers {
		w.rouse()
	}
	p.enter(0)
	p.state.Add(region) // closed: nobody enters any more
	for spin := 0; uint32(p.state.Load()) != 0; spin++ {
		if spin < lastSpins {
			pause()
			continue
		}
		doze(nap)
	}
	p.job = nil
	if f := p.failure.Swap(nil); f != nil {
		panic(*f) // the first panic of any thread, where the step can catch it
	}
}

// enter drains and turns a panic into a failure of the region.
func (p *pool) enter(worker int) {
	defer func() {
		if r := recover(); r != nil {
			cause := r
			p.failure.CompareAndSwap(nil, &cause)
			for i := range p.left {
				p.left[i].set(0, 0)
			}
		}
	}()
	p.drain(worker)
}

// drain takes chunks until none is left. They shrink toward the end of a share, so that others can help and threads finish
// together.
func (p *pool) drain(worker int) {
	own := &p.left[worker]
	for {
		from, to, was := own.get()
		if from >= to {
			if !p.steal(own) {
				return
			}
			continue
		}
		n := min(max((to-from)/2, p.least), p.most, to-from)
		if own.swap(was, from+n, to) {
			p.job.run(worker, from, from+n)
		}
	}
}

// steal fills an empty share with half of the largest one, or reports that nothing is left.
func (p *pool) steal(own *share) bool {
	for {
		var most *share
		var from, to int
		var was uint64
		for i := range p.left {
			if f, t, w := p.left[i].get(); t-f > to-from {
				most, from, to, was = &p.left[i], f, t, w
			}
		}
		if most == nil {
			return false
		}
		at := max(to-max((to-from+1)/2, p.least), from)
		if most.swap(was, from, at) {
			own.set(at, to)
			return true
		}
	}
}

func (p *pool) loop(w *worker, id int) {
	runtime.LockOSThread()
	defer p.stopped.Done()
	debug.SetPanicOnFault(true) // see backend.Unreadable
	var last uint32             // the region this worker has been in
	var seen uint32             // the number it has seen last
	var warmed *part            // what it has read ahead
	for spin := 0; !p.quit.Load(); spin++ {
		s := p.state.Load()
		number := uint32(s >> 32)
		if number != seen {
			seen, spin = number, 0
		}
		if number&1 == 0 || number == last {
			if next := p.ahead.Load(); next != nil && next != warmed {
				p.warm(next, id, s>>32)
				warmed = next
			} else if spin < spins || number&1 == 1 && spin < lastSpins {
				pause()
			} else {
				w.park(p, last)
				spin = 0
			}
			continue
		}
		if !p.state.CompareAndSwap(s, s+1) {
			continue
		}
		last = number
		p.enter(id)
		p.state.Add(^uint64(0))
	}
}

// Bytes that a worker reads ahead at most, half of a second-level cache or less, and between looks at the state.
const (
	warmBytes = 128 << 10
	warmPiece = 4 << 10
)

// warm reads the beginning of the share that thread id will have of a product. Between two products of a decode step there are
// some ten microseconds in which only the caller has work and the memory none.
func (p *pool) warm(next *part, id int, region uint64) {
	defer func() {
		if v := recover(); v != nil && backend.Unreadable(v) == nil { // the step will find out
			panic(v)
		}
	}()
	first := next.m.Panels() * id / p.size
	for at := 0; at < warmBytes && p.state.Load()>>32 == region; at += warmPiece {
		next.m.Touch(first, at, warmPiece)
	}
}

// park sleeps until roused. A region opened between the last look and the flag is caught by looking again.
func (w *worker) park(p *pool, last uint32) {
	w.asleep.Store(true)
	number := uint32(p.state.Load() >> 32)
	if (number&1 == 1 && number != last || p.quit.Load()) && w.asleep.CompareAndSwap(true, false) {
		return
	}
	<-w.wake
}

func (w *worker) rouse() {
	if w.asleep.Load() && w.asleep.CompareAndSwap(true, false) {
		w.wake <- struct{}{}
	}
}

// Threads is the number of threads a model gets when none is asked for: the processors this process could use when it
// started. A program that also serves requests sets GOMAXPROCS a little higher, so that they need not wait for a
// computing thread to be preempted.
func Threads() int { return processors }

var processors = min(runtime.GOMAXPROCS(0), runtime.NumCPU())
