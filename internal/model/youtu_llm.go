package model

import (
	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("youtu_llm", newYoutu) }

// newYoutu: latent attention and an ordinary MLP.
func newYoutu(cfg *config, b *Build) (Generator, error) {
	var a struct {
		latentArgs
		MLPBias bool  `json:"mlp_bias"`
		Pairs   *bool `json:"rope_traditional"`
	}
	a.Freq, a.theta, a.kvb = 1, 1.6e6, nn.Heads{Together: true}
	a.read(cfg, &a)
	a.Experts, a.normEps, a.apart = 0, float64(a.Eps), a.Pairs != nil && !*a.Pairs
	a.pairs(cfg)
	if err := a.check(); err != nil {
		return nil, err
	}
	m, err := a.decoder(cfg, b, B.Router{})
	if err != nil {
		return nil, err
	}
	m.Head.Tied = a.tie()
	for i := range m.Layers {
		m.Layers[i].MLP.GateUp.Bias, m.Layers[i].MLP.Down.Bias = a.MLPBias, a.MLPBias
	}
	return m, nil
}
