package engine

import (
	"context"
	"encoding/binary"
	"io"
	"sync"
	"time"

	"hearth/internal/kv"
	"hearth/internal/sample"
)

// Token is one generated token. Logprob and Top are set when the prompt asked for logprobs.
type Token struct {
	ID      int32
	Logprob float32
	Top     []sample.Logprob // most likely first
	More    bool             // the next one comes with it: drafts that were right, and what the step generated behind them
}

// Reason is why a stream ended.
type Reason uint8

const (
	Running Reason = iota // it has not
	Stop                  // a stop id
	Length                // MaxTokens or the end of the context
	Cancel                // the context ended or the stream was closed
	Error                 // see the error of Next
)

func (r Reason) String() string {
	return [...]string{"running", "stop", "length", "cancel", "error"}[r]
}

// Stream is the tokens of one sequence. One goroutine reads it; it must read to the end, close it or end its context.
// The engine only appends and never waits for the reader: the buffer is bounded by MaxTokens.
type Stream struct {
	ctx    context.Context
	cancel func() // tells the engine; safe to call more than once
	wake   chan struct{}
	begun  chan struct{} // closed by the first start or end
	watch  func(bool)    // see Prompt.Watch

	mu     sync.Mutex
	buf    []Token
	read   int // tokens of buf already given out
	reason Reason
	err    error
	stopID int32
	usage  Usage
}

// Usage is what a stream has cost so far.
type Usage struct {
	Prompt    int // prompt tokens
	Cached    int // of those, found in the prefix cache; known once Started is
	Disk      int // of those, restored from disk for it
	Added     int // of the others, added to the cache, known likewise; see kv.Geometry.Added
	Longer    int // prompt tokens that the cache has, though not all can be used: see kv.Match
	Hit       kv.Kind
	Own       bool          // those were all left by its own Party,
	Instead   Tokens        // and so were these, which stand there in the place of what the prompt goes on with: some of them
	Lack      Lack          // what it waited for before it started, if it was more than a step
	Ran       int           // prompt tokens that are done: Cached and those that steps have run
	Matched   time.Duration // of the time before Started, what it took to look the prompt up in the cache and to read it from disk
	Generated int           // tokens generated, a final stop id included
	Drafted   int           // tokens that were proposed and run ahead,
	Accepted  int           // and those of them that it said
	Submitted time.Time
	Started   time.Time // its first step began; zero while it waits
	First     time.Time // its first token was ready
	Ended     time.Time
}

// Tokens are some ids, in a form that can be compared.
type Tokens string

// TokensOf makes them.
func TokensOf(ids []int32) Tokens {
	b := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	return Tokens(b)
}

// IDs gives the ids.
func (t Tokens) IDs() []int32 {
	var ids []int32
	for b := []byte(t); len(b) >= 4; b = b[4:] {
		ids = append(ids, int32(binary.LittleEndian.Uint32(b)))
	}
	return ids
}

func newStream(ctx context.Context, prompt int) *Stream {
	return &Stream{ctx: ctx, wake: make(chan struct{}, 1), begun: make(chan struct{}), stopID: -1,
		usage: Usage{Prompt: prompt, Submitted: time.Now()}}
}

// Next blocks until a token is there. The stream ends with io.EOF after a stop id (which is not given out, see
// StopID) or the last allowed token, with the context's error or context.Canceled (Close) when it was cancelled, and
// with the failure otherwise. Tokens generated before the end come first.
func (s *Stream) Next() (Token, error) {
	for {
		s.mu.Lock()
		if s.read < len(s.buf) {
			t := s.buf[s.read]
			s.read++
			s.mu.Unlock()
			return t, nil
		}
		reason, err := s.reason, s.err
		s.mu.Unlock()
		switch {
		case err != nil:
			return Token{}, err
		case reason != Running:
			return Token{}, io.EOF
		}
		select {
		case <-s.wake:
		case <-s.ctx.Done():
			s.end(Cancel, s.ctx.Err()) // without waiting for the engine, which notices after the step
		}
	}
}

// Finish is why the stream ended, Running if it has not.
func (s *Stream) Finish() Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

// StopID is the stop id that ended the stream, -1 if none did.
func (s *Stream) StopID() int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopID
}

// Usage gives counts and times so far.
func (s *Stream) Usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage
}

// Close ends the sequence if it still runs. It may be called at any time and again.
func (s *Stream) Close() {
	if s.end(Cancel, context.Canceled) {
		s.cancel()
	}
}

// start records the sequence's first step; a later start, after it was preempted, changes nothing.
func (s *Stream) start(now time.Time, q *sequence) {
	s.mu.Lock()
	first := s.usage.Started.IsZero()
	if first {
		s.begin()
		s.usage.Started, s.usage.Cached, s.usage.Longer, s.usage.Hit = now, q.Cached, q.Match.Longer, q.Match.Kind
		s.usage.Instead = TokensOf(plain(q.Instead, q.Match.Longer, &q.salt))
		s.usage.Own, s.usage.Ran, s.usage.Added, s.usage.Lack = q.Own, q.Cached, q.Added, q.waited
		s.usage.Matched = min(q.matched, now.Sub(s.usage.Submitted))
		s.usage.Disk = max(min(q.Cached, q.disk[1])-q.disk[0], 0)
	}
	s.mu.Unlock()
	if first && s.watch != nil {
		s.watch(false)
	}
}

// Started is closed when the sequence's first step begins, or it ends without one: Usage then has all about its start.
func (s *Stream) Started() <-chan struct{} { return s.begun }

// begin closes begun. Called with mu held.
func (s *Stream) begin() {
	select {
	case <-s.begun:
	default:
		close(s.begun)
	}
}

// ran notes how many prompt tokens are done.
func (s *Stream) ran(n int) {
	s.mu.Lock()
	s.usage.Ran = n
	s.mu.Unlock()
	if s.watch != nil {
		s.watch(true)
	}
}

// drafted counts drafts.
func (s *Stream) drafted(run, kept int) {
	if run > 0 {
		s.mu.Lock()
		s.usage.Drafted, s.usage.Accepted = s.usage.Drafted+run, s.usage.Accepted+kept
		s.mu.Unlock()
	}
}

// push appends the tokens of a step; a stop id at their end is noted, not given out. together says that the reader is to have
// them as one.
func (s *Stream) push(tokens []Token, stop, together bool, now time.Time) {
	s.mu.Lock()
	if s.usage.Generated == 0 {
		s.usage.First = now
	}
	s.usage.Generated += len(tokens)
	if last := len(tokens) - 1; stop {
		s.stopID, tokens = tokens[last].ID, tokens[:last]
	}
	s.buf = append(s.buf, tokens...)
	for k := len(s.buf) - len(tokens); together && k < len(s.buf)-1; k++ {
		s.buf[k].More = true
	}
	s.mu.Unlock()
	s.signal()
	if s.watch != nil {
		s.watch(true)
	}
}

// end sets the reason; the first one wins.
func (s *Stream) end(r Reason, err error) bool {
	s.mu.Lock()
	first := s.reason == Running
	if first {
		s.begin()
		s.reason, s.err, s.usage.Ended = r, err, time.Now()
	}
	s.mu.Unlock()
	s.signal()
	if first && s.watch != nil {
		s.watch(false)
	}
	return first
}

func (s *Stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
