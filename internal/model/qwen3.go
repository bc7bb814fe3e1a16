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
	return a.qwen3(cfg, b, rotation{Base: 10000, Fixed: true})
}

func (a *qwenArgs) qwen3(cfg *config, b *Build, r rotation) (Generator, error) {
	rope := cfg.rope(r.of(a.HeadDim))
	return newDecoder(&a.common, b, func(i int) decoderLayer {
		t := gqa(b, &a.common, i, a.window(i), rope)
		t.QNorm, t.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
		return preNorm(&a.common, b, t)
	}), nil
}
