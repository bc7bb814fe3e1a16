package model

import (
	"fmt"
	"math"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("afmoe", newAFMoE) }

// afMoEArgs are the keys of glm4_moe, most of them under other names.
type afMoEArgs struct {
	glm4MoEArgs
	windows
	NumExperts int   `json:"num_experts"`
	NumShared  int   `json:"num_shared_experts"`
	NumDense   int   `json:"num_dense_layers"`
	RouteNorm  bool  `json:"route_norm"`
	RouteScale float `json:"route_scale"`
	Global     int   `json:"global_attn_every_n_layers"` // where layer_types does not say
	MuP        bool  `json:"mup_enabled"`                // the embedding is multiplied by the root of its width
}

// newAFMoE: experts as in glm4_moe, four norms a layer as in gemma2, a gate on attention's result; only layers with a
// window rotate.
func newAFMoE(cfg *config, b *Build) (Generator, error) {
	a := afMoEArgs{NumShared: 2, NumDense: 1, RouteNorm: true, RouteScale: 1, Global: 4}
	a.Groups, a.TopGroups, a.Window, a.HeadDim = 1, 1, 1024, 128
	cfg.into(&a)
	cfg.is("use_qk_norm", "true")
	cfg.is("score_func", `"sigmoid"`)
	cfg.is("num_expert_groups", "1")
	cfg.is("num_limited_groups", "1")
	cfg.harmless("use_grouped_mm") // a way of computing the same
	if cfg.null("route_scale") {
		a.RouteScale = 1
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	if a.Groups > 1 {
		cfg.differs("n_group", "as mlx-lm reads it; in transformers experts of this architecture have no groups")
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Fixed: true})
	router := a.router()
	m := newDecoder(&a.common, b, func(i int) decoderLayer { return a.layer(b, i, rope, router) })
	if a.MuP {
		m.Embed.Scale = float32(math.Sqrt(float64(a.D)))
	}
	m.family = afMoENames
	m.Head.Tied = a.ownTie()
	m.gate(cfg)
	return m, nil
}

func (a *afMoEArgs) layer(b *Build, i int, rope *B.Rope, router B.Router) decoderLayer {
	if a.window(i) == 0 {
		rope = nil
	}
	t := gqa(b, &a.common, i, a.window(i), rope)
	t.QNorm, t.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
	gate := nn.Lin(a.D, b.Local(a.Heads)*a.HeadDim)
	t.Gate = &gate
	l := preNorm(&a.common, b, t)
	l.AttnNorm, l.PostNorm, l.PreNorm, l.MLPNorm = l.PostNorm, nil, a.norm(), a.norm()
	if i < a.Dense {
		return l
	}
	return l.routed(a.moe(b, router, &B.GLU{Act: B.SiLU}))
}

var afMoENames = strings.NewReplacer(".mlp.router.gate", ".mlp.gate", ".mlp.expert_bias", ".mlp.gate.e_score_correction_bias",
	"pre_mlp_layernorm", "pre_feedforward_layernorm", "post_mlp_layernorm", "post_feedforward_layernorm",
	".mlp.experts.gate_proj", ".mlp.switch_mlp.gate_proj", ".mlp.experts.up_proj", ".mlp.switch_mlp.up_proj", ".mlp.experts.down_proj", ".mlp.switch_mlp.down_proj")

func (a *afMoEArgs) check() error {
	a.Experts, a.Shared, a.Dense, a.Renorm, a.Scale = a.NumExperts, a.NumShared, a.NumDense, a.RouteNorm, a.RouteScale
	a.Method, a.Scoring = "noaux_tc", "sigmoid"
	if err := a.glm4MoEArgs.check(); err != nil {
		return err
	}
	if a.Global <= 0 {
		return fmt.Errorf("global_attn_every_n_layers %d is not positive", a.Global)
	}
	a.fill(a.Layers, func(i int) bool { return (i+1)%a.Global != 0 })
	return a.checkWindows(a.Layers)
}
