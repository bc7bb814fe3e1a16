package model

import (
	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("phi", newPhi) }

// newPhi: attention and an MLP of two products side by side, biases everywhere, also in the head.
func newPhi(cfg *config, b *Build) (Generator, error) {
	var a centredArgs
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	a.HeadDim = 0 // always a share of the width
	if err := a.check(a.LNEps); err != nil {
		return nil, err
	}
	rope, err := cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Share: 0.5})
	if err != nil {
		return nil, err
	}
	m := newCentred(&a.common, b, nn.LayerNorm{}, func(i int, l *centredLayer) {
		l.Attn = gqa(b, &a.common, i, 0, rope)
		l.Attn.QKV.Bias, l.Attn.O.Bias = true, true
		l.MLP, l.PostNorm = nn.NewMLP(a.D, b.Local(a.FFN), B.GeluTanh), nil
		l.MLP.Up.Bias, l.MLP.Down.Bias = true, true
	})
	m.family, m.Head.Tied, m.Head.Bias = plainNames, nn.TieNever, true
	return m, nil
}
