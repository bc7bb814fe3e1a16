package model

func init() { register("seed_oss", newSeedOSS) }

type seedOSSArgs struct {
	llamaArgs
	OutBias bool `json:"attention_out_bias"`
}

// newSeedOSS is llama that says apart whether attention's result has a bias.
func newSeedOSS(cfg *config, b *Build) (Generator, error) {
	a := read[seedOSSArgs](cfg)
	a.Types = nil // the family has no windows
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000})
	return newDecoder(&a.common, b, func(i int) decoderLayer {
		l := a.layer(b, i, rope)
		l.Attn.O.Bias = a.OutBias
		return l
	}), nil
}
