package cpu

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/convert"
	"hearth/internal/kv"
	"hearth/internal/model"
	"hearth/internal/quant"
)

// counted loads weights and counts what they hold.
func counted(l backend.Loader, bytes *int64) backend.Backend {
	return backend.Visitor(func(s backend.WeightSpec) (backend.Weight, error) {
		w, err := l.Load(s)
		if err == nil {
			*bytes += heldBy(w)
		}
		return w, err
	})
}

// heldBy is bytesOf without the weights that lie in files.
func heldBy(w backend.Weight) (n int64) {
	if e, ok := w.(*experts); ok {
		for _, one := range e.each {
			n += heldBy(one)
		}
		return n
	}
	n = bytesOf(w)
	for _, parts := range [][]part{w.(*weight).parts, w.(*weight).up} {
		for _, p := range parts {
			if p.src != nil {
				n -= int64(p.m.Bytes())
			}
		}
	}
	return n
}

// promptStep runs so many rows of a prompt.
func promptStep(be *Backend, m *model.Loaded, rows int) error {
	st, err := be.NewStore(m.States(), backend.KVPolicy{DType: backend.BF16})
	if err != nil {
		return err
	}
	capacity, table := kv.Capacity{Slots: 1}, kv.Table{}
	for range st.Geometry().Groups {
		ids := make([]kv.PageID, rows/backend.PageTokens+1)
		for i := range ids {
			ids[i] = kv.PageID(i + 1)
		}
		table.Pages = append(table.Pages, ids)
		capacity.Pages = append(capacity.Pages, len(ids))
	}
	if err := st.Resize(capacity); err != nil {
		return err
	}
	if err := st.Open(0, kv.Match{}, nil); err != nil {
		return err
	}
	b := backend.Batch{Tokens: make([]int32, rows), Out: []int32{int32(rows - 1)}, Spans: []backend.Span{{Len: rows, Table: &table}}}
	for i := range rows {
		b.Tokens[i] = int32(i * 37 % m.Vocab)
		b.Pos[0] = append(b.Pos[0], int32(i))
	}
	o := be.Begin(st, &b)
	defer o.End()
	if _, err := o.Floats(m.Logits(o, m.Forward(o, &b))); err != nil {
		return err
	}
	return o.Err()
}

// TestForecast: what was planned and rehearsed is what a folder's weights and a step take, to the byte.
func TestForecast(t *testing.T) {
	const sizes = `"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64, "rms_norm_eps": 1e-6, "tie_word_embeddings": false, "quantization": {"bits": %d, "group_size": 64}`
	dense := `{"model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 4, "intermediate_size": 3072, "vocab_size": 60000, ` + fmt.Sprintf(sizes, 4) + `}`
	hybrid := `{"model_type": "qwen3_5_moe", "hidden_size": 256, "num_hidden_layers": 4, "vocab_size": 2000, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
		"linear_key_head_dim": 64, "linear_value_head_dim": 64, "linear_conv_kernel_dim": 4, "num_experts": 8, "num_experts_per_tok": 2, "intermediate_size": 256,
		"moe_intermediate_size": 128, "shared_expert_intermediate_size": 128, ` + fmt.Sprintf(sizes, 6) + `}`
	for name, config := range map[string]string{"dense": dense, "hybrid with experts": hybrid} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "m")
			r, err := convert.Random(t.Context(), dir, convert.RandomOptions{Config: []byte(config), Shard: 40 << 20})
			if err != nil {
				t.Fatal(err)
			}
			if name == "dense" && r.Bytes < 90e6 {
				t.Errorf("%d bytes are too few to tell", r.Bytes)
			}
			for _, opts := range []backend.Options{{Threads: 1}, {Threads: 1, Mapped: true}, {Threads: 2, Precision: backend.Float32}} {
				compareForecast(t, dir, opts)
			}
		})
	}
}

func compareForecast(t *testing.T, dir string, opts backend.Options) {
	t.Helper()
	c, err := model.OpenCheckpoint(os.DirFS(dir), "m")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	planned, real := New(), New()
	defer planned.Close()
	defer real.Close()
	plan, weights := planned.DryLoader(opts)
	m, err := c.Load(backend.Visitor(plan.Load), opts)
	if err != nil {
		t.Fatal(err)
	}
	const rows = 70
	step, err := planned.Rehearse(func() error { return promptStep(planned, m, rows) })
	if err != nil {
		t.Fatal(err)
	}
	held := new(int64)
	if m, err = c.Load(counted(real.NewLoader(opts), held), opts); err != nil {
		t.Fatal(err)
	}
	if err := promptStep(real, m, rows); err != nil {
		t.Fatal(err)
	}
	if took := real.StepBytes(); weights() != *held || step != took {
		t.Errorf("%+v: weights take %d bytes, %d were forecast; a step %d, %d were forecast", opts, *held, weights(), took, step)
	}
	if opts.Mapped != (*held < m.Bytes/10) {
		t.Errorf("%+v: weights of %d bytes hold %d", opts, m.Bytes, *held)
	}
}

// TestRehearsal: every architecture can be rehearsed, and takes what was forecast.
func TestRehearsal(t *testing.T) {
	files, err := filepath.Glob(filepath.FromSlash("../../model/testdata/*/*.json"))
	if err != nil || len(files) < 50 {
		t.Fatalf("%d goldens, %v", len(files), err)
	}
	folder := ""
	for _, file := range files {
		if testing.Short() && filepath.Dir(file) == folder { // one of each
			continue
		}
		folder = filepath.Dir(file)
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var g struct {
			Config json.RawMessage `json:"config"`
			Type   quant.DType     `json:"type"`
			KVB    bool            `json:"kv_b"`
			Decode []int32         `json:"decode"`
		}
		if err := json.Unmarshal(b, &g); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(g.Decode) == 0 { // of a model that generates nothing
			continue
		}
		stored := func(path string) bool { return g.KVB && strings.HasSuffix(path, ".kv_b_proj") }
		s := model.Synthetic{Config: g.Config, Seed: 1, Type: g.Type, Stored: stored}
		planned, real, opts := New(), New(), backend.Options{Threads: 1}
		plan, weights := planned.DryLoader(opts)
		m, err := s.Load(backend.Visitor(plan.Load), opts)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		const rows = 9
		step, err := planned.Rehearse(func() error { return promptStep(planned, m, rows) })
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		held := new(int64)
		if m, err = s.Load(counted(real.NewLoader(opts), held), opts); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if err := promptStep(real, m, rows); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if took := real.StepBytes(); weights() != *held || step != took {
			t.Errorf("%s: weights take %d bytes, %d were forecast; a step %d, %d were forecast", file, *held, weights(), took, step)
		}
		if err := errors.Join(planned.Close(), real.Close()); err != nil {
			t.Error(err)
		}
	}
}
