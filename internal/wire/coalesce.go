package wire

import (
	"slices"
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
	last piece
	sent time.Time
}

// piece is what two events must have in common to be merged.
type piece struct {
	kind         chat.EventKind
	choice, tool int
}

// longestHold is after how long a piece is sent even if there are few of them: a slow model's text does not wait for more.
const longestHold = time.Second

func (c *coalescer) event(e *chat.Event) {
	if c.most <= 1 {
		c.send(e)
		return
	}
	this := piece{e.Kind, e.Choice, e.Tool}
	if this != c.last || !isFragment(e) {
		c.release()
		c.last, c.sent = this, time.Now()
		c.send(e)
		return
	}
	if c.n++; c.n == 1 {
		c.held = *e
	} else {
		c.held.Text += e.Text
		c.held.Logprobs = slices.Concat(c.held.Logprobs, e.Logprobs)
	}
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

// isFragment reports whether an event is a part of a text or of arguments.
func isFragment(e *chat.Event) bool {
	return e.Kind == chat.EventText || e.Kind == chat.EventReasoning || e.Kind == chat.EventToolArgs
}
