package model

import (
	"strings"

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
	cfg.into(&a)
	if err := a.checkShare(); err != nil {
		return nil, err
	}
	if err := a.check(a.LNEps); err != nil {
		return nil, err
	}
	act := cfg.act("hidden_act", "silu")
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Share: 0.25, Fixed: true})
	m := newCentred(&a.common, b, nn.LayerNorm{}, func(i int, l *centredLayer) {
		l.Attn = gqa(b, &a.common, i, 0, rope)
		l.Attn.QKV.Bias = a.QKVBias
		if a.QKNorm {
			l.Attn.QLayer, l.Attn.KLayer = nn.HeadLN(b.Local(a.Heads), a.HeadDim, float32(a.Eps)), nn.HeadLN(b.LocalKV(a.KVHeads), a.HeadDim, float32(a.Eps))
			for _, n := range []*nn.LayerNorm{l.Attn.QLayer, l.Attn.KLayer} {
				n.NoBias, n.Apart = true, true
			}
		}
		mlp := nn.NewGLUMLP(a.D, b.Local(a.FFN), act)
		l.GLU = &mlp
		if a.Parallel {
			l.PostNorm = nil
		}
	})
	m.Head.Tied = a.ownTie()
	m.family = stablelmNames
	return m, nil
}

var stablelmNames = strings.NewReplacer(".q_layernorm.", ".q_norm.", ".k_layernorm.", ".k_norm.")
