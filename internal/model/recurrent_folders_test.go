package model_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/safetensors"
)

// formulaFolder is a folder with the tensors of a formula under our own names.
func formulaFolder(t *testing.T, typ, more string) fstest.MapFS {
	t.Helper()
	cfg := fmt.Sprintf(`{"model_type": %q, "hidden_size": 64, "num_hidden_layers": 3, "intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1,
		"rms_norm_eps": 1e-6, "vocab_size": 32, "max_position_embeddings": 64, "rope_theta": 1000, "tie_word_embeddings": false, %s}`, typ, more)
	s := model.Synthetic{Config: []byte(cfg), Seed: 6, Type: quant.F32}
	return fstest.MapFS{"config.json": text(cfg), "model.safetensors": pack(t, tensorsOf(t, s))}
}

// spelled gives the tensors of a folder other names, and the taps of convolutions their third dimension at place at.
func spelled(t *testing.T, folder fstest.MapFS, at int, names ...string) fstest.MapFS {
	r := strings.NewReplacer(names...)
	return tensorsAs(t, folder, func(x safetensors.Tensor) []safetensors.Tensor {
		if strings.HasSuffix(x.Name, "conv1d.weight") || strings.HasSuffix(x.Name, "conv.weight") {
			x.Shape = slices.Insert(slices.Clone(x.Shape), at, 1)
		}
		x.Name = r.Replace(x.Name)
		return []safetensors.Tensor{x}
	})
}

// transposed turns the matrices with one of these ends.
func transposed(t *testing.T, folder fstest.MapFS, ends ...string) fstest.MapFS {
	return tensorsAs(t, folder, func(x safetensors.Tensor) []safetensors.Tensor {
		if !slices.ContainsFunc(ends, func(e string) bool { return strings.HasSuffix(x.Name, e) }) {
			return []safetensors.Tensor{x}
		}
		rows, cols, b := x.Shape[0], x.Shape[1], make([]byte, len(x.Bytes))
		for r := range rows {
			for c := range cols {
				copy(b[(c*rows+r)*4:][:4], x.Bytes[(r*cols+c)*4:])
			}
		}
		x.Shape, x.Bytes = []int{cols, rows}, b
		return []safetensors.Tensor{x}
	})
}

const (
	formMamba2  = `"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 16, "mamba_n_groups": 2, "mamba_d_conv": 4`
	formLatent  = `"kv_lora_rank": 32, "qk_rope_head_dim": 16, "qk_nope_head_dim": 32, "v_head_dim": 16, "moe_intermediate_size": 32`
	formGranite = `"embedding_multiplier": 12, "attention_multiplier": 0.05, "residual_multiplier": 0.22, "logits_scaling": 8, `

	formMoE = `"num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 32`
)

