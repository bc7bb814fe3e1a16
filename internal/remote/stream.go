package remote

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"hearth/internal/engine"
	"hearth/internal/kv"
	"hearth/internal/timeline"
)

// stream is the parent's side of a sequence. If the worker process ends before the sequence has begun, the next one gets it.
type stream struct {
	id      uint64
	stream  *engine.Stream
	known   known                 // used by session.read alone
	hooks   engine.Prompt         // its Constrain and Draft
	hook    *engine.Hook          // calls them; used by session.read alone, like the next three
	seen    int                   // tokens that updates have brought,
	told    int                   // and those that the hook was told of
	drawn   []drawn               // tokens behind those, which updates have yet to bring
	failed  atomic.Pointer[error] // the error of constrain that ended it
	ctx     context.Context
	unwatch func() bool
	request string
	made    time.Duration
	client  uint64
	max     int
	began   bool // its first step has; under Engine.mu

	prompt []byte // encoded; nil once it has begun
	images []engine.Image
	unseen atomic.Pointer[error] // why the patches of one could not be got
	tries  int                   // worker processes that it was sent to
	lost   *session              // has ended while it had this; nil: the current session has it
}

// drawn is what kindDrawn brings.
type drawn struct {
	at int
	id int32
}

// mostTries bounds how many worker processes get a prompt: it may be what kills them.
const mostTries = 2

func appendUint(b []byte, n uint64) []byte { return binary.AppendUvarint(b, n) }

// Submit queues a prompt, as engine.Engine does, and with the same errors. While there is no worker process it waits for one;
// where that takes too long there is an *engine.LostError.
func (e *Engine) Submit(ctx context.Context, p engine.Prompt) (*engine.Stream, error) {
	for {
		s, err := e.ready(ctx)
		if err != nil {
			return nil, err
		}
		q, err := e.submit(ctx, s, &p)
		if q != nil || err != nil {
			return q, err
		}
	}
}

// submit sends a prompt to the worker process of s; nil without an error: that has ended meanwhile.
func (e *Engine) submit(ctx context.Context, s *session, p *engine.Prompt) (*engine.Stream, error) {
	if err := engine.Check(p.Tokens, s.facts.Vocab, s.facts.Context-1); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	room := s.facts.Context - len(p.Tokens)
	if p.MaxTokens > 0 {
		room = min(room, p.MaxTokens)
	}
	q := &stream{hooks: engine.Prompt{Constrain: p.Constrain, Draft: p.Draft}, ctx: ctx, request: p.Request, made: p.Made, client: p.Client, max: room, images: p.Images}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session != s {
		return nil, nil
	}
	if err := e.admit(p.Client); err != nil {
		return nil, err
	}
	e.nextID++
	q.id = e.nextID
	cancel := func() { e.cancel(q) }
	q.stream = engine.NewStream(ctx, len(p.Tokens), cancel)
	q.prompt = appendPrompt(appendUint(nil, q.id), p)
	if !q.send(s) {
		return nil, errors.New("submit: the prompt is too long to be handed to another process")
	}
	e.streams[q.id] = q
	e.note(&timeline.Counts{Requests: 1})
	q.unwatch = context.AfterFunc(ctx, cancel)
	return q.stream, nil
}

// send gives a prompt to a worker process.
func (q *stream) send(s *session) bool {
	q.known = known{usage: q.stream.Usage(), left: q.max}
	q.tries++
	q.lost, q.drawn = nil, nil
	return s.out.put(kindPrompt, func(b []byte) []byte { return append(b, q.prompt...) })
}

// cancel cancels a sequence in the worker process, or takes it off those that wait for one.
func (e *Engine) cancel(q *stream) {
	e.mu.Lock()
	if e.streams[q.id] != q {
		e.mu.Unlock()
		return
	}
	if q.lost == nil {
		e.session.out.put(kindCancel, func(b []byte) []byte { return appendUint(b, q.id) })
		e.mu.Unlock()
		return
	}
	delete(e.streams, q.id)
	e.mu.Unlock()
	err := q.ctx.Err()
	if err == nil {
		err = context.Canceled
	}
	q.end(engine.Cancel, err)
}

// end ends a stream that no worker process has.
func (q *stream) end(r engine.Reason, err error) {
	q.unwatch()
	q.stream.Apply(engine.Update{Usage: q.known.usage, Reason: r, StopID: -1, Err: err})
}

// admit refuses what the worker process would. Called with mu held.
func (e *Engine) admit(client uint64) error {
	if e.closed {
		return engine.ErrClosed
	}
	most := e.facts.MaxSequences + e.facts.MaxQueue
	if e.live() >= most {
		running := 0
		for _, q := range e.streams {
			if !q.stream.Usage().Started.IsZero() {
				running++
			}
		}
		return &engine.QueueFullError{Running: running, Waiting: e.live() - running}
	}
	if client == 0 {
		return nil
	}
	n := 0
	for _, q := range e.streams {
		if q.client == client {
			n++
		}
	}
	if n >= (most+1)/2 {
		return &engine.ClientFullError{Live: n}
	}
	return nil
}

