package model

import (
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("dots1", newDots1) }

// newDots1: experts as in glm4_moe, norms per head of queries and keys, and the whole head rotates.
func newDots1(cfg *config, b *Build) (Generator, error) {
	var a struct {
		glm4MoEArgs
		windows
		MaxWindow int  `json:"max_window_layers"` // layers from here on have a window, where layer_types does not say
		MLPBias   bool `json:"mlp_bias"`          // of what is no routed expert
	}
	a.Groups, a.TopGroups, a.Scale, a.MaxWindow, a.Window = 1, 1, 1, 62, 4096
	cfg.into(&a)
	cfg.is("use_qk_norm", "true")
	cfg.is("moe_layer_freq", "1")
	if cfg.null("sliding_window") {
		a.Window = 0
	}
	a.fill(a.Layers, func(i int) bool { return i >= a.MaxWindow })
	a.Method, a.Scoring = "noaux_tc", "sigmoid" // whatever the config calls it
	if err := a.check(); err != nil {
		return nil, err
	}
	if err := a.checkWindows(a.Layers); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Fixed: true})
	silu := &B.GLU{Act: B.SiLU}
	router := a.router()
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		t := gqa(b, &a.common, i, a.window(i), rope)
		t.QNorm, t.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
		l := preNorm(&a.common, b, t)
		l.MLP.GateUp.Bias, l.MLP.Down.Bias = a.MLPBias, a.MLPBias
		if i < a.Dense {
			return l
		}
		moe := a.moe(b, router, silu)
		if s := moe.Shared; s != nil {
			s.GateUp.Bias, s.Down.Bias = a.MLPBias, a.MLPBias
		}
		return l.routed(moe)
	})
	m.family, m.look = expertsNames, m.freeBiases
	m.Head.Tied = a.ownTie()
	m.gate(cfg)
	return m, nil
}

// expertsNames: stacks that are named like experts apart.
var expertsNames = strings.NewReplacer(".mlp.experts.gate_proj", ".mlp.switch_mlp.gate_proj", ".mlp.experts.up_proj", ".mlp.switch_mlp.up_proj",
	".mlp.experts.down_proj", ".mlp.switch_mlp.down_proj")
