//go:build darwin || linux

package mlx_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"testing"

	B "hearth/internal/backend"
	"hearth/internal/backend/mlx"
	"hearth/internal/backend/mlx/testshim"
	"hearth/internal/engine"
	"hearth/internal/golden"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/sample"
)

// chat runs conversations of two turns, some greedy and some not, and gives every turn's tokens.
func chat(t *testing.T, be B.Backend, config json.RawMessage, kv B.KVPolicy, plain bool) (all [][]int32, s engine.Stats) {
	t.Helper()
	m, err := model.Synthetic{Config: config, Seed: 3, Type: quant.F32}.Load(be, B.Options{Precision: B.Float32})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Config{Model: m.Generator, Vocab: m.Vocab, Backend: be, Budget: 1 << 24, MaxContext: 400, MaxSequences: 2, KV: kv, NoOverlap: plain})
	if err != nil {
		t.Fatal(err)
	}
	said := make([][]int32, 3)
	for turn := range 2 {
		streams := make([]*engine.Stream, len(said))
		for i := range said {
			for n := range 20 + 15*i {
				said[i] = append(said[i], int32(7*n+turn+5*i)%int32(m.Vocab))
			}
			p := engine.Prompt{Tokens: said[i], MaxTokens: 25 + 10*i, Logprobs: -1, StopIDs: []int32{2, 9}}
			if i > 0 {
				p.Sampling = sample.Params{Temperature: 0.9, TopP: 0.95, TopK: 12 * i, MinP: 0.01, Seed: uint64(i)}
			}
			if streams[i], err = e.Submit(context.Background(), p); err != nil {
				t.Fatal(err)
			}
		}
		for i, st := range streams {
			var ids []int32
			for {
				tok, err := st.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, tok.ID)
			}
			said[i] = append(said[i], ids...)
			all = append(all, ids)
		}
	}
	s = e.Stats()
	if err := errors.Join(e.Close(), m.Close(), be.Close()); err != nil {
		t.Error(err)
	}
	return all, s
}

func configOf(t testing.TB, typ string) json.RawMessage {
	t.Helper()
	var g struct {
		Config json.RawMessage `json:"config"`
	}
	golden.Load(t, filepath.Join("..", "..", "model", "testdata", typ, "f32.json"), &g)
	return g.Config
}

// TestOverlap: tokens drawn on the device, with a step in flight, are those that the host draws after every step.
func TestOverlap(t *testing.T) {
	testshim.Library(t, testshim.Newest)
	for _, c := range []struct {
		typ string
		kv  B.KVPolicy
	}{{typ: "qwen3"}, {"qwen3", B.KVPolicy{Bits: 8}}, {"gemma3", B.KVPolicy{Bits: 4}}, {typ: "gemma3"}, {typ: "qwen3_next"}, {"deepseek_v3", B.KVPolicy{Bits: 8}},
		{typ: "deepseek_v3"}, {typ: "gpt_oss"}, {typ: "gemma4"}} {
		t.Run(c.typ+"/"+c.kv.String(), func(t *testing.T) {
			config, be := configOf(t, c.typ), testshim.Open(t)
			before := be.Live()
			want, _ := chat(t, testshim.Open(t), config, c.kv, true)
			got, s := chat(t, be, config, c.kv, false)
			if left := be.Live() - before; left != 0 {
				t.Errorf("%d arrays are left", left)
			}
			for i := range want {
				for n := range want[i] {
					if n >= len(got[i]) || got[i][n] != want[i][n] {
						t.Fatalf("turn %d: token %d differs: %v and %v", i, n, got[i], want[i])
					}
				}
			}
			if s.Ahead == 0 || s.Device.Active == 0 || s.Device.Peak < s.Device.Active {
				t.Errorf("%+v", s)
			}
			t.Logf("%d of %d steps were overlapped", s.Ahead, s.Steps)
		})
	}
}

// TestCompiled: groups of elementwise ops that are compiled give what the ops give one by one.
func TestCompiled(t *testing.T) {
	c := testshim.Config(t, testshim.Newest)
	c.Compile = true
	for _, typ := range []string{"qwen3", "gpt_oss"} {
		config := configOf(t, typ)
		be, err := mlx.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := chat(t, be, config, B.KVPolicy{}, false)
		want, _ := chat(t, testshim.Open(t), config, B.KVPolicy{}, false)
		for i := range want {
			for n := range want[i] {
				if n >= len(got[i]) || got[i][n] != want[i][n] {
					t.Fatalf("%s, turn %d: token %d differs: %v and %v", typ, i, n, got[i], want[i])
				}
			}
		}
	}
}
