package model

import (
	"fmt"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("mistral4", newMistral4) }

// newMistral4: latent attention like deepseek_v3's, with queries that grow like ministral3's; experts picked by softmax.
func newMistral4(cfg *config, b *Build) (Generator, error) {
	a := struct {
		latentArgs
		Pairs *bool `json:"rope_interleave"`
	}{latentArgs: latentArgs{Freq: 1, theta: 10000, normEps: 1e-6, kvb: nn.Heads{Again: true}}}
	a.glm4MoEArgs = glm4MoEArgs{Groups: 1, TopGroups: 1, Scale: 1}
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	if a.Groups > 1 {
		return nil, fmt.Errorf("n_group %d is not supported with scores by softmax", a.Groups)
	}
	a.Method, a.Scoring, a.apart = "noaux_tc", "sigmoid", a.Pairs != nil && !*a.Pairs // the rest is checked like deepseek_v3's
	if err := a.check(); err != nil {
		return nil, err
	}
	a.grows = true
	return a.decoder(cfg, b, B.Router{Score: B.Softmax, K: a.TopK, Renorm: a.Renorm, Scale: float32(a.Scale)})
}
