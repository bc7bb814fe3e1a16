package wire

import (
	"slices"
	"time"

	"hearth/internal/chat"
)

// coalescer merges events that carry more of the same into one. What says something new is sent at once: the first text,
// the first arguments, calls, the end.
type coalescer struct {
	most int // pieces in one event; up to 1: every event is sent as it is
	send func(*chat.Event)
	held chat.Event
	n    int // pieces in held
	last piece
	sent time.Time
}

// piece is what events have in common that can become one.
type piece struct {
	kind         chat.EventKind
	choice, tool int
}

// longestHold is how long nothing may have been sent when more comes that is sent nevertheless: a slow model's text does not
// wait for its number.
const longestHold = time.Second

func (g *coalescer) event(e *chat.Event) {
	if g.most <= 1 {
		g.send(e)
		return
	}
	this := piece{e.Kind, e.Choice, e.Tool}
	if this != g.last || !isFragment(e) {
		g.release()
		g.last, g.sent = this, time.Now()
		g.send(e)
		return
	}
	if g.n++; g.n == 1 {
		g.held = *e
	} else {
		g.held.Text += e.Text
		g.held.Logprobs = slices.Concat(g.held.Logprobs, e.Logprobs)
	}
	if g.n >= g.most || time.Since(g.sent) >= longestHold {
		g.release()
	}
}

// release tells what is held.
func (g *coalescer) release() {
	if g.n > 0 {
		g.n, g.sent = 0, time.Now()
		g.send(&g.held)
	}
}

// isFragment reports events that may say more of the same.
func isFragment(e *chat.Event) bool {
	return e.Kind == chat.EventText || e.Kind == chat.EventReasoning || e.Kind == chat.EventToolArgs
}
