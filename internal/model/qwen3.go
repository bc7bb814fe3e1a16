package model

import (
	"hearth/internal/nn"
)

func init() { register("qwen3", newQwen3) }

// newQwen3: queries and keys are normalised per head before the rotation.
func newQwen3(cfg *config, b *Build) (Generator, error) {
	a, err := read[common](cfg)
	if err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	rope, err := cfg.rope(rotation{Head: a.HeadDim, Base: 1e6})
	if err != nil {
		return nil, err
	}
	return newDecoder(&a, b, func(i int) decoderLayer {
		t := gqa(b, &a, i, 0, rope)
		t.QNorm, t.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
		return preNorm(&a, b, t)
	}), nil
}