// remove counts out a stream that has ended in the worker process.
func (e *Engine) remove(id uint64) {
	e.mu.Lock()
	delete(e.streams, id)
	e.mu.Unlock()
}

// note tells the meter what has happened, and what there is now: of bytes, what was said last. Called with mu held.
func (e *Engine) note(c *timeline.Counts) {
	if e.meter == nil {
		return
	}
	l := timeline.Levels{State: e.last.Used, Cache: e.last.Cache.Idle}
	for _, q := range e.streams {
		if q.began {
			l.Running++
		} else {
			l.Waiting++
		}
	}
	e.meter.Note(time.Now(), c, l)
}

// count adds what an update of a stream brought to c.
func (q *stream) count(c *timeline.Counts, before, after *engine.Usage) {
	ran := before.Ran
	if !after.Started.IsZero() && !q.began {
		q.began, ran = true, after.Cached
		c.Hits[after.Hit]++
		c.Cached += int64(after.Cached)
	}
	prompt, output := int64(max(after.Ran-ran, 0)), int64(after.Generated-before.Generated)
	c.Prompt += prompt
	c.Output += output
	if prompt+output > 0 {
		c.Sequences++
	}
}

// sessionEnded ends the streams and calls of a session that has ended. Prompts that had not begun wait for the next, for a while.
func (e *Engine) sessionEnded(s *session) {
	e.mu.Lock()
	s.over = true
	var err error = &engine.LostError{Err: s.err, Began: true}
	if e.closed {
		err = engine.ErrClosed
	}
	var gone []*stream
	var calls map[uint64]*call
	if e.session == s {
		for id, q := range e.streams {
			if !e.closed && q.prompt != nil && q.tries < mostTries && q.stream.Finish() == engine.Running {
				q.lost = s
				continue
			}
			gone = append(gone, q)
			delete(e.streams, id)
		}
		if len(e.streams) > 0 {
			time.AfterFunc(e.cfg.WaitLimit, func() { e.giveUp(s) })
		}
		calls, e.calls = e.calls, map[uint64]*call{}
		e.last.AddCounts(&e.past)
		e.past, e.last = e.last, engine.Stats{}
		e.session, e.up = nil, make(chan struct{})
		e.note(&timeline.Counts{})
	}
	e.lost = &engine.LostError{Err: s.err}
	e.mu.Unlock()
	for _, q := range gone {
		q.end(engine.Error, err)
	}
	for _, c := range calls {
		c.done <- err
	}
}

// giveUp ends the prompts that wait for a worker process since s, if there is still none.
func (e *Engine) giveUp(s *session) {
	e.mu.Lock()
	err := e.refusal()
	gone := e.takeLost(func(q *stream) bool { return q.lost == s })
	e.mu.Unlock()
	for _, q := range gone {
		q.end(engine.Error, err)
	}
}

// takeLost removes and gives the prompts that no worker process has. Called with mu held.
func (e *Engine) takeLost(which func(*stream) bool) (gone []*stream) {
	for id, q := range e.streams {
		if q.lost != nil && which(q) {
			gone = append(gone, q)
			delete(e.streams, id)
		}
	}
	return gone
}

// refusal is why prompts are not taken now, and when they may be. Called with mu held.
func (e *Engine) refusal() error {
	if e.lost == nil {
		return engine.ErrClosed
	}
	return &engine.LostError{Err: e.lost.Err, After: max(time.Until(e.again), time.Second), Times: e.lost.Times}
}

// Live lists the sequences that wait or run, in order of arrival.
func (e *Engine) Live() []engine.Live {
	e.mu.Lock()
	list := slices.SortedFunc(maps.Values(e.streams), func(a, b *stream) int { return cmp.Compare(a.id, b.id) })
	e.mu.Unlock()
	out := make([]engine.Live, len(list))
	for i, q := range list {
		out[i] = engine.Live{Request: q.request, Made: q.made, Usage: q.stream.Usage(), Max: q.max}
	}
	return out
}

// call is one that waits for its reply.
type call struct {
	take func(*contents) // called by session.read
	done chan error      // gets one
}

// call asks the worker process of s and waits for its reply.
func (e *Engine) call(ctx context.Context, s *session, m method, args func(b []byte) []byte, take func(*contents)) error {
	q := &call{take: take, done: make(chan error, 1)}
	e.mu.Lock()
	if e.session != s {
		e.mu.Unlock()
		return &engine.LostError{Err: s.err, Began: true}
	}
	e.nextID++
	id := e.nextID
	sent := s.out.put(kindCall, func(b []byte) []byte {
		b = append(appendUint(b, id), byte(m))
		if args != nil {
			b = args(b)
		}
		return b
	})
	if sent {
		e.calls[id] = q
	}
	e.mu.Unlock()
	if !sent {
		return fmt.Errorf("more than %d MiB cannot be handed to another process", maxFrame>>20)
	}
	select {
	case err := <-q.done:
		return err
	case <-ctx.Done():
		e.mu.Lock()
		delete(e.calls, id)
		e.mu.Unlock()
		s.out.put(kindDrop, func(b []byte) []byte { return appendUint(b, id) })
		return ctx.Err()
	}
}

