// Package watchdog notices a step of a model that does not end, as after a fault of a driver. Whoever runs steps says when one
// begins and ends; in between the watchdog counts ticks of a timer. It does not measure time: a machine that slept or a process
// that was stopped was not stuck, and however long that took it is one tick. The package imports nothing of ours.
package watchdog

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	tick = time.Second
	// A step is stuck after the larger of leastTicks and mostTimes the longest step so far. Not even a machine that swaps gets
	// there.
	leastTicks = 120
	mostTimes  = 20
	// slack is how late a tick may be and still count. After a later one the machine or the process stood still.
	slack = 5 * tick
)

// Kind is what a step does. On a device the first of each kind may compile for minutes.
type Kind uint8

const (
	Decode Kind = iota
	Prompt
	kinds
)

// Timer watches the steps of one model, which come one after the other. Nothing ticks while there are none.
type Timer struct {
	stuck func(time.Duration)
	seq   atomic.Uint64 // odd while a step runs
	kind  atomic.Uint32
	done  [kinds]atomic.Bool // a step of the kind has ended
	armed atomic.Bool
	found atomic.Int64  // ticks of the step that is stuck,
	which atomic.Uint64 // and its seq

	compiles bool

	mu      sync.Mutex // the rest
	timer   *time.Timer
	closed  bool
	last    time.Time // of the tick before
	seen    uint64    // seq then
	age     int64     // ticks since the step was seen first
	longest int64     // age of those that ended
}

// New makes a watchdog that calls stuck, if it is not nil, once for a step that does not end, with how long that has been: from
// a goroutine of its own, and it must not wait. Compiles says that the first step of each kind may take any time. End it with
// Close.
func New(compiles bool, stuck func(time.Duration)) *Timer {
	t := &Timer{stuck: stuck, compiles: compiles}
	t.timer = time.AfterFunc(time.Hour, func() { t.tick(time.Now()) })
	t.timer.Stop()
	return t
}

// Begin says that a step begins.
func (t *Timer) Begin(k Kind) {
	t.kind.Store(uint32(k))
	t.seq.Add(1)
	t.arm()
}

// End says that it has ended.
func (t *Timer) End() {
	t.done[t.kind.Load()].Store(true)
	t.seq.Add(1)
}

// Stuck is how long the step that runs has been running, if it is stuck; else 0.
func (t *Timer) Stuck() time.Duration {
	if seq := t.seq.Load(); seq%2 == 0 || t.which.Load() != seq {
		return 0
	}
	return time.Duration(t.found.Load()) * tick
}

// Close ends the watch.
func (t *Timer) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.timer.Stop()
}

// Advance lets n ticks pass at once, for tests that cannot wait for them.
func (t *Timer) Advance(n int) {
	for range n {
		t.mu.Lock()
		now := t.last.Add(tick)
		t.mu.Unlock()
		t.tick(now)
	}
}

func (t *Timer) arm() {
	if t.armed.Load() || !t.armed.CompareAndSwap(false, true) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.last = time.Now()
		t.timer.Reset(tick)
	}
}

// tick looks whether the step that runs is the one that ran at the last tick.
func (t *Timer) tick(now time.Time) {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return
	}
	seq, late := t.seq.Load(), now.Sub(t.last) > slack
	t.last = now
	if seq != t.seen {
		if t.seen%2 == 1 {
			t.longest = max(t.longest, t.age+1)
		}
		t.age = 0
	} else if t.compiles && !t.done[t.kind.Load()].Load() || late {
		t.age = 0
	} else {
		t.age++
	}
	idle := seq%2 == 0 && seq == t.seen
	t.seen = seq
	report := int64(0)
	if seq%2 == 1 && t.age >= max(leastTicks, mostTimes*t.longest) {
		if t.which.Load() != seq {
			report = t.age
		}
		t.found.Store(t.age)
		t.which.Store(seq)
	}
	if !idle {
		t.timer.Reset(tick)
	}
	t.mu.Unlock()
	if report > 0 && t.seq.Load() == seq && t.stuck != nil {
		t.stuck(time.Duration(report) * tick)
	}
	if idle {
		t.armed.Store(false)
		if t.seq.Load()%2 == 1 {
			t.arm()
		}
	}
}
