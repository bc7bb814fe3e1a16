package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/kv"
	"hearth/internal/sample"
)

// mixed is a set of prompts that differ in everything.
func mixed() []Prompt {
	var penalties sample.Params
	penalties.Set("repetition_penalty", 1.4)
	penalties.Set("frequency_penalty", 0.3)
	return []Prompt{
		{Tokens: prompt(1, 1), MaxTokens: 30, Logprobs: 3},
		{Tokens: prompt(130, 2), MaxTokens: 5, Logprobs: 0, Sampling: sample.Params{Temperature: 1, Seed: 4}},
		{Tokens: prompt(65, 3), MaxTokens: 20, Logprobs: -1, Sampling: sample.Params{Temperature: 0.8, TopP: 0.9, Seed: 5}},
		{Tokens: prompt(64, 4), MaxTokens: 12, Logprobs: 20, Sampling: sample.Params{Temperature: 2, TopK: 40, MinP: .01}},
		{Tokens: prompt(9, 5), MaxTokens: 25, Logprobs: 1, Sampling: penalties},
		{Tokens: prompt(200, 6), MaxTokens: 1, Logprobs: -1},
		{Tokens: prompt(33, 7), MaxTokens: 18, Logprobs: -1, StopIDs: []int32{2, 3, 5, 7, 11, 13},
			Sampling: sample.Params{Temperature: 3, Seed: 1}},
	}
}

// TestSameAnswer: tokens and logprobs are the same, to the bit, alone and in any batch, whole and in chunks.
func TestSameAnswer(t *testing.T) {
	for name, h := range map[string]func() *hooked{
		"ref":         func() *hooked { return &hooked{} },
		"cpu float":   func() *hooked { return &hooked{Backend: cpu.New(), precision: backend.Float32} },
		"cpu 4 bits":  func() *hooked { return &hooked{Backend: cpu.New(), config: tiny4} },
		"cpu 4 exact": func() *hooked { return &hooked{Backend: cpu.New(), config: tiny4, precision: backend.Exact} },
		"cpu 4 float": func() *hooked { return &hooked{Backend: cpu.New(), config: tiny4, precision: backend.Float32} },
	} {
		t.Run(name, func(t *testing.T) { sameAnswer(t, h) })
	}
}

