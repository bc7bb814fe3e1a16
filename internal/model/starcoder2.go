package model

import (
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("starcoder2", newStarcoder2) }

// newStarcoder2: an MLP of two products, and biases everywhere.
func newStarcoder2(cfg *config, b *Build) (Generator, error) {
	var a struct {
		centredArgs
		NormEps float `json:"norm_epsilon"`
	}
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	a.HeadDim = 0 // always a share of the width
	if err := a.check(a.NormEps); err != nil {
		return nil, err
	}
	rope, err := cfg.rope(rotation{Head: a.HeadDim, Base: 100000})
	if err != nil {
		return nil, err
	}
	m := newCentred(&a.common, b, nn.LayerNorm{}, func(i int, l *centredLayer) {
		l.Attn = gqa(b, &a.common, i, 0, rope)
		l.Attn.QKV.Bias, l.Attn.O.Bias = true, true
		l.MLP = nn.NewMLP(a.D, b.Local(a.FFN), B.GeluErf)
		l.MLP.Up.Bias, l.MLP.Down.Bias = true, true
	})
	m.family = plainNames
	return m, nil
}

// plainNames are names of the two products of an MLP.
var plainNames = strings.NewReplacer(".c_fc", ".up_proj", ".c_proj", ".down_proj", ".mlp.fc1", ".mlp.up_proj", ".mlp.fc2", ".mlp.down_proj",
	".self_attn.dense", ".self_attn.o_proj", "final_layernorm", "norm")
