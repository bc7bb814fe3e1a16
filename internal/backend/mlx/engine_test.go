//go:build darwin || linux

package mlx_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"path/filepath"
	"slices"
	"testing"

	B "hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/backend/mlx/testshim"
	"hearth/internal/demo"
	"hearth/internal/engine"
	"hearth/internal/golden"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/sample"
)

// heldTo is the conversation whose replies are held to what holding says.
const heldTo = 1

// holding leaves a few tokens to choose from, and forces stretches.
func holding(turn, vocab int) func(int32) engine.Constraint {
	n, coming := turn, 0
	return func(int32) (c engine.Constraint) {
		if coming--; coming > 0 {
			return c
		}
		if n++; n%3 == 0 {
			for k := range n {
				c.Forced = append(c.Forced, int32(5*k+n)%int32(vocab))
			}
			coming = n
			return c
		}
		c.Mask = make(sample.Set, (vocab+63)/64)
		for k := range 4 {
			c.Mask.Add(int32(k*vocab/4 + n))
		}
		return c
	}
}

// talk runs conversations of several turns, each turn of all of them at once on fewer slots than there are conversations,
// and gives every turn's tokens and how many prompt tokens came from the cache.
func talk(t *testing.T, be B.Backend, config json.RawMessage) (all [][]engine.Token, cached int) {
	t.Helper()
	m, err := model.Synthetic{Config: config, Seed: 3, Type: quant.F32}.Load(be, B.Options{Precision: B.Float32, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Config{Model: m.Generator, Vocab: m.Vocab, Backend: be, Budget: 1 << 24, MaxContext: 400, MaxSequences: 2, MaxQueue: 32,
		PrefillChunk: 48})
	if err != nil {
		t.Fatal(err)
	}
	const conversations, turns = 3, 3
	said := make([][]int32, conversations)
	for turn := range turns {
		streams := make([]*engine.Stream, conversations)
		for i := range said {
			for n := range 30 + 25*i {
				said[i] = append(said[i], int32(7*n+turn+5*i)%int32(m.Vocab))
			}
			p := engine.Prompt{Tokens: said[i], MaxTokens: 9, Logprobs: 1}
			if i == heldTo {
				p.MaxTokens, p.Constrain = 30, holding(turn, m.Vocab)
			}
			if streams[i], err = e.Submit(context.Background(), p); err != nil {
				t.Fatal(err)
			}
		}
		for i, s := range streams {
			var toks []engine.Token
			for {
				tok, err := s.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				toks = append(toks, tok)
				said[i] = append(said[i], tok.ID)
			}
			cached += s.Usage().Cached
			all = append(all, toks)
		}
	}
	if err := errors.Join(e.Close(), m.Close(), be.Close()); err != nil {
		t.Error(err)
	}
	return all, cached
}

// TestEngine: conversations that share prefixes, slots and pages say on MLX what they say on the cpu backend, one of them held to
// masks and forced tokens.
func TestEngine(t *testing.T) {
	testshim.Library(t, testshim.Newest)
	for _, typ := range []string{"qwen3", "gemma3", "qwen3_next", "deepseek_v3"} {
		t.Run(typ, func(t *testing.T) {
			var g struct {
				Config json.RawMessage `json:"config"`
			}
			golden.Load(t, filepath.FromSlash("../../model/testdata/"+typ+"/f32.json"), &g)
			be := testshim.Open(t)
			before := be.Live()
			got, cached := talk(t, be, g.Config)
			if left := be.Live() - before; left != 0 {
				t.Errorf("%d arrays are left", left)
			}
			want, also := talk(t, cpu.New(), g.Config)
			if cached == 0 || cached != also {
				t.Errorf("%d prompt tokens came from the cache, %d on cpu", cached, also)
			}
			worst := 0.0
			for i, turn := range want {
				for n, tok := range turn {
					if n >= len(got[i]) || got[i][n].ID != tok.ID {
						t.Fatalf("turn %d: token %d differs", i, n)
					}
					worst = max(worst, math.Abs(float64(got[i][n].Logprob-tok.Logprob)))
				}
			}
			t.Logf("%d prompt tokens from the cache, largest difference of a logprob %.1e", cached, worst)
			if worst > 1e-4 {
				t.Errorf("logprobs differ by %g", worst)
			}
		})
	}
}

// TestCostOfForms prints what a token takes that is held to a mask, and where every other eight are forced, beside a free one, on
// the demo model.
func TestCostOfForms(t *testing.T) {
	testshim.Library(t, testshim.Newest)
	be := testshim.Open(t)
	ckpt, err := model.OpenCheckpoint(demo.FS(), demo.Name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ckpt.Load(be, B.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Config{Model: m.Generator, Vocab: m.Vocab, Backend: be, Budget: 1 << 26, MaxContext: 400})
	if err != nil {
		t.Fatal(err)
	}
	all := make(sample.Set, (m.Vocab+63)/64)
	for id := range int32(m.Vocab) {
		all.Add(id)
	}
	const tokens, rounds = 161, 7
	ways := []struct {
		name      string
		constrain func(n int) engine.Constraint // after n tokens
	}{
		{"free", nil},
		{"mask", func(int) engine.Constraint { return engine.Constraint{Mask: all} }},
		{"stretches", func(n int) (c engine.Constraint) {
			if n%16 == 0 {
				c.Forced = []int32{300, 301, 302, 303, 304, 305, 306, 307}
			}
			return c
		}},
	}
	took := make([][]float64, len(ways))
	for range rounds {
		for i, w := range ways {
			p := engine.Prompt{Tokens: []int32{260, 261, 262}, MaxTokens: tokens, Logprobs: -1}
			if n := 0; w.constrain != nil {
				p.Constrain = func(int32) engine.Constraint { n++; return w.constrain(n) }
			}
			s, err := e.Submit(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for ; err == nil; n++ {
				_, err = s.Next()
			}
			if !errors.Is(err, io.EOF) || n != tokens+1 {
				t.Fatalf("%s: %d tokens: %v", w.name, n-1, err)
			}
			u := s.Usage()
			took[i] = append(took[i], u.Ended.Sub(u.First).Seconds()/(tokens-1)*1e3)
		}
	}
	for i, w := range ways {
		ratios := make([]float64, rounds)
		for k := range ratios {
			ratios[k] = took[i][k] / took[0][k]
		}
		slices.Sort(ratios)
		slices.Sort(took[i])
		t.Logf("%-9s %.2f ms a token, %.2f times as long as free (%.2f to %.2f)", w.name, took[i][rounds/2], ratios[rounds/2], ratios[0], ratios[rounds-1])
	}
	if err := errors.Join(e.Close(), m.Close(), ckpt.Close(), be.Close()); err != nil {
		t.Error(err)
	}
}

// TestSpeculation: greedy replies with drafts are those without, but where the two likeliest tokens are as good as equal: a step
// of several rows rounds otherwise than one of one row.
func TestSpeculation(t *testing.T) {
	testshim.Library(t, testshim.Newest)
	const alike = 1e-2
	for _, typ := range []string{"qwen3", "gemma3", "gpt_oss"} {
		t.Run(typ, func(t *testing.T) {
			var g struct {
				Config json.RawMessage `json:"config"`
			}
			golden.Load(t, filepath.FromSlash("../../model/testdata/"+typ+"/f32.json"), &g)
			be := testshim.Open(t)
			m, err := model.Synthetic{Config: g.Config, Seed: 3, Type: quant.F32}.Load(be, B.Options{Threads: 2})
			if err != nil {
				t.Fatal(err)
			}
			run := func(speculate bool, said [][]int32) (all [][]engine.Token, st engine.Stats) {
				e, err := engine.New(engine.Config{Model: m.Generator, Vocab: m.Vocab, Backend: be, Budget: 1 << 24, MaxContext: 400, MaxSequences: 2, Speculate: speculate})
				if err != nil {
					t.Fatal(err)
				}
				for i := range 3 {
					p := engine.Prompt{MaxTokens: 120, Logprobs: -1}
					for n := range 30 + 25*i {
						p.Tokens = append(p.Tokens, int32(7*n+5*i*n%11)%int32(m.Vocab))
					}
					if said == nil {
						p.Logprobs = 2
					} else {
						p.Prediction = said[i]
					}
					s, err := e.Submit(t.Context(), p)
					if err != nil {
						t.Fatal(err)
					}
					var toks []engine.Token
					for {
						tok, err := s.Next()
						if errors.Is(err, io.EOF) {
							break
						}
						if err != nil {
							t.Fatal(err)
						}
						toks = append(toks, tok)
					}
					all = append(all, toks)
				}
				st = e.Stats()
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				return all, st
			}
			want, _ := run(false, nil)
			said := make([][]int32, len(want))
			for i, toks := range want {
				for _, tok := range toks {
					said[i] = append(said[i], tok.ID)
				}
			}
			got, st := run(true, said)
			other := 0
			for i := range want {
				for n, tok := range want[i] {
					if n < len(got[i]) && got[i][n].ID == tok.ID {
						continue
					}
					if gap := tok.Top[0].Logprob - tok.Top[1].Logprob; gap > alike {
						t.Errorf("reply %d: token %d differs, where the likeliest is so much likelier: %g", i, n, gap)
					}
					other++
					break
				}
			}
			if st.Speculation.Accepted == 0 {
				t.Errorf("nothing was drafted: %+v", st.Speculation)
			}
			t.Logf("%d of %d replies differ behind two tokens as likely; %d steps, %+v", other, len(want), st.Steps, st.Speculation)
			if err := errors.Join(m.Close(), be.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}
