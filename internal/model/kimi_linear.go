package model

import (
	"cmp"
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

	Kinds   []string `json:"layer_types"` // newer folders have these in place of Linear
	MLPs    []string `json:"mlp_layer_types"`
	LHeads  int      `json:"linear_num_heads"`
	LWidth  int      `json:"linear_head_dim"`
	LKernel int      `json:"linear_conv_kernel_dim"`
	Linear  struct {
		Layers  layerSet `json:"kda_layers"` // counted from one
		Full    []int    `json:"full_attn_layers"`
		Heads   int      `json:"num_heads"`
		HeadDim int      `json:"head_dim"`
		Kernel  int      `json:"short_conv_kernel_size"`
	} `json:"linear_attn_config"`
}

var kimiLinearNames = strings.NewReplacer(".block_sparse_moe.", ".mlp.", ".mlp.e_score_correction_bias", ".mlp.gate.e_score_correction_bias",
	".w1.", ".gate_proj.", ".w2.", ".down_proj.", ".w3.", ".up_proj.", "_conv1d.", "_conv.conv.",
	".forget_gate.", ".") // the latter is a part of a layer in transformers' memory

// newKimiLinear: the gated delta rule with a decay per key, and latent attention without positions in layers between.
func newKimiLinear(cfg *config, b *Build) (Generator, error) {
	for key, other := range map[string]string{"num_experts": "num_local_experts", "num_shared_experts": "n_shared_experts", "num_experts_per_token": "num_experts_per_tok",
		"num_expert_group": "n_group", "moe_renormalize": "norm_topk_prob"} {
		cfg.also(key, other)
	}
	cfg.is("mla_use_nope", "true")
	// Nothing rotates, and the width of a query's head is the sum of its parts.
	cfg.harmless("rope_theta", "rope_scaling", "rope_parameters", "qk_head_dim", "use_grouped_topk")
	a := kimiLinearArgs{PerToken: 8, NumShared: 1, NumGroups: 1, Activation: "sigmoid", Normalise: true, LHeads: 32, LWidth: 128, LKernel: 4}
	a.TopGroups, a.Freq, a.Scale, a.kvb, a.Dense = 1, 1, 2.446, nn.Heads{Again: true}, 1
	cfg.into(&a)
	if cfg.null("moe_renormalize") {
		a.Normalise = false
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	router := a.router()
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		l := decoderLayer{InNorm: a.norm(), PostNorm: a.norm()}
		if a.Kinds[i] == linear {
			l.Recur = a.delta(b, i)
		} else {
			l.MLA = a.attention(b, i, &nn.RopeArgs{})
		}
		if a.Experts == 0 || a.MLPs[i] != sparse {
			mlp := nn.NewGLUMLP(a.D, b.Local(a.FFN), B.SiLU)
			l.MLP = &mlp
			return l
		}
		return l.routed(a.moe(b, router, &B.GLU{Act: B.SiLU}))
	})
	m.family, m.extra = kimiLinearNames, "model.mtp"
	if m.Head.Tied = a.ownTie(); m.Head.Tied == nn.TieAlways {
		m.Head.Tied = nn.TieFile // transformers ties none
	}
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
	a.Experts, a.Shared, a.TopK, a.Groups, a.Renorm, a.MaxPos = a.NumExperts, a.NumShared, a.PerToken, a.NumGroups, a.Normalise, cmp.Or(a.MaxLen, a.MaxPos)
	a.Method, a.Scoring, a.normEps, a.AttnBias = "noaux_tc", a.Activation, 1e-6, false
	l := &a.Linear
	l.Heads, l.HeadDim, l.Kernel = cmp.Or(l.Heads, a.LHeads), cmp.Or(l.HeadDim, a.LWidth), cmp.Or(l.Kernel, a.LKernel)
	if l.Heads <= 0 || l.Heads > 1<<12 || l.HeadDim <= 0 || l.HeadDim > 1<<12 || l.Kernel < 2 || l.Kernel > 64 {
		return fmt.Errorf("linear_attn_config, or linear_num_heads, linear_head_dim and linear_conv_kernel_dim, of %d heads of %d and %d taps is out of range",
			l.Heads, l.HeadDim, l.Kernel)
	}
	if err := a.kinds(); err != nil {
		return err
	}
	if a.Groups <= 0 || a.Experts%a.Groups != 0 {
		return fmt.Errorf("num_expert_group %d does not divide %d experts", a.Groups, a.Experts)
	}
	if a.Experts > 0 && a.Experts/a.Groups*a.TopGroups < a.TopK {
		return fmt.Errorf("topk_group %d of num_expert_group %d leaves %d experts, num_experts_per_token is %d", a.TopGroups, a.Groups, a.Experts/a.Groups*a.TopGroups, a.TopK)
	}
	return a.latentArgs.check()
}

// kinds fills what layers are, where layer_types and mlp_layer_types do not say it.
func (a *kimiLinearArgs) kinds() error {
	n := min(max(a.Layers, 0), maxLayers)
	if a.Kinds == nil || a.Linear.Layers != nil && !slices.Contains(a.Kinds, linear) {
		a.Kinds = nil
		for i := range n {
			a.Kinds = append(a.Kinds, either(a.Linear.Layers[i+1] || a.Linear.Layers == nil && (i == 0 || i%4 != 0), linear, full))
		}
	}
	if a.MLPs == nil {
		for i := range n {
			a.MLPs = append(a.MLPs, either(i < a.Dense || a.Freq > 0 && i%a.Freq != 0, dense, sparse))
		}
	}
	return cmp.Or(checkKinds("layer_types", a.Kinds, n, full, linear), checkKinds("mlp_layer_types", a.MLPs, n, dense, sparse))
}
