package engine

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/kv"
	"hearth/internal/timeline"
)

// What a sequence does can be seen while it does it, and what is done is gone from the list.
func TestLive(t *testing.T) {
	st := newSteps()
	e := start(t, &hooked{begin: st.begin}, func(c *Config) { c.MaxSequences, c.PrefillChunk = 1, 100 })
	type row struct {
		Request        string
		Queued, First  bool
		Ran, Generated int
		Max            int
	}
	check := func(want ...row) {
		t.Helper()
		var got []row
		for _, l := range e.Live() {
			got = append(got, row{l.Request, l.Started.IsZero(), !l.First.IsZero(), l.Ran, l.Generated, l.Max})
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("-want +got\n%s", d)
		}
	}
	check()
	p := Prompt{Tokens: prompt(250, 1), MaxTokens: 2, Logprobs: -1, Request: "a"}
	a := submit(t, e, p)
	st.wait()
	p.Request = "b"
	b := submit(t, e, p)
	check(row{"a", false, false, 0, 0, 2}, row{"b", true, false, 0, 0, 2})
	st.next()
	st.wait()
	check(row{"a", false, false, 100, 0, 2}, row{"b", true, false, 0, 0, 2})
	for range 2 {
		st.next()
		st.wait()
	}
	check(row{"a", false, true, 250, 1, 2}, row{"b", true, false, 0, 0, 2})
	st.next()
	st.wait()
	check(row{"b", false, false, 249, 0, 2})
	st.release()
	read(t, a)
	read(t, b)
	check()
}

// DropCache forgets what nobody uses; what a sequence runs on stays.
func TestDropCache(t *testing.T) {
	st := newSteps()
	st.free.Store(true)
	e := start(t, &hooked{begin: st.begin}, nil)
	p := Prompt{Tokens: prompt(200, 1), MaxTokens: 3, Logprobs: -1, Session: 5}
	want := read(t, submit(t, e, p))
	if s := e.Stats().Cache; s.Entries != 1 || s.Idle == 0 || s.Sessions != 1 {
		t.Errorf("before: %+v", s)
	}
	d, err := e.DropCache(t.Context())
	if s := e.Stats().Cache; err != nil || d.Entries != 1 || d.Bytes == 0 || s.Entries != 0 || s.Bytes != 0 || s.Idle != 0 || s.Sessions != 0 {
		t.Errorf("dropped %+v, %v, left %+v", d, err, s)
	}
	if got := read(t, submit(t, e, p)); !cmp.Equal(got, want) {
		t.Error("another answer afterwards")
	}
	st.free.Store(false)
	s := submit(t, e, p)
	st.wait()
	dropped := make(chan Stored)
	go func() {
		d, err := e.DropCache(t.Context())
		if err != nil {
			t.Error(err)
		}
		dropped <- d
	}()
	waitFor(func() bool { e.mu.Lock(); defer e.mu.Unlock(); return len(e.calls) == 1 })
	st.release()
	if d := <-dropped; d.Bytes >= e.Stats().Budget {
		t.Errorf("dropped %+v beside a sequence", d)
	}
	if got := read(t, s); !cmp.Equal(got, want) {
		t.Error("another answer beside it")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.DropCache(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// waitFor yields until ok.
func waitFor(ok func() bool) {
	for !ok() {
		runtime.Gosched()
	}
}

// What nobody used for a time is forgotten, also by an engine that has nothing to do.
func TestCacheTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, &hooked{}, func(c *Config) { c.CacheTTL = time.Hour })
		p := Prompt{Tokens: prompt(200, 1), MaxTokens: 1, Logprobs: -1}
		read(t, submit(t, e, p))
		time.Sleep(50 * time.Minute)
		read(t, submit(t, e, p))
		synctest.Wait()
		time.Sleep(50 * time.Minute)
		synctest.Wait()
		if s := e.Stats().Cache; s.Entries != 1 || s.Hits != 1 {
			t.Errorf("used 50 minutes ago: %+v", s)
		}
		time.Sleep(15 * time.Minute)
		synctest.Wait()
		if s := e.Stats().Cache; s.Entries != 0 || s.Bytes != 0 {
			t.Errorf("used 65 minutes ago: %+v", s)
		}
		_ = e.Close() // inside the bubble
	})
}

