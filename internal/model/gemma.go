package model

import (
	"math"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("gemma", newGemma) }

// newGemma is llama with norms used as 1+w, scaled embeddings and the exact gelu.
func newGemma(cfg *config, b *Build) (Generator, error) {
	a, err := read[common](cfg)
	if err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	rope, err := cfg.rope(rotation{Head: a.HeadDim, Base: 10000})
	if err != nil {
		return nil, err
	}
	m := newDecoder(&a, b, func(i int) decoderLayer {
		l := preNorm(&a, b, gqa(b, &a, i, 0, rope))
		l.MLP.Spec.Act = B.GeluErf
		l.InNorm.Plus1, l.PostNorm.Plus1 = true, true
		return l
	})
	m.gemma(float32(math.Sqrt(float64(a.D))))
	m.Head.Tied = nn.TieAlways
	return m, nil
}
