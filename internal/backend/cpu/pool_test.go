package cpu

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"hearth/internal/kernel"
)

// tally counts how often every item was done, and by how many threads at once.
type tally struct {
	done  []atomic.Int32
	busy  []atomic.Int32 // per worker
	panic int
	slow  int // pauses per chunk on every thread but the caller
}

func (j *tally) run(worker, from, to int) {
	if j.busy[worker].Add(1) != 1 {
		panic("two chunks on one worker at once")
	}
	for i := from; i < to; i++ {
		if i == j.panic {
			panic("item refused")
		}
		j.done[i].Add(1)
	}
	for range j.slow * worker {
		pause()
	}
	j.busy[worker].Add(-1)
}

func newTally(items, workers int) *tally {
	return &tally{done: make([]atomic.Int32, items), busy: make([]atomic.Int32, workers), panic: -1}
}

func TestPool(t *testing.T) {
	for size := 1; size <= 4; size++ {
		p := newPool(size)
		for _, tc := range []struct{ items, least, most int }{
			{0, 1, 1}, {1, 1, 1}, {7, 1, 1}, {1000, 1, 3}, {1000, 16, 100}, {100, 200, 300}, {5, 0, 0},
		} {
			for round := range 50 {
				j := newTally(tc.items, size)
				j.slow = max(0, 3-round) * spins
				p.run(j, tc.items, tc.least, tc.most)
				for i := range j.done {
					if n := j.done[i].Load(); n != 1 {
						t.Fatalf("%d threads, %+v: item %d was done %d times", size, tc, i, n)
					}
				}
			}
		}
		p.close()
	}
}

// TestPoolPanic: a panic on any thread reaches the caller, and the pool works on.
func TestPoolPanic(t *testing.T) {
	p := newPool(3)
	defer p.close()
	for i := range 100 {
		j := newTally(100, 3)
		j.panic = i
		func() {
			defer func() {
				if r := recover(); r != "item refused" {
					t.Errorf("recovered %v", r)
				}
			}()
			p.run(j, 100, 1, 2)
		}()
		again := newTally(100, 3)
		p.run(again, 100, 1, 2)
		for k := range again.done {
			if again.done[k].Load() != 1 {
				t.Fatalf("after a panic item %d was done %d times", k, again.done[k].Load())
			}
		}
	}
}

// TestPoolSleeps: workers that have parked are woken by the next region and by close.
func TestPoolSleeps(t *testing.T) {
	p := newPool(2)
	for range 20 {
		parked(t, p.workers[0])
		p.run(newTally(1000, 2), 1000, 1, 1)
	}
	parked(t, p.workers[0])
	p.close()
}

// TestPoolReadsAhead: workers read what may come next, whether it lies in memory or not, and do what does come.
func TestPoolReadsAhead(t *testing.T) {
	p := newPool(3)
	defer p.close()
	spec := kernel.Spec{Rows: 600, Cols: 256, Format: kernel.Codes4, Group: 64}
	for _, next := range []*part{{m: kernel.Over(spec, kernel.AlignedBytes(spec.Bytes()))}, {m: kernel.Over(spec, nil)}, nil} {
		p.ahead.Store(next)
		j := newTally(1000, 3)
		p.run(j, 1000, 1, 10)
		for i := range j.done {
			if n := j.done[i].Load(); n != 1 {
				t.Fatalf("item %d was done %d times", i, n)
			}
		}
		for _, w := range p.workers {
			parked(t, w)
		}
	}
}

// TestPoolShares: one thread does what the others have not begun.
func TestPoolShares(t *testing.T) {
	p := &pool{size: 4, left: make([]share, 4)}
	j := newTally(103, 4)
	p.job, p.least, p.most = j, 2, 9
	for i := range p.left {
		p.left[i].set(103*i/4, 103*(i+1)/4)
	}
	p.drain(2)
	for i := range j.done {
		if n := j.done[i].Load(); n != 1 {
			t.Fatalf("item %d was done %d times", i, n)
		}
	}
}

func parked(t *testing.T, w *worker) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !w.asleep.Load(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("an idle worker does not park")
		}
	}
}

func BenchmarkRegion(b *testing.B) {
	p := newPool(2)
	defer p.close()
	j := newTally(2, 2)
	b.ReportAllocs()
	for b.Loop() {
		p.run(j, 2, 1, 1)
	}
}
