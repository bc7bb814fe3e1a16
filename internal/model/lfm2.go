package model

import (
	"cmp"
	"fmt"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() {
	register("lfm2", newLFM2)
	register("lfm2_moe", newLFM2MoE)
}

// lfm2Args: layers that are listed, or whose type says so, attend; the others have a short convolution.
type lfm2Args struct {
	common
	NormEps  float    `json:"norm_eps"`
	Attends  layerSet `json:"full_attn_idxs"`
	Types    []string `json:"layer_types"`
	ConvBias bool     `json:"conv_bias"`
	Taps     int      `json:"conv_L_cache"`

	Width    int   `json:"block_dim"`
	BlockFFN int   `json:"block_ff_dim"`
	Adjust   bool  `json:"block_auto_adjust_ff_dim"`
	Factor   float `json:"block_ffn_dim_multiplier"`
	Multiple int   `json:"block_multiple_of"`

	Tie *bool `json:"tie_embedding"` // counts before tie_word_embeddings
}

func newLFM2Args() lfm2Args {
	return lfm2Args{NormEps: 1e-5, Taps: 3, Adjust: true, Factor: 1, Multiple: 256}
}

// lfm2Names: models with experts have Hugging Face's names of the MLP in published folders and the usual ones in conversions.
var lfm2Names = strings.NewReplacer("model.embedding_norm", "model.norm", ".operator_norm", ".input_layernorm", ".ffn_norm", ".post_attention_layernorm",
	".self_attn.q_layernorm", ".self_attn.q_norm", ".self_attn.k_layernorm", ".self_attn.k_norm", ".self_attn.out_proj", ".self_attn.o_proj",
	".conv.conv", ".mixer.conv", ".conv.in_proj", ".mixer.in_proj", ".conv.out_proj", ".mixer.out_proj",
	".feed_forward.expert_bias", ".mlp.gate.e_score_correction_bias", ".feed_forward", ".mlp", ".w1", ".gate_proj", ".w2", ".down_proj", ".w3", ".up_proj")

func newLFM2(cfg *config, b *Build) (Generator, error) {
	if compact(cfg.text["model_type"]) == `"lfm2_moe"` {
		return newLFM2MoE(cfg, b) // a model of text and images around it
	}
	a := newLFM2Args()
	cfg.into(&a)
	a.FFN = cmp.Or(a.BlockFFN, a.FFN)
	if a.Adjust {
		if a.FFN = int(float64(2*a.FFN) / 3); a.Factor != 0 {
			a.FFN = int(float64(a.Factor) * float64(a.FFN))
		}
		if a.Multiple <= 0 || a.Multiple > maxSize {
			return nil, fmt.Errorf("block_multiple_of %d is out of range", a.Multiple)
		}
		a.FFN = (a.FFN + a.Multiple - 1) / a.Multiple * a.Multiple
	}
	if a.Width != 0 && a.Width != a.D {
		return nil, fmt.Errorf("block_dim %d is not hidden_size %d", a.Width, a.D)
	}
	return a.build(cfg, b, func(int, *decoderLayer) {})
}

// build declares the layers; mlp changes the MLP of layer i.
func (a *lfm2Args) build(cfg *config, b *Build, mlp func(i int, l *decoderLayer)) (Generator, error) {
	cfg.is("block_use_swiglu", "true")
	// Sizes that other keys say.
	cfg.harmless("block_norm_eps", "conv_dim", "conv_dim_out", "num_heads")
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 1e6, Fixed: true})
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		var l decoderLayer
		if a.Attends[i] {
			t := gqa(b, &a.common, i, 0, rope)
			t.QNorm, t.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
			l = preNorm(&a.common, b, t)
		} else {
			l = preNorm(&a.common, b, nn.Attention{})
			l.Attn, l.Mixer = nil, a.conv(b, i)
		}
		mlp(i, &l)
		return l
	})
	m.family, m.nested, m.Head.Tied = lfm2Names, true, nn.TieAlways
	var whole struct {
		Tie  *bool `json:"tie_embedding"`
		Tied *bool `json:"tie_word_embeddings"`
	}
	cfg.beside(&whole)
	if tied := cmp.Or(whole.Tie, whole.Tied, a.Tie, a.Tied); tied != nil && !*tied {
		m.Head.Tied = nn.TieFile
	}
	return m, nil
}

func (a *lfm2Args) conv(b *Build, i int) *nn.ShortConv {
	c := &nn.ShortConv{In: nn.Lin(a.D, a.D, a.D, a.D), Out: nn.Lin(a.D, a.D), Conv: nn.NewConv(a.D, a.Taps, B.ActNone, b.Conv(i, a.D, a.Taps))}
	c.In.Bias, c.Out.Bias, c.Conv.HasBias = a.ConvBias, a.ConvBias, a.ConvBias
	return c
}

func (a *lfm2Args) check() error {
	a.Eps, a.HeadDim = a.NormEps, 0 // heads are always a share of the width
	if err := checkEps("norm_eps", a.Eps); err != nil {
		return err
	}
	if a.Taps < 2 || a.Taps > 64 {
		return fmt.Errorf("conv_L_cache %d is out of range", a.Taps)
	}
	if err := a.common.check(); err != nil {
		return err
	}
	if a.Types == nil && a.Attends != nil {
		return nil
	}
	a.Attends = layerSet{} // layer_types counts
	if len(a.Types) != a.Layers {
		return fmt.Errorf("layer_types has %d entries for %d layers", len(a.Types), a.Layers)
	}
	for i, t := range a.Types {
		if t == full {
			a.Attends[i] = true
		}
	}
	return nil
}

// newLFM2MoE has experts in all but the first layers, picked by their sigmoids and a bias.
func newLFM2MoE(cfg *config, b *Build) (Generator, error) {
	a := struct {
		lfm2Args
		Experts int   `json:"num_experts"`
		TopK    int   `json:"num_experts_per_tok"`
		ExpFFN  int   `json:"moe_intermediate_size"`
		Dense   int   `json:"num_dense_layers"`
		Renorm  bool  `json:"norm_topk_prob"`
		Bias    bool  `json:"use_expert_bias"`
		Scale   float `json:"routed_scaling_factor"`
	}{lfm2Args: newLFM2Args(), TopK: 4, Dense: 2, Renorm: true, Bias: true, Scale: 1}
	cfg.into(&a)
	if err := checkExperts("num_experts", a.Experts, "num_experts_per_tok", a.TopK); err != nil {
		return nil, err
	}
	if a.ExpFFN <= 0 || a.ExpFFN > maxSize {
		return nil, fmt.Errorf("moe_intermediate_size %d is missing or out of range", a.ExpFFN)
	}
	if !(a.Scale > 0 && a.Scale < 1e6) {
		return nil, fmt.Errorf("routed_scaling_factor %g is out of range", float64(a.Scale))
	}
	router := B.Router{Score: B.Sigmoid, K: a.TopK, Renorm: a.Renorm, Least: 1e-6, Scale: float32(a.Scale)}
	return a.build(cfg, b, func(i int, l *decoderLayer) {
		if i < a.Dense {
			return
		}
		moe := nn.NewMoE(a.D, b.Local(a.ExpFFN), a.Experts, router, &B.GLU{Act: B.SiLU})
		if a.Bias {
			moe.Bias = &nn.Vec{N: a.Experts}
		}
		l.MLP, l.MoE = nil, &moe
	})
}
