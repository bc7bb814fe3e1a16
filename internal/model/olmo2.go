package model

import (
	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("olmo2", newOlmo2) }

// newOlmo2 is llama with norms after attention and MLP instead of before them, and norms over all heads of the queries and
// all of the keys.
func newOlmo2(cfg *config, b *Build) (Generator, error) {
	a := read[llamaArgs](cfg)
	a.MLPBias = false // there may be some, but no key says so
	a.Types = nil     // the family has no windows
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000})
	return newDecoder(&a.common, b, func(i int) decoderLayer { return a.postNorm(b, i, rope) }), nil
}

// postNorm is the layer of olmo2 and olmo3.
func (a *llamaArgs) postNorm(b *Build, i int, rope *B.Rope) decoderLayer {
	l := a.layer(b, i, rope)
	a.wholeNorms(l.Attn)
	l.InNorm, l.PostNorm = nil, nil
	l.AttnNorm, l.MLPNorm = a.norm(), a.norm()
	return l
}

// wholeNorms gives attention norms over all heads of the queries and all of the keys. Over ranks, every rank would normalise its
// own heads only.
func (c *common) wholeNorms(t *nn.Attention) {
	q, k := nn.RMS(t.QKV.Outs[0], float32(c.Eps)), nn.RMS(t.QKV.Outs[1], float32(c.Eps))
	t.QNorm, t.KNorm = &q, &k
}
