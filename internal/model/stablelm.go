package model

import (
	"fmt"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("stablelm", newStableLM) }

// newStableLM: a share of each head rotates.
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
	a.HeadDim = 0 // always a share of the width
	if a.QKNorm {
		return nil, fmt.Errorf("qk_layernorm is not supported: norms of queries and keys that take the mean away")
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
		mlp := nn.NewGLUMLP(a.D, b.Local(a.FFN), B.SiLU)
		l.GLU = &mlp
		if a.Parallel {
			l.PostNorm = nil
		}
	})
	m.Head.Tied = nn.TieNever
	return m, nil
}
