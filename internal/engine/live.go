package engine

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"hearth/internal/kv"
)

// Live is a sequence that waits or runs.
type Live struct {
	Request string        // Prompt.Request
	Made    time.Duration // Prompt.Made
	Usage
	Max int // tokens it may generate
}

// Live lists the sequences that wait or run, in order of arrival.
func (e *Engine) Live() []Live {
	e.mu.Lock()
	list := slices.SortedFunc(maps.Values(e.current), func(a, b *sequence) int { return cmp.Compare(a.ID, b.ID) })
	e.mu.Unlock()
	out := make([]Live, len(list))
	for i, q := range list {
		out[i] = Live{Request: q.request, Made: q.made, Usage: q.stream.Usage(), Max: q.Max}
	}
	return out
}

// ofClient counts the live sequences of a client, of client 0 none. Called with mu held.
func (e *Engine) ofClient(c uint64) int {
	n := 0
	if c == 0 {
		return 0
	}
	for _, q := range e.current {
		if q.Client == c {
			n++
		}
	}
	return n
}

// Stored is a part of what the prefix cache has, in memory and on disk.
type Stored struct {
	Entries int   // ends of stored prompts and answers
	Bytes   int64 // of pages

	DiskEntries int // runs of pages in the tier on disk
	DiskBytes   int64
}

// Plus is the sum of both.
func (s Stored) Plus(o Stored) Stored {
	return Stored{s.Entries + o.Entries, s.Bytes + o.Bytes, s.DiskEntries + o.DiskEntries, s.DiskBytes + o.DiskBytes}
}

// DropCache forgets everything stored that no running sequence uses, in memory and on disk, between two steps, and gives what
// that was. Errors: ErrClosed, and ctx's, after which it may still happen.
func (e *Engine) DropCache(ctx context.Context) (Stored, error) {
	return e.dropFrom(ctx, func(p *kv.Prefix) (d Stored) {
		d.DiskEntries, d.DiskBytes = e.disk.clear()
		e.spec.forgetAll()
		if d.Bytes = p.Drop(); p.Entries() == 0 {
			p.Clear() // the sessions, too
		}
		return d
	})
}

// dropFrom runs drop on the prefix tree between two steps, and counts the entries that this removes.
func (e *Engine) dropFrom(ctx context.Context, drop func(*kv.Prefix) Stored) (Stored, error) {
	out := make(chan Stored, 1)
	e.mu.Lock()
	e.calls = append(e.calls, func() {
		var d Stored
		if p := e.sched.Prefix(); p != nil {
			before := p.Entries()
			d = drop(p)
			d.Entries = before - p.Entries()
			e.trees.forget()
			e.publish(0)
		}
		out <- d
	})
	e.mu.Unlock()
	e.signal()
	select {
	case d := <-out:
		return d, nil
	case <-ctx.Done():
		return Stored{}, ctx.Err()
	case <-e.done:
		return Stored{}, ErrClosed
	}
}

// Stored tells what there was under a salt after the last step.
func (e *Engine) Stored(salt kv.Salt) Stored {
	e.mu.Lock()
	s := e.stored[salt.Tag()]
	e.mu.Unlock()
	out := Stored{Entries: s.Entries, Bytes: s.Bytes}
	if e.disk != nil {
		d := e.disk.tier.Stored(salt.Tag())
		out.DiskEntries, out.DiskBytes = d.Entries, d.Bytes
	}
	return out
}

// DropSalt is DropCache for what is stored under one salt alone.
func (e *Engine) DropSalt(ctx context.Context, salt kv.Salt) (Stored, error) {
	return e.dropFrom(ctx, func(p *kv.Prefix) (d Stored) {
		d.DiskEntries, d.DiskBytes = e.disk.clearTag(salt.Tag())
		e.spec.forget(salt)
		d.Bytes = p.DropTag(salt.Tag())
		return d
	})
}

// Save keeps data beside what the engine has on disk, under a plain name, for the next engine of the same model in the same
// form. It waits for the disk, must come before Close, and does nothing without a tier. DropCache drops it, too.
func (e *Engine) Save(name string, data []byte) error {
	if e.disk == nil {
		return nil
	}
	return e.disk.tier.Save(name, data)
}

// Saved gives what Save kept, nil if there is nothing.
func (e *Engine) Saved(name string) []byte {
	if e.disk == nil {
		return nil
	}
	return e.disk.tier.Saved(name)
}

// waitForWork waits for work, for something stored to expire, or until it is time to write to disk.
func (e *Engine) waitForWork() {
	const never = math.MaxInt64
	wait := time.Duration(never)
	if p := e.sched.Prefix(); e.cfg.CacheTTL > 0 && p != nil && p.Entries() > 0 {
		wait = min(e.cfg.CacheTTL, time.Minute)
	}
	write := e.disk.hasLater()
	if write {
		wait = min(wait, idleWrite)
	}
	if wait == never {
		<-e.wake
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-e.wake:
	case <-t.C:
		if write && wait == idleWrite {
			e.disk.quiet = true
		}
	}
}