func sameAnswer(t *testing.T, h func() *hooked) {
	type answer struct {
		Tokens []Token
		Reason Reason
		StopID int32
	}
	run := func(e *Engine, together bool) (all []answer) {
		var streams []*Stream
		for _, p := range mixed() {
			s := submit(t, e, p)
			if !together {
				read(t, submit(t, e, p)) // the same again beside it changes nothing either
			}
			streams = append(streams, s)
		}
		for _, s := range streams {
			all = append(all, answer{read(t, s), s.Finish(), s.StopID()})
		}
		return all
	}
	want := run(start(t, h(), func(c *Config) { c.MaxSequences = 1 }), false)
	for i, p := range mixed() {
		if n := len(want[i].Tokens); want[i].Reason == Length && n != p.MaxTokens {
			t.Errorf("prompt %d: %d tokens of %d", i, n, p.MaxTokens)
		}
		if n := len(want[i].Tokens); n > 0 && p.Logprobs >= 0 && len(want[i].Tokens[n-1].Top) != p.Logprobs {
			t.Errorf("prompt %d: %d alternatives, want %d", i, len(want[i].Tokens[n-1].Top), p.Logprobs)
		}
	}
	if a := want[6]; a.Reason != Stop || a.StopID < 2 || len(a.Tokens) == 0 || a.Tokens[len(a.Tokens)-1].ID == a.StopID {
		t.Errorf("stop ids of prompt 6: %+v", a)
	}
	for _, c := range []struct{ sequences, chunk int }{{8, 2048}, {3, 64}, {8, 50}, {2, 7}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			e := start(t, h(), func(cfg *Config) { cfg.MaxSequences, cfg.PrefillChunk = c.sequences, c.chunk })
			if d := cmp.Diff(want, run(e, true)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestSharedStep: a long prompt in chunks does not hold up a sequence that decodes.
func TestSharedStep(t *testing.T) {
	st := newSteps()
	e := start(t, &hooked{begin: st.begin}, func(c *Config) { c.PrefillChunk = 50 })
	a := submit(t, e, Prompt{Tokens: prompt(5, 1), MaxTokens: 20, Logprobs: -1})
	rows := []int{st.wait()}
	b := submit(t, e, Prompt{Tokens: prompt(120, 2), MaxTokens: 3, Logprobs: -1})
	for range 5 {
		st.next()
		rows = append(rows, st.wait())
	}
	st.release()
	if d := cmp.Diff([]int{5, 51, 51, 21, 2, 2}, rows); d != "" {
		t.Errorf("rows per step:\n%s", d)
	}
	read(t, a)
	read(t, b)
	u := b.Usage()
	if u.Prompt != 120 || u.Generated != 3 || u.Started.Before(u.Submitted) || u.First.Before(u.Started) || u.Ended.Before(u.First) {
		t.Errorf("usage %+v", u)
	}
	if s := e.Stats(); s.PromptTokens != 125 || s.GeneratedTokens != 23 || s.Steps < 20 {
		t.Errorf("stats %+v", s)
	}
}

func TestCancel(t *testing.T) {
	st := newSteps()
	e := start(t, &hooked{begin: st.begin}, func(c *Config) { c.MaxSequences, c.PrefillChunk = 2, 64 })
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p := Prompt{Tokens: prompt(200, 1), MaxTokens: 100, Logprobs: -1}
	byContext, err := e.Submit(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	st.wait()
	closed := submit(t, e, p)
	other := submit(t, e, Prompt{Tokens: prompt(3, 2), MaxTokens: 4, Logprobs: -1})
	queued := submit(t, e, p)
	cancel()
	queued.Close()
	queued.Close()
	if _, err := byContext.Next(); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled by its context: %v", err)
	}
	st.next()
	st.wait()
	closed.Close()
	st.release()
	if _, err := readAll(closed); !errors.Is(err, context.Canceled) {
		t.Errorf("closed: %v", err)
	}
	if n := len(read(t, other)); n != 4 {
		t.Errorf("the one left has %d tokens", n)
	}
	settle(e)
	for name, s := range map[string]*Stream{"context": byContext, "closed": closed, "queued": queued} {
		if s.Finish() != Cancel {
			t.Errorf("%s: finished by %v", name, s.Finish())
		}
	}
	if s := e.Stats(); s.PagesUsed != 0 || s.Used != 0 || s.PromptTokens > 3*64+3 {
		t.Errorf("after cancelling: %+v", s)
	}
	if _, err := e.Submit(ctx, p); !errors.Is(err, context.Canceled) {
		t.Errorf("submit with an ended context: %v", err)
	}
}

// watched is a context that counts who watches it.
type watched struct {
	context.Context
	done     chan struct{}
	watchers atomic.Int32
}

func (w *watched) Done() <-chan struct{} { return w.done }
func (w *watched) AfterFunc(func()) (stop func() bool) {
	w.watchers.Add(1)
	return func() bool { w.watchers.Add(-1); return true }
}

// A sequence that ended holds nothing of a context that lives on.
func TestUnwatch(t *testing.T) {
	e := start(t, &hooked{}, nil)
	ctx := &watched{Context: context.Background(), done: make(chan struct{})}
	for range 3 {
		s, err := e.Submit(ctx, Prompt{Tokens: prompt(3, 1), MaxTokens: 2, Logprobs: -1})
		if err != nil {
			t.Fatal(err)
		}
		read(t, s)
	}
	if n := ctx.watchers.Load(); n != 0 {
		t.Errorf("%d watchers are left", n)
	}
}

// A stream nobody reads does not hold up another, and loses nothing.
func TestSlowReader(t *testing.T) {
	e := start(t, &hooked{}, nil)
	p := Prompt{Tokens: prompt(10, 1), MaxTokens: 150, Logprobs: -1, Sampling: sample.Params{Temperature: 1}}
	slow, fast := submit(t, e, p), submit(t, e, p)
	want := read(t, fast)
	if d := cmp.Diff(want, read(t, slow)); d != "" {
		t.Error(d)
	}
}

func TestRefusals(t *testing.T) {
	st := newSteps()
	e := start(t, &hooked{begin: st.begin}, func(c *Config) { c.MaxSequences, c.MaxQueue = 1, 2 })
	p := Prompt{Tokens: prompt(3, 1), MaxTokens: 2, Logprobs: -1}
	var streams []*Stream
	streams = append(streams, submit(t, e, p))
	st.wait()
	streams = append(streams, submit(t, e, p), submit(t, e, p))
	var full *QueueFullError
	if _, err := e.Submit(context.Background(), p); !errors.As(err, &full) {
		t.Errorf("fourth of three: %v", err)
	}
	if s := e.Stats(); s.Running != 1 || s.Waiting != 2 || s.PagesUsed != 1 {
		t.Errorf("stats %+v", s)
	}
	var long *TooLongError
	_, err := e.Submit(context.Background(), Prompt{Tokens: prompt(400, 1)})
	if !errors.As(err, &long) || err.Error() != "prompt is too long: 400 tokens > 399 maximum" {
		t.Errorf("prompt of the whole context: %v", err)
	}
	if _, err := e.Score(context.Background(), prompt(401, 1), 1); !errors.As(err, &long) {
		t.Errorf("score over the context: %v", err)
	}
	for _, ids := range [][]int32{nil, {1, -1}, {vocab}} {
		if _, err := e.Submit(context.Background(), Prompt{Tokens: ids}); err == nil {
			t.Errorf("prompt %v was accepted", ids)
		}
	}
	st.release()
	for _, s := range streams {
		read(t, s)
	}
	read(t, submit(t, e, p)) // room again
	full2 := submit(t, e, Prompt{Tokens: prompt(390, 1), Logprobs: -1})
	if n := len(read(t, full2)); n != 10 || full2.Finish() != Length {
		t.Errorf("room left of 10: %d tokens, %v", n, full2.Finish())
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Submit(context.Background(), p); !errors.Is(err, ErrClosed) {
		t.Errorf("submit after Close: %v", err)
	}
}

// The budget lowers the context; one below a page is refused with the numbers.
func TestBudget(t *testing.T) {
	e := start(t, &hooked{}, func(c *Config) { c.Budget = 3 * 64 * 2 * 2 * 8 * 8 })
	if e.Context() != 192 {
		t.Errorf("context %d, want 192", e.Context())
	}
	cfg := e.cfg
	cfg.Budget = 1000
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "1000 bytes are less than the 16384") {
		t.Errorf("a budget of 1000 bytes: %v", err)
	}
}

// A failed step ends its sequences with an error; those that wait and those that come later are served.
func TestStepFailure(t *testing.T) {
	boom := errors.New("device lost")
	for name, set := range map[string]func(*hooked){
		"panic": func(h *hooked) { h.begin = func(*backend.Batch) { panic("wrong shape") } },
		"error": func(h *hooked) { h.fail = boom },
		"open":  func(h *hooked) { h.open = func(kv.SlotID) error { return boom } },
	} {
		t.Run(name, func(t *testing.T) {
			st, h := newSteps(), &hooked{}
			h.begin = st.begin
			e := start(t, h, func(c *Config) { c.MaxSequences = 2 })
			p := Prompt{Tokens: prompt(3, 1), MaxTokens: 4, Logprobs: -1}
			warm := submit(t, e, p)
			st.wait()
			sick, waits := submit(t, e, p), submit(t, e, p)
			h.begin = func(*backend.Batch) {} // the loop is inside the old one until next
			set(h)
			st.next()
			_, first := readAll(warm)
			_, second := readAll(sick)
			_, third := readAll(waits)
			if (first == nil) != (name == "open") || second == nil || third == nil {
				t.Fatalf("errors %v, %v, %v", first, second, third)
			}
			var se *StepError
			if name == "panic" && (!errors.As(second, &se) || len(se.Stack) == 0) {
				t.Errorf("panic reported as %v", second)
			}
			if name != "panic" && !errors.Is(second, boom) {
				t.Errorf("error reported as %v", second)
			}
			if sick.Finish() != Error {
				t.Errorf("finished by %v", sick.Finish())
			}
			h.begin, h.fail, h.open = nil, nil, nil // the loop is idle
			if n := len(read(t, submit(t, e, p))); n != 4 {
				t.Errorf("afterwards %d tokens of 4", n)
			}
		})
	}
}

// Many clients at once, some of whom leave: nothing leaks, and every answer that was read to its end is the right one.
func TestTraffic(t *testing.T) {
	e := start(t, &hooked{}, func(c *Config) {
		c.MaxSequences, c.PrefillChunk, c.MaxQueue = 4, 40, 64
		c.Budget = 12 * 64 * 2 * 2 * 8 * 8 // memory for two or three at once
	})
	want := make([][]Token, len(mixed()))
	for i, p := range mixed() {
		want[i] = read(t, submit(t, e, p))
	}
	var wg sync.WaitGroup
	for c := range uint64(8) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewPCG(c, 3))
			for range 6 {
				i := r.IntN(len(want))
				ctx, cancel := context.WithCancel(context.Background())
				s, err := e.Submit(ctx, mixed()[i])
				if err != nil {
					t.Error(err)
				} else if r.IntN(3) == 0 {
					_, _ = s.Next()
					if r.IntN(2) == 0 {
						s.Close()
					}
				} else if got, err := readAll(s); err != nil || !cmp.Equal(got, want[i]) {
					t.Errorf("prompt %d: %v, %v", i, err, cmp.Diff(want[i], got))
				}
				cancel()
			}
		}()
	}
	wg.Wait()
	settle(e)
	if s := e.Stats(); s.PagesUsed != 0 || s.Used != 0 || s.Running+s.Waiting != 0 {
		t.Errorf("after the traffic: %+v", s)
	}
}

