package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// Hook runs a prompt's Steer off the goroutine that tells it of tokens, one token after the other, and hands on what it
// answers. A panic is an answer too.
type Hook struct {
	steer  func(id int32) Course
	answer func(Course)

	mu      sync.Mutex
	tokens  []int32 // told and not yet answered
	running bool
}

// NewHook makes one that answers each token once, in order, from another goroutine.
func NewHook(steer func(id int32) Course, answer func(Course)) *Hook {
	return &Hook{steer: steer, answer: answer}
}

// Tell says what was generated. It does not wait.
func (h *Hook) Tell(id int32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tokens = append(h.tokens, id)
	if !h.running {
		h.running = true
		go h.run()
	}
}

// run answers what there is. It ends with that, so nobody has to end it.
func (h *Hook) run() {
	for {
		h.mu.Lock()
		if len(h.tokens) == 0 {
			h.running = false
			h.mu.Unlock()
			return
		}
		id := h.tokens[0]
		h.tokens = h.tokens[1:]
		h.mu.Unlock()
		h.answer(h.ask(id))
	}
}

func (h *Hook) ask(id int32) (c Course) {
	defer func() {
		if v := recover(); v != nil {
			c = Course{Err: &StepError{Err: fmt.Errorf("panic: %v", v), Stack: debug.Stack()}}
		}
	}()
	return h.steer(id)
}

// SteerError ends a sequence whose Steer says so, or does not answer.
type SteerError struct{ Err error }

func (e *SteerError) Error() string { return "what may come next: " + e.Err.Error() }
func (e *SteerError) Unwrap() error { return e.Err }

// ErrNoAnswer is the cause of a SteerError where Steer did not answer.
var ErrNoAnswer = errors.New("there was no answer")

// How long an answer is waited for: what Steer does is bounded to some hundredths of a second, so that no busy machine comes
// near. It is counted in waits, since a process that was stopped for an hour has not waited for one.
const (
	answerWait  = 100 * time.Millisecond
	answerWaits = 300
)

// await gives the course after the last token. Other sequences of the step stand still meanwhile.
func await(ctx context.Context, answers <-chan Course, waits int) Course {
	select {
	case c := <-answers:
		return c
	default:
	}
	t := time.NewTicker(answerWait)
	defer t.Stop()
	for range waits {
		select {
		case c := <-answers:
			return c
		case <-ctx.Done(): // the sequence leaves before the next step
			return Course{}
		case <-t.C:
		}
	}
	return Course{Err: ErrNoAnswer}
}
