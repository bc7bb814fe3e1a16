package wire

import (
	"time"

	"hearth/internal/chat"
)

// coalescer merges events that continue one text into one event. What begins something is sent at once: the first text, the
// first arguments, calls, the end.
type coalescer struct {
	most int // pieces in one event; up to 1: every event is sent as it is
	send func(*chat.Event)
	held chat.Event
	n    int // pieces in held
	last chat.Event
	sent time.Time
}

// longestHold is after how long a piece is sent even if there are few of them: a slow model's text does not wait for more.
const longestHold = time.Second

func (c *coalescer) event(e *chat.Event) {
	if c.most <= 1 {
		c.send(e)
		return
	}
	if !e.Fragment() || !e.Same(&c.last) {
		c.release()
		c.last, c.sent = *e, time.Now()
		c.send(e)
		return
	}
	if c.n == 0 {
		c.held = *e
	} else {
		c.held.Join(e)
	}
	c.n += 1 + e.Joined
	if c.n >= c.most || time.Since(c.sent) >= longestHold {
		c.release()
	}
}

// release sends what is held.
func (c *coalescer) release() {
	if c.n > 0 {
		c.n, c.sent = 0, time.Now()
		c.send(&c.held)
	}
}
