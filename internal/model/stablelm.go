package model

import (
	"hearth/internal/nn"
)

func init() { register("stablelm", newStableLM) }

// newStableLM: a share of each head rotates; every head may have norms of its own for its queries and its key.
func newStableLM(cfg *config, b *Build) (Generator, error) {
	var a struct {
		centredArgs
		QKVBias  bool `json:"use_qkv_bias"`
		Parallel bool `json:"use_parallel_residual"`
		QKNorm   bool `json:"qk_layernorm"`
	}
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	if err := a.shareOf(); err != nil {
		return nil, err
	}
	act, err := cfg.act("hidden_act", "silu")
	if err != nil {
		return nil, err
	}
	if err := a.check(a.LNEps); err != nil {
		return nil, err
	}
	rope, err := cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Share: 0.25})
	if err != nil {
		return nil, err
	}
	m := newCentred(&a.common, b, nn.LayerNorm{}, func(i int, l *centredLayer) {
		l.Attn = gqa(b, &a.common, i, 0, rope)
		l.Attn.QKV.Bias = a.QKVBias
		if a.QKNorm {
			q, k := nn.HeadLN(a.HeadDim, float32(a.Eps)), nn.HeadLN(a.HeadDim, float32(a.Eps))
			q.NoBias, q.Each, k.NoBias, k.Each = true, b.Local(a.Heads), true, b.LocalKV(a.KVHeads)
			l.Attn.QLayer, l.Attn.KLayer = q, k
		}
		mlp := nn.NewGLUMLP(a.D, b.Local(a.FFN), act)
		l.GLU = &mlp
		if a.Parallel {
			l.PostNorm = nil
		}
	})
	m.ownHead(&a.common)
	return m, nil
}
