//go:build darwin || linux

package mlx_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"path/filepath"
	"testing"

	B "hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/backend/mlx/testshim"
	"hearth/internal/engine"
	"hearth/internal/golden"
	"hearth/internal/model"
	"hearth/internal/quant"
)

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
			if streams[i], err = e.Submit(context.Background(), engine.Prompt{Tokens: said[i], MaxTokens: 9, Logprobs: 1}); err != nil {
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

// TestEngine: conversations that share prefixes, slots and pages say on MLX what they say on the cpu backend.
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
