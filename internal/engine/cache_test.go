package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/kv"
	"hearth/internal/sample"
)

// conversations are prompts that share beginnings in every way: three system prompts, several first turns of each, and
// next turns that hold the answer of alone to the turn before, whole or cut.
func conversations(t *testing.T, alone *Engine) (all []Prompt) {
	r := rand.New(rand.NewPCG(1, 2))
	for i, n := range []int{40, 128, 201} {
		system := prompt(n, uint64(50+i))
		all = append(all, Prompt{Tokens: system, MaxTokens: 9, Logprobs: 2})
		for j := range 3 {
			p := Prompt{Tokens: slices.Concat(system, prompt(1+r.IntN(60), uint64(i*7+j))), MaxTokens: 1 + r.IntN(70), Logprobs: j,
				Sampling: sample.Params{Temperature: float32(j), Seed: uint64(j)}}
			all = append(all, p)
			a := read(t, submit(t, alone, p))
			next := slices.Clone(p.Tokens)
			for _, tok := range a[:len(a)-r.IntN(len(a))] {
				next = append(next, tok.ID)
			}
			all = append(all, Prompt{Tokens: append(next, prompt(1+r.IntN(20), 3)...), MaxTokens: 12, Logprobs: 1})
		}
		for top := range 2 {
			forced := Prompt{Tokens: slices.Concat(system, prompt(20, 9)), MaxTokens: 90, Logprobs: top - 1, Constrain: stretches}
			all = append(all, forced, forced)
		}
	}
	for i := range all {
		all[i].Marks = []int{len(all[i].Tokens) / 2, len(all[i].Tokens)}
	}
	return all
}

// stretches forces up to 30 tokens after every fifth id.
func stretches(id int32) (c Constraint) {
	for i := range id % 31 {
		if id%5 == 0 {
			c.Forced = append(c.Forced, (id+5*i)%95+1)
		}
	}
	return c
}

// alone gives conversations, what an engine answers that has no cache and runs one at a time, and the bytes of a page.
func alone(t *testing.T, h *hooked) (all []Prompt, want [][]Token, page int64) {
	e := start(t, h, func(c *Config) { c.MaxSequences, c.NoCache = 1, true })
	all = conversations(t, e)
	for _, p := range all {
		want = append(want, read(t, submit(t, e, p)))
	}
	if s := e.Stats(); s.Cache != (CacheStats{Queries: s.Cache.Queries}) {
		t.Fatalf("a cache that is off: %+v", s.Cache)
	}
	return all, want, e.alloc.Geometry().Groups[0].PageBytes
}

// TestCachedSame: what an engine answers is the same to the bit whatever is in its prefix cache, however little memory
// there is, whoever runs beside it or leaves. Every schedule is random: order, chunks, memory, neighbours.
func TestCachedSame(t *testing.T) {
	schedules := uint64(16)
	if testing.Short() {
		schedules = 6
	}
	for name, h := range map[string]func() *hooked{
		"ref":         func() *hooked { return &hooked{} },
		"cpu float":   func() *hooked { return &hooked{Backend: cpu.New(), precision: backend.Float32} },
		"cpu 4 bits":  func() *hooked { return &hooked{Backend: cpu.New(), config: tiny4} },
		"cpu 4 exact": func() *hooked { return &hooked{Backend: cpu.New(), config: tiny4, precision: backend.Exact} },
		"cpu 4 float": func() *hooked { return &hooked{Backend: cpu.New(), config: tiny4, precision: backend.Float32} },
		"cpu hybrid":  func() *hooked { return &hooked{Backend: cpu.New(), config: hybrid} },
		"ref q4":      func() *hooked { return &hooked{kv: backend.KVPolicy{Bits: 4}} },
		"cpu f16": func() *hooked {
			return &hooked{Backend: cpu.New(), config: tiny4, kv: backend.KVPolicy{DType: backend.F16}}
		},
		"cpu q8": func() *hooked { return &hooked{Backend: cpu.New(), config: tiny4, kv: backend.KVPolicy{Bits: 8}} },
		"cpu q4": func() *hooked { return &hooked{Backend: cpu.New(), config: tiny4, kv: backend.KVPolicy{Bits: 4}} },
	} {
		t.Run(name, func(t *testing.T) {
			all, want, page := alone(t, h())
			var sum CacheStats
			for seed := range schedules {
				r := rand.New(rand.NewPCG(seed, 9))
				e := start(t, h(), func(c *Config) {
					c.MaxSequences, c.PrefillChunk, c.Budget = 1+r.IntN(6), 5+r.IntN(200), int64(7+r.IntN(30))*page
				})
				disturb(t, e, r, all, want)
				s := e.Stats().Cache
				sum.Hits += s.Hits
				sum.Tokens += s.Tokens
			}
			if sum.Hits == 0 || sum.Tokens == 0 {
				t.Errorf("nothing was ever cached: %+v", sum)
			}
			t.Logf("%d schedules of %d prompts: %d hits, %d tokens", schedules, len(all), sum.Hits, sum.Tokens)
		})
	}
}

