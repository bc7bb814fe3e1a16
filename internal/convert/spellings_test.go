package convert

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"hearth/internal/quant"
)

// TestSpellings: each name of a key becomes the other one too, where mlx-lm has one, in both directions; doing it again changes
// nothing.
func TestSpellings(t *testing.T) {
	for _, c := range []struct{ name, model, given, want string }{
		{"flat, new", "llama", `{"rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}, "dtype": "bfloat16"}`,
			`{"rope_theta": 5e5, "rope_scaling": null, "torch_dtype": "bfloat16"}`},
		{"flat, old", "llama", `{"rope_theta": 5e5, "torch_dtype": "bfloat16"}`,
			`{"rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}, "rope_scaling": null, "dtype": "bfloat16"}`},
		{"scaled, new", "llama", `{"rope_parameters": {"rope_theta": 5e5, "rope_type": "llama3", "factor": 8, "low_freq_factor": 1}}`,
			`{"rope_theta": 5e5, "rope_scaling": {"type": "llama3", "rope_type": "llama3", "factor": 8, "low_freq_factor": 1}}`},
		{"scaled, old", "phi3", `{"rope_theta": 1e4, "rope_scaling": {"type": "su", "long_factor": [1, 2]}}`,
			`{"rope_parameters": {"rope_theta": 1e4, "type": "su", "rope_type": "su", "long_factor": [1, 2]}}`},
		{"part of the columns, new", "glm4", `{"rope_parameters": {"rope_theta": 1e4, "rope_type": "default", "partial_rotary_factor": 0.5}}`,
			`{"rope_theta": 1e4, "rope_scaling": null, "partial_rotary_factor": 0.5}`},
		{"part of the columns, old", "stablelm", `{"rope_theta": 1e4, "partial_rotary_factor": 0.25}`,
			`{"rope_scaling": null, "rope_parameters": {"rope_theta": 1e4, "rope_type": "default", "partial_rotary_factor": 0.25}}`},
		{"gpt_neox, new", "gpt_neox", `{"rope_parameters": {"rope_theta": 1e4, "rope_type": "default", "partial_rotary_factor": 0.25}}`,
			`{"rotary_emb_base": 1e4, "rotary_pct": 0.25}`},
		{"gpt_neox, old", "gpt_neox", `{"rotary_emb_base": 1e4, "rotary_pct": 0.25}`,
			`{"rope_parameters": {"rope_theta": 1e4, "rope_type": "default", "partial_rotary_factor": 0.25}}`},
		{"two bases, new", "gemma3_text", `{"rope_parameters": {"full_attention": {"rope_theta": 1e6, "rope_type": "linear", "factor": 8}, "sliding_attention": {"rope_theta": 1e4, "rope_type": "default"}}}`,
			`{"rope_theta": 1e6, "rope_local_base_freq": 1e4, "rope_scaling": {"type": "linear", "rope_type": "linear", "factor": 8}}`},
		{"two bases, old", "gemma3n_text", `{"rope_theta": 1e6, "rope_local_base_freq": 1e4, "rope_scaling": null}`,
			`{"rope_parameters": {"full_attention": {"rope_theta": 1e6, "rope_type": "default"}, "sliding_attention": {"rope_theta": 1e4, "rope_type": "default"}}}`},
		{"two bases and a part, new", "mimo_v2_flash", `{"rope_parameters": {"full_attention": {"rope_theta": 5e6, "partial_rotary_factor": 0.334, "rope_type": "default"}, "sliding_attention": {"rope_theta": 1e4, "partial_rotary_factor": 0.334, "rope_type": "default"}}}`,
			`{"rope_theta": 5e6, "swa_rope_theta": 1e4, "partial_rotary_factor": 0.334}`},
		{"one base for two kinds, new", "olmo3", `{"rope_parameters": {"full_attention": {"rope_theta": 5e5, "rope_type": "yarn", "factor": 8}, "sliding_attention": {"rope_theta": 5e5, "rope_type": "default"}}}`,
			`{"rope_theta": 5e5, "rope_scaling": {"type": "yarn", "rope_type": "yarn", "factor": 8}}`},
		{"one base for two kinds, old", "olmo3", `{"rope_theta": 5e5, "rope_scaling": {"rope_type": "yarn", "factor": 8}}`,
			`{"rope_parameters": {"full_attention": {"rope_theta": 5e5, "type": "yarn", "rope_type": "yarn", "factor": 8}, "sliding_attention": {"rope_theta": 5e5, "rope_type": "default"}}}`},
		{"bases that mlx-lm cannot have", "olmo3", `{"rope_parameters": {"full_attention": {"rope_theta": 5e5, "rope_type": "default"}, "sliding_attention": {"rope_theta": 1e4, "rope_type": "default"}}}`, `{}`},
		{"read by kind of layer", "laguna", `{"rope_parameters": {"full_attention": {"rope_theta": 5e5, "rope_type": "default"}}}`, `{}`},
		{"columns, new", "minimax_m2", `{"head_dim": 128, "rope_parameters": {"rope_theta": 5e6, "rope_type": "default", "partial_rotary_factor": 0.5}}`,
			`{"rope_theta": 5e6, "rotary_dim": 64, "shared_intermediate_size": 0}`},
		{"columns, old", "minimax_m2", `{"head_dim": 128, "rope_theta": 5e6, "rotary_dim": 64}`,
			`{"shared_intermediate_size": 0, "rope_parameters": {"rope_theta": 5e6, "rope_type": "default", "partial_rotary_factor": 0.5}}`},
		{"columns of heads whose width is null, new", "minimax_m2", `{"head_dim": null, "rope_parameters": {"rope_theta": 5e6, "rope_type": "default", "partial_rotary_factor": 0.5}}`,
			`{"rope_theta": 5e6, "shared_intermediate_size": 0}`},
		{"columns that are null, old", "minimax_m2", `{"head_dim": 128, "rope_theta": 5e6, "rotary_dim": null}`,
			`{"rotary_dim": 128, "shared_intermediate_size": 0, "rope_parameters": {"rope_theta": 5e6, "rope_type": "default"}}`},
		{"experts, new", "qwen3_moe", `{"num_local_experts": 128, "rope_parameters": {"rope_theta": 1e6, "rope_type": "default"}}`,
			`{"num_experts": 128, "rope_theta": 1e6, "rope_scaling": null}`},
		{"experts, old", "mellum", `{"num_experts": 64}`, `{"num_local_experts": 64}`},
		{"exaone, new", "exaone", `{"num_hidden_layers": 2, "rms_norm_eps": 1e-5}`, `{"num_layers": 2, "layer_norm_epsilon": 1e-5}`},
		{"kinds of layers", "granitemoehybrid", `{"layer_types": ["linear_attention", "full_attention"]}`, `{"layer_types": ["mamba", "attention"]}`},
		{"inside a text_config", "gemma3", `{"text_config": {"model_type": "gemma3_text", "rope_parameters": {"full_attention": {"rope_theta": 1e6, "rope_type": "default"}, "sliding_attention": {"rope_theta": 1e4, "rope_type": "default"}}}}`,
			`{"text_config": {"model_type": "gemma3_text", "rope_theta": 1e6, "rope_local_base_freq": 1e4, "rope_scaling": null, "tie_word_embeddings": true, "rope_parameters": {"full_attention": {"rope_theta": 1e6, "rope_type": "default"}, "sliding_attention": {"rope_theta": 1e4, "rope_type": "default"}}}}`},
		{"inside a text_config that leaves out what is a mistral's", "mistral3", `{"tie_word_embeddings": true, "text_config": {"model_type": "mistral", "tie_word_embeddings": false, "vocab_size": 40}}`,
			`{"text_config": {"model_type": "mistral", "tie_word_embeddings": true, "vocab_size": 40, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
			"num_attention_heads": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-6, "max_position_embeddings": 131072}}`},
		{"inside without a type", "llava", `{"text_config": {"hidden_size": 64}}`, `{"text_config": {"tie_word_embeddings": true, "vocab_size": 32000, "hidden_size": 64, "intermediate_size": 11008,
			"num_hidden_layers": 32, "num_attention_heads": 32, "rms_norm_eps": 1e-6, "max_position_embeddings": 2048}}`},
		{"layers as a word", "exaone4", `{"sliding_window_pattern": 2, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}`, `{"sliding_window_pattern": "LGL"}`},
		{"layers as a word, from a number", "exaone4", `{"sliding_window_pattern": 4, "num_hidden_layers": 8}`, `{"sliding_window_pattern": "LLLG"}`},
		{"layers as a word already", "exaone4", `{"sliding_window_pattern": "LG", "layer_types": ["full_attention", "sliding_attention"]}`, `{}`},
		{"one kind of layer, which no word has", "exaone4", `{"sliding_window_pattern": 1e9, "num_hidden_layers": 8}`, `{}`},
		{"width of the MLP", "gpt_bigcode", `{"n_embd": 64, "n_inner": null}`, `{"n_inner": 256}`},
		{"no positions", "gpt2", `{"n_embd": 64, "n_positions": 32}`, `{"n_ctx": 32}`},
		{"what follows", "exaone_moe", `{"hidden_size": 64, "num_attention_heads": 4, "mlp_layer_types": ["dense", "sparse"]}`, `{"head_dim": 16, "is_moe_layer": [false, true]}`},
		{"what does not follow", "exaone4", `{"hidden_size": 64}`, `{}`},
		{"a period", "gemma3_text", `{"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}`, `{"sliding_window_pattern": 2}`},
		{"a period with its name", "gemma3_text", `{"_sliding_window_pattern": 6, "layer_types": ["sliding_attention"]}`, `{"sliding_window_pattern": 6}`},
		{"a period against its name", "gemma3_text", `{"_sliding_window_pattern": 6, "layer_types": ["sliding_attention", "full_attention"]}`, `{"sliding_window_pattern": 2}`},
		{"no period", "qwen3_next", `{"layer_types": ["linear_attention", "full_attention", "full_attention"]}`, `{}`},
		{"one kind alone", "cohere2", `{"layer_types": ["sliding_attention"]}`, `{}`},
		{"layers without experts first", "glm4_moe_lite", `{"mlp_layer_types": ["dense", "dense", "sparse"]}`, `{"first_k_dense_replace": 2}`},
		{"and between", "glm4_moe_lite", `{"mlp_layer_types": ["sparse", "dense"]}`, `{}`},
		{"layers without attention", "kimi_linear", `{"layer_types": ["linear_attention", "full_attention", "linear_attention"], "linear_num_heads": 2, "linear_head_dim": 16, "linear_conv_kernel_dim": 4}`,
			`{"rope_theta": 10000, "linear_attn_config": {"kda_layers": [1, 3], "full_attn_layers": [2], "num_heads": 2, "head_dim": 16, "short_conv_kernel_size": 4}}`},
		{"a state's width", "mamba2", `{"expand": 2, "hidden_size": 64}`, `{"intermediate_size": 128}`},
		{"both there", "qwen3", `{"rope_theta": 1e6, "rope_scaling": null, "rope_parameters": {"rope_theta": 1e6, "rope_type": "default"}}`, `{}`},
	} {
		var got, want keys
		for raw, to := range map[string]*keys{c.given: &got, c.want: &want} {
			if err := json.Unmarshal([]byte(raw), to); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		all := maps.Clone(got)
		maps.Copy(all, want)
		for range 2 {
			spellBoth(got, c.model, false)
			if !reflect.DeepEqual(plain(t, got), plain(t, all)) {
				t.Errorf("%s: %s, want %s", c.name, marshal(got), marshal(all))
			}
		}
	}
}

func plain(t *testing.T, c keys) (v map[string]any) {
	t.Helper()
	if err := json.Unmarshal(marshal(c), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestSpelledTypes: the tables have no family that quantize does not take, nor any that is none.
func TestSpelledTypes(t *testing.T) {
	inner := []string{"", "gemma3n", "gemma3n_text", "qwen3_vl_moe_text", "qwen3_5_text", "qwen3_5_moe_text"} // of text_configs, or taken by others later
	for _, typ := range slices.Concat(slices.Collect(maps.Keys(ropes)), slices.Collect(maps.Keys(sameKeys)), slices.Collect(maps.Keys(sameValues)), slices.Collect(maps.Keys(derived))) {
		if !slices.Contains(compared, typ) && !slices.Contains(inner, typ) {
			t.Errorf("%s has names, but was not compared", typ)
		}
	}
}

// TestWrittenSpellings: a folder that is written from either spelling says both, and that it has a head where nothing else says
// it.
func TestWrittenSpellings(t *testing.T) {
	shapes := tinyShapes()
	shapes["lm_head.weight"] = []int{40, 64}
	const sizes = `{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 96, "num_attention_heads": 2,
		"num_key_value_heads": 1, "head_dim": 32, "rms_norm_eps": 1e-6, "vocab_size": 40, "max_position_embeddings": 64, `
	for name := range shapes {
		if filepath.Ext(name[:len(name)-len(".weight")]) == ".q_norm" || filepath.Ext(name[:len(name)-len(".weight")]) == ".k_norm" {
			delete(shapes, name)
		}
	}
	for _, rope := range []string{`"rope_parameters": {"rope_theta": 500, "rope_type": "default"}}`, `"rope_theta": 500}`} {
		dst := filepath.Join(t.TempDir(), "made")
		if _, err := Quantize(t.Context(), folderOf(t, []byte(sizes+rope), quant.BF16, shapes), "src", dst, fourBits); err != nil {
			t.Fatal(err)
		}
		var c map[string]any
		read(t, dst, "config.json", &c)
		if c["rope_theta"] != 500.0 || !reflect.DeepEqual(c["rope_parameters"], map[string]any{"rope_theta": 500.0, "rope_type": "default"}) || c["tie_word_embeddings"] != false {
			t.Errorf("%s: config %v", rope, c)
		}
		loads(t, dst)
	}
}
