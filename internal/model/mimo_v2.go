package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"hearth/internal/regular"
)

func init() { registerNear("mimo_v2", "mimo_v2_flash", newMiMoV25) }

// mimoLater are the keys of the family's later models that stand for one another, or may be missing.
type mimoLater struct {
	Layers  int             `json:"num_hidden_layers"`
	KVHeads int             `json:"num_key_value_heads"`
	Layout  string          `json:"attention_projection_layout"`
	Freq    json.RawMessage `json:"moe_layer_freq"`
}

// newMiMoV25 is mimo_v2_flash with other defaults: what is null or missing of layers with a window is that of the others.
func newMiMoV25(cfg *config, b *Build) (Generator, error) {
	var k mimoLater
	cfg.into(&k)
	if k.Layers <= 0 || k.Layers > maxLayers {
		return nil, fmt.Errorf("num_hidden_layers %d is missing or out of range", k.Layers)
	}
	cfg.is("attention_projection_layout", `"split"`, `"fused_qkv"`)
	cfg.harmless("hybrid_block_size") // hybrid_layer_pattern counts
	if err := apartRopes(cfg); err != nil {
		return nil, err
	}
	for _, f := range [][2]string{ // a key, and the one whose value it has otherwise; a value where that is none
		{"head_dim", "192"}, {"v_head_dim", "head_dim"}, {"swa_head_dim", "head_dim"}, {"swa_v_head_dim", "v_head_dim"},
		{"swa_num_attention_heads", "num_attention_heads"}, {"swa_num_key_value_heads", "num_key_value_heads"},
		{"rope_theta", "5000000"}, {"swa_rope_theta", "rope_theta"}, {"layernorm_epsilon", "rms_norm_eps"},
		{"sliding_window_size", "sliding_window"}, {"sliding_window", "sliding_window_size"}, {"attention_value_scale", "null"},
	} {
		if given(cfg.text[f[0]]) {
			continue
		}
		if value, ok := cfg.text[f[1]]; ok {
			cfg.text[f[0]] = value
		} else if json.Valid([]byte(f[1])) {
			cfg.text[f[0]] = json.RawMessage(f[1])
		}
	}
	if !given(cfg.text["hybrid_layer_pattern"]) && !given(cfg.text["layer_types"]) {
		cfg.text["hybrid_layer_pattern"] = perLayer(k.Layers, func(int) int { return 0 })
	}
	if err := k.experts(cfg); err != nil {
		return nil, err
	}
	g, err := newMiMoV2(cfg, b)
	if err != nil || k.Layout != "fused_qkv" {
		return g, err
	}
	return g, k.fuse(cfg, g.(*decoder), b)
}

// apartRopes makes flat rope_parameters those of layers without a window: the others have their base beside them.
func apartRopes(cfg *config) error {
	raw := cfg.text["rope_parameters"]
	if !given(raw) {
		return nil
	}
	var flat map[string]json.RawMessage
	if err := json.Unmarshal(raw, &flat); err != nil {
		return keyed("rope_parameters", err)
	}
	if len(flat) == 0 || byKind(flat) {
		return nil
	}
	if base := cfg.text["rope_theta"]; !given(flat["rope_theta"]) && given(base) {
		flat["rope_theta"] = base
	}
	local := maps.Clone(flat)
	if base := cfg.text["swa_rope_theta"]; given(base) {
		local["rope_theta"] = base
	}
	both, err := json.Marshal(map[string]any{full: flat, slides: local})
	cfg.text["rope_parameters"] = both
	return err
}

// experts spells out which layers have some where one number says that every n-th does, or nothing that any does.
func (k *mimoLater) experts(cfg *config) error {
	every := 0
	switch {
	case given(cfg.text["mlp_layer_types"]) && !given(k.Freq):
		return nil
	case !given(k.Freq):
	case json.Unmarshal(k.Freq, &every) != nil:
		return nil // a list
	case every <= 0:
		return fmt.Errorf("moe_layer_freq %s is not positive", regular.Clip(compact(k.Freq)))
	}
	cfg.text["moe_layer_freq"] = perLayer(k.Layers, func(i int) int {
		if every > 0 && i%every == 0 {
			return 1
		}
		return 0
	})
	return nil
}

// perLayer is a list of a number per layer.
func perLayer(layers int, of func(i int) int) json.RawMessage {
	list := []byte{'['}
	for i := range layers {
		if i > 0 {
			list = append(list, ',')
		}
		list = strconv.AppendInt(list, int64(of(i)), 10)
	}
	return append(list, ']')
}

// fuse reads queries, keys and values from one tensor: in as many shards as layers without a window have heads of keys.
func (k *mimoLater) fuse(cfg *config, m *decoder, b *Build) error {
	const key = "attention_projection_layout"
	var q struct {
		Method string `json:"quant_method"`
	}
	if raw := cfg.top["quantization_config"]; given(raw) && json.Unmarshal(raw, &q) == nil && q.Method == "fp8" {
		return &LoadError{File: configFile, Problem: fmt.Sprintf("%s is fused_qkv with weights in fp8, whose blocks of scales begin anew in each of %d shards: that is not supported", key, k.KVHeads),
			Hint: "use a conversion in which q_proj, k_proj and v_proj are apart, or one of XiaomiMiMo/MiMo-V2-Flash"}
	}
	shards := b.LocalKV(k.KVHeads)
	for i := range m.Layers {
		t := m.Layers[i].Attn
		s := t.Spec
		if s.Heads%shards != 0 || s.KVHeads%shards != 0 {
			return fmt.Errorf("%s fused_qkv: %d heads and %d of keys in layer %d do not divide into %d shards", key, s.Heads, s.KVHeads, i, shards)
		}
		t.QKV.Fused, t.QKV.Perm = true, [][]int32{interleave(shards, s.Heads/shards*s.KDim, s.KVHeads/shards*s.KDim, s.KVHeads/shards*s.VDim)}
	}
	return nil
}
