package engine

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/kv"
	"hearth/internal/spec"
)

// TestSpeculationSalts: what is drafted under one salt, what of it is accepted, and what is remembered, is the same whatever the
// others say: text that repeats itself or that nothing predicts, long or short answers before, and whatever they predict.
func TestSpeculationSalts(t *testing.T) {
	mine, other := kv.Salt{1}, kv.Salt{2}
	var costs spec.Costs
	for sequences := 1; sequences <= 8; sequences++ {
		for drafts := range spec.MostRows {
			for range 20 {
				costs.Observe(sequences, drafts, 1000+50*float64(sequences+drafts))
			}
		}
	}
	plain := start(t, &hooked{Backend: cpu.New(), config: tiny4}, nil)
	copied := hear(t, submit(t, plain, Prompt{Tokens: prompt(20, 2), MaxTokens: 350, Logprobs: -1}))
	type decisions struct {
		Steps    []int // tokens of each step of mine
		Drafted  int
		Accepted int
		History  int64
		Known    []bool // salts that have one
		Replies  []reply
	}
	run := func(answers int, beside Prompt) (d decisions) {
		var e *Engine
		h := &hooked{Backend: cpu.New(), config: tiny4}
		h.begin = func(b *backend.Batch) {
			for i := range b.Spans {
				if q := e.run.out[i].seq; q.salt == mine {
					d.Steps = append(d.Steps, b.Spans[i].Len)
				}
			}
		}
		e = start(t, h, func(c *Config) {
			c.Speculate, c.fixedCosts, c.MaxContext = true, true, 8000
		})
		for i := range 40 { // more salts than there are places, each with as many requests
			read(t, submit(t, e, Prompt{Tokens: prompt(10, uint64(i)), MaxTokens: answers, Logprobs: -1, Salt: kv.Salt{3, byte(i % 12)}}))
		}
		settle(e)
		beside.Salt = other
		var b *Stream
		var all []*Stream
		ask := func(i int) {
			p := Prompt{Tokens: prompt(20, uint64(i%2)), MaxTokens: 60, Logprobs: 0, Salt: mine, Prediction: copied.ids()[i*20 : i*20+40]}
			p.Sampling.Temperature, p.Sampling.Seed = float32(i/3), 5
			all = append(all, submit(t, e, p))
		}
		between(e, func() { // all begin with the same step
			e.spec.costs = costs
			b = submit(t, e, beside)
			for i := range 4 {
				ask(i)
			}
		})
		for _, s := range all {
			d.Replies = append(d.Replies, hear(t, s))
			u := s.Usage()
			d.Drafted, d.Accepted = d.Drafted+u.Drafted, d.Accepted+u.Accepted
		}
		if b.Finish() != Running {
			t.Error("the other has ended")
		}
		between(e, func() {
			if h := e.spec.histories[mine]; h != nil {
				d.History = h.Bytes()
			}
			for i := range 12 {
				d.Known = append(d.Known, e.spec.histories[kv.Salt{3, byte(i)}] != nil)
			}
			if own := e.spec.running[other]; own == nil || len(e.spec.running) != 1 {
				t.Errorf("%d salts run", len(e.spec.running))
			}
		})
		b.Close()
		settle(e)
		return d
	}
	short, long := 3, 300
	repeats := Prompt{Tokens: prompt(20, 2), MaxTokens: 7000, Logprobs: -1, Prediction: copied.ids()}
	random := Prompt{Tokens: prompt(20, 2), MaxTokens: 7000, Logprobs: -1}
	random.Sampling.Temperature, random.Sampling.Seed = 1.5, 9
	want := run(short, random)
	if want.Accepted == 0 || want.Accepted == want.Drafted || want.History == 0 || !slices.Contains(want.Known, true) || !slices.Contains(want.Known, false) || slices.Max(want.Steps) < 2 {
		t.Errorf("this shows nothing: %+v", want)
	}
	for name, got := range map[string]decisions{
		"it repeats itself":     run(short, repeats),
		"long answers before":   run(long, random),
		"long answers and both": run(long, repeats),
	} {
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestTogether: tokens of a step whose drafts were right come together, as many as the step brought, and no others do.
func TestTogether(t *testing.T) {
	p := Prompt{Tokens: prompt(20, 1), MaxTokens: 60, Logprobs: -1}
	ask := func(speculate bool) (groups []int) {
		h := &hooked{Backend: cpu.New(), config: tiny4}
		e := start(t, h, func(c *Config) { c.Speculate, c.draftAll = speculate, true })
		s := submit(t, e, p)
		for n := 1; ; n++ {
			tok, err := s.Next()
			if err != nil {
				if n > 1 {
					t.Errorf("%d tokens were to go on", n-1)
				}
				if u := s.Usage(); speculate && len(groups) != u.Generated-u.Accepted {
					t.Errorf("%d groups of %d tokens, %d of them drafted", len(groups), u.Generated, u.Accepted)
				}
				return groups
			}
			if !tok.More {
				groups, n = append(groups, n), 0
			}
		}
	}
	plain := start(t, &hooked{Backend: cpu.New(), config: tiny4}, nil)
	said := hear(t, submit(t, plain, p))
	p.Prediction = said.ids()
	if groups := ask(true); slices.Max(groups) < 10 {
		t.Errorf("groups of %v tokens", groups)
	}
	if groups := ask(false); slices.Max(groups) > 1 {
		t.Errorf("groups of %v tokens without drafts", groups)
	}
}
