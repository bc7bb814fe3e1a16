package remote

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"hearth/internal/backend"
	"hearth/internal/engine"
	"hearth/internal/kv"
	"hearth/internal/watchdog"
)

// host is the worker process's side of a connection.
type host struct {
	out *outbox
	ctx context.Context

	reading   sync.Mutex // held while readTexts runs
	readTexts func(b *backend.Batch, use func(rows []float32)) error
	watchdog  *watchdog.Timer // of readTexts

	mu      sync.Mutex
	loaded  bool
	engine  *engine.Engine
	streams map[uint64]*hosted
	dirty   []*hosted // with something new
	spare   []*hosted
	calls   map[uint64]context.CancelFunc
}

// hosted is a stream of the parent's.
type hosted struct {
	id          uint64
	logprobs    bool
	ctx         context.Context
	cancel      context.CancelFunc
	constraints chan engine.Constraint // at most one waits

	// Of the writer.
	sent  sent
	ended bool // and that has been sent

	// Under host.mu.
	stream *engine.Stream // nil: it is being submitted
	dirty  bool
}

// greet reads the parent's greeting and answers it.
func (h *host) greet(in *receiver, build string) (g greeting, err error) {
	k, b, err := in.read()
	if err != nil {
		return g, err
	}
	if k != kindGreeting || json.Unmarshal(b, &g) != nil {
		return g, errFrame
	}
	h.out.put(kindGreeting, func(b []byte) []byte { return appendJSON(b, greeting{Version: version, Build: build}) })
	if g.Version != version || g.Build != build {
		return g, fmt.Errorf("build %q, protocol %d of the process that started this one is not build %q, protocol %d", g.Build, g.Version, build, version)
	}
	return g, nil
}

// appendJSON appends what json.Marshal cannot fail on.
func appendJSON(b []byte, v any) []byte {
	j, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("remote: %T: %v", v, err))
	}
	return append(b, j...)
}

func (h *host) warn(line string) {
	h.out.put(kindWarn, func(b []byte) []byte { return append(b, line...) })
}

// stuck says that a step does not end.
func (h *host) stuck(d time.Duration) {
	h.out.put(kindStuck, func(b []byte) []byte { return binary.AppendUvarint(b, uint64(d)) })
}

// fail tells why nothing was loaded.
func (h *host) fail(err error) {
	var r *Refused
	if !errors.As(err, &r) {
		r = &Refused{Msg: err.Error()}
	}
	h.out.put(kindFailed, func(b []byte) []byte { return appendJSON(b, r) })
}

// start makes prompts possible, and says so.
func (h *host) start(l *Loaded) {
	h.mu.Lock()
	h.engine, h.readTexts, h.loaded = l.Engine, l.Read, true
	h.mu.Unlock()
	f := facts{Limits: l.Limits, About: l.About}
	if l.Engine != nil {
		f.Context, f.KV = l.Engine.Context(), l.Engine.KV()
	}
	h.out.put(kindLoaded, func(b []byte) []byte { return appendJSON(b, f) })
}

// read handles the parent's frames until kindEnd, which gives nil.
func (h *host) read(in *receiver) error {
	for {
		k, b, err := in.read()
		if errors.Is(err, errFrame) {
			return err
		}
		if err != nil {
			return ErrGone
		}
		c := &contents{b: b}
		h.mu.Lock()
		e, loaded := h.engine, h.loaded
		h.mu.Unlock()
		switch {
		case k == kindPing:
			h.out.put(kindPong, nil)
		case k == kindEnd:
			return nil
		case !loaded || k == kindPrompt && e == nil:
			return errFrame
		case k == kindPrompt:
			h.submit(e, c)
		case k == kindCancel:
			h.cancel(c.uint())
		case k == kindConstraint:
			h.constrain(c)
		case k == kindCall:
			h.call(e, c)
		case k == kindDrop:
			h.drop(c.uint())
		default:
			return errFrame
		}
		if err := c.end(); err != nil {
			return fmt.Errorf("%w: %v", err, k)
		}
	}
}

