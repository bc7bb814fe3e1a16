package model

import (
	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("olmoe", newOlmoe) }

type olmoeArgs struct {
	llamaArgs
	Experts int  `json:"num_experts"`
	TopK    int  `json:"num_experts_per_tok"`
	Renorm  bool `json:"norm_topk_prob"`
}

// newOlmoe is llama with experts in every layer and norms over all heads of the queries and all of the keys.
func newOlmoe(cfg *config, b *Build) (Generator, error) {
	cfg.also("num_experts", "num_local_experts")
	cfg.is("clip_qkv", "null")
	a := read[olmoeArgs](cfg)
	a.Types = nil // the family has no windows
	if err := checkExperts("num_experts", a.Experts, "num_experts_per_tok", a.TopK); err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000})
	silu := &B.GLU{Act: B.SiLU}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		l := a.layer(b, i, rope)
		a.wholeNorms(l.Attn)
		moe := nn.NewMoE(a.D, b.Local(a.FFN), a.Experts, B.Router{Score: B.Softmax, K: a.TopK, Renorm: a.Renorm}, silu)
		moe.Up.Bias, moe.Down.Bias = a.MLPBias, a.MLPBias
		return l.routed(&moe)
	})
	m.look = m.freeBiases
	m.gate(cfg)
	return m, nil
}
