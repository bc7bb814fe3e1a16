package catalog

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/backend/stub"
	"hearth/internal/config"
	"hearth/internal/convert"
	"hearth/internal/hub"
	"hearth/internal/model"
	"hearth/internal/quant"
)

// smallFloats grow when they are repacked: from 4.5 bits a weight to 5, or to 16 where they have no kernels.
const smallFloats = `{"model_type": "qwen3", "hidden_size": 512, "num_hidden_layers": 2, "intermediate_size": 2048, "num_attention_heads": 8, "num_key_value_heads": 2,
	"head_dim": 64, "rms_norm_eps": 1e-6, "vocab_size": 30000, "tie_word_embeddings": true, "quantization": {"mode": "nvfp4", "bits": 4, "group_size": 16}}`

func newCPU() (backend.Backend, error) { return cpu.New(), nil }

// TestReside: weights are repacked where they fit, else read from their files, else refused with the sum and what would fit.
func TestReside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	if _, err := convert.Random(t.Context(), dir, convert.RandomOptions{Config: []byte(smallFloats)}); err != nil {
		t.Fatal(err)
	}
	src, err := Find(dir, hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := model.OpenCheckpoint(src.FS, src.Where)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cfg := config.Default()
	packed, mapped, err := bothWays(c, newCPU, Options(src, cfg, model.Generates, backend.Caps{}), cfg)
	if err != nil {
		t.Fatal(err)
	}
	files := WeightBytes(src.FS)
	if packed.Weights < files+files/20 || mapped.Weights > files/20 || packed.Step != mapped.Step || packed.Keys != mapped.Keys || packed.Tokens != leastContext {
		t.Fatalf("%d bytes of files: packed %+v, mapped %+v", files, packed, mapped)
	}
	yes, no := true, false
	for _, tt := range []struct {
		name      string
		be        backend.Backend
		low       *bool
		available int64
		mapped    bool
		want      string // in how it is told, or in the error
	}{
		{"plenty", cpu.New(), nil, 64 << 30, false, "weights repacked (64.0 GiB are available)"},
		{"enough", cpu.New(), nil, packed.Sum(), false, "weights repacked ("},
		{"too little", cpu.New(), nil, packed.Sum() - 1, true, "weights read from their files in every step (repacked they would take "},
		{"less than the files", cpu.New(), nil, mapped.Sum() + files - 1, false, "and --low-memory reads this one from the disk"},
		{"much less", cpu.New(), nil, mapped.Sum(), false, "billion parameters with 4 bits would fit"},
		{"asked for", cpu.New(), &yes, 64 << 30, true, "in every step (low-memory is set)"},
		{"asked for, and needed", cpu.New(), &yes, mapped.Sum(), true, "in every step (low-memory is set)"},
		{"asked for in vain", cpu.New(), &yes, mapped.Sum() - 1, false, "a shorter --context-length"},
		{"ruled out", cpu.New(), &no, packed.Sum() - 1, false, "bits per weight would fit"},
		{"ruled out, and fits", cpu.New(), &no, packed.Sum(), false, "weights repacked"},
		{"unknown", cpu.New(), nil, 0, false, ""},
		{"unknown, asked for", cpu.New(), &yes, 0, true, "low-memory is set"},
		{"unknown, ruled out", cpu.New(), &no, 0, false, "weights repacked (low-memory is false)"},
		{"memory of its own", stub.New(1), &yes, 1, false, ""},
	} {
		cfg.LowMemory = tt.low
		r, err := chooseStorage(c, src, tt.be, newCPU, Options(src, cfg, model.Generates, backend.Caps{}), cfg, tt.available)
		var load *model.LoadError
		switch {
		case err != nil:
			if !errors.As(err, &load) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "keys and values of 256 tokens") || tt.want == "" {
				t.Errorf("%s: error %v, want %q in it", tt.name, err, tt.want)
			}
		case r.mapped != tt.mapped || !strings.Contains(r.String(), tt.want) || (tt.want == "") != (r.String() == ""):
			t.Errorf("%s: %+v, %s", tt.name, r, r)
		}
	}
}

