package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// job is work on items [0, n) that may be split anywhere. The values live in the backend and are reused, so that
// starting a region allocates nothing.
type job interface {
	// run does items [from, to). worker is below pool.size and unique among concurrent calls.
	run(worker, from, to int)
}

// pool runs jobs on a fixed set of threads: the caller and size-1 workers locked to threads of their own. Items are
// handed out in chunks from a shared counter, large ones first, so a thread that loses its core to another process
// holds up one chunk, and a worker that has not come back from sleep in time is not waited for at all.
//
// A region is open while the upper half of state (its number) is odd; the lower half counts the workers inside. The
// caller writes the fields below only when the region is closed and empty, workers read them only inside.
type pool struct {
	size    int
	workers []*worker
	stopped sync.WaitGroup
	quit    atomic.Bool

	job   job
	items int64
	least int64 // smallest chunk
	most  int64 // largest chunk

	failure atomic.Pointer[any]

	_     [64]byte
	state atomic.Uint64
	_     [64]byte
	next  atomic.Int64
	_     [64]byte
}

type worker struct {
	asleep atomic.Bool
	wake   chan struct{}
	_      [64]byte
}

// Pauses before a worker parks, and before a caller that waits for the last chunk does: about 40 microseconds. That is
// longer than the gaps between the regions of a step and shorter than a scheduler's time slice. A caller that waits
// longer has lost a worker's core to another process; napping gives that worker a core to finish on.
const (
	spins = 2_000
	nap   = 20 * time.Microsecond
)

const region = 1 << 32 // one region number in state

func newPool(size int) *pool {
	p := &pool{size: size}
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
	if n <= 0 {
		return
	}
	if p.size == 1 || n <= least {
		j.run(0, 0, n)
		return
	}
	p.job, p.items, p.least, p.most = j, int64(n), int64(max(least, 1)), int64(max(most, least, 1))
	p.next.Store(0)
	p.state.Add(region) // open
	for _, w := range p.workers {
		w.rouse()
	}
	p.enter(0)
	p.state.Add(region) // closed: nobody enters any more
	for spin := 0; uint32(p.state.Load()) != 0; spin++ {
		if spin < spins {
			pause()
			continue
		}
		time.Sleep(nap)
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
			p.next.Store(p.items)
		}
	}()
	p.drain(worker)
}

// drain takes chunks until none is left. Chunks shrink toward the end of the region, so threads finish together.
func (p *pool) drain(worker int) {
	for {
		from := p.next.Load()
		left := p.items - from
		if left <= 0 {
			return
		}
		n := min(max(left/int64(2*p.size), p.least), p.most, left)
		if p.next.CompareAndSwap(from, from+n) {
			p.job.run(worker, int(from), int(from+n))
		}
	}
}

func (p *pool) loop(w *worker, id int) {
	runtime.LockOSThread()
	defer p.stopped.Done()
	var last uint32 // the region this worker has been in
	for spin := 0; !p.quit.Load(); spin++ {
		s := p.state.Load()
		number := uint32(s >> 32)
		if number&1 == 0 || number == last {
			if spin < spins {
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
		last, spin = number, 0
		p.enter(id)
		p.state.Add(^uint64(0))
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
