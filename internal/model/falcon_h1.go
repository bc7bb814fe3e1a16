package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
	"hearth/internal/quant"
)

func init() { register("falcon_h1", newFalconH1) }

// falconH1Mixer is attention and Mamba 2 side by side. The factors are those of the folder as it was published.
type falconH1Mixer struct {
	Mamba *nn.Mamba2   `w:"mamba"`
	Attn  nn.Attention `w:"self_attn"`

	mambaIn, mambaOut, attnIn, attnOut float32
}

// Forward implements mixer.
func (m *falconH1Mixer) Forward(o B.Ops, x B.Array) B.Array {
	y := times(o, m.Mamba.Forward(o, times(o, x, m.mambaIn)), m.mambaOut)
	return o.Add(y, times(o, m.Attn.Forward(o, times(o, x, m.attnIn)), m.attnOut))
}

// times scales x by a factor that is often 1.
func times(o B.Ops, x B.Array, f float32) B.Array {
	if f == 1 {
		return x
	}
	return o.Scale(x, f)
}

// falconH1MLP has a factor on what its activation sees, and one on its result.
type falconH1MLP struct {
	GateUp    nn.Linear `w:"gate_proj+up_proj,fused=gate_up_proj,shard=col"`
	Down      nn.Linear `w:"down_proj,shard=row"`
	gate, out float32
	act       B.GLU
}

// Forward implements mixer.
func (m *falconH1MLP) Forward(o B.Ops, x B.Array) B.Array {
	y := m.GateUp.Forward(o, x)
	y = o.Gate(times(o, m.GateUp.Part(o, y, 0), m.gate), m.GateUp.Part(o, y, 1), &m.act)
	return times(o, m.Down.Forward(o, y), m.out)
}

// falconH1Args: a factor that the config lacks is 1. Those of the embedding and the logits have other defaults in
// conversions: see look.
type falconH1Args struct {
	common
	AttnBias  bool    `json:"attention_bias"`
	MLPBias   bool    `json:"mlp_bias"`
	Inner     int     `json:"mamba_d_ssm"`
	Expand    int     `json:"mamba_expand"`
	MHeads    int     `json:"mamba_n_heads"`
	MWidth    autoInt `json:"mamba_d_head"`
	State     int     `json:"mamba_d_state"`
	Kernel    int     `json:"mamba_d_conv"`
	MGroups   int     `json:"mamba_n_groups"`
	ConvBias  bool    `json:"mamba_conv_bias"`
	InBias    bool    `json:"mamba_proj_bias"`
	OutBias   bool    `json:"projectors_bias"`
	MNorm     bool    `json:"mamba_rms_norm"`
	NormFirst *bool   `json:"mamba_norm_before_gate"`
	Limits    []float `json:"time_step_limit"`

	Embedding *float  `json:"embedding_multiplier"`
	Logits    *float  `json:"lm_head_multiplier"`
	Key       float   `json:"key_multiplier"`
	AttnIn    float   `json:"attention_in_multiplier"`
	AttnOut   float   `json:"attention_out_multiplier"`
	MambaIn   float   `json:"ssm_in_multiplier"`
	MambaOut  float   `json:"ssm_out_multiplier"`
	MLP       []float `json:"mlp_multipliers"` // of what the activation sees, of the result
	Mamba     []float `json:"ssm_multipliers"` // of z, x, b, c and the steps
}

var falconH1Names = strings.NewReplacer(".mamba.", ".mixer.mamba.", ".self_attn.", ".mixer.self_attn.", ".feed_forward.", ".mlp.",
	".pre_ff_layernorm", ".post_attention_layernorm", "final_layernorm", "norm")

// newFalconH1: conversions to MLX have the factors of the family in their weights, except that of a tied head.
// Published folders have them in the config alone.
func newFalconH1(cfg *config, b *Build) (Generator, error) {
	cfg.initial()
	cfg.is("mamba_use_mlp", "true")
	cfg.harmless("num_logits_to_keep", "mlp_expansion_factor", "time_step_rank") // say nothing new
	a := falconH1Args{MHeads: 24, State: 128, Kernel: 4, MGroups: 1, ConvBias: true, Expand: 2, Key: 1, AttnIn: 1, AttnOut: 1, MambaIn: 1, MambaOut: 1,
		MLP: []float{1, 1}, Mamba: []float{1, 1, 1, 1, 1}}
	a.Eps = 1e-5
	cfg.into(&a)
	s, err := a.sizes()
	if err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000})
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		l := preNorm(&a.common, b, nn.Attention{})
		l.MLP.GateUp.Bias, l.MLP.Down.Bias, l.Attn = a.MLPBias, a.MLPBias, nil
		t := gqa(b, &a.common, i, 0, rope)
		t.QKV.Bias, t.O.Bias = a.AttnBias, a.AttnBias
		x := &falconH1Mixer{Mamba: s.layer(b, i, a.D), Attn: t, mambaIn: 1, mambaOut: 1, attnIn: 1, attnOut: 1}
		if a.MNorm {
			x.Mamba.Norm = &nn.RMSNorm{N: s.heads * s.width, Spec: B.Norm{Eps: float32(a.Eps)}}
			x.Mamba.NormFirst = a.NormFirst != nil && *a.NormFirst
		}
		l.Mixer = x
		return l
	})
	m.family = falconH1Names
	m.look = func(shape func(name string) []int) { a.look(m, shape) }
	return m, nil
}

