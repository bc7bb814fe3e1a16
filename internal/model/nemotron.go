package model

import (
	"hearth/internal/nn"
)

func init() { register("nemotron", newNemotron) }

// newNemotron: norms whose weights are stored less one, and an MLP of two products with squared relu or another
// activation between.
func newNemotron(cfg *config, b *Build) (Generator, error) {
	var a struct {
		centredArgs
		NormEps  float `json:"norm_eps"`
		AttnBias bool  `json:"attention_bias"`
		MLPBias  bool  `json:"mlp_bias"`
	}
	cfg.into(&a)
	act := cfg.act("hidden_act", "relu2")
	if err := a.checkEps("norm_eps", a.NormEps); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Share: 0.5, Fixed: true})
	return newCentred(&a.common, b, nn.LayerNorm{Plus1: true}, func(i int, l *centredLayer) {
		l.Attn = gqa(b, &a.common, i, 0, rope)
		l.Attn.QKV.Bias, l.Attn.O.Bias = a.AttnBias, a.AttnBias
		l.MLP = nn.NewMLP(a.D, b.Local(a.FFN), act)
		l.MLP.Up.Bias, l.MLP.Down.Bias = a.MLPBias, a.MLPBias
	}), nil
}
