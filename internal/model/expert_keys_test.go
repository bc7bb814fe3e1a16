package model_test

import (
	"strings"
	"testing"

	"hearth/internal/model"
)

// TestExpertKeys: what a config of a family of experts says and the family does not do is refused, or told of, by name.
func TestExpertKeys(t *testing.T) {
	const sizes = `"hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
		"rms_norm_eps": 1e-5, "vocab_size": 32, "max_position_embeddings": 64, "tie_word_embeddings": false, "moe_intermediate_size": 32, "num_experts_per_tok": 3, `
	for _, c := range []struct{ typ, keys, refused, told string }{
		{"qwen3_moe", `"num_local_experts": 8`, "", ""},
		{"qwen3_moe", `"num_local_experts": 8, "num_experts": 8`, "", ""},
		{"qwen3_moe", `"num_local_experts": 8, "num_experts": 6`, "num_local_experts is 8", ""},
		{"qwen3_moe", `"num_local_experts": 8, "use_qk_norm": false`, "use_qk_norm is false", ""},
		{"qwen3_moe", `"num_local_experts": 8, "rope_traditional": true`, "", "rope_traditional"},
		{"qwen2_moe", `"num_experts": 8, "shared_expert_intermediate_size": 32, "layer_types": ["full_attention", "sliding_attention"]`, "use_sliding_window is false", ""},
		{"olmoe", `"num_experts": 8, "clip_qkv": 8.0`, "clip_qkv is 8.0", ""},
		{"olmoe", `"num_experts": 8, "clip_qkv": null`, "", ""},
		{"gpt_oss", `"num_local_experts": 8, "swiglu_alpha": 1.5`, "swiglu_alpha is 1.5", ""},
		{"gpt_oss", `"num_local_experts": 8, "swiglu_limit": -1`, "swiglu_limit -1", ""},
		{"mixtral", `"num_local_experts": 8, "hidden_act": "gelu"`, "", ""},
		{"mixtral", `"num_local_experts": 8, "hidden_act": "mish"`, "hidden_act", ""},
		{"mixtral", `"num_local_experts": 8, "sliding_window": -4`, "sliding_window -4", ""},
		{"dots1", `"n_routed_experts": 8, "n_group": 4, "topk_group": 1`, "topk_group 1 of n_group 4 leaves 2 experts", ""},
		{"dots1", `"n_routed_experts": 130, "n_group": 65, "topk_group": 2`, "n_group 65 and topk_group 2 do not fit 130 experts", ""},
		{"exaone_moe", `"num_experts": 8, "mlp_layer_types": ["dense", "some"]`, `mlp_layer_types[1] is "some"`, ""},
		{"exaone_moe", `"num_experts": 8, "sliding_window": 8, "sliding_window_pattern": "LG"`, "sliding_window_pattern", ""},
		{"laguna", `"num_experts": 8, "moe_router_logit_softcapping": -2`, "moe_router_logit_softcapping -2", ""},
		{"laguna", `"num_experts": 8, "mlp_only_layers": [0], "norm_topk_prob": true, "decoder_sparse_step": 1, "gating": "per-head"`, "", ""},
		{"afmoe", `"num_experts": 8, "num_expert_groups": 1, "num_limited_groups": 1, "use_grouped_mm": true, "n_group": 1, "topk_group": 1`, "", ""},
		{"afmoe", `"num_experts": 8, "num_expert_groups": 2`, "num_expert_groups is 2", ""},
		{"exaone_moe", `"num_experts": 8, "is_moe_layer": [false, true], "first_last_k_dense_replace": 1, "sliding_window_pattern": "LG", "layer_types": ["sliding_attention", "full_attention"]`, "", ""},
		{"mimo_v2_flash", `"head_dim": 24, "n_routed_experts": 8, "rope_theta": 300.0`, "", "rope_theta"},
		{"mimo_v2_flash", `"head_dim": 24, "n_routed_experts": 8, "layernorm_epsilon": 0.5`, "", "layernorm_epsilon"},
		{"llama4_text", `"num_local_experts": 8, "intermediate_size_mlp": 64`, "num_experts_per_tok 3", ""},
		{"llama4_text", `"moe_layers": [], "intermediate_size_mlp": 64, "no_rope_layers": [1]`, "no_rope_layers has 1 entries", ""},
		{"llama4_text", `"moe_layers": [], "intermediate_size_mlp": 64, "layer_types": ["sliding_attention", "full_attention"]`, "layer_types[0]", ""},
		{"step3p7", `"n_routed_experts": 8, "rope_parameters": {"rope_theta": 300.0, "rope_type": "default"}`, "rope_parameters has none of full_attention", ""},
		{"step3p7", `"n_routed_experts": 8, "per_layer_config": {"7": {"num_attention_heads": 2}}`, `per_layer_config has an entry "7"`, ""},
	} {
		_, r, err := model.New(c.typ, []byte(`{"model_type": "`+c.typ+`", `+sizes+c.keys+`}`), 1)
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s with %s: error %v, want %q in it", c.typ, c.keys, err, c.refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s with %s: %v", c.typ, c.keys, err)
			continue
		}
		told := ""
		for _, u := range r.Unread {
			if u.Key != "moe_intermediate_size" { // which some of the families have not
				told += u.Key
			}
		}
		if told != c.told {
			t.Errorf("%s with %s: told of %q, want %q", c.typ, c.keys, told, c.told)
		}
	}
}