// One client has half of the places at most.
func TestClientFull(t *testing.T) {
	st := newSteps()
	e := start(t, &hooked{begin: st.begin}, func(c *Config) { c.MaxSequences, c.MaxQueue = 1, 5 })
	p := Prompt{Tokens: prompt(5, 1), MaxTokens: 1, Logprobs: -1, Client: 9}
	streams := []*Stream{submit(t, e, p)}
	st.wait()
	for range 2 {
		streams = append(streams, submit(t, e, p))
	}
	var many *ClientFullError
	if _, err := e.Submit(t.Context(), p); !errors.As(err, &many) || many.Live != 3 {
		t.Errorf("a fourth: %v", err)
	}
	for _, c := range []uint64{8, 8, 0} {
		p.Client = c
		streams = append(streams, submit(t, e, p))
	}
	var full *QueueFullError
	if _, err := e.Submit(t.Context(), p); !errors.As(err, &full) {
		t.Errorf("a seventh: %v", err)
	}
	st.release()
	for _, s := range streams {
		read(t, s)
	}
	p.Client = 9
	read(t, submit(t, e, p))
}

// Prompts under different salts find nothing of each other, whoever runs first or at the same time, and all get the
// answer they would get alone.
func TestSalts(t *testing.T) {
	alone := start(t, &hooked{}, func(c *Config) { c.NoCache = true })
	e := start(t, &hooked{}, func(c *Config) { c.PrefillChunk = 64 })
	system := prompt(150, 1)
	ask := func(salt kv.Salt, seed uint64, back bool) Prompt {
		return Prompt{Tokens: slices.Concat(system, prompt(20, seed)), MaxTokens: 5, Logprobs: 1, Salt: salt,
			Session: uint64(salt[0]), Client: uint64(salt[0]), Background: back}
	}
	salts := []kv.Salt{{}, {1}, {2}}
	var wg sync.WaitGroup
	for _, salt := range salts {
		wg.Go(func() {
			for turn := range uint64(6) {
				p := ask(salt, 10+turn, salt[0] == 2)
				s, err := e.Submit(t.Context(), p)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := readAll(s)
				if err != nil {
					t.Error(err)
				}
				u := s.Usage()
				if turn == 0 && (u.Hit != kv.Miss || u.Cached != 0 || u.Longer != 0) || turn > 0 && u.Cached < len(system) {
					t.Errorf("turn %d under salt %d: %v, %d cached, %d in common", turn, salt[0], u.Hit, u.Cached, u.Longer)
				}
				a, err := alone.Submit(t.Context(), Prompt{Tokens: p.Tokens, MaxTokens: 5, Logprobs: 1})
				if err != nil {
					t.Error(err)
					return
				}
				want, err := readAll(a)
				if err != nil || !cmp.Equal(got, want) {
					t.Errorf("turn %d under salt %d: another answer than alone, %v", turn, salt[0], err)
				}
			}
		})
	}
	wg.Wait()
}

// TestHour: what an engine did, and how much of it there was at a time, is in the seconds in which it was.
func TestHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hour := &timeline.Hour{}
		st := newSteps()
		e := start(t, &hooked{begin: st.begin}, func(c *Config) { c.MaxSequences, c.PrefillChunk, c.Hour = 1, 100, hour })
		began := time.Now().Unix()
		p := Prompt{Tokens: prompt(150, 1), MaxTokens: 3, Logprobs: -1}
		a := submit(t, e, p)
		st.wait()
		b := submit(t, e, p) // waits, and then finds all of the prompt
		step := func() {
			time.Sleep(time.Second)
			st.next()
			st.wait()
		}
		for range 4 {
			step()
		}
		st.release()
		read(t, a)
		read(t, b)
		synctest.Wait()
		seconds, first := hour.Since(time.Now(), 0, nil)
		type row struct {
			timeline.Counts
			Running, Waiting int64
			State, Cache     bool
		}
		var got []row
		for _, s := range seconds {
			got = append(got, row{s.Counts, s.Most.Running, s.Most.Waiting, s.Most.State > 0, s.Most.Cache > 0})
		}
		one := timeline.Counts{Output: 1, Steps: 1, Sequences: 1}
		want := []row{
			{timeline.Counts{Requests: 2}, 1, 1, true, false},
			{timeline.Counts{Prompt: 100, Steps: 1, Sequences: 1, Hits: [timeline.Kinds]int64{kv.Miss: 1}}, 1, 1, true, false},
			{timeline.Counts{Prompt: 50, Output: 1, Steps: 1, Sequences: 1}, 1, 1, true, false},
			{one, 1, 1, true, false},
			{timeline.Counts{Prompt: 1, Cached: 149, Output: 4, Steps: 4, Sequences: 4, Hits: [timeline.Kinds]int64{kv.Supersequence: 1}}, 1, 1, true, true},
		}
		if d := cmp.Diff(want, got); d != "" || first != began {
			t.Errorf("from %d: -want +got\n%s", first-began, d)
		}
		var after timeline.Counts
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		hour.Meter().Note(time.Now().Add(time.Second), &after, timeline.Levels{})
		if last, _ := hour.Since(time.Now().Add(time.Second), time.Now().Unix(), nil); len(last) != 1 || last[0].Most != (timeline.Levels{}) {
			t.Errorf("of an engine that is closed there is %+v", last)
		}
	})
}
