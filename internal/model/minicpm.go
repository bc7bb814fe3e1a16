package model

import (
	"fmt"
	"math"
	"strconv"

	"hearth/internal/nn"
)

func init() { register("minicpm", newMiniCPM) }

// miniCPMArgs are the factors of the family.
type miniCPMArgs struct {
	Base      int   `json:"dim_model_base"` // the width that the logits are scaled for
	Depth     float `json:"scale_depth"`
	Embedding float `json:"scale_emb"`
}

func (a *miniCPMArgs) check() error {
	if a.Base <= 0 || a.Base > maxSize || !(a.Depth > 0 && a.Depth < 1e6) || !(a.Embedding > 0 && a.Embedding < 1e6) {
		return fmt.Errorf("dim_model_base %d, scale_depth %g or scale_emb %g is missing or out of range", a.Base, float64(a.Depth), float64(a.Embedding))
	}
	return nil
}

// multiply sets the factors of m. Those of the logits are for a head of their own.
func (a *miniCPMArgs) multiply(m *decoder, c *common) {
	m.Embed.Scale, m.branch = float32(a.Embedding), float32(float64(a.Depth)/math.Sqrt(float64(c.Layers)))
	if m.Head.Tied != nn.TieAlways {
		m.logits = float32(float64(a.Base) / float64(c.D))
	}
}

// newMiniCPM is llama with factors.
func newMiniCPM(cfg *config, b *Build) (Generator, error) {
	var a struct {
		llamaArgs
		miniCPMArgs
	}
	cfg.into(&a)
	cfg.is("mup_denominator", strconv.Itoa(a.Layers)) // the root of the number of layers divides what they add
	a.Types, a.HeadDim = nil, 0                       // the family has no windows, and heads are always a share of the width
	if err := a.llamaArgs.check(); err != nil {
		return nil, err
	}
	if err := a.miniCPMArgs.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 1e6})
	m := newDecoder(&a.common, b, func(i int) decoderLayer { return preNorm(&a.common, b, gqa(b, &a.common, i, 0, rope)) })
	a.multiply(m, &a.common)
	return m, nil
}
