package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
	"hearth/internal/regular"
)

func init() { register("step3p5", newStep3) }

type step3Args struct {
	common
	windows
	mlpTypes
	Sliding   int                   `json:"num_sliding_attention_heads"` // of layers with a window, in newer folders
	PerLayer  map[string]step3Layer `json:"per_layer_config"`
	QScale    float                 `json:"query_pre_attn_scalar"` // scores are divided by its root; 0: by that of head_dim
	DenseTo   int                   `json:"first_k_dense_replace"`
	Extra     int                   `json:"num_nextn_predict_layers"`
	Base      json.RawMessage       `json:"rope_theta"`             // one, or one per layer, in older folders
	Partials  []float               `json:"partial_rotary_factors"` // per layer; where there is none all columns rotate
	YarnTypes []string              `json:"yarn_only_types"`        // of layers that rope_scaling is for; nil: all
	Other     *struct {
		Heads  int `json:"num_attention_heads"`
		Groups int `json:"num_attention_groups"`
	} `json:"attention_other_setting"` // of layers with a window
	HeadGate  bool    `json:"use_head_wise_attn_gate"`
	Experts   int     `json:"moe_num_experts"`
	TopK      int     `json:"moe_top_k"`
	ExpFFN    int     `json:"moe_intermediate_size"`
	SharedFFN int     `json:"share_expert_dim"`
	Enum      string  `json:"moe_layers_enum"` // layers with experts; "": all but the first
	Scale     float   `json:"moe_router_scaling_factor"`
	Renorm    bool    `json:"norm_expert_weight"`
	Limits    []float `json:"swiglu_limits"`        // per layer, of experts; 0: none
	LimitsOne []float `json:"swiglu_limits_shared"` // of the shared one, and of MLPs

	bases []float64 // of the rotation, per layer
	ropes map[step3Turn]*B.Rope
}

// step3Layer is what per_layer_config may say of a layer.
type step3Layer struct {
	Heads   int `json:"num_attention_heads"`
	KVHeads int `json:"num_key_value_heads"`
}

var step3Names = strings.NewReplacer(".mlp.gate.gate", ".mlp.gate", ".mlp.gate.router_bias", ".mlp.gate.e_score_correction_bias",
	".mlp.share_expert.", ".mlp.shared_experts.", ".share_expert.", ".mlp.shared_experts.",
	".moe.gate.", ".mlp.gate.", ".moe.router_bias", ".mlp.gate.e_score_correction_bias", ".moe.", ".mlp.switch_mlp.")

// newStep3: heads whose results have gates, other numbers of them in layers with a window; bases and shares of
// rotations per layer; gated MLPs that are cut off behind the gate. Folders as published have other names than
// conversions to MLX, and norms apart from 1.
func newStep3(cfg *config, b *Build) (Generator, error) {
	a := step3Args{HeadGate: true, Experts: 288, TopK: 8, ExpFFN: 1280, SharedFFN: 1280, Scale: 3, Renorm: true,
		ropes: map[step3Turn]*B.Rope{}}
	a.Eps, a.Window, a.MaxPos, a.DenseTo = 1e-5, 512, 262144, 1
	if cfg.typ == "step3p7" {
		a.HeadDim, a.Window, a.MaxPos, a.Scale, a.DenseTo, a.KVHeads = 128, 0, 128000, 1, 3, 8
	}
	cfg.harmless("hidden_act") // transformers puts silu in its place
	cfg.also("num_key_value_heads", "num_attention_groups")
	cfg.also("moe_num_experts", "n_routed_experts", "num_local_experts", "num_experts")
	cfg.also("moe_top_k", "num_experts_per_tok")
	cfg.also("share_expert_dim", "share_expert_dims")
	cfg.into(&a)
	err := a.check(cfg.typ == "step3p7")
	if err != nil {
		return nil, err
	}
	var layers []nn.Attention
	for i := range a.Layers {
		t, err := a.attention(cfg, b, i)
		if err != nil {
			return nil, err
		}
		layers = append(layers, t)
	}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		l := preNorm(&a.common, b, layers[i])
		if !a.sparse(i) {
			l.MLP.Spec = cutGLU(a.LimitsOne, i)
			return l
		}
		glu := cutGLU(a.Limits, i)
		moe := nn.NewMoE(a.D, b.Local(a.ExpFFN), a.Experts, B.Router{Score: B.Sigmoid, K: a.TopK, Renorm: a.Renorm, Scale: float32(a.Scale)}, &glu)
		shared := nn.NewGLUMLP(a.D, b.Local(a.SharedFFN), B.SiLU)
		shared.Spec, moe.Bias, moe.Shared = cutGLU(a.LimitsOne, i), &nn.Vec{N: a.Experts}, &shared
		return l.routed(&moe)
	})
	m.family, m.nested, m.drop = step3Names, true, []string{".mtp", "vision_model.", "vit_large_projector."}
	if m.Head.Tied = a.ownTie(); cfg.at != "" {
		cfg.tieBeside(&m.Head, new(bool))
	}
	for i := range a.Extra {
		m.drop = append(m.drop, fmt.Sprintf("model.layers.%d.", a.Layers+i))
	}
	published := false
	m.note = func(name string) {
		for _, part := range []string{".moe.", "vision_model.", ".experts.gate_up_proj"} {
			published = published || strings.Contains(name, part)
		}
	}
	m.look = func(func(string) []int) {
		if !published {
			return
		}
		m.Norm.Plus1 = true
		for i := range m.Layers {
			l := &m.Layers[i]
			for _, n := range []*nn.RMSNorm{l.InNorm, l.PostNorm, l.Attn.QNorm, l.Attn.KNorm} {
				n.Plus1 = true
			}
		}
	}
	return m, nil
}

