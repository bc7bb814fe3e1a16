package model

import (
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("falcon_h1", newFalconH1) }

// falconH1Mixer is attention and Mamba 2 side by side.
type falconH1Mixer struct {
	Mamba *nn.Mamba2   `w:"mamba"`
	Attn  nn.Attention `w:"self_attn"`
}

// Forward implements mixer.
func (m *falconH1Mixer) Forward(o B.Ops, x B.Array) B.Array {
	return o.Add(m.Mamba.Forward(o, x), m.Attn.Forward(o, x))
}

var falconH1Names = strings.NewReplacer(".mamba.", ".mixer.mamba.", ".self_attn.", ".mixer.self_attn.", ".feed_forward.", ".mlp.",
	".pre_ff_layernorm", ".post_attention_layernorm", "final_layernorm", "norm")

// newFalconH1: the many factors of the family are inside the weights of conversions to MLX, but for that of a tied head; folders as
// published are refused.
func newFalconH1(cfg *config, b *Build) (Generator, error) {
	tied := true
	a := struct {
		common
		AttnBias  bool    `json:"attention_bias"`
		MLPBias   bool    `json:"mlp_bias"`
		Inner     int     `json:"mamba_d_ssm"`
		MHeads    int     `json:"mamba_n_heads"`
		MWidth    int     `json:"mamba_d_head"`
		State     int     `json:"mamba_d_state"`
		Kernel    int     `json:"mamba_d_conv"`
		MGroups   int     `json:"mamba_n_groups"`
		ConvBias  bool    `json:"mamba_conv_bias"`
		InBias    bool    `json:"mamba_proj_bias"`
		OutBias   bool    `json:"projectors_bias"`
		MNorm     bool    `json:"mamba_rms_norm"`
		NormFirst bool    `json:"mamba_norm_before_gate"`
		Embedding float64 `json:"embedding_multiplier"`
		Logits    float64 `json:"lm_head_multiplier"`
	}{MHeads: 24, MWidth: 64, State: 128, Kernel: 4, MGroups: 1, ConvBias: true, Embedding: 5.656854249492381, Logits: 0.0390625}
	a.HeadDim, a.Eps, a.Tied = 64, 1e-5, &tied
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	s := mamba2Sizes{a.MHeads, a.MWidth, a.State, a.MGroups, a.Kernel, a.InBias, a.ConvBias, a.OutBias, nil}
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	rope, err := cfg.rope(rotation{Head: a.HeadDim, Base: 1e11})
	if err != nil {
		return nil, err
	}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		l := preNorm(&a.common, b, nn.Attention{})
		l.MLP.GateUp.Bias, l.MLP.Down.Bias, l.Attn = a.MLPBias, a.MLPBias, nil
		t := gqa(b, &a.common, i, 0, rope)
		t.QKV.Bias, t.O.Bias = a.AttnBias, a.AttnBias
		x := &falconH1Mixer{Mamba: s.layer(b, i, a.D), Attn: t}
		x.Mamba.Conv.Converted = true
		if a.MNorm {
			n := nn.RMS(s.heads*s.width, float32(a.Eps))
			x.Mamba.Norm, x.Mamba.NormFirst = &n, a.NormFirst
		}
		l.Mixer = x
		return l
	})
	if m.family = falconH1Names; *a.Tied {
		m.logits = float32(a.Logits / a.Embedding)
	}
	return m, nil
}
