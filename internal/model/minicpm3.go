package model

import (
	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("minicpm3", newMiniCPM3) }

// newMiniCPM3: latent attention, an ordinary MLP and minicpm's factors.
func newMiniCPM3(cfg *config, b *Build) (Generator, error) {
	var a struct {
		latentArgs
		miniCPMArgs
	}
	a.Freq, a.theta, a.normEps, a.kvb = 1, 1e6, 1e-5, nn.Heads{Together: true}
	a.apart = true
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	a.Experts = 0
	if a.Heads > 0 {
		a.VDim = a.D / a.Heads
	}
	if err := a.latentArgs.check(); err != nil {
		return nil, err
	}
	if err := a.miniCPMArgs.check(); err != nil {
		return nil, err
	}
	m, err := a.decoder(cfg, b, B.Router{})
	if err != nil {
		return nil, err
	}
	m.Head.Tied = a.tie()
	a.multiply(m, &a.common)
	return m, nil
}
