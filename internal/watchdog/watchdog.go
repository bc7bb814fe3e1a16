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

// New makes a watchdog that calls stuck once for a step that does not end, with how long that has been: from a goroutine of its
// own, and it must not wait. Compiles says that the first step of each kind may take any time. End it with Close.
func New(compiles bool, stuck func(time.Duration)) *Timer {
	d := &Timer{stuck: stuck, compiles: compiles}
	d.timer = time.AfterFunc(time.Hour, func() { d.tick(time.Now()) })
	d.timer.Stop()
	return d
}

// Begin says that a step begins.
func (d *Timer) Begin(k Kind) {
	d.kind.Store(uint32(k))
	d.seq.Add(1)
	d.arm()
}

// End says that it has ended.
func (d *Timer) End() {
	d.done[d.kind.Load()].Store(true)
	d.seq.Add(1)
}

// Stuck is how long the step that runs has been running, if it is stuck; else 0.
func (d *Timer) Stuck() time.Duration {
	if seq := d.seq.Load(); seq%2 == 0 || d.which.Load() != seq {
		return 0
	}
	return time.Duration(d.found.Load()) * tick
}

// Close ends the watch.
func (d *Timer) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.timer.Stop()
}

// Advance lets n ticks pass at once, for tests that cannot wait for them.
func (d *Timer) Advance(n int) {
	for range n {
		d.mu.Lock()
		now := d.last.Add(tick)
		d.mu.Unlock()
		d.tick(now)
	}
}

func (d *Timer) arm() {
	if d.armed.Load() || !d.armed.CompareAndSwap(false, true) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.last = time.Now()
		d.timer.Reset(tick)
	}
}

// tick looks whether the step that runs is the one that ran at the last tick.
func (d *Timer) tick(now time.Time) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return
	}
	seq, late := d.seq.Load(), now.Sub(d.last) > slack
	d.last = now
	if seq != d.seen {
		if d.seen%2 == 1 {
			d.longest = max(d.longest, d.age+1)
		}
		d.age = 0
	} else if d.compiles && !d.done[d.kind.Load()].Load() || late {
		d.age = 0
	} else {
		d.age++
	}
	idle := seq%2 == 0 && seq == d.seen
	d.seen = seq
	report := int64(0)
	if seq%2 == 1 && d.age >= max(leastTicks, mostTimes*d.longest) {
		if d.which.Load() != seq {
			report = d.age
		}
		d.found.Store(d.age)
		d.which.Store(seq)
	}
	if !idle {
		d.timer.Reset(tick)
	}
	d.mu.Unlock()
	if report > 0 && d.seq.Load() == seq {
		d.stuck(time.Duration(report) * tick)
	}
	if idle {
		d.armed.Store(false)
		if d.seq.Load()%2 == 1 {
			d.arm()
		}
	}
}
