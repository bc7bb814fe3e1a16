package model

import B "hearth/internal/backend"

func init() { register("deepseek", newDeepseekV1) }

// newDeepseekV1 is llama with experts, picked by softmax, beside shared ones.
func newDeepseekV1(cfg *config, b *Build) (Generator, error) {
	var a struct {
		glm4MoEArgs
		Freq int `json:"moe_layer_freq"`
	}
	a.Groups, a.TopGroups, a.Scale, a.Freq = 1, 1, 1, 1
	cfg.into(&a)
	a.Method, a.Scoring, a.Freq, a.HeadDim = "noaux_tc", "sigmoid", max(a.Freq, 1), 0 // heads are always a share of the width
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Fixed: true})
	silu, router := &B.GLU{Act: B.SiLU}, B.Router{Score: B.Softmax, K: a.TopK, Renorm: a.Renorm && a.TopK > 1, Scale: float32(a.Scale)}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		l := preNorm(&a.common, b, gqa(b, &a.common, i, 0, rope))
		l.Attn.QKV.Bias, l.Attn.O.Bias = a.AttnBias, a.AttnBias
		if i < a.Dense || i%a.Freq != 0 {
			return l
		}
		return l.routed(a.moe(b, router, silu))
	})
	m.Head.Tied = a.ownTie()
	return m, nil
}
