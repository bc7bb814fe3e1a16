package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"hearth/internal/budget"
	"hearth/internal/engine"
	"hearth/internal/timeline"
)

// session is the life of one worker process.
type session struct {
	e        *Engine
	proc     Process
	out      *outbox
	in       *receiver
	facts    facts
	lastRead atomic.Int64 // when something came last, nanoseconds since began
	began    time.Time
	had      budget.Use // its share, before it took more

	loaded chan error    // gets one: nil when it has loaded
	ended  chan struct{} // closed when the process and its goroutines have ended
	// Set before ended is closed.
	err    error                  // why it ended
	closed error                  // what kindClosed said
	stuck  atomic.Pointer[string] // why it was killed
	over   bool                   // under Engine.mu

	parcels parcels
}

// diedError is a worker process that ended by itself.
type diedError struct{ how string }

func (e *diedError) Error() string { return e.how }

// startSession starts a worker process and waits until it has loaded. Errors are *Refused, *diedError, engine.ErrClosed, what
// starting a process can fail with, or ctx's: it has then ended.
func (e *Engine) startSession(ctx context.Context) (*session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	proc, err := e.cfg.Start()
	if err != nil {
		return nil, fmt.Errorf("start the process of the model: %w", err)
	}
	s := &session{e: e, proc: proc, out: newOutbox(), in: newReceiver(proc), began: time.Now(),
		loaded: make(chan error, 1), ended: make(chan struct{})}
	g := greeting{Version: version, Build: e.cfg.Build, Spec: e.cfg.Spec}
	if share := e.cfg.Share; share != nil {
		s.had = share.Use()
		g.Share = &s.had
		s.listen()
	}
	s.out.more = func(b []byte) []byte {
		b, more := s.parcels.next(b)
		if more {
			s.out.signal()
		}
		return b
	}
	s.out.put(kindGreeting, func(b []byte) []byte { return appendJSON(b, g) })
	written := make(chan struct{})
	go func() {
		defer close(written)
		_ = s.out.run(proc) // the reader notices
	}()
	go s.run(written)
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// load waits until the worker process has loaded, or has ended.
func (s *session) load(ctx context.Context) error {
	var err error
	select {
	case err = <-s.loaded:
	case <-s.ended:
		select { // a result that it sent counts, however soon it ended
		case err = <-s.loaded:
		default:
			return s.err
		}
	case <-s.e.quit:
		s.proc.Kill()
		<-s.ended
		return engine.ErrClosed
	case <-ctx.Done():
		s.proc.Kill()
		<-s.ended
		return ctx.Err()
	}
	if err != nil {
		<-s.ended
	}
	return err
}

// run reads until the worker process ends, then clears up behind it.
func (s *session) run(written <-chan struct{}) {
	watch := make(chan struct{})
	go s.watch(watch)
	err := s.read()
	s.in = nil // frees its buffers: others may hold the session for a while
	close(watch)
	s.out.close()
	s.proc.Close()
	<-written
	if !errors.Is(err, io.EOF) {
		s.proc.Kill()
	}
	how := s.wait()
	switch why := s.stuck.Load(); {
	case why != nil:
		how = *why
	case !errors.Is(err, io.EOF):
		how = fmt.Sprintf("%v; %s", err, how)
	}
	s.err = &diedError{how}
	s.parcels.remove(func(*parcel) bool { return true })
	s.reclaim()
	s.e.sessionEnded(s)
	close(s.ended)
}

// kill ends a worker process that does not respond.
func (s *session) kill(why string) {
	s.stuck.CompareAndSwap(nil, &why)
	s.proc.Kill()
	s.proc.Close() // ends the session even if the driver keeps the process alive
}

// wait says how a worker process has ended. One that cannot be killed is not waited for.
func (s *session) wait() string {
	how := make(chan string, 1)
	go func() { how <- s.proc.Wait() }()
	for range 2 {
		t := time.NewTimer(closeLimit)
		select {
		case h := <-how:
			t.Stop()
			return h
		case <-t.C:
			s.proc.Kill()
		}
	}
	return "it does not end, not even when it is killed"
}

// watch pings a worker process now and then, and kills it when it sends nothing for Config.Silence.
func (s *session) watch(ended <-chan struct{}) {
	t := time.NewTicker(s.e.cfg.Silence / 6)
	defer t.Stop()
	for {
		select {
		case <-ended:
			return
		case <-t.C:
			if time.Since(s.began)-time.Duration(s.lastRead.Load()) > s.e.cfg.Silence {
				s.kill(fmt.Sprintf("it said nothing for %v and was killed", s.e.cfg.Silence))
				return
			}
			s.out.put(kindPing, nil)
		}
	}
}

// read handles the worker process's frames. It returns io.EOF when the process has ended, and another error when a frame is bad.
func (s *session) read() error {
	told := false // whether it has loaded
	for greeted := false; ; greeted = true {
		k, b, err := s.in.read()
		if errors.Is(err, errFrame) {
			return err
		}
		if err != nil {
			return io.EOF // even in the middle of a frame
		}
		s.lastRead.Store(int64(time.Since(s.began)))
		result := k == kindLoaded || k == kindFailed
		if greeted == (k == kindGreeting) || result && told {
			return fmt.Errorf("%w: %v", errFrame, k)
		}
		told = told || result
		c := &contents{b: b}
		switch k {
		case kindGreeting:
			err = s.greet(b)
			c.b = nil
		case kindPong:
		case kindStuck:
			s.kill(fmt.Sprintf("a step did not end for %v and it was killed", time.Duration(c.uint())))
		case kindWarn:
			s.e.cfg.Warn(string(b))
			c.b = nil
		case kindLoaded:
			err = json.Unmarshal(b, &s.facts)
			c.b = nil
			s.loaded <- err
		case kindFailed:
			r := &Refused{}
			if err = json.Unmarshal(b, r); err == nil {
				s.loaded <- r
			}
			c.b = nil
		case kindUpdates:
			err = s.updates(c)
		case kindDrawn:
			s.drawn(c)
		case kindReply:
			s.reply(c)
		case kindOpen:
			s.open(c)
		case kindShut:
			id := c.uint()
			s.parcels.remove(func(p *parcel) bool { return p.id == id })
		case kindGrow, kindGive, kindSpare:
			s.share(k, c)
		case kindClosed:
			s.closed = c.error()
		default:
			err = errFrame
		}
		if err == nil {
			err = c.end()
		}
		if err != nil {
			return fmt.Errorf("%w: %v", err, k)
		}
	}
}

func (s *session) greet(b []byte) error {
	var g greeting
	if err := json.Unmarshal(b, &g); err != nil {
		return err
	}
	if g.Version != version || g.Build != s.e.cfg.Build {
		return fmt.Errorf("the program's file was replaced by another build (%q in place of %q): start the server again", g.Build, s.e.cfg.Build)
	}
	return nil
}

// updates appends what is new to the streams, and calls their hooks.
func (s *session) updates(c *contents) error {
	var happened timeline.Counts
	defer func() {
		happened.Steps = min(happened.Sequences, 1)
		s.e.mu.Lock()
		s.e.note(&happened)
		s.e.mu.Unlock()
	}()
	for len(c.b) > 0 {
		id := c.uint()
		s.e.mu.Lock()
		q := s.e.streams[id]
		s.e.mu.Unlock()
		if q == nil {
			return errFrame
		}
		before := q.known.usage
		n := q.known.update(c)
		if c.bad {
			return errFrame
		}
		s.e.mu.Lock()
		q.count(&happened, &before, &n.Usage)
		s.e.mu.Unlock()
		if !n.Usage.Started.IsZero() {
			q.prompt = nil
		}
		if q.hooks.Constrain != nil && n.Reason == engine.Running { // else nothing follows
			s.constrain(q, n.Tokens)
		}
		if n.Reason != engine.Running {
			q.unwatch()
			s.e.remove(id)
			s.parcels.remove(func(p *parcel) bool { return p.stream == id })
			q.images = nil
			if err := q.ctx.Err(); err != nil && n.Reason == engine.Cancel {
				n.Err = err
			}
			if err := q.failed.Load(); err != nil && n.Reason == engine.Error {
				n.Err = &engine.ConstraintError{Err: *err} // the hook's own error, not a copy of its text
			}
			var unseen *engine.ImageError
			if err := q.unseen.Load(); err != nil && errors.As(n.Err, &unseen) {
				n.Err = &engine.ImageError{Image: unseen.Image, Err: *err}
			}
		}
		q.stream.Apply(n)
	}
	return nil
}

// constrain tells the worker process for every token what may come after it, even if that is everything.
func (s *session) constrain(q *stream, tokens []engine.Token) {
	if q.hook == nil { // a prompt that begins again in another process had no tokens yet
		q.hook = engine.NewHook(&q.hooks, func(constraint engine.Constraint) {
			if constraint.Err != nil {
				q.failed.Store(&constraint.Err)
			}
			s.out.put(kindConstraint, func(b []byte) []byte { return appendConstraint(appendUint(b, q.id), constraint) })
		})
	}
	for i := range tokens {
		if q.seen++; q.seen <= q.told {
			continue
		}
		most := 0
		if i == len(tokens)-1 {
			most = s.facts.Drafts
		}
		q.told++
		q.hook.Tell(tokens[i].ID, nil, most)
	}
	for len(q.drawn) > 0 && q.drawn[0].at <= q.told {
		if d := q.drawn[0]; d.at == q.told {
			q.told++
			q.hook.Tell(d.id, nil, 0)
		}
		q.drawn = q.drawn[1:]
	}
}

// drawn has the constraint of a token sent before the step that drew it ends. Updates of the steps before may come after it, and
// that of its own, with the stream's end, before.
func (s *session) drawn(c *contents) {
	id, d := c.uint(), drawn{c.int(), c.id()}
	s.e.mu.Lock()
	q := s.e.streams[id]
	s.e.mu.Unlock()
	switch {
	case c.bad || q == nil:
	case q.hooks.Constrain == nil || len(q.drawn) == engine.LongestSpan:
		c.fail()
	default:
		q.drawn = append(q.drawn, d)
		s.constrain(q, nil)
	}
}

// reply gives the result of a call to its caller, if that still waits.
func (s *session) reply(c *contents) {
	id, more, err := c.uint(), c.bool(), c.error()
	s.e.mu.Lock()
	q := s.e.calls[id]
	if q != nil && !more {
		delete(s.e.calls, id)
	}
	s.e.mu.Unlock()
	if q == nil {
		c.b = nil
		return
	}
	if err == nil && q.take != nil && len(c.b) > 0 {
		q.take(c)
	}
	if !more {
		q.done <- err
	}
}