// TestRecurrentFolders: as published and as converted, the logits have the same bits.
func TestRecurrentFolders(t *testing.T) {
	lfm := formulaFolder(t, "lfm2_moe", `"norm_eps": 1e-5, "conv_L_cache": 3, "full_attn_idxs": [1], "num_dense_layers": 1, "use_expert_bias": true, `+formMoE)
	lfmNames := []string{"model.norm", "model.embedding_norm", ".input_layernorm", ".operator_norm", ".post_attention_layernorm", ".ffn_norm", ".q_norm", ".q_layernorm",
		".k_norm", ".k_layernorm", ".o_proj", ".out_proj", ".mixer.", ".conv.", ".mlp.gate.e_score_correction_bias", ".feed_forward.expert_bias", ".mlp.", ".feed_forward."}

	granite := formulaFolder(t, "granitemoehybrid", `"embedding_multiplier": 12, "attention_multiplier": 0.05, "residual_multiplier": 0.22, "logits_scaling": 8,
		"layer_types": ["mamba", "attention", "mamba"], `+formMamba2)

	nemotron := formulaFolder(t, "nemotron_h", `"hybrid_override_pattern": "ME*-", "mamba_num_heads": 4, "mamba_head_dim": 16, "ssm_state_size": 16, "n_groups": 2,
		"conv_kernel": 4, "layer_norm_epsilon": 1e-5, "n_routed_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 32`)
	cfg := string(nemotron["config.json"].Data)
	infinite := text(strings.Replace(cfg, `"n_groups"`, `"note": "\"Infinity", "time_step_limit": [0.0, Infinity], "n_groups"`, 1))

	kimi := formulaFolder(t, "kimi_linear", `"head_dim": 32, "kv_lora_rank": 32, "qk_rope_head_dim": 16, "qk_nope_head_dim": 32, "v_head_dim": 16, "num_experts_per_token": 2,
		"linear_attn_config": {"kda_layers": [1, 3], "num_heads": 4, "head_dim": 16}, `+formMoE)
	published := tensorsAs(t, apart(t, kimi), func(x safetensors.Tensor) []safetensors.Tensor {
		if strings.HasSuffix(x.Name, "A_log") {
			x.Shape = []int{1, 1, x.Shape[0], 1}
		}
		return []safetensors.Tensor{x}
	})

	gpt := formulaFolder(t, "gpt2", `"n_embd": 64, "n_layer": 2, "n_head": 2, "n_positions": 32, "layer_norm_epsilon": 1e-5`)
	gptNames := func(root string) []string {
		return []string{"model.embed_tokens", root + "wte", "model.positions", root + "wpe", "model.norm", root + "ln_f", ".input_layernorm", ".ln_1",
			".post_attention_layernorm", ".ln_2", ".self_attn.qkv_proj", ".attn.c_attn", ".self_attn.o_proj", ".attn.c_proj", ".mlp.up_proj", ".mlp.c_fc",
			".mlp.down_proj", ".mlp.c_proj", "model.layers.", root + "h."}
	}
	for group, forms := range map[string]map[string]fstest.MapFS{
		"lfm2_moe": {"mlx": spelled(t, lfm, 2, lfmNames...),
			"hf": spelled(t, apart(t, lfm), 1, append([]string{".gate_proj.", ".w1.", ".up_proj.", ".w3.", ".down_proj.", ".w2."}, lfmNames...)...)},
		"granitemoehybrid": {"mlx": spelled(t, granite, 2, ".mixer.", ".mamba."), "hf": fusedGranite(t, spelled(t, granite, 1, ".mixer.", ".mamba."))},
		"nemotron_h": {"mlx": spelled(t, nemotron, 2, ".switch_mlp.up_proj", ".switch_mlp.fc1", ".switch_mlp.down_proj", ".switch_mlp.fc2"),
			"hf": with(spelled(t, apart(t, nemotron), 1), "config.json", infinite)},
		"kimi_linear": {"mlx": spelled(t, kimi, 2, ".mlp.gate.e_score", ".mlp.e_score"),
			"hf": spelled(t, published, 1, "_conv.conv.", "_conv1d.", ".mlp.experts.", ".block_sparse_moe.experts.", ".mlp.gate.", ".block_sparse_moe.gate.",
				".gate_proj.", ".w1.", ".up_proj.", ".w3.", ".down_proj.", ".w2.")},
		"gpt2": {"mlx": spelled(t, gpt, 0, gptNames("model.")...), "fine-tuned": transposed(t, spelled(t, gpt, 0, gptNames("transformer.")...), ".c_attn.weight", ".c_proj.weight", ".c_fc.weight"),
			"hf": transposed(t, spelled(t, gpt, 0, gptNames("")...), ".c_attn.weight", ".c_proj.weight", ".c_fc.weight")},
	} {
		sameLogits(t, group, forms)
	}
}

// fusedGranite has gate and up of an MLP in one tensor.
func fusedGranite(t *testing.T, folder fstest.MapFS) fstest.MapFS {
	gates := map[string]safetensors.Tensor{}
	return tensorsAs(t, folder, func(x safetensors.Tensor) []safetensors.Tensor {
		before, after, _ := strings.Cut(x.Name, ".mlp.")
		switch after {
		case "down_proj.weight":
			x.Name = before + ".shared_mlp.output_linear.weight"
		case "gate_proj.weight", "up_proj.weight":
			other, ok := gates[before]
			if !ok {
				gates[before] = x
				return nil
			}
			if after == "gate_proj.weight" {
				x, other = other, x
			}
			x.Name, x.Shape, x.Bytes = before+".shared_mlp.input_linear.weight", []int{2 * x.Shape[0], x.Shape[1]}, slices.Concat(other.Bytes, x.Bytes)
		}
		return []safetensors.Tensor{x}
	})
}

