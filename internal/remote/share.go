package remote

import (
	"encoding/binary"
	"sync"

	"hearth/internal/budget"
)

// Share is the share of the machine's memory that a model in a worker process has: the parent divides the memory, and is asked
// whenever the model's grows.
type Share struct {
	out   *outbox
	grown chan grown    // answers to kindGrow
	gone  chan struct{} // closed when none comes any more

	asking sync.Mutex // held for an answer

	mu     sync.Mutex
	use    budget.Use
	short  *budget.ShortError // what the last answer that was not yes said
	shrink func(int64)
	wake   func()
}

var _ budget.Holding = (*Share)(nil)

// grown is an answer to kindGrow.
type grown struct {
	got    budget.Use
	answer budget.Answer
	short  *budget.ShortError // nil after Yes
}

func newShare(out *outbox, has budget.Use) *Share {
	return &Share{out: out, use: has, grown: make(chan grown, 1), gone: make(chan struct{})}
}

// Use is what the share has.
func (s *Share) Use() budget.Use {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.use
}

// Grow is budget.Share's. It waits for the parent's answer, which takes no longer than a frame there and back; when the parent is
// gone the answer is Wait.
func (s *Share) Grow(least, most budget.Use) (budget.Use, budget.Answer) {
	s.asking.Lock()
	defer s.asking.Unlock()
	s.out.put(kindGrow, func(b []byte) []byte { return appendUse(appendUse(b, least), most) })
	var g grown
	select {
	case g = <-s.grown:
	case <-s.gone:
		g = grown{answer: budget.Wait, short: &budget.ShortError{}}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.short != nil {
		s.short = g.short
	}
	s.use = budget.Use{Weights: s.use.Weights + g.got.Weights, State: s.use.State + g.got.State, Scratch: s.use.Scratch + g.got.Scratch}
	return g.got, g.answer
}

// Give is budget.Share's.
func (s *Share) Give(u budget.Use) {
	s.mu.Lock()
	s.use = budget.Use{Weights: max(s.use.Weights-u.Weights, 0), State: max(s.use.State-u.State, 0), Scratch: max(s.use.Scratch-u.Scratch, 0)}
	s.mu.Unlock()
	s.out.put(kindGive, func(b []byte) []byte { return appendUse(b, u) })
}

// SetSpare is budget.Share's.
func (s *Share) SetSpare(bytes int64) {
	s.out.put(kindSpare, func(b []byte) []byte { return appendUint(b, uint64(max(bytes, 0))) })
}

// Short is budget.Share's, with the parent's numbers as of its last answer that was not yes.
func (s *Share) Short(u budget.Use) *budget.ShortError {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := budget.ShortError{}
	if s.short != nil {
		e = *s.short
	}
	e.Need = u
	return &e
}

// Listen is budget.Share's.
func (s *Share) Listen(shrink func(bytes int64), wake func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shrink, s.wake = shrink, wake
}

// told handles the parent's frames about the share.
func (s *Share) told(k kind, c *contents) {
	s.mu.Lock()
	shrink, wake := s.shrink, s.wake
	s.mu.Unlock()
	switch k {
	case kindGrown:
		g := c.grown()
		if c.end() != nil {
			return
		}
		select {
		case s.grown <- g:
		default: // nobody asked
			c.fail()
		}
	case kindShrink:
		if n := c.bytesCount(); c.end() == nil && shrink != nil {
			shrink(n)
		}
	case kindWake:
		if wake != nil {
			wake()
		}
	}
}

// listen makes a session's worker process the one that has the share.
func (s *session) listen() {
	s.e.cfg.Share.Listen(func(bytes int64) {
		s.out.put(kindShrink, func(b []byte) []byte { return appendUint(b, uint64(bytes)) })
	}, func() { s.out.put(kindWake, nil) })
}

// share handles the worker process's frames about its share.
func (s *session) share(k kind, c *contents) {
	share := s.e.cfg.Share
	if share == nil {
		c.fail()
		return
	}
	switch k {
	case kindGrow:
		least, most := c.use(), c.use()
		if c.end() != nil {
			return
		}
		var g grown
		if g.got, g.answer = share.Grow(least, most); g.answer != budget.Yes {
			g.short = share.Short(least)
		}
		s.out.put(kindGrown, func(b []byte) []byte { return appendGrown(b, &g) })
	case kindGive:
		if u := c.use(); c.end() == nil {
			share.Give(u)
		}
	case kindSpare:
		if n := c.bytesCount(); c.end() == nil {
			share.SetSpare(n)
		}
	}
}

// reclaim gives back what the worker process took while it lived: the next one asks for it again.
func (s *session) reclaim() {
	share := s.e.cfg.Share
	if share == nil {
		return
	}
	share.Listen(nil, nil)
	u := share.Use()
	share.Give(budget.Use{Weights: max(u.Weights-s.had.Weights, 0), State: max(u.State-s.had.State, 0), Scratch: max(u.Scratch-s.had.Scratch, 0)})
	share.SetSpare(0)
}

func appendUse(b []byte, u budget.Use) []byte {
	for _, n := range []int64{u.Weights, u.State, u.Scratch} {
		b = binary.AppendUvarint(b, uint64(max(n, 0)))
	}
	return b
}

func (c *contents) use() budget.Use {
	return budget.Use{Weights: c.bytesCount(), State: c.bytesCount(), Scratch: c.bytesCount()}
}

// bytesCount is a number of bytes of memory. More than any machine has makes no sense, and its sums would overflow.
func (c *contents) bytesCount() int64 {
	n := c.uint()
	if n > budget.Unknown {
		c.fail()
		return 0
	}
	return int64(n)
}

func appendGrown(b []byte, g *grown) []byte {
	b = appendUse(append(b, byte(g.answer)), g.got)
	if g.short != nil {
		b = appendText(b, appendJSON(nil, g.short))
	}
	return b
}

func (c *contents) grown() (g grown) {
	g.answer, g.got = budget.Answer(c.byte()), c.use()
	switch {
	case g.answer > budget.Never:
		c.fail()
	case g.answer != budget.Yes:
		g.short = c.shortError()
	}
	return g
}
