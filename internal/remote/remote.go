// Package remote runs an engine in a worker process, so that what ends the process (an abort in a GPU's driver, the
// system out of memory) ends neither the server nor the requests of other models. Package catalog opens one Engine per model that
// is to live apart, which takes the place of engine.Engine, and calls Serve in the worker process.
//
// One connection carries everything, in binary frames (frame.go, message.go). After each step the worker process writes what is
// new of all streams at once and never waits for their readers; the parent only appends to streams. When a worker process ends,
// its streams end with *engine.LostError and another process is started, after a longer delay each time; prompts that come
// meanwhile wait for it. The package never sees text, a model or a backend, and does not log (Config.Warn).
package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"hearth/internal/backend"
	"hearth/internal/budget"
	"hearth/internal/engine"
	"hearth/internal/timeline"
)

// Process is a worker process with a connection to it. Its methods may be called from any goroutine.
type Process interface {
	io.ReadWriteCloser // the connection
	// Kill ends the worker process at once. It may have ended already.
	Kill()
	// Wait waits for its end and says how it ended, in words: "signal: killed", with the last lines it wrote.
	Wait() string
	PID() int
}

// Config is what an Engine is made of.
type Config struct {
	Start func() (Process, error) // starts a worker process that calls Serve
	Build string                  // of the program: a worker process of another build is refused
	Spec  json.RawMessage         // what the worker process is to load
	Share *budget.Share           // what it has of the machine's memory; nil: what it takes is not counted
	Warn  func(line string)       // called from any goroutine
	Hour  *timeline.Hour          // is told what happens; nil: nobody is

	Delay     func(deaths int) time.Duration // before the next start, after so many deaths in a row; nil: Delay
	WaitLimit time.Duration                  // how long a prompt waits while there is no worker process; 0: 30 seconds
	Silence   time.Duration                  // a worker process that sends nothing for so long is killed; 0: a minute
}

const (
	healthy    = time.Minute // after so long a worker process counts as healthy: deaths are counted from 0 again
	mostLoads  = 3           // deaths while loading, before Open gives up
	callLimit  = 2 * time.Second
	closeLimit = 20 * time.Second // longer than a worker process takes to write its caches
)

// Delay is 0, then half a second, then twice as long each time, 30 seconds at most.
func Delay(deaths int) time.Duration {
	const first, most = time.Second / 2, 30 * time.Second
	if deaths == 0 {
		return 0
	}
	return min(first<<(min(deaths, 8)-1), most)
}

// Engine is an engine in a worker process. All methods may be called from any goroutine.
//
// Invariants: streams and calls belong to session. While that is nil there are no calls, and all streams are lost ones that wait
// for the next session. up is closed exactly while session is not nil. A prompt counts as live until the worker process has said
// that its stream has ended.
type Engine struct {
	cfg  Config
	quit chan struct{} // closed by Close
	done chan struct{} // supervise has ended

	mu      sync.Mutex
	session *session // nil: there is no worker process, or it is loading
	facts   facts    // of the last session
	up      chan struct{}
	lost    *engine.LostError // why there is no session
	again   time.Time         // when one is started again; zero: it is being started
	closed  bool
	nextID  uint64
	streams map[uint64]*stream
	calls   map[uint64]*call
	scoring int // calls of Score
	meter   *timeline.Meter
	past    engine.Stats
	last    engine.Stats // of the session, as of its last reply
	loaded  int          // worker processes so far
}

// CrashError is a worker process that ended again and again while it loaded.
type CrashError struct {
	Times int
	How   string // the last time
}

func (e *CrashError) Error() string {
	return fmt.Sprintf("load model: its process ended %d times while it loaded, the last time with %s", e.Times, e.How)
}

// Open starts a worker process and waits until it has loaded. When ctx ends before, it ends the process. An error is *Refused,
// *CrashError, that of starting it, or ctx's. End an Engine with Close.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	if cfg.Delay == nil {
		cfg.Delay = Delay
	}
	if cfg.WaitLimit == 0 {
		cfg.WaitLimit = 30 * time.Second
	}
	if cfg.Silence == 0 {
		cfg.Silence = time.Minute
	}
	e := &Engine{cfg: cfg, quit: make(chan struct{}), done: make(chan struct{}), up: make(chan struct{}),
		streams: map[uint64]*stream{}, calls: map[uint64]*call{}, meter: cfg.Hour.Meter()}
	var s *session
	for deaths := 0; ; deaths++ {
		var err error
		if s, err = e.startSession(ctx); err == nil {
			break
		}
		var died *diedError
		if !errors.As(err, &died) {
			return nil, err
		}
		if deaths+1 == mostLoads {
			return nil, &CrashError{Times: mostLoads, How: died.how}
		}
		cfg.Warn(fmt.Sprintf("the process of the model ended while it loaded (%v); trying again", err))
		if !e.pause(ctx, cfg.Delay(deaths)) {
			return nil, ctx.Err()
		}
	}
	e.adopt(s)
	go e.supervise(s)
	return e, nil
}