// submit starts a stream. One that is refused has news at once.
func (h *host) submit(e *engine.Engine, c *contents) {
	s := &hosted{id: c.uint()}
	p, constrained := c.prompt()
	if c.end() != nil {
		return
	}
	s.logprobs = p.Logprobs >= 0
	s.ctx, s.cancel = context.WithCancel(h.ctx)
	if constrained {
		s.constraints = make(chan engine.Constraint, 1)
		p.Constraints = s.constraints
	}
	p.Watch = func(step bool) { h.touch(s, !step) }
	h.mu.Lock()
	h.streams[s.id] = s
	h.mu.Unlock()
	stream, err := e.Submit(s.ctx, p)
	if err != nil {
		f := engine.NewFeed(s.ctx, len(p.Tokens), s.cancel)
		f.Give(engine.News{Reason: engine.Error, StopID: -1, Err: err})
		stream = f.Stream
	}
	h.mu.Lock()
	s.stream = stream
	h.mu.Unlock()
	h.touch(s, true)
}

// touch notes that a stream has something new.
func (h *host) touch(s *hosted, now bool) {
	h.mu.Lock()
	if !s.dirty {
		s.dirty = true
		h.dirty = append(h.dirty, s)
	}
	h.mu.Unlock()
	if now {
		h.out.signal()
	}
}

func (h *host) cancel(id uint64) {
	h.mu.Lock()
	s := h.streams[id]
	h.mu.Unlock()
	if s != nil { // it may have ended meanwhile
		s.cancel()
	}
}

// constrain passes on what may come after a token.
func (h *host) constrain(c *contents) {
	id, constraint := c.uint(), c.constraint()
	if c.end() != nil {
		return
	}
	h.mu.Lock()
	s := h.streams[id]
	h.mu.Unlock()
	if s == nil || s.constraints == nil {
		return
	}
	select {
	case s.constraints <- constraint:
	default:
		if s.ctx.Err() == nil { // else the engine no longer reads them
			c.fail()
		}
	}
}

// mostTokens of one piece of news.
const mostTokens = 4096

// appendNews appends what is new of all streams, before the writer writes.
func (h *host) appendNews(b []byte) []byte {
	h.mu.Lock()
	list := h.dirty
	h.dirty = h.spare[:0]
	for _, s := range list {
		s.dirty = false
	}
	h.mu.Unlock()
	start := len(b)
	b = begin(b, kindNews)
	for _, s := range list {
		if b = h.appendStream(b, s); len(b)-start > newsFrame {
			b = finish(b, start)
			start = len(b)
			b = begin(b, kindNews)
		}
	}
	clear(list)
	h.spare = list
	if len(b) == start+headerSize+1 {
		return b[:start]
	}
	return finish(b, start)
}

func (h *host) appendStream(b []byte, s *hosted) []byte {
	h.mu.Lock()
	stream := s.stream
	h.mu.Unlock()
	if stream == nil || s.ended { // submit touches it again; or the end was sent with an earlier frame
		return b
	}
	n := stream.Take()
	for len(n.Tokens) > mostTokens {
		part := engine.News{Tokens: n.Tokens[:mostTokens], Usage: s.sent.usage, StopID: -1}
		part.Usage.Generated += mostTokens
		b = s.sent.appendNews(b, s.id, &part, s.logprobs)
		n.Tokens = n.Tokens[mostTokens:]
	}
	if len(n.Tokens) == 0 && n.Reason == engine.Running && n.Usage == s.sent.usage {
		return b
	}
	b = s.sent.appendNews(b, s.id, &n, s.logprobs)
	if n.Reason != engine.Running {
		s.ended = true
		s.cancel()
		h.mu.Lock()
		delete(h.streams, s.id)
		h.mu.Unlock()
	}
	return b
}