// TestRecurrentRefusals: what a config has that is not here is named.
func TestRecurrentRefusals(t *testing.T) {
	for typ, keys := range map[string]map[string]string{
		"mamba2": {`"num_heads": 4, "head_dim": 16, "state_size": 16, "n_groups": 3, "conv_kernel": 4`: "4 heads are no multiple of 3 groups",
			`"num_heads": 4, "head_dim": 16, "state_size": 16, "n_groups": 2, "conv_kernel": 1`:                           "a convolution (conv_kernel or mamba_d_conv) of 1 taps",
			`"num_heads": 4, "head_dim": 16, "state_size": 16, "n_groups": 2, "conv_kernel": 4, "time_step_limit": [2,1]`: "time_step_limit [2 1]"},
		"nemotron_h":   {`"hybrid_override_pattern": "MX"`: `"MX"`, `"layers_block_type": ["mamba", "rnn"]`: `"rnn"`, `"hybrid_override_pattern": 3`: "neither a string nor a list"},
		"qwen3_5_text": {`"layer_types": ["full_attention"]`: "linear_num_key_heads 0"},
		"kimi_linear": {`"layer_types": ["linear_attention", "conv", "full_attention"], ` + formLatent: `layer_types[1] is "conv"`,
			`"num_expert_group": 3, "topk_group": 1, "num_experts": 6, "num_experts_per_token": 3, ` + formLatent: "topk_group 1 of num_expert_group 3 leaves 2 experts", `"linear_attn_config": {"num_heads": -1}`: "linear_attn_config, or linear_num_heads"},
		"falcon_h1": {`"mlp_multipliers": [1], ` + formMamba2: "mlp_multipliers has 1 entries", `"ssm_multipliers": [1, 1, 0, 1, 1], ` + formMamba2: "ssm_multipliers [1 1 0 1 1]",
			`"mamba_d_ssm": 128, ` + formMamba2: "mamba_d_ssm 128 is not"},
		"granitemoehybrid": {`"mamba_expand": 3, "layer_types": ["mamba", "mamba", "mamba"], ` + formGranite + formMamba2: "mamba_expand 3",
			`"layer_types": ["mamba", "rnn", "mamba"], ` + formGranite + formMamba2: `layer_types[1] is "rnn"`},
		"minimax": {`"rotary_dim": 16, "attn_type_list": [1, 0, 1], "num_local_experts": 4, "num_experts_per_tok": 2`: "attn_type_list [1 0 1]",
			`"layer_types": ["full_attention", "linear_attention", "conv"]`: `layer_types[2] is "conv"`},
		"lfm2":    {`"conv_L_cache": 3, "layer_types": ["conv"]`: "layer_types has 1 entries for 3 layers", `"conv_L_cache": 0`: "conv_L_cache 0"},
		"jamba":   {`"mamba_expand": 2`: "attn_layer_period 0"},
		"mamba":   {`"state_size": 16, "conv_kernel": 4, "time_step_rank": "many"`: "neither a number nor auto"},
		"step3p5": {`"num_attention_groups": 1, "head_dim": 32, "rope_theta": [1000]`: "one for each of 3 layers"},
		"gptj":    {`"n_embd": 64, "n_layer": 1, "n_head": 2, "n_positions": 64, "rotary_dim": 64`: "not part of a head's 32"},
	} {
		for k, want := range keys {
			cfg := fmt.Sprintf(`{"model_type": %q, "hidden_size": 64, "num_hidden_layers": 3, "intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1,
				"rms_norm_eps": 1e-6, "norm_eps": 1e-6, "layer_norm_epsilon": 1e-6, "vocab_size": 32, "max_position_embeddings": 64, "use_conv_bias": true, %s}`, typ, k)
			if _, _, err := model.New(typ, []byte(cfg), 1); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %s: %v, want something about %q", typ, k, err, want)
			}
		}
	}
}
