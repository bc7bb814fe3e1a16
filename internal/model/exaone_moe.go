package model

import (
	"encoding/json"
	"fmt"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
	"hearth/internal/regular"
)

func init() { register("exaone_moe", newExaoneMoE) }

// exaoneMoEArgs are those of glm4_moe with other names for the numbers of experts.
type exaoneMoEArgs struct {
	glm4MoEArgs
	windows
	NumExperts int    `json:"num_experts"`
	NumShared  int    `json:"num_shared_experts"`
	IsMoE      []bool `json:"is_moe_layer"`
	mlpTypes
	SlidingPattern json.RawMessage `json:"sliding_window_pattern"` // every so many layers see everything, or a letter per layer
}

// newExaoneMoE: experts as in glm4_moe; where some layers have a window, only they rotate.
func newExaoneMoE(cfg *config, b *Build) (Generator, error) {
	a := exaoneMoEArgs{glm4MoEArgs: glm4MoEArgs{Groups: 1, TopGroups: 1, Scale: 2.5, Renorm: true, Method: "noaux_tc", Scoring: "sigmoid"}}
	a.Dense, a.Window, a.NumShared = 1, 4096, 1
	cfg.into(&a)
	cfg.is("use_qk_norm", "true")
	cfg.harmless("first_last_k_dense_replace") // is_moe_layer says it
	if cfg.null("sliding_window") {
		a.Window = 0
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Fixed: true})
	router, silu := a.router(), &B.GLU{Act: B.SiLU}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		turn := rope
		if a.Window > 0 && a.window(i) == 0 {
			turn = nil
		}
		t := gqa(b, &a.common, i, a.window(i), turn)
		t.QNorm, t.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
		l := preNorm(&a.common, b, t)
		if !a.sparse(i) {
			return l
		}
		return l.routed(a.moe(b, router, silu))
	})
	m.family, m.extra = exaoneMoENames, "mtp."
	m.gate(cfg)
	return m, nil
}

var exaoneMoENames = strings.NewReplacer(".mlp.e_score_correction_bias", ".mlp.gate.e_score_correction_bias")

func (a *exaoneMoEArgs) check() error {
	a.Experts, a.Shared = a.NumExperts, a.NumShared
	if err := a.glm4MoEArgs.check(); err != nil {
		return err
	}
	if a.IsMoE != nil && a.MLPs == nil {
		if len(a.IsMoE) != a.Layers {
			return fmt.Errorf("is_moe_layer has %d entries for %d layers", len(a.IsMoE), a.Layers)
		}
		for _, is := range a.IsMoE {
			a.MLPs = append(a.MLPs, either(is, sparse, dense))
		}
	}
	if err := a.fillMLPs(a.Layers, func(i int) bool { return i >= a.Dense }); err != nil {
		return err
	}
	if err := a.slide(); err != nil {
		return err
	}
	return a.checkWindows(a.Layers)
}

// slide says which layers have a window where layer_types does not.
func (a *exaoneMoEArgs) slide() error {
	every, letters := 4, ""
	if raw := a.SlidingPattern; given(raw) && json.Unmarshal(raw, &every) != nil && json.Unmarshal(raw, &letters) != nil {
		return fmt.Errorf("sliding_window_pattern %s is neither a number nor letters", regular.Clip(string(raw)))
	}
	if len(a.Types) == 0 && a.Window != 0 && (letters != "" || every <= 0) {
		return fmt.Errorf("sliding_window_pattern %s without layer_types is not supported", regular.Clip(string(a.SlidingPattern)))
	}
	a.fill(a.Layers, func(i int) bool { return (i+1)%every != 0 })
	return nil
}
