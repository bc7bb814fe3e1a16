package model

import (
	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("gpt_bigcode", newGPTBigCode) }

// newGPTBigCode is gpt2 in which all heads may share one key and value.
func newGPTBigCode(cfg *config, b *Build) (Generator, error) {
	tied := true
	a := struct {
		gpt2Args
		Shared   bool `json:"multi_query"`
		AttnBias bool `json:"attention_bias"`
		MLPBias  bool `json:"mlp_bias"`
	}{Shared: true, AttnBias: true, MLPBias: true}
	a.Tied = &tied
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	if a.Shared {
		a.KVHeads = 1
	}
	m := newCentred(&a.common, b, nn.LayerNorm{}, func(i int, l *centredLayer) {
		l.Attn = gqa(b, &a.common, i, 0, nil)
		l.Attn.QKV.Fused, l.Attn.QKV.Bias, l.Attn.O.Bias = true, a.AttnBias, a.AttnBias
		l.MLP = nn.NewMLP(a.D, b.Local(a.FFN), B.GeluErf)
		l.MLP.Up.Bias, l.MLP.Down.Bias = a.MLPBias, a.MLPBias
	})
	a.learned(m)
	m.family, m.drop, m.root = gpt2Names, []string{".attn.bias", ".attn.masked_bias"}, []string{"transformer.", "model."}
	return m, nil
}
