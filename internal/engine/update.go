package engine

import (
	"context"
	"time"
)

// Update is what has happened to a stream since Take was called last.
type Update struct {
	Tokens []Token
	Usage  Usage
	Reason Reason // Running: it goes on
	StopID int32  // -1: none
	Err    error  // where Reason is Cancel or Error
}

// Take reads what is new without waiting. It is for callers that use Prompt.Watch instead of Next. The tokens are not copied; the
// stream does not touch them again.
func (s *Stream) Take() Update {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := Update{Tokens: s.buf[s.read:len(s.buf):len(s.buf)], Usage: s.usage, Reason: s.reason, StopID: s.stopID, Err: s.err}
	s.read = len(s.buf)
	return u
}

// NewStream makes the stream of a sequence that runs elsewhere, of a prompt of so many tokens: Apply is its writing end. cancel
// is called when the reader closes it early, maybe more than once.
func NewStream(ctx context.Context, prompt int, cancel func()) *Stream {
	s := newStream(ctx, prompt)
	s.cancel = cancel
	return s
}

// Apply appends what has happened to the sequence of NewStream. Usage replaces what was there. After the end it changes nothing.
func (s *Stream) Apply(u Update) {
	s.mu.Lock()
	if s.reason == Running {
		s.buf = append(s.buf, u.Tokens...)
		if s.usage = u.Usage; !u.Usage.Started.IsZero() {
			s.begin()
		}
		if s.reason, s.err = u.Reason, u.Err; u.Reason != Running {
			s.begin()
			s.stopID = u.StopID
			if s.usage.Ended.IsZero() {
				s.usage.Ended = time.Now()
			}
		}
	}
	s.mu.Unlock()
	s.signal()
}