func TestClose(t *testing.T) {
	st := newSteps()
	e := start(t, &hooked{begin: st.begin}, func(c *Config) { c.MaxSequences = 1 })
	p := Prompt{Tokens: prompt(3, 1), MaxTokens: 50, Logprobs: -1}
	running := submit(t, e, p)
	st.wait()
	waiting := submit(t, e, p)
	done := make(chan error)
	go func() { done <- e.Close() }()
	closing := func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.closed
	}
	for !closing() {
		runtime.Gosched()
	}
	if _, err := e.Submit(context.Background(), p); !errors.Is(err, ErrClosed) {
		t.Errorf("submit while it closes: %v", err)
	}
	st.release()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Stream{running, waiting} {
		if _, err := readAll(s); !errors.Is(err, ErrClosed) || s.Finish() != Error {
			t.Errorf("stream ends with %v, %v", err, s.Finish())
		}
	}
}

// Score gives the same in chunks and whole, and agrees with what greedy decoding does.
func TestScore(t *testing.T) {
	ids := prompt(150, 9)
	whole, err := start(t, &hooked{}, nil).Score(context.Background(), ids, 20)
	if err != nil {
		t.Fatal(err)
	}
	e := start(t, &hooked{}, func(c *Config) { c.PrefillChunk = 37 })
	chunked, err := e.Score(context.Background(), ids, 20)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(whole, chunked); d != "" || len(whole) != len(ids) {
		t.Errorf("%d scores, chunks differ: %s", len(whole), d)
	}
	known := 0
	for i, s := range whole {
		for _, top := range s.Top {
			if i+1 < len(ids) && top.ID == ids[i+1] {
				if known++; top.Logprob != s.Logprob {
					t.Errorf("position %d: what comes next has %g, among the likeliest it has %g", i, s.Logprob, top.Logprob)
				}
			}
		}
		if last := i == len(ids)-1; last != (s.Logprob == 0) || !last && s.Logprob > s.Top[0].Logprob {
			t.Errorf("position %d: what comes next has %g", i, s.Logprob)
		}
	}
	if known == 0 {
		t.Error("the prompt is never likely")
	}
	for _, n := range []int{1, 64, 150} {
		tok := read(t, submit(t, e, Prompt{Tokens: ids[:n], MaxTokens: 1, Logprobs: 20}))[0]
		if s := whole[n-1]; s.Argmax != tok.ID || !cmp.Equal(s.Top, tok.Top) || s.Top[0].Logprob != tok.Logprob {
			t.Errorf("position %d: score %+v, decoded %+v", n-1, s, tok)
		}
	}
}
