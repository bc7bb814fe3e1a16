package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/backend/cpu"
)

// TestHookEndsItsOwn: a hook that does not answer, that says no or that panics ends its own sequence, and who shares its steps
// says what it says alone.
func TestHookEndsItsOwn(t *testing.T) {
	no := errors.New("no")
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	free := Prompt{Tokens: prompt(9, 1), MaxTokens: 40, Logprobs: -1}
	alone := read(t, submit(t, start(t, &hooked{}, nil), free))
	for name, c := range map[string]struct {
		hook func()
		want error // nil: any
	}{
		"silent": {func() { <-never }, ErrNoAnswer},
		"no":     {nil, no},
		"panic":  {func() { panic("oh") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			st := newSteps()
			e := start(t, &hooked{begin: st.begin}, nil)
			between(e, func() { e.run.waits = 1 })
			other := submit(t, e, free)
			st.wait()
			n := 0
			s := submit(t, e, Prompt{Tokens: prompt(12, 2), MaxTokens: 40, Logprobs: -1, Constrain: func(int32) Constraint {
				if n++; n < 3 {
					return Constraint{}
				}
				if c.hook != nil {
					c.hook()
				}
				return Constraint{Err: no}
			}})
			st.release()
			toks, err := readAll(s)
			var refused *ConstraintError
			if !errors.As(err, &refused) || c.want != nil && !errors.Is(err, c.want) || s.Finish() != Error || len(toks) != 3 {
				t.Errorf("%d tokens, %v: %v", len(toks), s.Finish(), err)
			}
			if d := cmp.Diff(alone, read(t, other)); d != "" {
				t.Errorf("alone -, in company +\n%s", d)
			}
		})
	}
}

// TestHookRunsBesideSteps: a step does not wait for a hook of the step before to begin, only to draw.
func TestHookRunsBesideSteps(t *testing.T) {
	for _, speculate := range []bool{false, true} {
		runsBeside(t, speculate)
	}
}

func runsBeside(t *testing.T, speculate bool) {
	st := newSteps()
	e := start(t, &hooked{Backend: cpu.New(), begin: st.begin}, func(c *Config) { c.Speculate = speculate })
	begun := make(chan struct{})
	s := submit(t, e, Prompt{Tokens: prompt(9, 1), MaxTokens: 2, Logprobs: -1, Constrain: func(int32) Constraint {
		<-begun // of the step that draws the token after this one
		return Constraint{}
	}})
	st.wait()
	st.next()
	st.wait() // it runs although the hook has not answered
	close(begun)
	st.release()
	if n := len(read(t, s)); n != 2 {
		t.Errorf("%d tokens", n)
	}
}

// TestHookLeaves: whose client has gone need not answer.
func TestHookLeaves(t *testing.T) {
	e := start(t, &hooked{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	never := make(chan struct{})
	defer close(never)
	told := make(chan struct{}, 20)
	s, err := e.Submit(ctx, Prompt{Tokens: prompt(9, 1), MaxTokens: 20, Logprobs: -1, Constrain: func(int32) Constraint {
		told <- struct{}{}
		<-never
		return Constraint{}
	}})
	if err != nil {
		t.Fatal(err)
	}
	<-told
	cancel()
	if _, err := readAll(s); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	read(t, submit(t, e, Prompt{Tokens: prompt(9, 1), MaxTokens: 3, Logprobs: -1}))
}

// TestStuck: a step that does not end is told of, and that it has ended is seen.
func TestStuck(t *testing.T) {
	st := newSteps()
	told := make(chan time.Duration, 1)
	e := start(t, &hooked{begin: st.begin}, func(c *Config) { c.Stuck = func(d time.Duration) { told <- d } })
	s := submit(t, e, Prompt{Tokens: prompt(9, 1), MaxTokens: 3, Logprobs: -1})
	st.wait()
	e.watchdog.Advance(60)
	if len(told) > 0 || e.Stats().Stuck != 0 {
		t.Error("a step of a minute is stuck")
	}
	e.watchdog.Advance(70)
	if d := <-told; d < 2*time.Minute || e.Stats().Stuck < d || e.Stuck() < d {
		t.Errorf("stuck for %v, %v", d, e.Stats().Stuck)
	}
	st.release()
	n := len(read(t, s))
	between(e, func() {}) // the last step has ended
	if n != 3 || e.Stats().Stuck != 0 {
		t.Errorf("%d tokens, stuck for %v", n, e.Stats().Stuck)
	}
}
