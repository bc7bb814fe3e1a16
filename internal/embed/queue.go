package embed

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"hearth/internal/backend"
	"hearth/internal/chat"
	"hearth/internal/model"
	"hearth/internal/watchdog"
)

// queue holds the requests that have texts in no step yet and runs the steps.
//
// Invariants: a request is in list until all its texts are in steps or it failed; its done is closed once, by the loop or by
// the one who took it out of the list, when no step has a text of it any more.
type queue struct {
	s *Service

	mu     sync.Mutex
	list   []*request
	closed bool // nothing is accepted any more, and the loop ends

	ctx  context.Context // ends when the queue is closed
	stop context.CancelFunc

	wake    chan struct{} // of the loop; holds one
	stopped chan struct{}

	// Of the loop, reused from step to step.
	batch    backend.Batch
	owner    []place // of every span
	watchdog *watchdog.Timer
}

// place is whose text a span is.
type place struct {
	q *request
	i int
}

func (u *queue) start(s *Service) {
	u.s, u.wake, u.stopped = s, make(chan struct{}, 1), make(chan struct{})
	u.ctx, u.stop = context.WithCancel(context.Background())
	_, device := s.cfg.Backend.(backend.Device)
	u.watchdog = watchdog.New(device, s.cfg.Stuck)
	go u.loop()
}

// put adds a request to the list.
func (u *queue) put(q *request, most int) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.closed:
		return errUnloaded
	case most > 0 && len(u.list) >= most:
		return &chat.Error{Kind: chat.Overloaded, RetryAfter: time.Second, Msg: fmt.Sprintf("the server is busy: %d requests wait, as many as its flag --max-queue lets; try again later", len(u.list))}
	}
	u.list = append(u.list, q)
	u.signal()
	return nil
}

var errUnloaded = &chat.Error{Kind: chat.Overloaded, Code: "shutting_down", Msg: "the model is being unloaded"}

func (u *queue) signal() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// drop gives up on a request: what is in no step yet never will be.
func (u *queue) drop(q *request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.fail(q, context.Cause(q.ctx))
}

// fail ends the part of a request that is in no step. Under mu.
func (u *queue) fail(q *request, err error) {
	if q.err == nil && q.left > 0 {
		q.err = err
	}
	waiting := len(q.texts) - q.next
	q.next = len(q.texts)
	u.finish(q, waiting)
}

// finish counts texts that need nothing more. Under mu.
func (u *queue) finish(q *request, n int) {
	if n == 0 {
		return
	}
	if q.left -= n; q.left == 0 {
		close(q.done)
	}
}

func (u *queue) waiting() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := 0
	for _, q := range u.list {
		if q.next < len(q.texts) {
			n++
		}
	}
	return n
}

func (u *queue) loop() {
	defer close(u.stopped)
	defer u.watchdog.Close()
	debug.SetPanicOnFault(true) // see backend.Unreadable
	for {
		u.mu.Lock()
		u.fill()
		closed := u.closed
		u.mu.Unlock()
		if len(u.owner) == 0 {
			if closed {
				return
			}
			<-u.wake
			continue
		}
		u.finishStep(u.step())
	}
}

// fill fills the batch: one text of every request in turn, until there are enough rows. A text that alone has more is
// alone in its step. Whose text did not get in comes first next time. Under mu.
func (u *queue) fill() {
	b, most := &u.batch, u.s.cfg.StepRows
	b.Tokens, b.Types, b.Pos[0], b.Spans, u.owner = b.Tokens[:0], b.Types[:0], b.Pos[0][:0], b.Spans[:0], u.owner[:0]
	u.tidy()
	full := -1 // first request whose next text did not get in
	for turn := true; turn; {
		turn = false
		for i, q := range u.list {
			if q.next == len(q.texts) {
				continue
			}
			if n := len(b.Tokens); n > 0 && (n >= most || len(q.texts[q.next].ids) > most) {
				if full < 0 {
					full = i
				}
				continue
			}
			u.place(q)
			turn = true
		}
	}
	if full > 0 {
		u.list = append(u.list[full:len(u.list):len(u.list)], u.list[:full]...)
	}
}

// tidy takes requests out of the list that have nothing left to start.
func (u *queue) tidy() {
	list := u.list[:0]
	for _, q := range u.list {
		if u.closed {
			u.fail(q, errUnloaded)
		}
		if q.next < len(q.texts) {
			list = append(list, q)
		}
	}
	clear(u.list[len(list):])
	u.list = list
}