// ask is call on the current session, for no longer than limit.
func (e *Engine) ask(limit time.Duration, m method, args func(b []byte) []byte, take func(*contents)) error {
	e.mu.Lock()
	s, err := e.session, e.refusal()
	e.mu.Unlock()
	if s == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return e.call(ctx, s, m, args, take)
}

// callList calls the worker process for a list that comes in pieces. If it ends meanwhile, the next one is called: mostTries in
// all.
func callList[T any](ctx context.Context, e *Engine, m method, args func(b []byte) []byte, piece func(*contents) []T) ([]T, error) {
	for tries := 1; ; tries++ {
		s, err := e.ready(ctx)
		if err != nil {
			return nil, err
		}
		var all []T
		if err = e.call(ctx, s, m, args, func(c *contents) { all = append(all, piece(c)...) }); err == nil {
			return all, nil
		}
		var lost *engine.LostError
		if !errors.As(err, &lost) || tries == mostTries {
			return nil, err
		}
	}
}

// Score is engine.Engine's.
func (e *Engine) Score(ctx context.Context, tokens []int32, top int) ([]engine.Score, error) {
	s, err := e.ready(ctx)
	if err != nil {
		return nil, err
	}
	if err := engine.Check(tokens, s.facts.Vocab, s.facts.Context); err != nil {
		return nil, err
	}
	e.mu.Lock()
	if err := e.admit(0); err != nil {
		e.mu.Unlock()
		return nil, err
	}
	e.scoring++
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		e.scoring--
		e.mu.Unlock()
	}()
	return callList(ctx, e, callScore, func(b []byte) []byte { return appendIDs(appendInt(b, top), tokens) }, (*contents).scores)
}

// Stats gives the worker process's figures, or the last known ones where it does not answer. Counts include those of all worker
// processes before it.
func (e *Engine) Stats() engine.Stats {
	var now engine.Stats
	err := e.ask(callLimit, callStats, nil, func(c *contents) { takeJSON(c, &now) })
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		e.last = now
	}
	st := e.last
	st.AddCounts(&e.past)
	if e.session == nil {
		st.Context, st.Cache.Enabled = e.facts.Context, e.past.Cache.Enabled
	}
	return st
}

func takeJSON(c *contents, to any) {
	if json.Unmarshal(c.b, to) != nil {
		c.bad = true
	}
	c.b = nil
}

// Stored is engine.Engine's; nothing where the worker process does not answer.
func (e *Engine) Stored(salt kv.Salt) engine.Stored {
	var out engine.Stored
	if e.ask(callLimit, callStored, appendSalt(salt), func(c *contents) { takeJSON(c, &out) }) != nil {
		return engine.Stored{}
	}
	return out
}

// Tree is engine.Engine's; nothing where the worker process does not answer soon.
func (e *Engine) Tree(_ context.Context, q engine.TreeQuery) (engine.Tree, error) {
	var out engine.Tree
	if e.ask(callLimit, callTree, func(b []byte) []byte { return appendJSON(b, q) }, func(c *contents) { takeJSON(c, &out) }) != nil {
		return engine.Tree{}, nil
	}
	return out, nil
}

// DropCache is engine.Engine's.
func (e *Engine) DropCache(ctx context.Context) (engine.Stored, error) {
	return e.drop(ctx, callClear, nil)
}

// DropSalt is engine.Engine's.
func (e *Engine) DropSalt(ctx context.Context, salt kv.Salt) (engine.Stored, error) {
	return e.drop(ctx, callClearSalt, appendSalt(salt))
}

func appendSalt(salt kv.Salt) func(b []byte) []byte {
	return func(b []byte) []byte { return append(b, salt[:]...) }
}

func (e *Engine) drop(ctx context.Context, m method, args func(b []byte) []byte) (engine.Stored, error) {
	s, err := e.ready(ctx)
	if err != nil {
		return engine.Stored{}, err
	}
	var d engine.Stored
	if err := e.call(ctx, s, m, args, func(c *contents) { takeJSON(c, &d) }); err != nil {
		return engine.Stored{}, err // session.read may still write to d
	}
	return d, nil
}

// saveLimit bounds waiting for the disk.
const saveLimit = 10 * time.Second

// Save is engine.Engine's.
func (e *Engine) Save(name string, data []byte) error {
	return e.ask(saveLimit, callSave, func(b []byte) []byte { return appendText(appendText(b, name), data) }, nil)
}

// Saved is engine.Engine's.
func (e *Engine) Saved(name string) []byte {
	var data []byte
	err := e.ask(saveLimit, callSaved, func(b []byte) []byte { return appendText(b, name) }, func(c *contents) { data, c.b = slices.Clone(c.b), nil })
	if err != nil {
		return nil
	}
	return data
}
