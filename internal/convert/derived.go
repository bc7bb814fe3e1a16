package convert

import (
	"encoding/json"
	"slices"
	"strings"
)

// derived are keys that mlx-lm 0.32.2 must have, or takes a default for that may be another model's, and that transformers 5
// leaves out because they follow from others. What cannot be derived is not written.
var derived = map[string]map[string]func(c keys) any{
	"apertus":       {"mlp_bias": constant(false), "post_norm": constant(false), "qk_norm": constant(true)},
	"cohere2":       {"sliding_window_pattern": period("full_attention")},
	"exaone4":       {"head_dim": headDim},
	"exaone_moe":    {"head_dim": headDim, "is_moe_layer": sparse},
	"gemma3_text":   {"sliding_window_pattern": either(period("full_attention"), same("_sliding_window_pattern"))},
	"glm4_moe":      {"head_dim": headDim},
	"glm4_moe_lite": {"first_k_dense_replace": dense},
	"gpt2":          {"n_ctx": same("n_positions")},
	"gpt_bigcode":   {"n_inner": fourfold("n_embd")},
	"kimi_linear":   {"first_k_dense_replace": dense, "linear_attn_config": linearLayers, "rope_theta": constant(10000)},
	"lfm2":          {"block_dim": same("hidden_size")},
	"mamba2":        {"intermediate_size": product("expand", "hidden_size")},
	"minimax_m2":    {"shared_intermediate_size": constant(0), "rotary_dim": same("head_dim")},
	"qwen3_5_text":  {"full_attention_interval": period("full_attention")}, "qwen3_5_moe_text": {"full_attention_interval": period("full_attention")},
	"qwen3_moe":  {"head_dim": headDim},
	"qwen3_next": {"full_attention_interval": period("full_attention")},
	"solar_open": {"first_k_dense_replace": constant(0), "intermediate_size": same("moe_intermediate_size"), "partial_rotary_factor": constant(1)},
}

// respelt are keys with two kinds of values, of which mlx-lm reads one and everybody else both.
var respelt = map[string]map[string]func(c keys) any{"exaone4": {"sliding_window_pattern": letters}}

// needed are keys that mlx-lm must have and that do not follow from others in every folder.
var needed = map[string][]string{
	"deepseek_v2":   {"rope_scaling"},
	"mimo_v2_flash": {"hybrid_layer_pattern", "moe_layer_freq", "sliding_window_size", "layernorm_epsilon"},
	"minicpm3":      {"rope_scaling"},
	"olmo3":         {"rope_theta"},
}

// missingKey is the first of those that a config has not, "" if it has all.
func missingKey(c keys, modelType string) string {
	for _, key := range needed[modelType] {
		if !given(c, key) {
			return key
		}
	}
	return ""
}

// derive adds what can be derived and is not there; a nil value is none.
func derive(c keys, modelType string) {
	for key, f := range respelt[modelType] {
		if v := f(c); v != nil {
			c[key] = marshal(v)
		}
	}
	for key, f := range derived[modelType] {
		if given(c, key) {
			continue
		}
		if v := f(c); v != nil {
			c[key] = marshal(v)
		}
	}
}

func constant(v any) func(keys) any { return func(keys) any { return v } }

func same(key string) func(keys) any {
	return func(c keys) any {
		if !given(c, key) {
			return nil
		}
		return c[key]
	}
}

func either(a, b func(keys) any) func(keys) any {
	return func(c keys) any {
		if v := a(c); v != nil {
			return v
		}
		return b(c)
	}
}

func number(c keys, key string) (n float64) {
	if json.Unmarshal(c[key], &n) != nil {
		return 0
	}
	return n
}

// whole is a number without its fraction, nil where no size can be so: products of what a file says may be infinite.
func whole(n float64) any {
	if n > 0 && n < 1<<53 {
		return int(n)
	}
	return nil
}

func product(a, b string) func(keys) any {
	return func(c keys) any {
		return whole(number(c, a) * number(c, b))
	}
}

func fourfold(key string) func(keys) any {
	return func(c keys) any {
		return whole(4 * number(c, key))
	}
}

// mostLetters is as many layers as any model has; a text_config that the model does not read may say anything.
const mostLetters = 4096

// letters are the kinds of exaone4's layers as a word, nil where there is one kind only or they are a word already.
func letters(c keys) any {
	var word string
	if json.Unmarshal(c["sliding_window_pattern"], &word) == nil && word != "" {
		return nil
	}
	var kinds []byte
	for _, l := range names(c, "layer_types") {
		kinds = append(kinds, map[bool]byte{true: 'L', false: 'G'}[l == "sliding_attention"])
	}
	word = string(kinds)
	if n := number(c, "sliding_window_pattern"); word == "" && n > 1 && n <= min(number(c, "num_hidden_layers"), mostLetters) {
		word = strings.Repeat("L", int(n)-1) + "G"
	}
	if !strings.Contains(word, "L") || !strings.Contains(word, "G") {
		return nil
	}
	return word
}

// headDim is a head's share of the width.
func headDim(c keys) any {
	width, heads := int(number(c, "hidden_size")), int(number(c, "num_attention_heads"))
	if width <= 0 || heads <= 0 {
		return nil
	}
	return width / heads // rounded down, as transformers does it
}

func names(c keys, key string) (list []string) {
	if json.Unmarshal(c[key], &list) != nil {
		return nil
	}
	return list
}

// period says that every so manieth layer is of that kind, if that is so.
func period(kind string) func(keys) any {
	return func(c keys) any {
		layers := names(c, "layer_types")
		n := slices.Index(layers, kind) + 1
		for i, l := range layers {
			if n == 0 || (l == kind) != ((i+1)%n == 0) {
				return nil
			}
		}
		if n == 0 {
			return nil
		}
		return n
	}
}

// dense is how many layers come before those with experts, if no other layer is without them.
func dense(c keys) any {
	layers := names(c, "mlp_layer_types")
	n := slices.Index(layers, "sparse")
	if n < 0 || slices.Contains(layers[n:], "dense") {
		return nil
	}
	return n
}

// sparse says of each layer whether it has experts.
func sparse(c keys) any {
	layers := names(c, "mlp_layer_types")
	if layers == nil {
		return nil
	}
	has := make([]bool, len(layers))
	for i, l := range layers {
		has[i] = l == "sparse"
	}
	return has
}

// linearLayers is kimi_linear's description of its layers without attention, counted from one.
func linearLayers(c keys) any {
	kinds := map[string][]int{}
	for i, l := range names(c, "layer_types") {
		kinds[l] = append(kinds[l], i+1)
	}
	if len(kinds["linear_attention"]) == 0 || !given(c, "linear_num_heads") || !given(c, "linear_head_dim") || !given(c, "linear_conv_kernel_dim") {
		return nil
	}
	return map[string]any{"kda_layers": kinds["linear_attention"], "full_attn_layers": kinds["full_attention"], "num_heads": c["linear_num_heads"],
		"head_dim": c["linear_head_dim"], "short_conv_kernel_size": c["linear_conv_kernel_dim"]}
}
