package engine

import (
	"context"
	"time"
)

// News is what has happened to a stream since it was last asked.
type News struct {
	Tokens []Token
	Usage  Usage
	Reason Reason // Running: it goes on
	StopID int32  // -1: none
	Err    error  // where Reason is Cancel or Error
}

// Take reads what is new without waiting. It is for callers that use Prompt.Watch instead of Next. The tokens are not copied; the
// stream does not touch them again.
func (s *Stream) Take() News {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := News{Tokens: s.buf[s.read:len(s.buf):len(s.buf)], Usage: s.usage, Reason: s.reason, StopID: s.stopID, Err: s.err}
	s.read = len(s.buf)
	return n
}

// Feed is the writing end of a stream whose sequence runs elsewhere.
type Feed struct{ Stream *Stream }

// NewFeed makes the stream of a prompt of so many tokens. cancel is called when the reader closes it early, maybe more than once.
func NewFeed(ctx context.Context, prompt int, cancel func()) Feed {
	s := newStream(ctx, prompt)
	s.cancel = cancel
	return Feed{s}
}

// Give appends what has happened. Usage replaces what was there. After the end it changes nothing.
func (f Feed) Give(n News) {
	s := f.Stream
	s.mu.Lock()
	if s.reason == Running {
		s.buf = append(s.buf, n.Tokens...)
		if s.usage = n.Usage; !n.Usage.Started.IsZero() {
			s.begin()
		}
		if s.reason, s.err = n.Reason, n.Err; n.Reason != Running {
			s.begin()
			s.stopID = n.StopID
			if s.usage.Ended.IsZero() {
				s.usage.Ended = time.Now()
			}
		}
	}
	s.mu.Unlock()
	s.signal()
}
