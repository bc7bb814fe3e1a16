package model_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/safetensors"
)

const hybridKeys = `"hidden_size": 64, "num_hidden_layers": 4, "intermediate_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32,
	"rms_norm_eps": 1e-6, "vocab_size": 32, "max_position_embeddings": 64, "full_attention_interval": 2, "linear_num_value_heads": 4,
	"linear_num_key_heads": 2, "linear_key_head_dim": 16, "linear_value_head_dim": 8, "linear_conv_kernel_dim": 4`

const hybridExperts = `, "num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32`

// asTrained turns the tensors of a formula into those of a Hugging Face folder: norms apart from one, the input of a
// convolution's column in the middle, prefixes and other parts as the type has them.
func asTrained(t *testing.T, folder fstest.MapFS, prefix string) fstest.MapFS {
	out := tensorsAs(t, folder, func(x safetensors.Tensor) []safetensors.Tensor {
		if strings.Contains(x.Name, "layernorm") || strings.HasSuffix(x.Name, "model.norm.weight") || strings.HasSuffix(x.Name, "_norm.weight") {
			x.Bytes = slices.Clone(x.Bytes)
			for i := 0; i < len(x.Bytes); i += 4 {
				w := math.Float32frombits(binary.LittleEndian.Uint32(x.Bytes[i:]))
				binary.LittleEndian.PutUint32(x.Bytes[i:], math.Float32bits(w-1)) // exact: they are near one
			}
		}
		x.Name = strings.Replace(x.Name, ".shared_experts.", ".shared_expert.", 1)
		if strings.HasSuffix(x.Name, "conv1d.weight") {
			x.Shape = []int{x.Shape[0], 1, x.Shape[1]}
		}
		if rest, ok := strings.CutPrefix(x.Name, "model."); ok {
			x.Name = prefix + rest
		}
		return []safetensors.Tensor{x}
	})
	return tensorsAs(t, out, func(x safetensors.Tensor) []safetensors.Tensor {
		if !strings.HasSuffix(x.Name, "embed_tokens.weight") {
			return []safetensors.Tensor{x}
		}
		beside := []safetensors.Tensor{x, {Name: "mtp.layers.0.input_layernorm.weight"}}
		if prefix != "model." {
			beside = append(beside, safetensors.Tensor{Name: "model.visual.blocks.0.norm1.weight"})
		}
		for i := range beside[1:] {
			b := &beside[i+1]
			b.DType, b.Shape, b.Bytes = "F32", []int{1}, make([]byte, 4)
		}
		return beside
	})
}

// stacks stores gate and up of all experts as one tensor that is called no weight.
func stacks(t *testing.T, folder fstest.MapFS) fstest.MapFS {
	gates := map[string]safetensors.Tensor{}
	return tensorsAs(t, folder, func(x safetensors.Tensor) []safetensors.Tensor {
		before, after, stacked := strings.Cut(x.Name, ".switch_mlp.")
		if !stacked {
			return []safetensors.Tensor{x}
		}
		if after == "down_proj.weight" {
			x.Name = before + ".experts.down_proj"
			return []safetensors.Tensor{x}
		}
		gate, up := gates[before], x
		if gate.Name == "" {
			gates[before] = x
			return nil
		}
		if strings.Contains(gate.Name, "up_proj") {
			gate, up = up, gate
		}
		both := safetensors.Tensor{Name: before + ".experts.gate_up_proj", DType: x.DType, Shape: []int{x.Shape[0], 2 * x.Shape[1], x.Shape[2]}}
		n := len(x.Bytes) / x.Shape[0]
		for e := range x.Shape[0] {
			both.Bytes = append(append(both.Bytes, gate.Bytes[e*n:][:n]...), up.Bytes[e*n:][:n]...)
		}
		return []safetensors.Tensor{both}
	})
}

// asMLX is the folder of a conversion: names have a prefix, and convolutions a third dimension at the end.
func asMLX(t *testing.T, folder fstest.MapFS, prefix string) fstest.MapFS {
	return tensorsAs(t, folder, func(x safetensors.Tensor) []safetensors.Tensor {
		x.Name = prefix + strings.Replace(x.Name, ".shared_experts.", ".shared_expert.", 1)
		if strings.HasSuffix(x.Name, "conv1d.weight") {
			x.Shape = append(slices.Clone(x.Shape), 1)
		}
		return []safetensors.Tensor{x}
	})
}

