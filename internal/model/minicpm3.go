package model

import (
	"math"

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
	yes := true
	a.Freq, a.theta, a.normEps, a.kvb = 1, 10000, 1e-6, nn.Heads{Together: true}
	a.Eps, a.Lora, a.QLora, a.Nope, a.Rot, a.Tied = 1e-5, 256, 768, 64, 32, &yes
	a.Base, a.Depth, a.Embedding = 256, 1.4, 12
	a.apart = true
	a.read(cfg, &a)
	a.Experts = 0
	if a.VDim == 0 && a.Heads > 0 {
		a.VDim = a.D / a.Heads
	}
	if cfg.null("q_lora_rank") {
		a.QLora = 0
	}
	if cfg.null("dim_model_base") {
		a.Base = a.D
	}
	if cfg.null("scale_depth") {
		a.Depth = float(math.Sqrt(float64(a.Layers)))
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
	m.logits = float32(float64(a.Base) / float64(a.D)) // also where the embedding table is the head
	return m, nil
}
