package engine

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/sample"
)

// TestForced: forced ids come next and count as generated, the hook is called with every token in order, and the
// model goes on from there.
func TestForced(t *testing.T) {
	e := start(t, &hooked{}, nil)
	prompt := []int32{5, 6, 7}
	run := func(constrain func(int32) Constraint) ([]int32, *Stream) {
		s := submit(t, e, Prompt{Tokens: prompt, MaxTokens: 12, StopIDs: []int32{91}, Constrain: constrain, Sampling: sample.Params{Temperature: 0.8, Seed: 4}})
		var ids []int32
		for _, tok := range read(t, s) {
			if tok.Logprob >= 0 {
				t.Errorf("token %d has logprob %v", tok.ID, tok.Logprob)
			}
			ids = append(ids, tok.ID)
		}
		return ids, s
	}
	free, _ := run(nil)
	seen := make(chan int32, 12)
	n := 0
	forced, s := run(func(id int32) Constraint {
		seen <- id
		if n++; n == 4 {
			return Constraint{Forced: []int32{90, 89}}
		}
		return Constraint{}
	})
	if !slices.Equal(forced[:4], free[:4]) || !slices.Equal(forced[4:6], []int32{90, 89}) || len(forced) != 12 {
		t.Errorf("free %v, forced %v", free, forced)
	}
	for i, id := range forced[:11] { // nothing follows the last one
		if told := <-seen; told != id {
			t.Errorf("token %d: seen %d, not %d", i, told, id)
		}
	}
	if s.Usage().Generated != 12 {
		t.Errorf("%+v", s.Usage())
	}
	if ids, s := run(func(int32) Constraint { return Constraint{Forced: []int32{91}} }); len(ids) != 1 || s.Finish() != Stop || s.StopID() != 91 {
		t.Errorf("a forced stop id: %v, %v", ids, s.Finish())
	}

	once := []int32{90, 89}
	greedy := read(t, submit(t, e, Prompt{Tokens: prompt, MaxTokens: 4, Logprobs: -1, Constrain: func(int32) Constraint {
		ids := once
		once = nil
		return Constraint{Forced: ids}
	}}))
	told := read(t, submit(t, e, Prompt{Tokens: append(slices.Clone(prompt), greedy[0].ID, 90, 89), MaxTokens: 1, Logprobs: -1}))
	if greedy[3].ID != told[0].ID {
		t.Errorf("after forced tokens the model says %d, after the same prompt %d", greedy[3].ID, told[0].ID)
	}
}

// TestMask: after its first token a sequence says nothing but what its hook allows at each place, likelier tokens or not,
// and who shares its steps says what it says alone.
func TestMask(t *testing.T) {
	st := newSteps()
	e := start(t, &hooked{begin: st.begin}, nil)
	alone := start(t, &hooked{}, nil)
	allowed := []sample.Set{{1<<5 | 1<<40}, {0, 1<<1 | 1<<32}, {1 << 63, 1 << 0}, nil}
	hook := func() func(int32) Constraint {
		n := 0
		return func(int32) Constraint {
			n++
			return Constraint{Mask: allowed[n%len(allowed)]}
		}
	}
	params := sample.Params{Temperature: 1, Seed: 6}
	free := Prompt{Tokens: prompt(9, 1), MaxTokens: 40, Logprobs: 3, Sampling: params}
	limited := Prompt{Tokens: prompt(12, 2), MaxTokens: 40, Logprobs: 3, Sampling: params}
	greedy := Prompt{Tokens: prompt(12, 3), MaxTokens: 40, Logprobs: -1}
	prompts := []Prompt{free, limited, greedy}
	var streams []*Stream
	for i, p := range prompts {
		if i > 0 {
			p.Constrain = hook()
		}
		streams = append(streams, submit(t, e, p))
		if i == 0 {
			st.wait() // the others arrive while it runs
		}
	}
	st.release()
	for i, s := range streams {
		got := read(t, s)
		p := prompts[i]
		if i > 0 {
			p.Constrain = hook()
		}
		if d := cmp.Diff(read(t, submit(t, alone, p)), got); d != "" || len(got) != 40 {
			t.Errorf("prompt %d: alone -, in company +\n%s", i, d)
		}
		for at, tok := range got {
			only := allowed[at%len(allowed)]
			if i == 0 || at == 0 || only == nil {
				continue
			}
			if !only.Has(tok.ID) || i == 1 && len(tok.Top) != 2 {
				t.Errorf("prompt %d, token %d: %+v", i, at, tok)
			}
		}
	}
}

// TestFirstMask: the first token alone is of the prompt's set, which is the engine's own.
func TestFirstMask(t *testing.T) {
	e := start(t, &hooked{}, nil)
	told := Prompt{Tokens: prompt(9, 1), MaxTokens: 6, Logprobs: -1}
	free := read(t, submit(t, e, told))
	only := sample.Set{0}
	only.Add((free[0].ID + 1) % 32)
	told.Mask = only
	s := submit(t, e, told)
	only[0] = ^uint64(0)
	limited := read(t, s)
	if limited[0].ID != (free[0].ID+1)%32 {
		t.Errorf("free %d, limited %d", free[0].ID, limited[0].ID)
	}
	after := read(t, submit(t, e, Prompt{Tokens: append(prompt(9, 1), limited[0].ID), MaxTokens: 5, Logprobs: -1}))
	if d := cmp.Diff(after, limited[1:]); d != "" {
		t.Errorf("after that token -, limited +\n%s", d)
	}
}

// TestMaskPreempted: what a sequence may say next is the same after it had to give its memory away.
func TestMaskPreempted(t *testing.T) {
	long := func(i uint64) Prompt {
		return Prompt{Tokens: prompt(10, i), MaxTokens: 390, Logprobs: -1, Constrain: func(id int32) Constraint {
			return Constraint{Mask: sample.Set{1 << (id % 31), 1 << (id % 29)}}
		}}
	}
	fresh := start(t, &hooked{}, func(c *Config) { c.NoCache, c.MaxSequences = true, 1 })
	geo := fresh.alloc.Geometry()
	e := start(t, &hooked{}, func(c *Config) { c.Budget = 11 * geo.Groups[0].PageBytes })
	preempts(t, e, fresh, long)
}
