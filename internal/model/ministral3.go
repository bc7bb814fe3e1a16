package model

import (
	"fmt"
	"slices"
)

func init() { register("ministral3", newMinistral3) }

type ministral3Args struct {
	common
	windows
}

// newMinistral3 is llama whose queries grow with the logarithm of their position, once that is past the context the model
// was first trained on.
func newMinistral3(cfg *config, b *Build) (Generator, error) {
	a := read[ministral3Args](cfg)
	a.everywhere(cfg, a.Layers, 0)
	if err := a.check(); err != nil {
		return nil, err
	}
	if slices.Contains(a.Types, full) && slices.Contains(a.Types, slides) {
		cfg.differs("layer_types", "as mlx-lm reads it; in transformers every layer of this architecture has the window")
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Fixed: true})
	queries := *rope
	queries.QBeta, queries.QOrig = cfg.growth()
	return newDecoder(&a.common, b, func(i int) decoderLayer {
		t := gqa(b, &a.common, i, a.window(i), rope)
		t.QRope = &queries
		return preNorm(&a.common, b, t)
	}), nil
}

// growth is what makes queries grow: how fast, and from which position on.
func (c *config) growth() (beta float32, from int) {
	older, newer, at, err := c.ropes("", false)
	p := newer
	if p == nil {
		p, at = older, "rope_scaling"
	}
	switch {
	case err != nil:
	case p == nil:
		err = fmt.Errorf("rope_parameters is missing")
	case !(p.Orig >= 1 && p.Orig <= maxSize):
		err = fmt.Errorf("%s: original_max_position_embeddings %g is missing or out of range", at, float64(p.Orig))
	case !(p.Beta >= 0 && p.Beta <= 100):
		err = fmt.Errorf("%s: llama_4_scaling_beta %g is out of range", at, float64(p.Beta))
	default:
		return float32(p.Beta), int(p.Orig)
	}
	c.fail(err)
	return 0, 0
}

func (a *ministral3Args) check() error {
	if err := a.common.check(); err != nil {
		return err
	}
	return a.checkWindows(a.Layers)
}
