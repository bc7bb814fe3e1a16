package model

import (
	"fmt"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("exaone_moe", newExaoneMoE) }

// exaoneMoEArgs are those of glm4_moe with other names for the numbers of experts.
type exaoneMoEArgs struct {
	glm4MoEArgs
	windows
	NumExperts int    `json:"num_experts"`
	NumShared  int    `json:"num_shared_experts"`
	IsMoE      []bool `json:"is_moe_layer"`
}

// newExaoneMoE: experts as in glm4_moe; where some layers have a window, only they rotate.
func newExaoneMoE(cfg *config, b *Build) (Generator, error) {
	a := exaoneMoEArgs{glm4MoEArgs: glm4MoEArgs{Groups: 1, TopGroups: 1, Scale: 2.5, Renorm: true, Method: "noaux_tc", Scoring: "sigmoid"}}
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	rope, err := cfg.rope(rotation{Head: a.HeadDim, Base: 1e6})
	if err != nil {
		return nil, err
	}
	slides := strings.Contains(strings.Join(a.Types, " "), "sliding_attention")
	router, silu := a.router(), &B.GLU{Act: B.SiLU}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		turn := rope
		if slides && a.window(i) == 0 {
			turn = nil
		}
		t := gqa(b, &a.common, i, a.window(i), turn)
		t.QNorm, t.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
		l := preNorm(&a.common, b, t)
		if !a.IsMoE[i] {
			return l
		}
		moe := nn.NewMoE(a.D, b.Local(a.ExpFFN), a.Experts, router, silu)
		moe.Bias = &nn.Vec{N: a.Experts}
		if a.Shared > 0 {
			shared := nn.NewGLUMLP(a.D, b.Local(a.ExpFFN*a.Shared), B.SiLU)
			moe.Shared = &shared
		}
		return l.routed(&moe)
	})
	m.family, m.extra = exaoneMoENames, "mtp."
	return m, nil
}

var exaoneMoENames = strings.NewReplacer(".mlp.e_score_correction_bias", ".mlp.gate.e_score_correction_bias")

func (a *exaoneMoEArgs) check() error {
	a.Experts, a.Shared = a.NumExperts, a.NumShared
	if err := a.glm4MoEArgs.check(); err != nil {
		return err
	}
	if len(a.IsMoE) != a.Layers {
		return fmt.Errorf("is_moe_layer has %d entries for %d layers", len(a.IsMoE), a.Layers)
	}
	return a.checkWindows(a.Layers)
}
