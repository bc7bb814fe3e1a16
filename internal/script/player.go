package script

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"hearth/internal/chat"
	"hearth/internal/engine"
	"hearth/internal/generate"
	"hearth/internal/kv"
	"hearth/internal/timeline"
	"hearth/internal/tokenizer"
)

// answer is what a player says to one request. It travels in the context: generate hands its engine nothing else that
// tells requests apart.
type answer struct {
	raw          string
	tokensPerSec float64
	fault        *fault
}

type answerKey struct{}

func withAnswer(ctx context.Context, a *answer) context.Context {
	return context.WithValue(ctx, answerKey{}, a)
}

// player is a generate.Engine that plays answers. It keeps no state of a model, but remembers the latest sequences, so
// that replies report cached tokens as an engine's prefix cache would.
type player struct {
	tok     *tokenizer.Tokenizer
	context int
	meter   *timeline.Meter

	mu     sync.Mutex
	latest []past
	live   []*stream // in order of arrival
}

// past is a sequence that was played. Its tokens are four bytes each: comparing bytes is what machines are quick at.
type past struct {
	salt   kv.Salt
	tokens []byte
}

const idBytes = 4

func appendIDs(dst []byte, ids ...int32) []byte {
	for _, id := range ids {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(id))
	}
	return dst
}

const (
	remembered = 64 // sequences
	leastMatch = 64 // tokens: what the engine's cache shares at least, a page
)

func (p *player) Context() int { return p.context }

// Submit implements generate.Engine.
func (p *player) Submit(ctx context.Context, q engine.Prompt) (generate.Stream, error) {
	a := ctx.Value(answerKey{}).(*answer)
	if f := a.fault; f != nil && f.after == 0 && f.kind != stall {
		return nil, f.err()
	}
	room := p.context - len(q.Tokens)
	if q.MaxTokens <= 0 || q.MaxTokens > room {
		q.MaxTokens = room
	}
	now := time.Now()
	s := &stream{ctx: ctx, player: p, answer: a, tokens: p.tok.Encode(a.raw, tokenizer.EncodeOptions{ParseSpecial: true}),
		sequence: past{q.Salt, appendIDs(nil, q.Tokens...)}, max: q.MaxTokens, stop: q.StopIDs, constrain: q.Constrain, began: make(chan struct{}), request: q.Request}
	close(s.began)
	s.usage = engine.Usage{Prompt: len(q.Tokens), Ran: len(q.Tokens), Submitted: now, Started: now}
	s.usage.Cached, s.usage.Longer, s.usage.Hit = p.match(&s.sequence)
	s.usage.Added = kv.Geometry{PageTokens: leastMatch}.Added(len(q.Tokens), s.usage.Cached, s.usage.Longer)
	p.mu.Lock()
	p.live = append(p.live, s)
	c := timeline.Counts{Requests: 1, Cached: int64(s.usage.Cached), Prompt: int64(s.usage.Prompt - s.usage.Cached)}
	c.Hits[s.usage.Hit]++
	p.note(&c)
	p.mu.Unlock()
	s.unwatch = context.AfterFunc(ctx, func() { p.leave(s) }) // of a reply that nobody reads to its end
	return s, nil
}

// leave takes a stream off the list of those that run.
func (p *player) leave(s *stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live = slices.DeleteFunc(p.live, func(x *stream) bool { return x == s })
	p.note(&timeline.Counts{})
}

// note tells the meter what has happened. Called with mu held.
func (p *player) note(c *timeline.Counts) {
	p.meter.Note(time.Now(), c, timeline.Levels{Running: int64(len(p.live))})
}

// running lists what plays.
func (p *player) running() []engine.Live {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]engine.Live, len(p.live))
	for i, s := range p.live {
		out[i] = engine.Live{Request: s.request, Usage: s.Usage(), Max: s.max}
	}
	return out
}

// match compares a prompt with the latest sequences.
func (p *player) match(prompt *past) (cached, longer int, hit kv.Kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	size := len(prompt.tokens) / idBytes
	for i := range p.latest {
		seq := &p.latest[i]
		if end := (longer + 1) * idBytes; seq.salt != prompt.salt || len(seq.tokens) < end || longer == size ||
			!bytes.Equal(seq.tokens[end-idBytes:end], prompt.tokens[end-idBytes:end]) {
			continue // no more than what is there already
		}
		n := common(seq.tokens, prompt.tokens)
		if n <= longer {
			continue
		}
		longer, hit = n, kv.LCP
		switch whole := n == len(seq.tokens)/idBytes; {
		case n == size && whole:
			hit = kv.Exact
		case n == size:
			hit = kv.Supersequence
		case whole:
			hit = kv.Within
		}
	}
	if longer < leastMatch {
		return 0, longer, kv.Miss
	}
	return min(longer, size-1), longer, hit
}

