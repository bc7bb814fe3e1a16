package model_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/model"
	"hearth/internal/quant"
)

// TestRoundedLike: a factor of embeddings is as exact as the numbers that it multiplies.
func TestRoundedLike(t *testing.T) {
	root := float32(math.Sqrt(640))
	table := func(dt quant.DType) *backend.Tensor { return &backend.Tensor{DType: string(dt)} }
	affine := quant.Scheme{Mode: quant.Affine, Bits: 4, Group: 64}
	for name, tc := range map[string]struct {
		part backend.Part
		want float32
	}{
		"float32":           {backend.Part{Weight: table(quant.F32)}, root},
		"bfloat16":          {backend.Part{Weight: table(quant.BF16)}, 25.25},
		"float16":           {backend.Part{Weight: table(quant.F16)}, 25.296875},
		"codes of bfloat16": {backend.Part{Weight: table(quant.U32), Scales: table(quant.BF16), Scheme: affine}, 25.25},
		"codes of float32":  {backend.Part{Weight: table(quant.U32), Scales: table(quant.F32), Scheme: affine}, root},
	} {
		if got := model.RoundedLike(tc.part, root); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// TestRefusedKeys: what a family cannot do is named.
func TestRefusedKeys(t *testing.T) {
	const gemma4 = `"hidden_size": 64, "num_hidden_layers": 4, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 32, "head_dim": 16,
		"hidden_size_per_layer_input": 0, "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"], "num_kv_shared_layers": 1`
	const latent = `"hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 64, "num_attention_heads": 4, "vocab_size": 32, "kv_lora_rank": 32, "q_lora_rank": null,
		"qk_rope_head_dim": 8, "qk_nope_head_dim": 24, "v_head_dim": 16, "moe_intermediate_size": 32, "n_routed_experts": 8, "num_experts_per_tok": 3`
	for _, tc := range []struct{ typ, keys, change, want string }{
		{"gemma4_text", gemma4, `"per_layer_config": {"1": {"head_dim": 32, "intermediate_size": 96}, "3": {"head_dim": 32}}`, `per_layer_config.1 has "intermediate_size"`},
		{"gemma4_text", gemma4, `"per_layer_config": {"4": {"head_dim": 32}}`, `per_layer_config has an entry for layer "4", of 4`},
		{"gemma4_text", gemma4, `"per_layer_config": {"1": {"head_dim": 31}}`, "per_layer_config.1.head_dim 31 is odd or out of range"},
		{"gemma4_text", gemma4, `"per_layer_config": {"1": {"num_key_value_heads": 3}}`, "per_layer_config.1.num_key_value_heads 3 does not divide"},
		{"gemma4_text", gemma4, `"per_layer_config": {"1": {"head_dim": 32}}`, "layer 3 shares keys and values with layer 1, whose heads are others"},
		{"gemma4_text", gemma4, `"use_bidirectional_attention": "all"`, "use_bidirectional_attention"},
		{"gemma4_text", gemma4, `"hidden_activation": "mish"`, `hidden_activation is "mish", which`},
		{"gemma3_text", gemma4, `"use_bidirectional_attention": true`, "use_bidirectional_attention"},
		{"gemma2", gemma4, `"attn_logit_softcapping": -1`, "attn_logit_softcapping -1 is out of range"},
		{"ernie4_5_moe", latent, `"moe_num_experts": 8, "rms_norm_eps": 1e-5, "moe_norm_min": 0.5`, "moe_norm_min 0.5 is not supported"},
		{"deepseek_v3", latent, `"n_group": 4, "topk_group": 1, "first_k_dense_replace": 1`, "topk_group 1 of n_group 4 leaves 2 experts"},
		{"deepseek_v3", latent, `"mlp_layer_types": ["dense"], "n_group": 1`, "mlp_layer_types has 1 entries for 2 layers"},
		{"glm4_moe_lite", latent, `"mlp_layer_types": ["dense", "wide"]`, `mlp_layer_types[1] is "wide"`},
		{"glm4_moe_lite", latent, `"partial_rotary_factor": 0.5`, "partial_rotary_factor 0.5 is not supported"},
		{"mistral4", latent, `"rope_parameters": {"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 16, "partial_rotary_factor": 0.5,
			"llama_4_scaling_beta": 0.1}`, "rope_parameters.partial_rotary_factor 0.5 of head_dim 32 are 16 columns, but qk_rope_head_dim is 8"},
		{"gemma4_text", gemma4, `"num_kv_shared_layers": -9223372036854775808, "per_layer_config": {}`, "num_kv_shared_layers -9223372036854775808 of 4 layers"},
		{"gemma4_text", gemma4, `"layer_types": null, "sliding_window": 0, "per_layer_config": {}`, "sliding_window is 0"},
		{"exaone_moe", latent, `"num_experts": 8, "rms_norm_eps": 1e-6, "sliding_window": -1, "sliding_window_pattern": 0`, "sliding_window_pattern 0 without layer_types"},
		{"step3p5", latent, `"num_attention_groups": 4, "moe_num_experts": 8, "num_nextn_predict_layers": 4611686018427387904`, "num_nextn_predict_layers 4611686018427387904"},
		{"minimax", latent, `"num_local_experts": 8, "full_attn_alpha_factor": -1e300`, "full_attn_alpha_factor -1e+300 is out of range"},
		{"llama", latent, `"hidden_size": -1`, "hidden_size -1 is out of range"},
		{"llama", latent, `"rms_norm_eps": 1e-6, "attn_logit_softcapping": 3`, "attn_logit_softcapping can be null"},
		{"llama", latent, `"rms_norm_eps": 1e-6, "rope_theta": -1`, "rope_theta -1 is out of range"},
		{"llama", latent, `"rms_norm_eps": 1e-6, "rope_parameters": {"rope_type": "linear", "factor": 1e-320}`, "factor 1e-320 is out of range"},
		{"llama", latent, `"rms_norm_eps": 1e-6, "rope_parameters": {"rope_type": "yarn", "factor": 4, "mscale": 1e300}`, "mscale 1e+300"},
		{"gemma3_text", gemma4, `"sliding_window": 8, "rope_local_base_freq": -1`, "rope_local_base_freq -1 is out of range"},
		{"gemma4_text", gemma4, `"layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention"], "sliding_window": 8, "per_layer_config": {}`,
			"layer 3 shares keys and values with an earlier layer of full_attention"},
		{"gpt_neox", latent, `"rotary_pct": 2`, "rotary_pct 2 is out of range"},
	} {
		_, _, err := model.New(tc.typ, []byte(`{`+tc.keys+`, `+tc.change+`}`), 1)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s with %s: error %v, want %q in it", tc.typ, tc.change, err, tc.want)
		}
	}
}

// TestUseQKNorm: families that take the keys of experts from one whose heads may have norms do not take that one in silence.
func TestUseQKNorm(t *testing.T) {
	for _, name := range []string{"deepseek_v2", "deepseek_v3", "glm4_moe_lite", "kimi_k25", "kimi_linear", "mimo_v2_flash", "minicpm3", "mistral4"} {
		key := "use_qk_norm"
		if name == "kimi_k25" {
			key = "text_config." + key
		}
		m := mutation{Key: key, Value: json.RawMessage("true")}
		_, err := reading(t, string(m.apply(t, loadSaved(t, name).Config)))
		if err == nil || !strings.Contains(err.Error(), key+" is true") {
			t.Errorf("%s: error %v, want one that names %s", name, err, key)
		}
	}
}