// disturb runs all prompts in random order, some of them twice or cancelled, and compares the answers.
func disturb(t *testing.T, e *Engine, r *rand.Rand, all []Prompt, want [][]Token) {
	type job struct {
		i int
		s *Stream
	}
	var jobs []job
	finish := func(n int) {
		for len(jobs) > n {
			j := jobs[0]
			jobs = jobs[1:]
			if got, err := readAll(j.s); err != nil || !cmp.Equal(got, want[j.i]) {
				t.Errorf("prompt %d after %d cached tokens: %v %s", j.i, j.s.Usage().Cached, err, cmp.Diff(want[j.i], got))
			}
		}
	}
	for _, i := range r.Perm(len(all)) {
		if r.IntN(6) == 0 {
			s := submit(t, e, all[i])
			if r.IntN(2) == 0 {
				_, _ = s.Next()
			}
			s.Close()
		}
		jobs = append(jobs, job{i, submit(t, e, all[i])})
		finish(r.IntN(8))
	}
	finish(0)
}

// TestUsageCached: how much of a prompt was found, and how, is told exactly.
func TestUsageCached(t *testing.T) {
	e := start(t, &hooked{}, nil)
	ask := func(want Usage, tokens []int32, more int) []int32 {
		t.Helper()
		s := submit(t, e, Prompt{Tokens: tokens, MaxTokens: more, Logprobs: -1})
		out := slices.Clone(tokens)
		for _, tok := range read(t, s) {
			out = append(out, tok.ID)
		}
		u := s.Usage()
		if u.Cached != want.Cached || u.Added != want.Added || u.Longer != want.Longer || u.Hit != want.Hit {
			t.Errorf("prompt of %d: %v, %d cached, %d added, %d seen; want %v, %d, %d, %d", len(tokens), u.Hit, u.Cached, u.Added, u.Longer,
				want.Hit, want.Cached, want.Added, want.Longer)
		}
		return out
	}
	first := prompt(150, 1)
	turn := ask(Usage{Added: 128}, first, 20) // 170 known, the last one has not run
	ask(Usage{Cached: 149, Longer: 150, Hit: kv.Supersequence}, first, 1)
	ask(Usage{Cached: 169, Added: 192 - 169, Longer: 169, Hit: kv.Within}, append(slices.Clone(turn), prompt(30, 2)...), 1)
	ask(Usage{Cached: 160, Longer: 160, Hit: kv.LCP}, append(slices.Clone(turn[:160]), turn[160]+1, 3), 1)
	ask(Usage{Added: 128, Longer: 40}, append(slices.Clone(turn[:40]), prompt(90, 3)...), 1)
	ask(Usage{Added: 64}, prompt(100, 4), 1)
	ask(Usage{Cached: 99, Longer: 100, Hit: kv.Exact}, prompt(100, 4), 1)

	if _, err := e.Score(context.Background(), first, 1); err != nil {
		t.Fatal(err)
	}
	s := e.Stats()
	if want := int64(149 + 169 + 160 + 99); s.Cache.Tokens != want || s.Cache.Hits != 4 || s.Cache.Queries != 8 || !s.Cache.Enabled {
		t.Errorf("cache %+v, want %d tokens", s.Cache, want)
	}
	if s.Cache.Entries == 0 || s.Cache.Bytes == 0 || s.Used != 0 || s.PagesUsed != 0 {
		t.Errorf("idle engine: %+v", s)
	}
}