// sizes are those of the Mamba half.
func (a *falconH1Args) sizes() (*mamba2Sizes, error) {
	inner := cmp.Or(a.Inner, a.Expand*a.D)
	if a.MWidth == 0 && a.MHeads > 0 {
		a.MWidth = autoInt(inner / a.MHeads)
	}
	s := &mamba2Sizes{a.MHeads, int(a.MWidth), a.State, a.MGroups, a.Kernel, a.InBias, a.ConvBias, a.OutBias, a.Limits}
	if err := s.check(); err != nil {
		return nil, err
	}
	switch {
	case a.Inner != 0 && s.heads*s.width != inner:
		return nil, fmt.Errorf("mamba_d_ssm %d is not mamba_n_heads %d of mamba_d_head %d", a.Inner, s.heads, s.width)
	case len(a.MLP) != 2:
		return nil, fmt.Errorf("mlp_multipliers has %d entries, there are 2", len(a.MLP))
	case len(a.Mamba) != 5:
		return nil, fmt.Errorf("ssm_multipliers has %d entries, there are 5", len(a.Mamba))
	}
	for key, f := range map[string][]float{
		"embedding_multiplier": {float(factor(a.Embedding, 1))}, "lm_head_multiplier": {float(factor(a.Logits, 1))}, "key_multiplier": {a.Key},
		"attention_in_multiplier": {a.AttnIn}, "attention_out_multiplier": {a.AttnOut}, "ssm_in_multiplier": {a.MambaIn}, "ssm_out_multiplier": {a.MambaOut},
		"mlp_multipliers": a.MLP, "ssm_multipliers": a.Mamba,
	} {
		for _, x := range f {
			if x == 0 || !(math.Abs(float64(x)) < 1e6) || key == "key_multiplier" && x < 0 {
				return nil, fmt.Errorf("%s %v is out of range", key, f)
			}
		}
	}
	return s, nil
}

// look tells a conversion from a folder as it was published by the taps of its convolutions.
func (a *falconH1Args) look(m *decoder, shape func(name string) []int) {
	if !asPublished(shape("model.layers.0.mixer.mamba.conv1d.weight")) {
		if a.Tied == nil && shape("lm_head.weight") == nil || a.Tied != nil && *a.Tied {
			m.logits = float32(factor(a.Logits, 0.0390625) / factor(a.Embedding, 5.656854249492381))
		}
		return
	}
	m.Embed.Scale, m.logits = float32(factor(a.Embedding, 1)), float32(factor(a.Logits, 1))
	for i := range m.Layers {
		l := &m.Layers[i]
		x := l.Mixer.(*falconH1Mixer)
		x.mambaIn, x.mambaOut, x.attnIn, x.attnOut = float32(a.MambaIn), float32(a.MambaOut), float32(a.AttnIn), float32(a.AttnOut)
		x.Attn.Spec.Scale *= float32(a.Key)
		s, z := &x.Mamba.Spec, a.Mamba
		x.Mamba.Gated, x.Mamba.Steps = float32(z[0]), float32(z[4])
		keys := s.Groups * s.KDim
		x.Mamba.Conv.Factors = slices.Concat(slices.Repeat([]float32{float32(z[1])}, s.Heads*s.VDim), slices.Repeat([]float32{float32(z[2])}, keys),
			slices.Repeat([]float32{float32(z[3])}, keys))
		if n := x.Mamba.Norm; n != nil {
			n.Spec.Width = s.Heads * s.VDim / s.Groups
			x.Mamba.NormFirst = a.NormFirst == nil || *a.NormFirst
		}
		if a.MLP[0] != 1 || a.MLP[1] != 1 {
			l.Other = &falconH1MLP{GateUp: l.MLP.GateUp, Down: l.MLP.Down, gate: float32(a.MLP[0]), out: float32(a.MLP[1]), act: l.MLP.Spec}
			l.MLP = nil
		}
	}
}

func factor(f *float, standard float64) float64 {
	if f != nil {
		return float64(*f)
	}
	return standard
}

// scaledTaps multiplies the taps of every column by its factor: what a convolution sees is linear in them.
func scaledTaps(p B.Part, factors []float32) (B.Part, error) {
	t, x := p.Weight, numbers(p.Weight)
	taps := len(x) / len(factors)
	for i := range x {
		x[i] *= factors[i/taps]
	}
	p.Weight = floats(t.Name, quant.F32, x, t.Shape...)
	return p, nil
}
