package server

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// Progress is how far what the server does has come: any change of a number is a step forward.
type Progress struct {
	// Requests are those in the engines, by id.
	Requests map[string]RequestProgress
	Loading  int64 // parts of models that have been loaded
	Encoding int64 // steps of models that embed or rank
}

// RequestProgress is that of a request.
type RequestProgress struct {
	Queued bool  // it waits for its turn
	Steps  int64 // tokens of its prompt and of its replies that are done
}

// watch ends requests that do not get on: what counts is the time since something of a request was done last, whether it streams
// or not, so that a long prompt is never cut while it runs. A chunk of a prompt, a token, an event of the reply, a part of the
// model that is loaded for it, and a step of a model that embeds are progress; a keep-alive is not, nor is waiting for others.
// What has a time limit of its own, as a call of an MCP server's tool, is not counted.
type watch struct {
	limits Limits
	look   func() Progress
	now    func() time.Time
	every  time.Duration

	mu    sync.Mutex
	of    map[string]*watched
	timer *time.Timer // nil: there is nothing to watch
}

// watched is a request.
type watched struct {
	info   *wire.Info
	cancel context.CancelCauseFunc
	seen   mark
	since  time.Time // when seen has changed last
}

// mark is what changes when a request gets on.
type mark struct {
	own             RequestProgress
	told            int64 // events
	engine          bool
	loading, coding int64 // while it is not in an engine
}

// newWatch watches by the knobs of limits. look may be nil: then events are all that is known.
func newWatch(limits Limits, look func() Progress) *watch {
	w := &watch{limits: limits, look: look, now: time.Now, of: map[string]*watched{}}
	least := limits.Timeout
	if q := limits.QueueWait; q > 0 && (least == 0 || q < least) {
		least = q
	}
	// Often enough that a request is not much longer in vain than it may be.
	w.every = min(max(least/20, 10*time.Millisecond), time.Second)
	return w
}

// add watches a request until the function that it returns is called.
func (w *watch) add(info *wire.Info, cancel context.CancelCauseFunc) (remove func()) {
	if w.limits.Timeout == 0 && w.limits.QueueWait == 0 {
		return func() {}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of[info.RequestID] = &watched{info: info, cancel: cancel, since: w.now()}
	if w.timer == nil {
		w.timer = time.AfterFunc(w.every, w.tick)
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.of, info.RequestID)
		if len(w.of) == 0 && w.timer != nil {
			w.timer.Stop()
			w.timer = nil
		}
	}
}

// tick looks at all requests, as long as there are some.
func (w *watch) tick() {
	now := w.now() // what is done from here on is not held against anybody
	var p Progress
	if w.look != nil {
		p = w.look()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		return
	}
	w.check(now, &p)
	w.timer.Reset(w.every)
}

// check ends those that have not got on for too long. Called with mu held.
func (w *watch) check(now time.Time, p *Progress) {
	for _, x := range w.of {
		m := mark{told: x.info.Advanced()}
		if m.told == 0 || x.info.Timed() { // while its body is read there are limits of their own, too
			x.since = now
			continue
		}
		if m.own, m.engine = p.Requests[x.info.RequestID]; !m.engine {
			m.loading, m.coding = p.Loading, p.Encoding
		}
		if m != x.seen {
			x.seen, x.since = m, now
			continue
		}
		if err := w.overdue(now.Sub(x.since), m.own.Queued); err != nil {
			x.cancel(err)
		}
	}
}

// overdue is the error of a request that has not got on for so long; nil: it has time.
func (w *watch) overdue(idle time.Duration, queued bool) error {
	const again = 5 * time.Second
	if wait := cmp.Or(w.limits.QueueWait, w.limits.Timeout); queued {
		if wait == 0 || idle < wait {
			return nil
		}
		knob := "--max-queue-wait"
		if w.limits.QueueWait == 0 {
			knob = "--timeout"
		}
		return &chat.Error{Kind: chat.Overloaded, Bound: chat.BoundQueueWait, RetryAfter: again,
			Msg: fmt.Sprintf("the server is busy: the request has waited for its turn for %v, as long as its flag %s lets; try again later", wait, knob)}
	}
	if w.limits.Timeout == 0 || idle < w.limits.Timeout {
		return nil
	}
	return &chat.Error{Kind: chat.TimedOut, Bound: chat.BoundTimeout, RetryAfter: again,
		Msg: fmt.Sprintf("nothing was done for the request for %v, as long as the server's flag --timeout lets; try again later", w.limits.Timeout)}
}
