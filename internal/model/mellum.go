package model

import (
	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("mellum", newMellum) }

// newMellum is qwen3_moe with windows and a rotation per type of layer.
func newMellum(cfg *config, b *Build) (Generator, error) {
	var a struct {
		qwen3MoEArgs
		windows
		mlpTypes
	}
	cfg.also("num_experts", "num_local_experts")
	cfg.is("use_qk_norm", "true")
	a.Step, a.Renorm, a.TopK, a.Window = 1, true, 8, 1024
	cfg.into(&a)
	a.Step, a.Dense = 1, nil
	if err := a.check(); err != nil {
		return nil, err
	}
	if err := a.fillMLPs(a.Layers, func(int) bool { return true }); err != nil {
		return nil, err
	}
	if err := a.checkWindows(a.Layers); err != nil {
		return nil, err
	}
	cfg.ropeless(`{"full_attention": {"rope_theta": 500000}, "sliding_attention": {"rope_theta": 10000}}`)
	ropes := cfg.ropesOf(append(a.Types, a.kind(0)), rotation{Head: a.HeadDim, Base: 10000, Share: 1, Fixed: true})
	silu := &B.GLU{Act: B.SiLU}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		t := gqa(b, &a.common, i, a.window(i), ropes[a.kind(i)])
		t.QNorm, t.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
		l := preNorm(&a.common, b, t)
		if !a.sparse(i) {
			return l
		}
		moe := nn.NewMoE(a.D, b.Local(a.ExpFFN), a.Experts, B.Router{Score: B.Softmax, K: a.TopK, Renorm: a.Renorm}, silu)
		return l.routed(&moe)
	})
	m.gate(cfg)
	return m, nil
}