// place puts the next text of a request behind the batch.
func (u *queue) place(q *request) {
	if q.next == 0 {
		q.began = time.Now()
	}
	b, t := &u.batch, &q.texts[q.next]
	if len(t.types) > 0 && len(b.Types) < len(b.Tokens) {
		b.Types = append(b.Types, make([]int32, len(b.Tokens)-len(b.Types))...)
	}
	b.Spans = append(b.Spans, backend.Span{Slot: -1, Row: len(b.Tokens), Len: len(t.ids)})
	b.Tokens = append(b.Tokens, t.ids...)
	for i := range t.ids {
		b.Pos[0] = append(b.Pos[0], int32(i))
	}
	switch {
	case len(t.types) > 0:
		b.Types = append(b.Types, t.types...)
	case len(b.Types) > 0:
		b.Types = append(b.Types, make([]int32, len(t.ids))...)
	}
	u.owner = append(u.owner, place{q, q.next})
	q.next++
}

// Forward runs a batch of texts, spans without state, and hands over a row for each, for as long as use takes. A panic is an
// error.
func Forward(m *model.Encoder, be backend.Backend, b *backend.Batch, use func(rows []float32)) (err error) {
	defer func() {
		v := recover()
		switch err2 := backend.Unreadable(v); {
		case err2 != nil:
			err = fmt.Errorf("run step: %w", err2)
		case v != nil:
			err = fmt.Errorf("run step: panic: %v\n%s", v, debug.Stack())
		}
	}()
	m.Prepare(b)
	o := be.Begin(nil, b)
	defer o.End()
	rows, err := o.Floats(m.Forward(o, b))
	if err != nil {
		return fmt.Errorf("run step: %w", err)
	}
	if err := o.Err(); err != nil {
		return fmt.Errorf("run step: %w", err)
	}
	use(rows)
	return nil
}

// step runs the batch, here or away, and writes what comes out to its requests.
func (u *queue) step() error {
	cfg, c := &u.s.cfg, &u.s.counts
	ctx := u.ctx
	if len(u.owner) == 1 { // else somebody else wants it when one has left
		wanted, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(u.owner[0].q.ctx, cancel)()
		ctx = wanted
	}
	if cfg.Away == nil {
		done, err := cfg.Memory.Room(ctx, len(u.batch.Tokens))
		if err != nil {
			return fmt.Errorf("run step: %w", err)
		}
		defer done()
		u.watchdog.Begin(watchdog.Prompt)
		err = Forward(cfg.Model, cfg.Backend, &u.batch, u.hand)
		u.watchdog.End()
		if err != nil {
			return err
		}
	} else {
		rows, err := cfg.Away(ctx, &u.batch)
		if err != nil {
			return fmt.Errorf("run step: %w", err)
		}
		if want := len(u.owner) * cfg.Model.Width; len(rows) != want {
			return fmt.Errorf("run step: %d numbers came back in place of %d", len(rows), want)
		}
		u.hand(rows)
	}
	c.steps.Add(1)
	c.texts.Add(int64(len(u.owner)))
	c.tokens.Add(int64(len(u.batch.Tokens)))
	return nil
}

// hand gives the rows of a step to its requests.
func (u *queue) hand(rows []float32) {
	m := u.s.cfg.Model
	for k, p := range u.owner {
		row, out := rows[k*m.Width:][:m.Width], p.q.out[p.i*p.q.width:][:p.q.width]
		if m.Pooling.Kind == model.Ranks {
			out[0] = float32(m.Pooling.Score(row))
		} else {
			copy(out, m.Pooling.Vector(row, p.q.width))
		}
		p.q.broken = p.q.broken || !finite(out)
	}
}

func finite(x []float32) bool {
	for _, v := range x {
		if v-v != 0 { // of infinities and NaN
			return false
		}
	}
	return true
}

// finishStep tells the requests of a step how it went.
func (u *queue) finishStep(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err != nil && u.closed && errors.Is(err, context.Canceled) {
		err = errUnloaded
	}
	for _, p := range u.owner {
		if err != nil {
			u.fail(p.q, err)
		}
		u.finish(p.q, 1)
	}
	clear(u.owner)
}

func (u *queue) close() {
	u.mu.Lock()
	u.closed = true
	u.stop()
	u.signal()
	u.mu.Unlock()
	<-u.stopped
}
