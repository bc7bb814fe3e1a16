package model

import (
	"strings"
)

func init() {
	register("glm", func(cfg *config, b *Build) (Generator, error) { return newGLM(cfg, b, false) })
	register("glm4", func(cfg *config, b *Build) (Generator, error) { return newGLM(cfg, b, true) })
}

// newGLM: rotation in pairs of neighbours, gate and up as one tensor; glm4 also normalises what attention and MLP give.
func newGLM(cfg *config, b *Build, after bool) (Generator, error) {
	a := llamaArgs{common: common{KVHeads: 2, HeadDim: 128, Eps: 1.5625e-7}}
	cfg.into(&a)
	a.Types = nil // the family has no windows
	if err := a.check(); err != nil {
		return nil, err
	}
	act := cfg.act("hidden_act", "silu")
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Share: 0.5, Pairs: true, Fixed: true})
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		l := preNorm(&a.common, b, gqa(b, &a.common, i, 0, rope))
		l.Attn.QKV.Bias, l.MLP.GateUp.Fused, l.MLP.Spec.Act = a.AttnBias, true, act
		if after {
			l.PreNorm, l.PostNorm = l.PostNorm, nil
			l.AttnNorm, l.MLPNorm = a.norm(), a.norm()
		}
		return l
	})
	if after {
		m.family = glm4Names
		m.Head.Tied = a.ownTie()
	}
	return m, nil
}

// glm4Names: what others call the norm after attention is the one before the MLP here.
var glm4Names = strings.NewReplacer("post_attention_layernorm", "pre_feedforward_layernorm",
	"post_self_attn_layernorm", "post_attention_layernorm", "post_mlp_layernorm", "post_feedforward_layernorm")