// TestHybridFolders: as published and as converted, the logits have the same bits.
func TestHybridFolders(t *testing.T) {
	formula := func(typ, more string) fstest.MapFS {
		cfg := fmt.Sprintf(`{"model_type": %q, "tie_word_embeddings": false, %s%s}`, typ, hybridKeys, more)
		s := model.Synthetic{Config: []byte(cfg), Seed: 6, Type: quant.F32}
		return fstest.MapFS{"config.json": text(cfg), "model.safetensors": pack(t, tensorsOf(t, s))}
	}
	next, dense, moe := formula("qwen3_next", hybridExperts), formula("qwen3_5", ""), formula("qwen3_5_moe", hybridExperts)
	for group, forms := range map[string]map[string]fstest.MapFS{
		"qwen3_next":  {"mlx": asMLX(t, next, ""), "hf": asTrained(t, apart(t, next), "model.")},
		"qwen3_5":     {"mlx": asMLX(t, dense, "language_model."), "flat": asMLX(t, dense, ""), "hf": asTrained(t, dense, "model.language_model.")},
		"qwen3_5_moe": {"mlx": asMLX(t, moe, "language_model."), "hf": asTrained(t, stacks(t, moe), "model.language_model.")},
	} {
		sameLogits(t, group, forms)
	}
}

// TestBrokenHybrids: sizes that contradict each other are named, and so are tensors that do not fit.
func TestBrokenHybrids(t *testing.T) {
	for change, want := range map[string]string{
		`"linear_num_value_heads": 3`: "linear_num_value_heads 3 is no multiple of linear_num_key_heads 2",
		`"linear_key_head_dim": 0`:    "linear_key_head_dim 0 is missing or out of range",
		`"linear_conv_kernel_dim": 1`: "linear_conv_kernel_dim 1 is out of range",
		`"layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"]`: `layer_types[1] is "linear_attention", full_attention_interval is 2`,
		`"attn_output_gate": false`:                           "attn_output_gate",
		`"full_attention_interval": -1`:                       "full_attention_interval -1",
		`"num_experts": 2, "num_experts_per_tok": 3`:          "num_experts_per_tok 3",
		`"num_experts": 2, "num_experts_per_tok": 1`:          "moe_intermediate_size 0",
		`"rope_parameters": {"rope_type": "spiral"}`:          `"spiral" is not supported`,
		`"rope_parameters": {"partial_rotary_factor": 0.001}`: "columns would rotate",
	} {
		cfg := fmt.Sprintf(`{"model_type": "qwen3_5", %s, %s}`, hybridKeys, change)
		if _, _, err := model.New("qwen3_5", []byte(cfg), 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want something about %q", change, err, want)
		}
	}
	cfg := fmt.Sprintf(`{"model_type": "qwen3_5", "tie_word_embeddings": true, %s}`, hybridKeys)
	good := fstest.MapFS{"config.json": text(cfg), "model.safetensors": pack(t, tensorsOf(t, model.Synthetic{Config: []byte(cfg), Type: quant.F32}))}
	for name, tc := range map[string]struct {
		tensor string
		shape  []int
		want   string
	}{
		"taps":  {"model.layers.0.linear_attn.conv1d.weight", []int{96, 1, 3}, "expected shape [96 4 1]"},
		"rates": {"model.layers.2.linear_attn.in_proj_b.weight", []int{3, 64}, "in_proj_b.weight does not fit (expected shape [4 64], found [3 64])"},
		"decay": {"model.layers.0.linear_attn.A_log", []int{5}, "A_log does not fit (expected shape [4], found [5])"},
		"gate":  {"model.layers.1.self_attn.q_proj.weight", []int{64, 64}, "expected shape [128 64], found [64 64]"},
	} {
		bad := tensorsAs(t, good, func(x safetensors.Tensor) []safetensors.Tensor {
			if x.Name == tc.tensor {
				n := 4
				for _, k := range tc.shape {
					n *= k
				}
				x.Shape, x.Bytes = tc.shape, make([]byte, n)
			}
			return []safetensors.Tensor{x}
		})
		if err := load(bad); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want something about %q", name, err, tc.want)
		}
	}
}