// TestUsageOwn: a prompt is its party's own where it parts if that party left what it parts from, whoever else was there.
func TestUsageOwn(t *testing.T) {
	e := start(t, &hooked{}, nil)
	ask := func(what string, want bool, party uint64, tokens []int32) {
		t.Helper()
		s := submit(t, e, Prompt{Tokens: tokens, MaxTokens: 1, Logprobs: -1, Party: party})
		read(t, s)
		u := s.Usage()
		if u.Own != want {
			t.Errorf("%s: own is %t", what, u.Own)
		}
		if got := u.Instead.IDs(); want && (len(got) == 0 || len(got) > 40 || got[0] == tokens[u.Longer]) || !want && got != nil {
			t.Errorf("%s: own is %t, and %v stands instead of %v", what, want, got, tokens[u.Longer:])
		}
	}
	a := prompt(150, 1)
	parted := func(at int, seed uint64) []int32 { return append(slices.Clone(a[:at]), prompt(60, seed)...) }
	ask("first", false, 1, a)
	ask("another's", false, 2, parted(100, 2))
	ask("nobody's", false, 0, parted(100, 3))
	ask("own", true, 1, parted(120, 4))
	ask("own, where others parted", true, 1, parted(100, 5))
	ask("own, within a page", true, 2, parted(30, 6)) // from what it left, as from others
	ask("further than own", false, 2, parted(140, 7))
	ask("behind all", false, 1, append(slices.Clone(a), prompt(9, 8)...))
	ask("nothing in common", false, 1, prompt(90, 9))
	ask("own, just now", true, 2, parted(100, 11)) // from what it left under "another's"
	s := submit(t, e, Prompt{Tokens: parted(100, 12), MaxTokens: 1, Logprobs: -1, Party: 2})
	if read(t, s); !slices.Equal(s.Usage().Instead.IDs(), prompt(60, 11)[:40]) {
		t.Errorf("%v stands instead", s.Usage().Instead.IDs())
	}
	s = submit(t, e, Prompt{Tokens: parted(100, 10), MaxTokens: 1, Logprobs: -1, Party: 1, Salt: kv.Salt{1}})
	if read(t, s); s.Usage().Own || s.Usage().Longer != 0 {
		t.Errorf("under a salt: %+v", s.Usage())
	}
}

// A prompt that was cancelled on its way leaves what it has computed; one that failed leaves nothing of the failed step.
func TestNothingLost(t *testing.T) {
	st := newSteps()
	e := start(t, &hooked{begin: st.begin}, func(c *Config) { c.PrefillChunk = 50 })
	p := Prompt{Tokens: prompt(300, 1), MaxTokens: 2, Logprobs: -1}
	s := submit(t, e, p)
	for range 3 {
		st.wait()
		st.next()
	}
	st.wait()
	s.Close() // in the fourth step
	st.release()
	again := submit(t, e, p)
	read(t, again)
	if u := again.Usage(); u.Cached != 200 || u.Hit != kv.Within {
		t.Errorf("after a cancelled prompt %d tokens are cached (%v), want 200", u.Cached, u.Hit)
	}

	h := &hooked{}
	e = start(t, h, func(c *Config) { c.PrefillChunk = 130 })
	steps := 0
	h.open = func(kv.SlotID) error {
		steps++
		if steps == 1 {
			h.fail = fmt.Errorf("device lost")
		}
		return nil
	}
	if _, err := readAll(submit(t, e, p)); err == nil {
		t.Fatal("no error")
	}
	h.fail = nil // the loop is idle
	again = submit(t, e, p)
	read(t, again)
	if u := again.Usage(); u.Cached != 256 {
		t.Errorf("after a failed third step %d tokens are cached, want the 256 of whole pages before it", u.Cached)
	}
}

// Several answers to one prompt compute it once.
func TestSharedPrefill(t *testing.T) {
	e := start(t, &hooked{}, func(c *Config) { c.PrefillChunk = 64 })
	var streams []*Stream
	for i := range uint64(4) {
		streams = append(streams, submit(t, e, Prompt{Tokens: prompt(300, 1), MaxTokens: 5, Logprobs: -1, Sampling: sample.Params{Temperature: 1, Seed: i}}))
	}
	for _, s := range streams {
		read(t, s)
	}
	// The prompt once, and for each of the others what lies beyond its last whole page.
	if n := e.Stats().PromptTokens; n > 300+3*(300%64) {
		t.Errorf("%d prompt tokens run", n)
	}
}

// A prompt that is scored gives way when memory runs out and goes on later: every row comes once and is the same.
func TestScorePreempted(t *testing.T) {
	ids := prompt(350, 9)
	whole, err := start(t, &hooked{}, nil).Score(context.Background(), ids, 5)
	if err != nil {
		t.Fatal(err)
	}
	st := newSteps()
	e := start(t, &hooked{begin: st.begin}, func(c *Config) { c.PrefillChunk, c.Budget = 1, 11*64*2*2*8*8 })
	s := submit(t, e, Prompt{Tokens: prompt(10, 1), MaxTokens: 390, Logprobs: -1})
	st.wait()
	var got []Score
	var done sync.WaitGroup
	done.Go(func() { got, err = e.Score(context.Background(), ids, 5) })
	for n := e.Stats(); n.Running+n.Waiting < 2; n = e.Stats() { // both run from the first steps on, whoever is quicker
		runtime.Gosched()
	}
	st.release()
	done.Wait()
	if err != nil {
		t.Fatal(err)
	}
	read(t, s)
	if d := cmp.Diff(whole, got); d != "" {
		t.Error(d)
	}
	if e.Stats().Preempted == 0 {
		t.Error("nobody was preempted")
	}
}
