package model

func init() { register("helium", newHelium) }

// newHelium is llama with a rotation in pairs of neighbours and no bias of attention's result.
func newHelium(cfg *config, b *Build) (Generator, error) {
	a := read[llamaArgs](cfg)
	a.Types = nil // the family has no windows
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 100000, Pairs: true})
	return newDecoder(&a.common, b, func(i int) decoderLayer {
		l := a.layer(b, i, rope)
		l.Attn.O.Bias = false
		return l
	}), nil
}