// cutGLU is the gate of layer i with its limit.
func cutGLU(limits []float, i int) B.GLU {
	if i >= len(limits) || limits[i] <= 0 {
		return B.GLU{Act: B.SiLU}
	}
	return B.GLU{Act: B.SiLU, Limit: float32(limits[i]), After: true}
}

// attention declares that of layer i.
func (a *step3Args) attention(cfg *config, b *Build, i int) (nn.Attention, error) {
	c, window := a.common, 0
	if a.slides(i) {
		if window = a.Window; a.Other != nil {
			c.Heads, c.KVHeads = a.Other.Heads, cmp.Or(a.Other.Groups, c.KVHeads)
		}
		if a.PerLayer == nil {
			c.Heads = cmp.Or(a.Sliding, c.Heads)
		}
	}
	own := a.PerLayer[strconv.Itoa(i)]
	c.Heads, c.KVHeads = cmp.Or(own.Heads, c.Heads), cmp.Or(own.KVHeads, c.KVHeads)
	if err := c.check(); err != nil {
		return nn.Attention{}, fmt.Errorf("layer %d: %w", i, err)
	}
	rope, err := a.rope(cfg, i)
	if err != nil {
		return nn.Attention{}, fmt.Errorf("layer %d: %w", i, err)
	}
	t := gqa(b, &c, i, window, rope)
	t.QNorm, t.KNorm = nn.HeadRMS(c.HeadDim, float32(a.Eps)), nn.HeadRMS(c.HeadDim, float32(a.Eps))
	if a.QScale != 0 {
		t.Spec.Scale = float32(1 / math.Sqrt(float64(a.QScale)))
	}
	if a.HeadGate {
		gate := nn.Lin(a.D, t.Spec.Heads)
		t.HeadG = &gate
	}
	return t, nil
}

// step3Turn is what a layer's rotation depends on.
type step3Turn struct {
	kind        string
	base, share float64
}

// rope is the rotation of layer i, which layers share.
func (a *step3Args) rope(cfg *config, i int) (*B.Rope, error) {
	t := step3Turn{a.kind(i), a.bases[i], 1}
	if i < len(a.Partials) {
		t.share = float64(a.Partials[i])
	}
	if r := a.ropes[t]; r != nil {
		return r, nil
	}
	r, err := a.newRope(cfg, t)
	a.ropes[t] = r
	return r, err
}