// common is how many tokens a and b begin with alike.
func common(a, b []byte) int {
	const block = 1 << 12
	n := min(len(a), len(b))
	i := 0
	for i+block <= n && bytes.Equal(a[i:i+block], b[i:i+block]) {
		i += block
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i / idBytes
}

// remember keeps a sequence, in place of those it continues.
func (p *player) remember(seq past) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latest = slices.DeleteFunc(p.latest, func(old past) bool {
		return old.salt == seq.salt && bytes.HasPrefix(seq.tokens, old.tokens)
	})
	if len(p.latest) == remembered {
		p.latest = slices.Delete(p.latest, 0, 1)
	}
	p.latest = append(p.latest, seq)
}

// stream plays one answer. One goroutine reads it; others may ask for its usage.
type stream struct {
	ctx       context.Context
	player    *player
	answer    *answer
	request   string
	tokens    []int32 // that are still to be played
	max       int
	stop      []int32
	constrain func(id int32) engine.Constraint
	began     chan struct{}
	unwatch   func() bool // stops waiting for the end of ctx; false: that has come

	sequence past // the prompt, and what was played

	reason engine.Reason
	err    error // what ended it early

	mu    sync.Mutex
	usage engine.Usage
}

// Next gives the tokens at their pace, then the fault, if the answer has one.
func (s *stream) Next() (engine.Token, error) {
	if s.err == nil && s.reason == engine.Running {
		s.err = s.wait()
		if s.err != nil {
			s.end(engine.Error)
		}
	}
	switch {
	case s.err != nil:
		return engine.Token{}, s.err
	case s.reason != engine.Running:
		return engine.Token{}, io.EOF
	case s.usage.Generated == s.max:
		s.end(engine.Length)
		return engine.Token{}, io.EOF
	case len(s.tokens) == 0 || slices.Contains(s.stop, s.tokens[0]):
		s.end(engine.Stop)
		s.count()
		return engine.Token{}, io.EOF
	}
	return engine.Token{ID: s.play()}, nil
}

// count notes a generated token.
func (s *stream) count() {
	s.mu.Lock()
	if s.usage.Generated++; s.usage.Generated == 1 {
		s.usage.First = time.Now()
	}
	s.mu.Unlock()
	s.player.mu.Lock()
	defer s.player.mu.Unlock()
	s.player.note(&timeline.Counts{Output: 1})
}

// play takes the next token.
func (s *stream) play() int32 {
	s.count()
	id := s.tokens[0]
	s.tokens = s.tokens[1:]
	s.sequence.tokens = appendIDs(s.sequence.tokens, id)
	if s.constrain != nil {
		next := s.constrain(id)
		if len(next.Forced) > 0 { // what else may come is the script's choice
			s.tokens = slices.Concat(next.Forced, s.tokens)
		}
		if next.Err != nil && s.err == nil {
			s.err = &engine.ConstraintError{Err: next.Err}
			s.end(engine.Error)
		}
	}
	return id
}

// wait returns when the next token is due, or with what happens in its place.
func (s *stream) wait() error {
	i := s.usage.Generated
	if f := s.answer.fault; f != nil && i == f.after {
		if f.kind == stall {
			<-s.ctx.Done()
			return s.ctx.Err()
		}
		return f.err()
	}
	if s.answer.tokensPerSec <= 0 {
		return s.ctx.Err()
	}
	due := s.usage.Started.Add(time.Duration(float64(i+1) / s.answer.tokensPerSec * float64(time.Second)))
	t := time.NewTimer(time.Until(due))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

func (s *stream) end(r engine.Reason) {
	if s.reason != engine.Running {
		return
	}
	s.reason = r
	s.mu.Lock()
	s.usage.Ended = time.Now()
	s.mu.Unlock()
	if s.unwatch() {
		s.player.leave(s)
	}
	s.player.remember(s.sequence)
}

// Usage implements generate.Stream.
func (s *stream) Usage() engine.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage
}

func (s *stream) Finish() engine.Reason    { return s.reason }
func (s *stream) Started() <-chan struct{} { return s.began }
func (s *stream) Close()                   { s.end(engine.Cancel) }

// err is the error that f breaks a reply off with.
func (f *fault) err() error {
	switch f.kind {
	case cut:
		return chat.ErrCut
	case overloaded:
		return &chat.Error{Kind: chat.Overloaded, Msg: "the script says that the server is overloaded", RetryAfter: time.Second}
	case rateLimited:
		return &chat.Error{Kind: chat.RateLimited, Msg: "the script says that there are too many requests", RetryAfter: time.Second}
	}
	return &chat.Error{Kind: chat.Internal, Msg: "the script says that generation failed", Err: errors.New("scripted fault")}
}
