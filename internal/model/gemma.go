package model

import (
	"math"

	B "hearth/internal/backend"
)

func init() { register("gemma", newGemma) }

// newGemma is llama with norms used as 1+w, scaled embeddings and another activation.
func newGemma(cfg *config, b *Build) (Generator, error) {
	yes := true
	a := common{HeadDim: 256, Eps: 1e-6, Tied: &yes}
	cfg.into(&a)
	if err := a.check(); err != nil {
		return nil, err
	}
	act := cfg.act("hidden_act", "gelu_pytorch_tanh")
	if string(cfg.raw("hidden_act")) == `"gelu"` {
		act = B.GeluTanh // the first folders say gelu and mean this one
	}
	cfg.harmless("hidden_activation") // hidden_act counts
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000})
	m := newDecoder(&a, b, func(i int) decoderLayer {
		l := preNorm(&a, b, gqa(b, &a, i, 0, rope))
		l.MLP.Spec.Act = act
		l.InNorm.Plus1, l.PostNorm.Plus1 = true, true
		return l
	})
	m.gemma(a.D)
	return m, nil
}

// gemma scales the embeddings; the last norm is as all others.
func (m *decoder) gemma(d int) {
	m.Embed.Scale, m.Norm.Plus1 = float32(math.Sqrt(float64(d))), true
}