// newRope reads a rotation: by the type of a layer in newer folders, by lists in older ones.
func (a *step3Args) newRope(cfg *config, t step3Turn) (*B.Rope, error) {
	if raw := cfg.text["rope_parameters"]; given(raw) {
		var kinds map[string]json.RawMessage
		if err := json.Unmarshal(raw, &kinds); err != nil || !given(kinds[t.kind]) {
			return nil, fmt.Errorf("%srope_parameters has none of %s", cfg.at, t.kind)
		}
		return cfg.newRope(rotation{Head: a.HeadDim, Kind: t.kind, Base: 10000, Share: 1, New: true, Fixed: true})
	}
	if cfg.typ == "step3p7" && len(a.YarnTypes) == 0 {
		a.YarnTypes = []string{full}
	}
	plain := len(a.YarnTypes) > 0 && !slices.Contains(a.YarnTypes, t.kind)
	return cfg.newRope(rotation{Head: a.HeadDim, Base: t.base, Share: t.share, Own: true, Plain: plain, Fixed: true})
}

// readBases fills the base of every layer.
func (a *step3Args) readBases() error {
	base := 10000.0
	if a.Base == nil || json.Unmarshal(a.Base, &base) == nil {
		a.bases = slices.Repeat([]float64{base}, a.Layers)
		return nil
	}
	if err := json.Unmarshal(a.Base, &a.bases); err != nil || len(a.bases) < a.Layers {
		return fmt.Errorf("rope_theta is neither a number nor one for each of %d layers", a.Layers)
	}
	return nil
}

func (a *step3Args) slides(i int) bool { return a.window(i) > 0 }

// check also fills what the config does not say of layers: transformers takes other things for granted than mlx-lm.
func (a *step3Args) check(newer bool) error {
	if len(a.Types) > a.Layers && a.Layers > 0 {
		a.Types = a.Types[:a.Layers] // those that predict further tokens come behind
	}
	if len(a.MLPs) > a.Layers && a.Layers > 0 {
		a.MLPs = a.MLPs[:a.Layers]
	}
	if a.KVHeads == 0 {
		return fmt.Errorf("num_attention_groups is missing")
	}
	if err := a.common.check(); err != nil {
		return err
	}
	if !newer && len(a.Types) == 0 && (a.Window <= 0 || a.Window > 1<<30) {
		return fmt.Errorf("sliding_window %d is out of range", a.Window)
	}
	a.fill(a.Layers, func(i int) bool { return !newer && i%2 == 0 })
	if err := a.checkWindows(a.Layers); err != nil {
		return err
	}
	routed := map[int]bool{}
	for _, s := range strings.FieldsFunc(a.Enum, func(r rune) bool { return r == ',' || r == ' ' }) {
		i, err := strconv.Atoi(s)
		if err != nil {
			return fmt.Errorf("moe_layers_enum %s is no list of layers", regular.Quote(a.Enum))
		}
		routed[i] = true
	}
	if err := a.fillMLPs(a.Layers, func(i int) bool { return a.Enum == "" && i >= a.DenseTo || routed[i] }); err != nil {
		return err
	}
	if err := a.readBases(); err != nil {
		return err
	}
	for _, i := range slices.Sorted(maps.Keys(a.PerLayer)) {
		if n, err := strconv.Atoi(i); err != nil || n < 0 || n >= a.Layers {
			return fmt.Errorf("per_layer_config has an entry %s for %d layers", regular.Quote(i), a.Layers)
		}
	}
	switch {
	case a.ExpFFN <= 0 || a.ExpFFN > maxSize || a.SharedFFN <= 0 || a.SharedFFN > maxSize:
		return fmt.Errorf("moe_intermediate_size %d or share_expert_dim %d is out of range", a.ExpFFN, a.SharedFFN)
	case a.Extra < 0 || a.Extra > 64:
		return fmt.Errorf("num_nextn_predict_layers %d is out of range", a.Extra)
	case !(a.QScale >= 0 && a.QScale < 1e9):
		return fmt.Errorf("query_pre_attn_scalar %g is out of range", float64(a.QScale))
	case !(a.Scale > 0 && a.Scale < 1e6):
		return fmt.Errorf("moe_router_scaling_factor %g is out of range", float64(a.Scale))
	}
	return checkExperts("moe_num_experts", a.Experts, "moe_top_k", a.TopK)
}
