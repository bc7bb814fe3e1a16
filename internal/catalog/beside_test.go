package catalog

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"hearth/internal/config"
	"hearth/internal/convert"
	"hearth/internal/engine"
	"hearth/internal/hub"
)

var besidePairs = flag.Int("beside", 0, "pairs of TestBeside; 0: it is skipped")

// small0 has the sizes of a model of 0.6 billion weights.
const small0 = `{"model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28, "intermediate_size": 3072, "num_attention_heads": 16,
	"num_key_value_heads": 8, "head_dim": 128, "rms_norm_eps": 1e-6, "rope_theta": 1000000, "vocab_size": 151936, "max_position_embeddings": 4096,
	"tie_word_embeddings": true, "quantization": {"bits": 4, "group_size": 64}}`

// TestBeside: a loaded model decodes as fast beside two idle ones as alone. The same model decodes in both halves of a pair,
// which take turns in coming first.
func TestBeside(t *testing.T) {
	if *besidePairs == 0 {
		t.Skip("run by hand: make beside")
	}
	dir := filepath.Join(t.TempDir(), "main")
	if _, err := convert.Random(t.Context(), dir, convert.RandomOptions{Config: []byte(small0)}); err != nil {
		t.Fatal(err)
	}
	var disk shelf
	for _, name := range []string{"b", "c"} {
		copied := filepath.Join(t.TempDir(), name)
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		disk = append(disk, Found{Source: &Source{ID: name, Path: copied, Where: name, FS: os.DirFS(copied)}})
	}
	src, err := Find(dir, hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	bs := backends()
	bs.Memory = NewMachine(cfg)
	c := New(src, cfg)
	c.AddDisk(disk, 0)
	if err := c.Load(bs); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	have := func(loaded bool) {
		for i := range disk {
			if loaded {
				err = c.LoadModel(t.Context(), disk[i].ID)
			} else {
				err = c.UnloadModel(t.Context(), disk[i].ID)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		until(t, "it is as wanted", func() bool { return len(bs.Memory.Shares()) == map[bool]int{false: 1, true: 3}[loaded] })
		decodeRate(t, c, 8)
	}
	const tokens = 96
	var ratios, alone []float64
	for i := range *besidePairs {
		rate := map[bool]float64{}
		for _, loaded := range [][]bool{{false, true}, {true, false}}[i%2] {
			have(loaded)
			rate[loaded] = decodeRate(t, c, tokens)
		}
		alone, ratios = append(alone, rate[false]), append(ratios, rate[true]/rate[false])
	}
	slices.Sort(ratios)
	slices.Sort(alone)
	n := len(ratios)
	t.Logf("%d pairs of %d tokens: %.1f tokens/s alone; beside two idle models %.1f %% of that (median; quartiles %.1f and %.1f %%)", n, tokens,
		alone[n/2], 100*ratios[n/2], 100*ratios[n/4], 100*ratios[n*3/4])
	if ratios[n/2] < 0.98 {
		t.Error("that is slower")
	}
}

// decodeRate is how many tokens a second the main model decodes.
func decodeRate(t *testing.T, c *Catalog, tokens int) float64 {
	t.Helper()
	s, err := c.Main().Weights().Engine.Submit(t.Context(), engine.Prompt{Tokens: []int32{1, 2, 3, 4, 5, 6, 7, 8}, MaxTokens: tokens + 1, Logprobs: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for {
		switch _, err := s.Next(); {
		case errors.Is(err, io.EOF):
			return float64(tokens) / time.Since(start).Seconds()
		case err != nil:
			t.Fatal(err)
		}
	}
}
