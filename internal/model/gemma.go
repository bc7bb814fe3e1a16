package model

import (
	"math"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("gemma", newGemma) }

// newGemma is llama with norms used as 1+w, scaled embeddings and the exact gelu.
func newGemma(cfg []byte, b *Build) (Generator, error) {
	a, err := parse[common](cfg)
	if err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	args := a.rope(10000)
	args.Type = "" // the reference rotates plainly whatever the config says
	rope, err := nn.NewRope(a.HeadDim, args)
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
