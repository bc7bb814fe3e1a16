package model

import (
	"fmt"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("stablelm", newStableLM) }

// newStableLM: a share of each head rotates.
func newStableLM(cfg []byte, b *Build) (Generator, error) {
	var a struct {
		centredArgs
		QKVBias  bool `json:"use_qkv_bias"`
		Parallel bool `json:"use_parallel_residual"`
		QKNorm   bool `json:"qk_layernorm"`
	}
	if err := parseInto(cfg, &a); err != nil {
		return nil, err
	}
	a.HeadDim = 0 // always a share of the width
	if a.QKNorm {
		return nil, fmt.Errorf("qk_layernorm is not supported: norms of queries and keys that take the mean away")
	}
	if err := a.check(a.LNEps); err != nil {
		return nil, err
	}
	ra := nn.RopeArgs{Theta: 10000, Partial: 1}
	if a.Theta != 0 {
		ra.Theta = float64(a.Theta)
	}
	if a.Partial != 0 {
		ra.Partial = float64(a.Partial)
	}
	rope, err := nn.NewRope(a.HeadDim, ra)
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
