package model

import (
	"hearth/internal/nn"
)

func init() { register("qwen3", newQwen3) }

// newQwen3: queries and keys are normalised per head before the rotation.
func newQwen3(cfg *config, b *Build) (Generator, error) {
	a, err := readQwen(cfg, 28)
	if err != nil {
		return nil, err
	}
	return a.qwen3(cfg, b, 10000)
}

func (a *qwenArgs) qwen3(cfg *config, b *Build, base float64) (Generator, error) {
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: base, Fixed: true})
	return newDecoder(&a.common, b, func(i int) decoderLayer {
		t := gqa(b, &a.common, i, a.window(i), rope)
		t.QNorm, t.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
		return preNorm(&a.common, b, t)
	}), nil
}
