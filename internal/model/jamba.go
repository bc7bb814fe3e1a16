package model

import (
	"encoding/json"
	"fmt"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("jamba", newJamba) }

type jambaArgs struct {
	common
	AttnOffset   int             `json:"attn_layer_offset"`
	AttnPeriod   int             `json:"attn_layer_period"`
	ExpertOffset int             `json:"expert_layer_offset"`
	ExpertPeriod int             `json:"expert_layer_period"`
	Kinds        []string        `json:"layers_block_type"` // what the first two say otherwise
	Experts      int             `json:"num_experts"`
	TopK         int             `json:"num_experts_per_tok"`
	Kernel       int             `json:"mamba_d_conv"`
	State        int             `json:"mamba_d_state"`
	Expand       int             `json:"mamba_expand"`
	Rank         json.RawMessage `json:"mamba_dt_rank"`
	Bias         bool            `json:"mamba_proj_bias"`
	ConvBias     bool            `json:"mamba_conv_bias"`
}

var jambaNames = strings.NewReplacer(".mamba.", ".mixer.", ".feed_forward.router", ".mlp.gate", ".feed_forward.", ".mlp.",
	".pre_ff_layernorm", ".post_attention_layernorm", "final_layernorm", "norm")

// newJamba: Mamba layers with norms of what steps, b and c come from, among some that attend and know no positions;
// MLPs, or experts of the same width.
func newJamba(cfg *config, b *Build) (Generator, error) {
	cfg.also("num_experts", "num_local_experts")
	cfg.is("mamba_inner_layernorms", "true")
	cfg.harmless("num_logits_to_keep", "calc_logits_for_entire_prompt") // what a call gives back
	a := jambaArgs{AttnOffset: 4, ExpertOffset: 1, ExpertPeriod: 2, ConvBias: true, TopK: 2, Kernel: 4, State: 16, Expand: 2}
	cfg.into(&a)
	if err := a.check(); err != nil {
		return nil, err
	}
	rank, err := stepRank(a.Rank, a.D)
	if err != nil {
		return nil, err
	}
	s := mambaSizes{a.Expand * a.D, a.State, a.Kernel, rank, a.Bias, a.ConvBias}
	if err := s.check(); err != nil {
		return nil, err
	}
	eps, router := float32(a.Eps), B.Router{Score: B.SoftmaxSelected, K: a.TopK}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		l := preNorm(&a.common, b, nn.Attention{})
		if l.Attn = nil; a.Kinds[i] == "attention" {
			t := gqa(b, &a.common, i, 0, nil)
			l.Attn = &t
		} else {
			x := s.layer(b, i, a.D)
			x.DtN, x.BN, x.CN = &nn.RMSNorm{N: rank, Spec: B.Norm{Eps: eps}}, &nn.RMSNorm{N: s.state, Spec: B.Norm{Eps: eps}}, &nn.RMSNorm{N: s.state, Spec: B.Norm{Eps: eps}}
			l.Mixer = x
		}
		if a.Experts <= 1 || i%a.ExpertPeriod != a.ExpertOffset {
			return l
		}
		moe := nn.NewMoE(a.D, b.Local(a.FFN), a.Experts, router, &B.GLU{Act: B.SiLU})
		return l.routed(&moe)
	})
	m.family = jambaNames
	m.look = func(shape func(name string) []int) { // mlx-lm picks experts otherwise than the authors
		for i := range m.Layers {
			path := fmt.Sprintf("model.layers.%d.", i)
			// Conversions have one stack per product.
			own := shape(path+"mlp.experts.0.up_proj.weight") != nil || shape(path+"mlp.switch_mlp.gate_up_proj.weight") != nil
			if own || asPublished(shape(path+"mixer.conv1d.weight")) {
				router = B.Router{Score: B.Softmax, K: a.TopK}
			}
		}
		for i := range m.Layers {
			if moe := m.Layers[i].MoE; moe != nil {
				moe.Router = router
			}
		}
	}
	return m, nil
}

func (a *jambaArgs) check() error {
	a.HeadDim = 0 // always a share of the width
	if err := a.common.check(); err != nil {
		return err
	}
	if a.Expand <= 0 || a.Expand > 64 {
		return fmt.Errorf("mamba_expand %d is missing or out of range", a.Expand)
	}
	if a.Kinds == nil {
		if a.AttnPeriod <= 0 || a.AttnOffset < 0 {
			return fmt.Errorf("attn_layer_period %d or attn_layer_offset %d is missing or out of range", a.AttnPeriod, a.AttnOffset)
		}
		for i := range a.Layers {
			kind := "mamba"
			if i%a.AttnPeriod == a.AttnOffset {
				kind = "attention"
			}
			a.Kinds = append(a.Kinds, kind)
		}
	}
	if len(a.Kinds) != a.Layers {
		return fmt.Errorf("layers_block_type has %d entries for %d layers", len(a.Kinds), a.Layers)
	}
	if a.Experts <= 1 {
		return nil
	}
	if a.ExpertPeriod <= 0 || a.ExpertOffset < 0 || a.ExpertOffset >= a.ExpertPeriod {
		return fmt.Errorf("expert_layer_period %d or expert_layer_offset %d is missing or out of range", a.ExpertPeriod, a.ExpertOffset)
	}
	return checkExperts("num_experts", a.Experts, "num_experts_per_tok", a.TopK)
}
