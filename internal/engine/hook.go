package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// Hook calls a prompt's Constrain and Draft on a goroutine of its own, one token after the other, and passes the results on. A
// panic becomes a Constraint with an error.
type Hook struct {
	constrain func(id int32) Constraint
	draft     func(forced, looked []int32, most int) []int32 // nil: nothing is drafted
	result    func(Constraint)

	mu      sync.Mutex
	tokens  []told // without a result yet
	running bool
}

// told is a generated token, and the draft that is wanted behind it.
type told struct {
	id     int32
	looked []int32
	most   int
}

// NewHook makes a Hook that calls result once for each token, in order, from another goroutine.
func NewHook(p *Prompt, result func(Constraint)) *Hook {
	return &Hook{constrain: p.Constrain, draft: p.Draft, result: result}
}

// Tell queues a generated token. If most is not 0 its Constraint is to have a draft of at most so many tokens; looked, which is
// kept, is what may come by what was said before. It does not wait.
func (h *Hook) Tell(id int32, looked []int32, most int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tokens = append(h.tokens, told{id, looked, most})
	if !h.running {
		h.running = true
		go h.run()
	}
}

// run works through the queue. The goroutine ends when that is empty, so nobody has to end it.
func (h *Hook) run() {
	for {
		h.mu.Lock()
		if len(h.tokens) == 0 {
			h.running = false
			h.mu.Unlock()
			return
		}
		t := h.tokens[0]
		h.tokens = h.tokens[1:]
		h.mu.Unlock()
		h.result(h.call(t))
	}
}

func (h *Hook) call(t told) (c Constraint) {
	defer func() {
		if v := recover(); v != nil {
			c = Constraint{Err: &StepError{Err: fmt.Errorf("panic: %v", v), Stack: debug.Stack()}}
		}
	}()
	if c = h.constrain(t.id); c.Err == nil && h.draft != nil && t.most > 0 {
		c.Ahead = h.draft(c.Forced, behind(c.Forced, t.looked), t.most)
	}
	return c
}

// behind is what follows some tokens in a draft that begins with them, else nothing.
func behind(forced, draft []int32) []int32 {
	if len(forced) > len(draft) || !slices.Equal(forced, draft[:len(forced)]) {
		return nil
	}
	return draft[len(forced):]
}

// ConstraintError ends a sequence whose Constrain returned an error, or did not return.
type ConstraintError struct{ Err error }

func (e *ConstraintError) Error() string { return "what may come next: " + e.Err.Error() }
func (e *ConstraintError) Unwrap() error { return e.Err }

// ErrNoAnswer is the cause of a ConstraintError where Constrain did not return.
var ErrNoAnswer = errors.New("there was no answer")

// How long the engine waits for a Constraint. Constrain is bounded to some hundredths of a second, so that no busy machine comes
// near. Waits are counted, and not time, since a process that was stopped for an hour has not waited for one.
const (
	answerWait  = 100 * time.Millisecond
	answerWaits = 300
)

// await takes what may come after the tokens that the stream was given. The other sequences of the step wait, too.
func (q *sequence) await(vocab, waits int) error {
	for q.waits() {
		if err := q.answer(await(q.stream.ctx, q.constraints, waits), vocab); err != nil {
			return err
		}
	}
	return nil
}

// waits reports whether there are constraints that have not come.
func (q *sequence) waits() bool {
	return q.constraints != nil && q.answered < q.given()-q.Prompt+q.ahead
}

// answer takes a constraint.
func (q *sequence) answer(c Constraint, vocab int) error {
	q.answered++
	unknown := func(id int32) bool { return id < 0 || int(id) >= vocab }
	if i := slices.IndexFunc(c.Forced, unknown); c.Err == nil && i >= 0 {
		c.Err = fmt.Errorf("token %d is outside the vocabulary of %d", c.Forced[i], vocab)
	}
	if c.Err != nil {
		return &ConstraintError{c.Err}
	}
	q.forced, q.mask = append(q.forced, c.Forced...), c.Mask
	if c.Ahead != nil && !slices.ContainsFunc(c.Ahead, unknown) {
		q.likely = c.Ahead
	}
	return nil
}

// await gives the next constraint.
func await(ctx context.Context, constraints <-chan Constraint, waits int) Constraint {
	select {
	case c := <-constraints:
		return c
	default:
	}
	t := time.NewTicker(answerWait)
	defer t.Stop()
	for range waits {
		select {
		case c := <-constraints:
			return c
		case <-ctx.Done(): // the sequence leaves before the next step
			return Constraint{}
		case <-t.C:
		}
	}
	return Constraint{Err: ErrNoAnswer}
}
