package model

import (
	"encoding/json"
	"fmt"
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
	NGroups   int             `json:"num_attention_groups"`
	Base      json.RawMessage `json:"rope_theta"`             // one, or one per layer
	Partials  []float         `json:"partial_rotary_factors"` // per layer; where there is none all columns rotate
	YarnTypes []string        `json:"yarn_only_types"`        // of layers that rope_scaling is for; nil: all
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
}

var step3Names = strings.NewReplacer(".mlp.gate.gate", ".mlp.gate", ".mlp.gate.router_bias", ".mlp.gate.e_score_correction_bias",
	".mlp.share_expert.", ".mlp.shared_experts.")

// newStep3: heads whose results have gates, other numbers of them in layers with a window; bases and shares of rotations per layer;
// gated MLPs that are cut off behind the gate. Folders as published have other names and norms: they are not read.
func newStep3(cfg *config, b *Build) (Generator, error) {
	a := step3Args{HeadGate: true, Experts: 288, TopK: 8, ExpFFN: 1280, SharedFFN: 1280, Scale: 3, Renorm: true}
	a.Eps, a.Window, a.MaxPos = 1e-5, 512, 262144
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	routed, err := a.check()
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
		if !slices.Contains(routed, i) {
			l.MLP.Spec = cutGLU(a.LimitsOne, i)
			return l
		}
		glu := cutGLU(a.Limits, i)
		moe := nn.NewMoE(a.D, b.Local(a.ExpFFN), a.Experts, B.Router{Score: B.Sigmoid, K: a.TopK, Renorm: a.Renorm, Scale: float32(a.Scale)}, &glu)
		shared := nn.NewGLUMLP(a.D, b.Local(a.SharedFFN), B.SiLU)
		shared.Spec, moe.Bias, moe.Shared = cutGLU(a.LimitsOne, i), &nn.Vec{N: a.Experts}, &shared
		return l.routed(&moe)
	})
	m.family, m.drop, m.Head.Tied = step3Names, []string{".mtp"}, nn.TieNever
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
			c.Heads, c.KVHeads = a.Other.Heads, a.Other.Groups
		}
	}
	if err := c.check(); err != nil {
		return nn.Attention{}, fmt.Errorf("layer %d: %w", i, err)
	}
	turn := rotation{Head: c.HeadDim}
	var base float64
	var bases []float64
	if json.Unmarshal(a.Base, &base) != nil {
		if err := json.Unmarshal(a.Base, &bases); err != nil || i >= len(bases) {
			return nn.Attention{}, fmt.Errorf("rope_theta is neither a number nor one for each of %d layers", a.Layers)
		}
		base = bases[i]
	}
	if kind := a.kind(i); len(a.YarnTypes) > 0 && !slices.Contains(a.YarnTypes, kind) {
		turn.Plain = true
	}
	turn.Base, turn.Share, turn.Own = base, 1, true
	if i < len(a.Partials) {
		turn.Share = float64(a.Partials[i])
	}
	rope, err := cfg.rope(turn)
	if err != nil {
		return nn.Attention{}, fmt.Errorf("layer %d: %w", i, err)
	}
	t := gqa(b, &c, i, window, rope)
	t.QNorm, t.KNorm = nn.HeadRMS(c.HeadDim, float32(a.Eps)), nn.HeadRMS(c.HeadDim, float32(a.Eps))
	if a.HeadGate {
		gate := nn.Lin(a.D, t.Spec.Heads)
		t.HeadG = &gate
	}
	return t, nil
}

func (a *step3Args) kind(i int) string {
	if len(a.Types) == 0 {
		return "full_attention"
	}
	return a.Types[i]
}

func (a *step3Args) slides(i int) bool {
	if len(a.Types) == 0 {
		return i%2 == 0
	}
	return a.Types[i] == "sliding_attention"
}

// check also lists the layers with experts.
func (a *step3Args) check() (routed []int, err error) {
	if len(a.Types) > a.Layers && a.Layers > 0 {
		a.Types = a.Types[:a.Layers] // those that predict further tokens come behind
	}
	if a.KVHeads = a.NGroups; a.NGroups == 0 {
		return nil, fmt.Errorf("num_attention_groups is missing")
	}
	if err := a.common.check(); err != nil {
		return nil, err
	}
	if err := a.checkWindows(a.Layers); err != nil {
		return nil, err
	}
	if len(a.Types) == 0 && (a.Window <= 0 || a.Window > 1<<30) {
		return nil, fmt.Errorf("sliding_window %d is out of range", a.Window)
	}
	if a.Enum == "" {
		for i := 1; i < a.Layers; i++ {
			routed = append(routed, i)
		}
	} else {
		for _, s := range strings.Split(strings.TrimSpace(a.Enum), ",") {
			i, err := strconv.Atoi(strings.TrimSpace(s))
			if err != nil {
				return nil, fmt.Errorf("moe_layers_enum %s is no list of layers", regular.Quote(a.Enum))
			}
			routed = append(routed, i)
		}
	}
	if a.ExpFFN <= 0 || a.ExpFFN > maxSize || a.SharedFFN <= 0 || a.SharedFFN > maxSize {
		return nil, fmt.Errorf("moe_intermediate_size %d or share_expert_dim %d is out of range", a.ExpFFN, a.SharedFFN)
	}
	return routed, checkExperts("moe_num_experts", a.Experts, "moe_top_k", a.TopK)
}
