package model

import (
	"hearth/internal/nn"
)

func init() { register("phi", newPhi) }

// newPhi: attention and an MLP of two products side by side, biases everywhere, also in the head.
func newPhi(cfg *config, b *Build) (Generator, error) {
	var a struct {
		centredArgs
		QKNorm bool `json:"qk_layernorm"`
	}
	cfg.into(&a)
	act := cfg.act("hidden_act", "gelu_new")
	if err := a.check(a.LNEps); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Share: 0.5, Fixed: true})
	cfg.same("rotary_dim", float64(2*len(rope.InvFreq)))
	m := newCentred(&a.common, b, nn.LayerNorm{}, func(i int, l *centredLayer) {
		l.Attn = gqa(b, &a.common, i, 0, rope)
		l.Attn.QKV.Bias, l.Attn.O.Bias = true, true
		if a.QKNorm {
			l.Attn.QLayer, l.Attn.KLayer = nn.HeadLN(1, a.HeadDim, float32(a.Eps)), nn.HeadLN(1, a.HeadDim, float32(a.Eps))
		}
		l.MLP, l.PostNorm = nn.NewMLP(a.D, b.Local(a.FFN), act), nil
		l.MLP.Up.Bias, l.MLP.Down.Bias = true, true
	})
	m.family = plainNames
	m.Head.Bias, m.Head.Tied = true, a.ownTie()
	return m, nil
}
