package convert

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/tokenizer"
)

const randomConfig = `{"model_type": "qwen3_5_moe", "hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 96, "num_attention_heads": 2,
	"num_key_value_heads": 1, "head_dim": 32, "rms_norm_eps": 1e-6, "vocab_size": 1000, "tie_word_embeddings": false, "full_attention_interval": 2,
	"linear_num_key_heads": 1, "linear_num_value_heads": 2, "linear_key_head_dim": 32, "linear_value_head_dim": 32, "linear_conv_kernel_dim": 4,
	"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "shared_expert_intermediate_size": 64,
	"quantization": {"bits": 4, "group_size": 32}}`

// collect keeps weights as they come.
func collect(all map[string][]byte) backend.Backend {
	return backend.Visitor(func(s backend.WeightSpec) (backend.Weight, error) {
		for _, p := range s.Parts {
			for _, t := range []*backend.Tensor{p.Weight, p.Scales, p.Biases, p.Bias} {
				if t != nil {
					all[t.Name] = bytes.Clone(t.Bytes)
				}
			}
		}
		return nil, nil
	})
}

// TestRandom: the folder has the numbers of the formula, in files of the size asked for, and tokens for all of its vocabulary.
func TestRandom(t *testing.T) {
	dst := filepath.Join(t.TempDir(), "made")
	last, total := int64(0), int64(0)
	r, err := Random(t.Context(), dst, RandomOptions{Config: []byte(randomConfig), Seed: 1, Shard: 50_000,
		Progress: func(done, all int64) { last, total = done, all }})
	if err != nil {
		t.Fatal(err)
	}
	if last != total || r.Bytes != total || r.BitsPerWeight() < 4.5 || r.BitsPerWeight() > 6 {
		t.Errorf("%d of %d bytes, report %+v", last, total, r)
	}
	c, err := model.OpenCheckpoint(os.DirFS(dst), "made")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	made, want := map[string][]byte{}, map[string][]byte{}
	m, err := c.Load(collect(made), backend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (model.Synthetic{Config: []byte(randomConfig), Seed: 1, Type: quant.BF16}).Load(collect(want), backend.Options{}); err != nil {
		t.Fatal(err)
	}
	if m.Bytes != r.Bytes || m.Params != r.Parameters || len(made) != len(want) {
		t.Errorf("%d bytes of %d parameters in %d tensors; report %+v, %d tensors", m.Bytes, m.Params, len(made), r, len(want))
	}
	for name, b := range want {
		if !bytes.Equal(made[name], b) {
			t.Errorf("%s differs", name)
		}
	}
	files, err := filepath.Glob(filepath.Join(dst, "model-*-of-*.safetensors"))
	if err != nil || len(files) < 3 {
		t.Errorf("files %v, %v", files, err)
	}

	tok, err := tokenizer.Load(os.DirFS(dst))
	if err != nil {
		t.Fatal(err)
	}
	if tok.Size() != 1000 {
		t.Errorf("%d tokens for a vocabulary of 1000", tok.Size())
	}
	const text = "What is hearth?\n\tÄ 😀"
	ids := tok.Encode(text, tokenizer.EncodeOptions{})
	if len(ids) >= len(text) || tok.Decode(ids, true) != text {
		t.Errorf("%d tokens of %q are %q", len(ids), text, tok.Decode(ids, true))
	}
}

func TestRandomRefused(t *testing.T) {
	parent := t.TempDir()
	dst := filepath.Join(parent, "made")
	for config, want := range map[string]string{
		`{`: "config.json",
		strings.Replace(randomConfig, `"vocab_size": 1000`, `"vocab_size": 200`, 1): "no room for all bytes",
	} {
		if _, err := Random(t.Context(), dst, RandomOptions{Config: []byte(config)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Random(ctx, dst, RandomOptions{Config: []byte(randomConfig), Shard: 100_000, Progress: func(done, total int64) {
		if done > total/2 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
