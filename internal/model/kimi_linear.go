package model

import (
	"fmt"
	"slices"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("kimi_linear", newKimiLinear) }

// kimiLinearArgs are those of deepseek_v3 with other names for many.
type kimiLinearArgs struct {
	latentArgs
	NumExperts int    `json:"num_experts"`
	NumShared  int    `json:"num_shared_experts"`
	PerToken   int    `json:"num_experts_per_token"`
	NumGroups  int    `json:"num_expert_group"`
	Activation string `json:"moe_router_activation_func"`
	Normalise  bool   `json:"moe_renormalize"`
	MaxLen     int    `json:"model_max_length"`
	Linear     struct {
		Layers  []int `json:"kda_layers"` // counted from one
		Heads   int   `json:"num_heads"`
		HeadDim int   `json:"head_dim"`
		Kernel  int   `json:"short_conv_kernel_size"`
	} `json:"linear_attn_config"`
}

var kimiLinearNames = strings.NewReplacer(".block_sparse_moe.", ".mlp.", ".mlp.e_score_correction_bias", ".mlp.gate.e_score_correction_bias",
	".w1.", ".gate_proj.", ".w2.", ".down_proj.", ".w3.", ".up_proj.", "_conv1d.", "_conv.conv.")

// newKimiLinear: the gated delta rule with a decay per key, and latent attention without positions in layers between.
func newKimiLinear(cfg *config, b *Build) (Generator, error) {
	a := kimiLinearArgs{PerToken: 1, NumGroups: 1, Activation: "sigmoid", Normalise: true}
	a.TopGroups, a.Freq, a.Scale, a.kvb, a.Linear.Kernel = 1, 1, 1, nn.Heads{Again: true}, 4
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	router := a.router()
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		l := decoderLayer{InNorm: a.norm(), PostNorm: a.norm()}
		if slices.Contains(a.Linear.Layers, i+1) {
			l.Recur = a.delta(b, i)
		} else {
			l.MLA = a.attention(b, i, &nn.RopeArgs{})
		}
		if a.Experts == 0 || i < a.Dense || i%a.Freq != 0 {
			mlp := nn.NewGLUMLP(a.D, b.Local(a.FFN), B.SiLU)
			l.MLP = &mlp
			return l
		}
		moe := nn.NewMoE(a.D, b.Local(a.ExpFFN), a.Experts, router, &B.GLU{Act: B.SiLU})
		moe.Bias = &nn.Vec{N: a.Experts}
		if a.Shared > 0 {
			shared := nn.NewGLUMLP(a.D, b.Local(a.ExpFFN*a.Shared), B.SiLU)
			moe.Shared = &shared
		}
		return l.routed(&moe)
	})
	m.family, m.extra = kimiLinearNames, "model.mtp"
	m.ownHead(&a.common)
	return m, nil
}

// delta declares layer i of the other kind. It is the same on every rank.
func (a *kimiLinearArgs) delta(b *Build, i int) *nn.KeyDelta {
	n, hd := a.Linear.Heads, a.Linear.HeadDim
	d := &nn.KeyDelta{
		QKV: nn.Lin(a.D, n*hd, n*hd, n*hd), Conv: nn.NewConv(3*n*hd, a.Linear.Kernel, B.SiLU, b.Conv(i, 3*n*hd, a.Linear.Kernel)),
		FB: nn.Lin(a.D, hd, n), F: nn.Lin(hd, n*hd), GA: nn.Lin(a.D, hd), G: nn.Lin(hd, n*hd), O: nn.Lin(n*hd, a.D),
		ALog: nn.Vec{N: n, Flat: true}, Dt: nn.Vec{N: n * hd, Flat: true}, Norm: *nn.HeadRMS(hd, float32(a.Eps)),
		Spec: B.Delta{State: b.Driven(i, n, hd, hd, 2*hd+1), KHeads: n, VHeads: n, KDim: hd, VDim: hd, PerKey: true},
	}
	d.FB.Least, d.F.Least = B.Float32, B.Float32 // what a decay is off by, all later rows see
	return d
}

func (a *kimiLinearArgs) check() error {
	if a.Nope == 0 {
		a.Nope = a.HeadDim
	}
	if a.VDim == 0 {
		a.VDim = a.HeadDim
	}
	a.Experts, a.Shared, a.TopK, a.Groups, a.Renorm, a.MaxPos = a.NumExperts, a.NumShared, a.PerToken, a.NumGroups, a.Normalise, a.MaxLen
	a.Method, a.Scoring, a.QLora, a.normEps, a.AttnBias = "noaux_tc", a.Activation, 0, float64(a.Eps), false
	l := &a.Linear
	if len(l.Layers) == 0 || l.Heads <= 0 || l.Heads > 1<<12 || l.HeadDim <= 0 || l.HeadDim > 1<<12 || l.Kernel < 2 || l.Kernel > 64 {
		return fmt.Errorf("linear_attn_config of %d layers, %d heads of %d and %d taps is missing or out of range", len(l.Layers), l.Heads, l.HeadDim, l.Kernel)
	}
	return a.latentArgs.check()
}
