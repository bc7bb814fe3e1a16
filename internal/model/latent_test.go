package model_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/safetensors"
)

const latentKeys = `"hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 96, "num_attention_heads": 3, "rms_norm_eps": 1e-6, "vocab_size": 32,
	"max_position_embeddings": 64, "tie_word_embeddings": false, "q_lora_rank": 32, "kv_lora_rank": 64, "qk_rope_head_dim": 16, "qk_nope_head_dim": 32,
	"v_head_dim": 24, "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "first_k_dense_replace": 1`

// joined stores the two matrices of every head as one tensor that expands latents, as models are published.
func joined(t *testing.T, folder fstest.MapFS) fstest.MapFS {
	keys := map[string]safetensors.Tensor{}
	return tensorsAs(t, folder, func(x safetensors.Tensor) []safetensors.Tensor {
		at, kind, ok := strings.Cut(x.Name, ".self_attn.")
		switch {
		case ok && kind == "embed_q.weight":
			keys[at] = x
			return nil
		case !ok || kind != "unembed_out.weight":
			return []safetensors.Tensor{x}
		}
		k := keys[at]
		heads, lora, nope, values := k.Shape[0], k.Shape[1], k.Shape[2], x.Shape[1]
		both := safetensors.Tensor{Name: at + ".self_attn.kv_b_proj.weight", DType: "F32", Shape: []int{heads * (nope + values), lora}}
		for h := range heads {
			for n := range nope {
				for l := range lora {
					both.Bytes = append(both.Bytes, k.Bytes[((h*lora+l)*nope+n)*4:][:4]...)
				}
			}
			both.Bytes = append(both.Bytes, x.Bytes[h*values*lora*4:][:values*lora*4]...)
		}
		return []safetensors.Tensor{both}
	})
}

// beside adds what published folders have and nobody needs.
func beside(t *testing.T, folder fstest.MapFS, names ...string) fstest.MapFS {
	return tensorsAs(t, folder, func(x safetensors.Tensor) []safetensors.Tensor {
		out := []safetensors.Tensor{x}
		if strings.HasSuffix(x.Name, "embed_tokens.weight") {
			for _, name := range names {
				out = append(out, safetensors.Tensor{Name: name, DType: "F32", Shape: []int{1}, Bytes: make([]byte, 4)})
			}
		}
		return out
	})
}

func prefixedAs(t *testing.T, folder fstest.MapFS, prefix string) fstest.MapFS {
	return tensorsAs(t, folder, func(x safetensors.Tensor) []safetensors.Tensor {
		x.Name = prefix + x.Name
		return []safetensors.Tensor{x}
	})
}

// TestLatentFolders: with the matrices of the heads apart or in one tensor, as converted or as published, the logits have the
// same bits.
func TestLatentFolders(t *testing.T) {
	formula := func(typ string) fstest.MapFS {
		cfg := fmt.Sprintf(`{"model_type": %q, %s}`, typ, latentKeys)
		return fstest.MapFS{"config.json": text(cfg), "model.safetensors": pack(t, tensorsOf(t, model.Synthetic{Config: []byte(cfg), Seed: 6, Type: quant.F32}))}
	}
	v3, lite, kimi := formula("deepseek_v3"), formula("glm4_moe_lite"), formula("kimi_k25")
	for group, forms := range map[string]map[string]fstest.MapFS{
		"deepseek_v3": {"mlx": v3, "joined": joined(t, v3), "published": beside(t, joined(t, apart(t, v3)), "model.layers.2.eh_proj.weight",
			"model.layers.0.self_attn.rotary_emb.inv_freq")},
		"glm4_moe_lite": {"mlx": lite, "published": beside(t, joined(t, apart(t, lite)), "model.layers.2.shared_head.norm.weight")},
		"kimi_k25": {"mlx": prefixedAs(t, kimi, "language_model."), "published": beside(t, prefixedAs(t, joined(t, apart(t, kimi)), "language_model."),
			"vision_tower.a.weight", "mm_projector.b.weight")},
	} {
		sameLogits(t, group, forms)
	}
}

// TestBrokenLatents: sizes and words that cannot be are named, and so are tensors that do not fit.
func TestBrokenLatents(t *testing.T) {
	for change, want := range map[string]string{
		`"kv_lora_rank": 0`:                          "kv_lora_rank 0 is missing or out of range",
		`"qk_rope_head_dim": 15`:                     "is odd",
		`"q_lora_rank": -1`:                          "q_lora_rank -1 is missing or out of range",
		`"moe_layer_freq": 0`:                        "moe_layer_freq 0 is missing or out of range",
		`"n_group": 3`:                               "n_group 3 and topk_group 1 do not fit 4 experts",
		`"topk_method": "greedy"`:                    `topk_method "greedy" with scoring_func "sigmoid" is not supported`,
		`"rope_scaling": {"type": "x", "factor": 2}`: `rope_type "x" is not supported`,
	} {
		_, _, err := model.New("deepseek_v3", []byte(`{`+latentKeys+`, `+change+`}`), 1)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", change, err, want)
		}
	}
	cfg := fmt.Sprintf(`{"model_type": "deepseek_v3", %s}`, latentKeys)
	folder := fstest.MapFS{"config.json": text(cfg), "model.safetensors": pack(t, tensorsOf(t, model.Synthetic{Config: []byte(cfg), Type: quant.F32}))}
	broken := tensorsAs(t, joined(t, folder), func(x safetensors.Tensor) []safetensors.Tensor {
		if strings.HasSuffix(x.Name, "1.self_attn.kv_b_proj.weight") {
			x.Shape, x.Bytes = []int{x.Shape[0] - 1, x.Shape[1]}, x.Bytes[4*x.Shape[1]:]
		}
		return []safetensors.Tensor{x}
	})
	const want = "tensor model.layers.1.self_attn.kv_b_proj.weight does not fit (expected shape [168 64], found [167 64])"
	if err := load(broken); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q in it", err, want)
	}
}