// TestCheckWeights: weights are refused from one byte too many on, and tensors without numbers count like those with.
func TestCheckWeights(t *testing.T) {
	const with = `{"model_type": "qwen3_moe", "hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 128, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32,
		"rms_norm_eps": 1e-6, "vocab_size": 96, "tie_word_embeddings": false, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "norm_topk_prob": true%s}`
	for _, stored := range []string{``, `, "quantization": {"bits": 4, "group_size": 32}`, `, "quantization": {"mode": "mxfp8", "bits": 8, "group_size": 32}`} {
		s := model.Synthetic{Config: fmt.Appendf(nil, with, stored), Seed: 1, Type: quant.BF16}
		plan := cpu.New()
		l, bytes := plan.DryLoader(backend.Options{})
		if _, err := s.Load(backend.Visitor(l.Load), backend.Options{}); err != nil {
			t.Fatal(err)
		}
		s.Blank = true
		load := func(be backend.Backend) error {
			_, err := s.Load(be, backend.Options{})
			return err
		}
		for _, tt := range []struct {
			be        backend.Backend
			available int64
			ok        bool
		}{{cpu.New(), bytes(), true}, {cpu.New(), bytes() - 1, false}, {cpu.New(), 0, true}, {stub.New(1), 1, true}} {
			err := checkWeights(tt.be, backend.Options{}, load, tt.available)
			if (err == nil) != tt.ok || err != nil && !strings.Contains(err.Error(), "MiB are available") {
				t.Errorf("%s: %d bytes of %d on %T: %v", stored, bytes(), tt.available, tt.be, err)
			}
		}
	}
}

// TestImagesAreForecast: what images take is told from config.json, beside what texts take, which is as it is without a tower; it
// does not decide whether a model is loaded.
func TestImagesAreForecast(t *testing.T) {
	const text = `{"model_type":"qwen3_vl","text_config":{"hidden_size":64,"num_hidden_layers":2,"intermediate_size":96,"num_attention_heads":4,"num_key_value_heads":2,
"rms_norm_eps":1e-6,"head_dim":16,"vocab_size":97,"max_position_embeddings":4096,"rope_parameters":{"rope_theta":10000,"rope_type":"default","mrope_section":[4,2,2]}},"tie_word_embeddings":true%s}`
	const tower = `,"vision_config":{"depth":2,"hidden_size":256,"intermediate_size":512,"num_heads":2,"patch_size":16,"out_hidden_size":64,"num_position_embeddings":25,"deepstack_visual_indexes":[0]}`
	forecast := func(conf string, tokens int) Forecast {
		c, err := model.OpenConfig([]byte(conf), "m")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		be := cpu.New()
		defer be.Close()
		f, err := NewForecaster(c, be, backend.Options{Threads: 1, Precision: backend.Float32}, config.Default(), nil)
		if err != nil {
			t.Fatal(err)
		}
		out, err := f.For(tokens)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	blind, few, many := forecast(fmt.Sprintf(text, ""), 4096), forecast(fmt.Sprintf(text, tower), 256), forecast(fmt.Sprintf(text, tower), 4096)
	if blind.Images != 0 || blind.Text() != many.Text() || many.Sum() != many.Text()+many.Images {
		t.Errorf("without a tower %+v, with one %+v", blind, many)
	}
	const weights = 2*256*(4*256+2*512) + 256*3*2*16*16 // numbers of the large matrices
	if least := config.Default().ImageCacheBytes + weights*2; few.Images < least || many.Images < few.Images+4096*4*256*4 {
		t.Errorf("images take %d bytes, %d in a long context; kept and weights are %d", few.Images, many.Images, least)
	}
}
