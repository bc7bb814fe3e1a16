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
	"hearth/internal/watchdog"
)

// worker is the worker process's side of a connection.
type worker struct {
	out *outbox
	ctx context.Context

	share *Share // nil: there is none

	step     sync.Mutex // held while forward runs
	forward  func(b *backend.Batch, use func(rows []float32)) error
	room     func(ctx context.Context, rows int) (done func(), err error)
	watchdog *watchdog.Timer // of forward

	mu      sync.Mutex
	loaded  bool
	engine  *engine.Engine
	streams map[uint64]*workerStream
	dirty   []*workerStream // with something new
	spare   []*workerStream
	calls   map[uint64]context.CancelFunc
	wanted  map[uint64]*wanted
	opens   uint64 // images whose patches were asked for
}

// workerStream is a stream of the parent's.
type workerStream struct {
	id          uint64
	logprobs    bool
	ctx         context.Context
	cancel      context.CancelFunc
	constraints chan engine.Constraint // those not read yet

	// Of the writer.
	sent  sent
	ended bool // and that has been sent

	// Under worker.mu.
	stream *engine.Stream // nil: it is being submitted
	dirty  bool
}

// greet reads the parent's greeting and answers it.
func (w *worker) greet(in *receiver, build string) (g greeting, err error) {
	k, b, err := in.read()
	if err != nil {
		return g, err
	}
	if k != kindGreeting || json.Unmarshal(b, &g) != nil {
		return g, errFrame
	}
	w.out.put(kindGreeting, func(b []byte) []byte { return appendJSON(b, greeting{Version: version, Build: build}) })
	if g.Version != version || g.Build != build {
		return g, fmt.Errorf("build %q, protocol %d of the process that started this one is not build %q, protocol %d", g.Build, g.Version, build, version)
	}
	if g.Share != nil {
		w.share = newShare(w.out, *g.Share)
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

func (w *worker) warn(line string) {
	w.out.put(kindWarn, func(b []byte) []byte { return append(b, line...) })
}

// stuck says that a step does not end.
func (w *worker) stuck(d time.Duration) {
	w.out.put(kindStuck, func(b []byte) []byte { return binary.AppendUvarint(b, uint64(d)) })
}

// fail tells why nothing was loaded.
func (w *worker) fail(err error) {
	var r *Refused
	if !errors.As(err, &r) {
		r = &Refused{Msg: err.Error()}
	}
	w.out.put(kindFailed, func(b []byte) []byte { return appendJSON(b, r) })
}

// start makes prompts possible, and says so.
func (w *worker) start(l *Loaded) {
	w.mu.Lock()
	w.engine, w.forward, w.room, w.loaded = l.Engine, l.Forward, l.Room, true
	w.mu.Unlock()
	f := facts{Limits: l.Limits, About: l.About}
	if l.Engine != nil {
		f.Context, f.Drafts, f.KV = l.Engine.Context(), l.Engine.Drafts(), l.Engine.KV()
	}
	w.out.put(kindLoaded, func(b []byte) []byte { return appendJSON(b, f) })
}

// read handles the parent's frames until kindEnd, which gives nil.
func (w *worker) read(in *receiver) error {
	for {
		k, b, err := in.read()
		if errors.Is(err, errFrame) {
			return err
		}
		if err != nil {
			return ErrGone
		}
		c := &contents{b: b}
		w.mu.Lock()
		e, loaded := w.engine, w.loaded
		w.mu.Unlock()
		switch {
		case k == kindPing:
			w.out.put(kindPong, nil)
		case k == kindEnd:
			return nil
		case w.share != nil && (k == kindGrown || k == kindShrink || k == kindWake):
			w.share.told(k, c)
		case !loaded || (k == kindPrompt || k == kindPatches) && e == nil:
			return errFrame
		case k == kindPatches:
			w.addPatches(c)
		case k == kindPrompt:
			w.submit(e, c)
		case k == kindCancel:
			w.cancel(c.uint())
		case k == kindConstraint:
			w.constrain(c)
		case k == kindCall:
			w.call(e, c)
		case k == kindDrop:
			w.drop(c.uint())
		default:
			return errFrame
		}
		if err := c.end(); err != nil {
			return fmt.Errorf("%w: %v", err, k)
		}
	}
}

// submit starts a stream. One that is refused has ended at once.
func (w *worker) submit(e *engine.Engine, c *contents) {
	s := &workerStream{id: c.uint()}
	p, constrained := c.prompt()
	if c.end() != nil {
		return
	}
	for i := range p.Images {
		img := &p.Images[i]
		img.Open = func(ctx context.Context) (engine.Patches, error) { return w.open(ctx, s.id, i, img) }
	}
	s.logprobs = p.Logprobs >= 0
	s.ctx, s.cancel = context.WithCancel(w.ctx)
	if constrained {
		s.constraints = make(chan engine.Constraint, engine.LongestSpan)
		p.Constraints = s.constraints
		p.Told = func(at int, id int32) {
			w.out.put(kindDrawn, func(b []byte) []byte { return appendUint(appendInt(appendUint(b, s.id), at), uint64(uint32(id))) })
		}
	}
	p.Watch = func(step bool) { w.touch(s, !step) }
	w.mu.Lock()
	w.streams[s.id] = s
	w.mu.Unlock()
	stream, err := e.Submit(s.ctx, p)
	if err != nil {
		stream = engine.NewStream(s.ctx, len(p.Tokens), s.cancel)
		stream.Apply(engine.Update{Reason: engine.Error, StopID: -1, Err: err})
	}
	w.mu.Lock()
	s.stream = stream
	w.mu.Unlock()
	w.touch(s, true)
}

// touch notes that a stream has something new.
func (w *worker) touch(s *workerStream, now bool) {
	w.mu.Lock()
	if !s.dirty {
		s.dirty = true
		w.dirty = append(w.dirty, s)
	}
	w.mu.Unlock()
	if now {
		w.out.signal()
	}
}

func (w *worker) cancel(id uint64) {
	w.mu.Lock()
	s := w.streams[id]
	w.mu.Unlock()
	if s != nil { // it may have ended meanwhile
		s.cancel()
	}
}

// constrain passes on what may come after a token.
func (w *worker) constrain(c *contents) {
	id, constraint := c.uint(), c.constraint()
	if c.end() != nil {
		return
	}
	w.mu.Lock()
	s := w.streams[id]
	w.mu.Unlock()
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

// updateTokens is how many tokens one update has at most.
const updateTokens = 4096

// appendUpdates appends what is new of all streams, before the writer writes.
func (w *worker) appendUpdates(b []byte) []byte {
	w.mu.Lock()
	list := w.dirty
	w.dirty = w.spare[:0]
	for _, s := range list {
		s.dirty = false
	}
	w.mu.Unlock()
	start := len(b)
	b = begin(b, kindUpdates)
	for _, s := range list {
		if b = w.appendStream(b, s); len(b)-start > fullFrame {
			b = finish(b, start)
			start = len(b)
			b = begin(b, kindUpdates)
		}
	}
	clear(list)
	w.spare = list
	if len(b) == start+headerSize+1 {
		return b[:start]
	}
	return finish(b, start)
}

func (w *worker) appendStream(b []byte, s *workerStream) []byte {
	w.mu.Lock()
	stream := s.stream
	w.mu.Unlock()
	if stream == nil || s.ended { // submit touches it again; or the end was sent with an earlier frame
		return b
	}
	n := stream.Take()
	for len(n.Tokens) > updateTokens {
		part := engine.Update{Tokens: n.Tokens[:updateTokens], Usage: s.sent.usage, StopID: -1}
		part.Usage.Generated += updateTokens
		b = s.sent.appendUpdate(b, s.id, &part, s.logprobs)
		n.Tokens = n.Tokens[updateTokens:]
	}
	if len(n.Tokens) == 0 && n.Reason == engine.Running && n.Usage == s.sent.usage {
		return b
	}
	b = s.sent.appendUpdate(b, s.id, &n, s.logprobs)
	if n.Reason != engine.Running {
		s.ended = true
		s.cancel()
		w.mu.Lock()
		delete(w.streams, s.id)
		w.mu.Unlock()
	}
	return b
}

// method is what a call asks for.
type method byte

const (
	callStats     method = 1 + iota // -> engine.Stats as JSON
	callClear                       // -> engine.Stored as JSON
	callStored                      // salt -> engine.Stored as JSON
	callClearSalt                   // salt -> engine.Stored as JSON
	callSave                        // name, data ->
	callSaved                       // name -> data
	callScore                       // top, tokens -> scores, in pieces
	callForward                     // texts -> rows, in pieces; the only one without an engine
	callTree                        // engine.TreeQuery as JSON -> engine.Tree as JSON
)

// call answers a call. What may take time has a goroutine.
func (w *worker) call(e *engine.Engine, c *contents) {
	id, m := c.uint(), method(c.byte())
	if (m == callForward) != (e == nil) {
		c.fail()
		return
	}
	switch m {
	case callForward:
		b := c.texts()
		if c.end() == nil {
			w.spawn(id, func(ctx context.Context) { w.answerForward(ctx, id, b) })
		}
	case callStats:
		w.spawn(id, func(context.Context) { // a backend may have to be asked
			st := e.Stats()
			w.reply(id, false, nil, func(b []byte) []byte { return appendJSON(b, st) })
		})
	case callClear:
		w.spawn(id, func(ctx context.Context) {
			d, err := e.DropCache(ctx)
			w.reply(id, false, err, func(b []byte) []byte { return appendJSON(b, d) })
		})
	case callStored:
		salt := c.salt()
		w.spawn(id, func(context.Context) {
			w.reply(id, false, nil, func(b []byte) []byte { return appendJSON(b, e.Stored(salt)) })
		})
	case callClearSalt:
		salt := c.salt()
		w.spawn(id, func(ctx context.Context) {
			d, err := e.DropSalt(ctx, salt)
			w.reply(id, false, err, func(b []byte) []byte { return appendJSON(b, d) })
		})
	case callTree:
		var q engine.TreeQuery
		takeJSON(c, &q)
		w.spawn(id, func(ctx context.Context) {
			tree, err := e.Tree(ctx, q)
			w.reply(id, false, err, func(b []byte) []byte { return appendJSON(b, tree) })
		})
	case callSave:
		name, data := c.text(), c.bytes()
		w.spawn(id, func(context.Context) { w.reply(id, false, e.Save(name, data), nil) })
	case callSaved:
		name := c.text()
		w.spawn(id, func(context.Context) {
			data := e.Saved(name)
			if !w.reply(id, false, nil, func(b []byte) []byte { return append(b, data...) }) {
				w.reply(id, false, nil, nil) // more than a frame holds counts as nothing
			}
		})
	case callScore:
		top, tokens := c.int(), c.ids()
		w.spawn(id, func(ctx context.Context) {
			scores, err := e.Score(ctx, tokens, top)
			for part := range parts(scores) {
				w.reply(id, true, nil, func(b []byte) []byte { return appendScores(b, part) })
			}
			w.reply(id, false, err, nil)
		})
	default:
		c.fail()
	}
}

// parts cuts scores into pieces.
func parts(scores []engine.Score) func(yield func([]engine.Score) bool) {
	return func(yield func([]engine.Score) bool) {
		const piece = 1024
		for len(scores) > 0 {
			n := min(len(scores), piece)
			if !yield(scores[:n]) {
				return
			}
			scores = scores[n:]
		}
	}
}

func (w *worker) reply(id uint64, more bool, err error, result func(b []byte) []byte) bool {
	return w.out.put(kindReply, func(b []byte) []byte {
		b = binary.AppendUvarint(b, id)
		b = appendError(appendBool(b, more), err)
		if err == nil && result != nil {
			b = result(b)
		}
		return b
	})
}

// spawn runs a call until it is done or dropped.
func (w *worker) spawn(id uint64, f func(context.Context)) {
	ctx, cancel := context.WithCancel(w.ctx)
	w.mu.Lock()
	w.calls[id] = cancel
	w.mu.Unlock()
	go func() {
		defer w.drop(id)
		f(ctx)
	}()
}

func (w *worker) drop(id uint64) {
	w.mu.Lock()
	cancel := w.calls[id]
	delete(w.calls, id)
	w.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}
