package server

import (
	"context"
	"sync"
)

// calls counts what is being answered, also what came by other ways than a connection of its own, for which net/http does not
// wait.
type calls struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when n is 0 again; nil: nobody waits
}

// enter counts a call until the function that it returns is called.
func (c *calls) enter() (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.leave
}

func (c *calls) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n == 0 && c.none != nil {
		close(c.none)
		c.none = nil
	}
}

// wait waits until there is no call; false: ctx ended before.
func (c *calls) wait(ctx context.Context) bool {
	c.mu.Lock()
	if c.n == 0 {
		c.mu.Unlock()
		return true
	}
	if c.none == nil {
		c.none = make(chan struct{})
	}
	none := c.none
	c.mu.Unlock()
	select {
	case <-none:
		return true
	case <-ctx.Done():
		return false
	}
}

// Detach implements wire.Server.
func (s *Server) Detach(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(s.base, func() { cancel(context.Cause(s.base)) })
	return ctx, func(cause error) {
		stop()
		cancel(cause)
	}
}

// Draining implements wire.Server.
func (s *Server) Draining() <-chan struct{} { return s.draining }

func (s *Server) isDraining() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}