// method is what a call asks for.
type method byte

const (
	callStats     method = 1 + iota // -> engine.Stats as JSON
	callClear                       // -> engine.Dropped as JSON
	callStored                      // salt -> engine.Stored as JSON
	callClearSalt                   // salt -> engine.Dropped as JSON
	callSave                        // name, data ->
	callSaved                       // name -> data
	callScore                       // top, tokens -> scores, in pieces
	callRead                        // texts -> rows, in pieces; the only one without an engine
)

// call answers a call. What may take time has a goroutine.
func (h *host) call(e *engine.Engine, c *contents) {
	id, m := c.uint(), method(c.byte())
	if (m == callRead) != (e == nil) {
		c.fail()
		return
	}
	switch m {
	case callRead:
		b := c.texts()
		if c.end() == nil {
			h.spawn(id, func(context.Context) { h.answerRead(id, b) })
		}
	case callStats:
		h.spawn(id, func(context.Context) { // a backend may have to be asked
			st := e.Stats()
			h.reply(id, false, nil, func(b []byte) []byte { return appendJSON(b, st) })
		})
	case callClear:
		h.spawn(id, func(ctx context.Context) {
			d, err := e.DropCache(ctx)
			h.reply(id, false, err, func(b []byte) []byte { return appendJSON(b, d) })
		})
	case callStored:
		var salt kv.Salt
		copy(salt[:], c.take(len(salt)))
		h.spawn(id, func(context.Context) {
			h.reply(id, false, nil, func(b []byte) []byte { return appendJSON(b, e.Stored(salt)) })
		})
	case callClearSalt:
		var salt kv.Salt
		copy(salt[:], c.take(len(salt)))
		h.spawn(id, func(ctx context.Context) {
			d, err := e.DropSalt(ctx, salt)
			h.reply(id, false, err, func(b []byte) []byte { return appendJSON(b, d) })
		})
	case callSave:
		name, data := c.text(), c.bytes()
		h.spawn(id, func(context.Context) { h.reply(id, false, e.Save(name, data), nil) })
	case callSaved:
		name := c.text()
		h.spawn(id, func(context.Context) {
			data := e.Saved(name)
			if !h.reply(id, false, nil, func(b []byte) []byte { return append(b, data...) }) {
				h.reply(id, false, nil, nil) // more than a frame holds counts as nothing
			}
		})
	case callScore:
		top, tokens := c.int(), c.ids()
		h.spawn(id, func(ctx context.Context) {
			scores, err := e.Score(ctx, tokens, top)
			for part := range parts(scores) {
				h.reply(id, true, nil, func(b []byte) []byte { return appendScores(b, part) })
			}
			h.reply(id, false, err, nil)
		})
	default:
		c.fail()
	}
}

// parts cuts scores into pieces.
func parts(scores []engine.Score) func(yield func([]engine.Score) bool) {
	return func(yield func([]engine.Score) bool) {
		const most = 1024
		for len(scores) > 0 {
			n := min(len(scores), most)
			if !yield(scores[:n]) {
				return
			}
			scores = scores[n:]
		}
	}
}

func (h *host) reply(id uint64, more bool, err error, result func(b []byte) []byte) bool {
	return h.out.put(kindReply, func(b []byte) []byte {
		b = binary.AppendUvarint(b, id)
		b = appendError(appendBool(b, more), err)
		if err == nil && result != nil {
			b = result(b)
		}
		return b
	})
}

// spawn runs a call until it is done or dropped.
func (h *host) spawn(id uint64, f func(context.Context)) {
	ctx, cancel := context.WithCancel(h.ctx)
	h.mu.Lock()
	h.calls[id] = cancel
	h.mu.Unlock()
	go func() {
		defer h.drop(id)
		f(ctx)
	}()
}

func (h *host) drop(id uint64) {
	h.mu.Lock()
	cancel := h.calls[id]
	delete(h.calls, id)
	h.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}
