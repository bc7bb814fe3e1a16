package model_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"hearth/internal/backend"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/safetensors"
)

// tinyGemma4 has layers of both kinds that share keys and values, inputs per layer, and experts.
const tinyGemma4 = `{"model_type": "gemma4", "vocab_size": 32, "text_config": {"hidden_size": 64, "num_hidden_layers": 4, "intermediate_size": 64,
	"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "global_head_dim": 32, "sliding_window": 4, "num_kv_shared_layers": 2,
	"layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"], "hidden_size_per_layer_input": 32,
	"vocab_size_per_layer_input": 32, "enable_moe_block": true, "num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 32}}`

// TestGemma4Folders: the spellings of names that MLX and Hugging Face folders have, with what is beside the language model, give
// the formula's logits.
func TestGemma4Folders(t *testing.T) {
	s := model.Synthetic{Config: []byte(tinyGemma4), Seed: 5, Type: quant.BF16}
	want := firstLogits(t, func(be backend.Backend) (*model.Loaded, error) { return s.Load(be, backend.Options{}) })
	plain := fstest.MapFS{"config.json": text(tinyGemma4), "model.safetensors": pack(t, tensorsOf(t, s))}
	named := func(name func(string) string, more ...string) fstest.MapFS {
		first := true
		return tensorsAs(t, plain, func(x safetensors.Tensor) []safetensors.Tensor {
			x.Name = name(x.Name)
			out := []safetensors.Tensor{x}
			if first {
				for _, n := range more {
					out = append(out, safetensors.Tensor{Name: n, DType: "F32", Shape: []int{1}, Bytes: make([]byte, 4)})
				}
				first = false
			}
			return out
		})
	}
	for spelling, folder := range map[string]fstest.MapFS{
		"flat": plain,
		"mlx":  named(func(n string) string { return "language_model." + n }, "vision_tower.patch.weight", "embed_vision.x.weight"),
		"hugging face": trained(t, named(func(n string) string { return "model.language_model." + strings.TrimPrefix(n, "model.") },
			"model.vision_tower.patch.weight", "model.audio_tower.x", "model.embed_audio.y", "lm_head.weight",
			"model.language_model.layers.2.self_attn.k_proj.weight", "model.language_model.layers.3.self_attn.k_norm.weight",
			"model.language_model.layers.2.self_attn.v_proj.weight", "model.language_model.layers.0.mlp.up_proj.input_max")),
	} {
		c, err := model.OpenCheckpoint(folder, spelling)
		if err != nil {
			t.Fatal(err)
		}
		got := firstLogits(t, func(be backend.Backend) (*model.Loaded, error) { return c.Load(be, backend.Options{}) })
		if !slices.Equal(got, want) {
			t.Errorf("%s: logits differ from the formula model's", spelling)
		}
		c.Close()
	}
}

// trained stores experts as they were in training: gate and up in one tensor, no suffixes.
func trained(t *testing.T, folder fstest.MapFS) fstest.MapFS {
	gates := map[string]safetensors.Tensor{}
	return tensorsAs(t, folder, func(x safetensors.Tensor) []safetensors.Tensor {
		before, part, ok := strings.Cut(x.Name, ".experts.switch_glu.")
		switch part = strings.TrimSuffix(part, ".weight"); {
		case !ok:
		case part == "gate_proj":
			gates[before] = x
			return nil
		case part == "up_proj":
			x = stackRows(gates[before], x)
			x.Name = before + ".experts.gate_up_proj"
		default:
			x.Name = before + ".experts." + part
		}
		return []safetensors.Tensor{x}
	})
}

// stackRows puts the rows of b under those of a, expert by expert.
func stackRows(a, b safetensors.Tensor) safetensors.Tensor {
	out := safetensors.Tensor{DType: a.DType, Shape: []int{a.Shape[0], a.Shape[1] + b.Shape[1], a.Shape[2]}}
	n := len(a.Bytes) / a.Shape[0]
	for e := range a.Shape[0] {
		out.Bytes = append(append(out.Bytes, a.Bytes[e*n:][:n]...), b.Bytes[e*n:][:n]...)
	}
	return out
}

func TestGemma4Configs(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`"num_kv_shared_layers": 2`, `"num_kv_shared_layers": 4`, "num_kv_shared_layers 4 of 4 layers leave none to share with"},
		{`"num_kv_shared_layers": 2`, `"num_kv_shared_layers": 3`, "layer 1 shares keys and values with an earlier layer of full_attention, but num_kv_shared_layers 3 leaves none"},
		{`"vocab_size_per_layer_input": 32`, `"vocab_size_per_layer_input": 31`, "vocab_size_per_layer_input 31 does not cover a vocab_size of 32"},
		{`"global_head_dim": 32`, `"global_head_dim": 33`, "global_head_dim 33 is odd"},
		{`"top_k_experts": 2`, `"top_k_experts": 5`, "top_k_experts 5 is missing or more than the 4 experts"},
		{`"moe_intermediate_size": 32`, `"moe_intermediate_size": 0`, "moe_intermediate_size 0 is missing"},
		{`"head_dim": 16`, `"head_dim": 16, "final_logit_softcapping": -1`, "final_logit_softcapping -1 is out of range"},
		{`"head_dim": 16`, `"head_dim": 16, "num_global_key_value_heads": 3`, "num_attention_heads 2 is no multiple of num_global_key_value_heads 3"},
		{`"sliding_attention", "full`, `"chunked_attention", "full`, `layer_types[0] is "chunked_attention"`},
		{`"head_dim": 16`, `"head_dim": 16, "rope_parameters": {"full_attention": {"rope_type": "spiral"}}`, `rope_type "spiral" is not supported`},
		{`"hidden_size_per_layer_input": 32`, `"hidden_size_per_layer_input": 9000000`, "hidden_size_per_layer_input 9000000 is out of range for 4 layers"},
	} {
		if !strings.Contains(tinyGemma4, c.old) {
			t.Fatalf("config has no %s", c.old)
		}
		_, _, err := model.New("gemma4", []byte(strings.Replace(tinyGemma4, c.old, c.new, 1)), 1)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.new, err, c.want)
		}
	}
}