// pause waits, unless the engine is closed or ctx ends meanwhile.
func (e *Engine) pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-e.quit:
		return false
	case <-ctx.Done():
		return false
	}
}

// adopt makes a session the one that prompts go to, unless the engine is closed.
func (e *Engine) adopt(s *session) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.facts = s.facts
	e.loaded++
	if !s.over { // else it has ended already
		e.session, e.lost, e.again = s, nil, time.Time{}
		for _, id := range slices.Sorted(maps.Keys(e.streams)) {
			e.streams[id].send(s)
		}
		close(e.up)
	}
	return true
}

// supervise starts a worker process whenever one has ended, until the engine is closed.
func (e *Engine) supervise(s *session) {
	defer close(e.done)
	for deaths := 0; ; deaths++ {
		began := time.Now()
		<-s.ended
		if time.Since(began) >= healthy {
			deaths = 0
		}
		err := s.err
		for s = nil; s == nil; deaths++ {
			wait := e.cfg.Delay(deaths)
			e.mu.Lock()
			if e.closed {
				e.mu.Unlock()
				return
			}
			e.lost = &engine.LostError{Err: err, After: wait, Times: deaths + 1}
			e.again = time.Now().Add(wait)
			e.mu.Unlock()
			e.cfg.Warn(fmt.Sprintf("the process of the model has ended (%v); it is started again %s", err, in(wait)))
			if !e.pause(context.Background(), wait) {
				return
			}
			e.mu.Lock()
			e.again = time.Time{}
			e.mu.Unlock()
			if s, err = e.startSession(context.Background()); err == nil {
				break
			}
		}
		if !e.adopt(s) {
			s.proc.Kill()
			<-s.ended
			return
		}
		e.cfg.Warn("the model is back")
	}
}

func in(d time.Duration) string {
	if d == 0 {
		return "now"
	}
	return "in " + d.String()
}

// ready gives the session, which it waits for.
func (e *Engine) ready(ctx context.Context) (*session, error) {
	limit := time.Now().Add(e.cfg.WaitLimit)
	for {
		e.mu.Lock()
		s, up, again, closed, refusal := e.session, e.up, e.again, e.closed, e.refusal()
		e.mu.Unlock()
		switch {
		case closed:
			return nil, engine.ErrClosed
		case s != nil:
			return s, nil
		case time.Now().After(limit) || again.After(limit):
			return nil, refusal
		}
		t := time.NewTimer(time.Until(limit))
		select {
		case <-up:
		case <-t.C:
		case <-e.quit:
		case <-ctx.Done():
			t.Stop()
			return nil, ctx.Err()
		}
		t.Stop()
	}
}

// Context is the most tokens, prompt and answer together, that one sequence can have.
func (e *Engine) Context() int { return e.lastFacts().Context }

// KV is how keys and values are kept.
func (e *Engine) KV() backend.KVPolicy { return e.lastFacts().KV }

// About is what the worker process told of the model (Loaded.About), the last one that loaded it.
func (e *Engine) About() json.RawMessage { return e.lastFacts().About }

func (e *Engine) lastFacts() facts {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.facts
}

// Worker is the process id of the worker process, 0 while none has loaded, and the number of those that have loaded so far.
func (e *Engine) Worker() (pid, loaded int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session != nil {
		pid = e.session.proc.PID()
	}
	return pid, e.loaded
}

// live counts sequences that wait or run. Called with mu held.
func (e *Engine) live() int { return len(e.streams) + e.scoring }

// Close ends every sequence with engine.ErrClosed and then the worker process, which writes its caches first. It may be called
// again.
func (e *Engine) Close() error {
	e.mu.Lock()
	s, first := e.session, !e.closed
	e.closed = true
	gone := e.takeLost(func(*stream) bool { return true })
	e.mu.Unlock()
	if first {
		close(e.quit)
	}
	for _, q := range gone {
		q.end(engine.Error, engine.ErrClosed)
	}
	if s != nil {
		s.out.put(kindEnd, nil)
		t := time.AfterFunc(closeLimit, s.proc.Kill)
		<-s.ended
		t.Stop()
	}
	<-e.done
	if s != nil {
		return s.closed
	}
	return nil
}
