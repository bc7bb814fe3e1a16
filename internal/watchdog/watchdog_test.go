package watchdog

import (
	"testing"
	"time"
)

// clock drives a watchdog by hand.
type clock struct {
	d    *Timer
	now  time.Time
	told []time.Duration
}

func newClock(compiles bool) *clock {
	c := &clock{now: time.Now()}
	c.d = New(compiles, func(d time.Duration) { c.told = append(c.told, d) })
	c.d.armed.Store(true) // no timer but ours
	c.d.last = c.now
	return c
}

// pass lets n ticks pass, each after d.
func (c *clock) pass(n int, d time.Duration) {
	for range n {
		c.now = c.now.Add(d)
		c.d.tick(c.now)
		c.d.timer.Stop()
	}
}

// steps runs n steps of so many ticks.
func (c *clock) steps(k Kind, n, ticks int) {
	for range n {
		c.d.Begin(k)
		c.pass(ticks, tick)
		c.d.End()
	}
}

func TestStuck(t *testing.T) {
	c := newClock(false)
	defer c.d.Close()
	c.steps(Decode, 3, 2)
	c.d.Begin(Decode)
	c.pass(120, tick)
	if len(c.told) != 0 || c.d.Stuck() != 0 {
		t.Fatalf("after 119 ticks: %v, stuck for %v", c.told, c.d.Stuck())
	}
	c.pass(1, tick)
	if len(c.told) != 1 || c.told[0] != 120*time.Second || c.d.Stuck() != 120*time.Second {
		t.Fatalf("after 120 ticks: %v, stuck for %v", c.told, c.d.Stuck())
	}
	c.pass(10, tick)
	if len(c.told) != 1 || c.d.Stuck() != 130*time.Second {
		t.Errorf("later: %v, stuck for %v", c.told, c.d.Stuck())
	}
	c.d.End()
	if c.d.Stuck() != 0 {
		t.Errorf("stuck for %v after it ended", c.d.Stuck())
	}
	c.d.Begin(Decode)
	if c.d.Stuck() != 0 {
		t.Errorf("the next step is stuck for %v before it was looked at", c.d.Stuck())
	}
	c.pass(5, tick)
	if c.d.Stuck() != 0 || len(c.told) != 1 {
		t.Errorf("the next step is stuck for %v", c.d.Stuck())
	}
}

// TestLongStep: a step of a minute lives, and so does whatever is less than twenty times as long as one that did.
func TestLongStep(t *testing.T) {
	c := newClock(false)
	defer c.d.Close()
	c.steps(Prompt, 1, 61)
	if len(c.told) != 0 {
		t.Fatal("a step of a minute is taken for stuck")
	}
	c.d.Begin(Prompt)
	c.pass(20*61, tick)
	if len(c.told) != 0 {
		t.Fatalf("stuck after %v", c.told)
	}
	c.pass(2, tick)
	if len(c.told) != 1 {
		t.Error("never stuck")
	}
}

// TestIdle: time without a step is nobody's.
func TestIdle(t *testing.T) {
	c := newClock(false)
	defer c.d.Close()
	c.steps(Decode, 1, 1)
	c.pass(1000, tick)
	c.steps(Decode, 1000, 0)
	c.pass(1, tick)
	if len(c.told) != 0 || c.d.longest > 2 {
		t.Errorf("told %v, longest %d", c.told, c.d.longest)
	}
	if c.d.armed.Store(true); true { // it rests, and begins again with the next step
		c.pass(2, tick)
		if c.d.armed.Load() {
			t.Error("it ticks while nothing runs")
		}
		c.d.Begin(Decode)
		if !c.d.armed.Load() {
			t.Error("it does not tick while something runs")
		}
	}
}

// TestStoodStill: a process that was stopped, or a machine that slept, has not computed meanwhile.
func TestStoodStill(t *testing.T) {
	c := newClock(false)
	defer c.d.Close()
	c.d.Begin(Decode)
	c.pass(100, tick)
	c.pass(1, time.Hour)
	c.pass(119, tick)
	if len(c.told) != 0 {
		t.Fatalf("stuck after %v, an hour of which was none", c.told)
	}
	c.pass(1, tick)
	if len(c.told) != 1 {
		t.Error("never stuck")
	}
}

// TestCompiles: on a device the first step of each kind takes what it takes.
func TestCompiles(t *testing.T) {
	c := newClock(true)
	defer c.d.Close()
	c.steps(Prompt, 1, 1000)
	c.steps(Decode, 1, 1000)
	if len(c.told) != 0 {
		t.Fatal("compiling is taken for stuck")
	}
	d := newClock(true)
	defer d.d.Close()
	d.steps(Prompt, 1, 1)
	d.d.Begin(Prompt)
	d.pass(200, tick)
	if len(d.told) != 1 {
		t.Error("the second step is never stuck")
	}
}

// TestTimer: it is the timer that calls.
func TestTimer(t *testing.T) {
	d := New(false, func(time.Duration) {})
	d.Begin(Decode)
	d.mu.Lock()
	running := d.timer.Stop()
	d.mu.Unlock()
	if !running {
		t.Error("no timer runs during a step")
	}
	d.Close()
	d.End()
	d.Begin(Decode)
	if d.timer.Stop() {
		t.Error("a timer runs after Close")
	}
}
