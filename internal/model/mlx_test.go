//go:build darwin || linux

package model_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hearth/internal/backend"
	"hearth/internal/backend/mlx"
	"hearth/internal/backend/mlx/testshim"
	"hearth/internal/golden"
	"hearth/internal/kv"
	"hearth/internal/model"
	"hearth/internal/quant"
)

// TestMLXGoldens runs every golden on MLX itself, in float32 on its CPU device.
func TestMLXGoldens(t *testing.T) {
	testshim.Library(t, testshim.Newest)
	for _, typ := range model.Types() {
		files, _ := filepath.Glob(filepath.Join("testdata", typ, "*.json"))
		for _, file := range files {
			var g logits
			golden.Load(t, file, &g)
			t.Run(typ+"/"+strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
				g.compare(t, testshim.Open(t), backend.Options{Exact: true}, g.bound(exact))
			})
		}
	}
}

// TestMLXSteady: a decode step leaves nothing behind, and closing leaves nothing at all.
func TestMLXSteady(t *testing.T) {
	be := testshim.Open(t)
	before := be.Live()
	for _, typ := range []string{"qwen3", "gpt_oss", "qwen3_next", "deepseek_v3"} {
		be := testshim.Open(t)
		var g logits
		golden.Load(t, filepath.Join("testdata", typ, "f32.json"), &g)
		m, err := model.Synthetic{Config: g.Config, Seed: g.Seed, Type: g.Type}.Load(be, backend.Options{Exact: true})
		if err != nil {
			t.Fatal(err)
		}
		const warm, steps = 20, 100 // the buffers of 256 positions do not grow meanwhile
		s := golden.NewSequence(t, be, m, warm+steps)
		var live int
		for i := range warm + steps {
			if i == warm {
				live = be.Live()
			}
			s.Step([]int32{int32(i) % 7}, 0)
		}
		if now := be.Live(); now != live {
			t.Errorf("%s: %d arrays after %d steps, %d before them", typ, now, steps, live)
		}
		m.Close()
		if err := be.Close(); err != nil {
			t.Error(err)
		}
	}
	if now := be.Live(); now != before {
		t.Errorf("%d arrays are left of %d", now-before, before)
	}
}

// TestMLXHalf: with activations in bfloat16, as on a GPU, results are as near as that type lets them be. MLX's CPU device has no
// gathered product of floats in it.
func TestMLXHalf(t *testing.T) {
	c := testshim.Config(t, testshim.Newest)
	c.Activations = backend.BF16
	for _, file := range []string{"qwen3/4bit", "qwen3/bf16", "gemma3/f32", "gpt_oss/mxfp4", "deepseek_v3/4bit"} {
		t.Run(file, func(t *testing.T) {
			var g logits
			golden.Load(t, filepath.Join("testdata", filepath.FromSlash(file)+".json"), &g)
			be, err := mlx.Open(c)
			if err != nil {
				t.Fatal(err)
			}
			g.compare(t, be, backend.Options{}, 0.1)
		})
	}
}

// BenchmarkMLXBuild is what the host does for a decode step besides waiting for the device: the graph of 28 layers of qwen3,
// made on the owner's thread and taken apart again. Sizes hardly matter to it, so they are tiny.
func BenchmarkMLXBuild(b *testing.B) {
	be := testshim.Open(b)
	const layers = 28
	config := `{"model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 28, "intermediate_size": 64, "num_attention_heads": 4, "head_dim": 32,
		"num_key_value_heads": 2, "rms_norm_eps": 1e-6, "vocab_size": 64, "rope_theta": 10000, "max_position_embeddings": 4096,
		"tie_word_embeddings": true, "quantization": {"group_size": 32, "bits": 4}}`
	m, err := model.Synthetic{Config: []byte(config), Seed: 1, Type: quant.BF16}.Load(be, backend.Options{Exact: true})
	if err != nil {
		b.Fatal(err)
	}
	store, err := be.NewStore(m.States(), backend.KVPolicy{})
	if err != nil {
		b.Fatal(err)
	}
	pages := make([]kv.PageID, 64)
	for i := range pages {
		pages[i] = kv.PageID(i + 1)
	}
	table := &kv.Table{Pages: [][]kv.PageID{pages}}
	batch := &backend.Batch{Tokens: []int32{1}, Out: []int32{0}, Spans: []backend.Span{{Len: 1, Table: table}}}
	batch.Pos[0] = []int32{0}
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		sc := be.Begin(store, batch)
		y := m.Logits(sc, m.Forward(sc, batch))
		if err := sc.Err(); err != nil {
			b.Fatal(err)
		}
		building := time.Since(start)
		if _, err := sc.Floats(y); err != nil {
			b.Fatal(err)
		}
		start = time.Now()
		sc.End()
		took = append(took, building+time.Since(start))
		at := len(took) % 2000
		batch.Spans[0].Start, batch.Pos[0][0] = at, int32(at)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[0].Microseconds())/layers, "least-µs/layer")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/layers, "µs/layer")
}
