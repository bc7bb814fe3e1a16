// Package timeline keeps what models did in each second of the last hour, for people who watch. Engines write into it as they
// step, each through a Meter of its own; package cli reads it. Nothing runs by itself: a second in which nothing happens takes
// no work.
package timeline

import (
	"sync"
	"time"
)

// Seconds is how many are kept, the one that runs included.
const Seconds = 3600

// Kinds is how many kinds of hits there are, see kv.Kind.
const Kinds = 5

// Counts is what happened.
type Counts struct {
	Requests  int64        // sequences that came
	Hits      [Kinds]int64 // sequences that began, by the kind of the hit
	Prompt    int64        // prompt tokens that steps ran
	Cached    int64        // prompt tokens that sequences which began had in the cache
	Output    int64        // generated tokens
	Steps     int64
	Sequences int64 // of those steps, together
}

func (c *Counts) add(o *Counts) {
	c.Requests += o.Requests
	for i, n := range o.Hits {
		c.Hits[i] += n
	}
	c.Prompt += o.Prompt
	c.Cached += o.Cached
	c.Output += o.Output
	c.Steps += o.Steps
	c.Sequences += o.Sequences
}

// Levels is how much there is at a time.
type Levels struct {
	Running, Waiting int64 // sequences
	State, Cache     int64 // bytes of state: of running sequences, and of what only the prefix cache holds
}

// change replaces what one engine has of the sum in l.
func (l *Levels) change(from, to *Levels) {
	l.Running += to.Running - from.Running
	l.Waiting += to.Waiting - from.Waiting
	l.State += to.State - from.State
	l.Cache += to.Cache - from.Cache
}

// raise makes l the greater one of both, each by itself.
func (l *Levels) raise(o *Levels) {
	l.Running, l.Waiting = max(l.Running, o.Running), max(l.Waiting, o.Waiting)
	l.State, l.Cache = max(l.State, o.State), max(l.Cache, o.Cache)
}

// Second is one of the hour.
type Second struct {
	Counts
	Most Levels // that there was in it
}

// bucket is a second in which something happened.
type bucket struct {
	at int64 // seconds since 1970; of another hour it is empty
	Second
	begin Levels // before anything happened: since the bucket before
	end   Levels // when something happened last: until the next bucket
}

// Hour is the seconds of the last hour. Its methods and those of its meters may be called from any goroutine.
type Hour struct {
	mu      sync.Mutex
	buckets []bucket // second s is at s%Seconds; nil: nothing has happened yet
	first   int64    // second of the first event
	last    int64    // second of the last one
	now     Levels   // of all meters together
}

// Meter is one engine's way into an Hour. A nil one does nothing.
type Meter struct {
	hour *Hour
	now  Levels
}

// Meter makes one. A nil Hour gives a nil Meter.
func (h *Hour) Meter() *Meter {
	if h == nil {
		return nil
	}
	return &Meter{hour: h}
}

// Note adds what has happened until now to this second; there is l from now on.
func (m *Meter) Note(now time.Time, c *Counts, l Levels) {
	if m == nil {
		return
	}
	h := m.hour
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.bucket(now.Unix())
	b.add(c)
	h.now.change(&m.now, &l)
	m.now = l
	b.Most.raise(&h.now)
	b.end = h.now
}

// bucket is the one of a second, or of the last one where that is later: two goroutines may take the lock in the other order than
// they looked at the clock. Where the clock has been set back by more, what lies before it is forgotten. Called with mu held.
func (h *Hour) bucket(at int64) *bucket {
	const order = 60
	switch {
	case h.buckets == nil:
		h.buckets, h.first = make([]bucket, Seconds), at
	case at < h.last-order:
		clear(h.buckets)
		h.first = at
	default:
		at = max(at, h.last)
	}
	h.last = at
	b := &h.buckets[at%Seconds]
	if b.at != at {
		*b = bucket{at: at, Second: Second{Most: h.now}, begin: h.now} // what there was until now was there in this second too
	}
	return b
}

// Since appends the seconds after since to buf, as far as they are kept and up to now, oldest first. first is the second of the
// first one, or that after now where there is none.
func (h *Hour) Since(now time.Time, since int64, buf []Second) (seconds []Second, first int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	to := max(now.Unix(), h.last)
	if h.buckets == nil || since >= to {
		return buf, to + 1
	}
	first = max(since+1, to-Seconds+1, h.first)
	level := h.before(first)
	for at := first; at <= to; at++ {
		b := &h.buckets[at%Seconds]
		if b.at != at {
			buf = append(buf, Second{Most: level})
			continue
		}
		buf, level = append(buf, b.Second), b.end
	}
	return buf, first
}

// before is what there was when a second began. Called with mu held.
func (h *Hour) before(at int64) Levels {
	for back := at - 1; back >= max(h.first, at-Seconds); back-- {
		if b := &h.buckets[back%Seconds]; b.at == back {
			return b.end
		}
	}
	for ; at <= h.last; at++ { // what there was an hour ago is forgotten, but not that it did not change
		if b := &h.buckets[at%Seconds]; b.at == at {
			return b.begin
		}
	}
	return h.now
}
