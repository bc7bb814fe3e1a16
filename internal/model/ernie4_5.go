package model

func init() { register("ernie4_5", newErnie) }

type ernieArgs struct {
	common
	Bias bool `json:"use_bias"` // in every product
}

// newErnie is llama with a rotation in pairs of neighbours, and biases everywhere or nowhere.
func newErnie(cfg *config, b *Build) (Generator, error) {
	a := read[ernieArgs](cfg)
	if err := a.check(); err != nil {
		return nil, err
	}
	m := newDecoder(&a.common, b, a.layers(cfg, b))
	m.gate(cfg)
	return m, nil
}

// layers is also for the family's models of experts.
func (a *ernieArgs) layers(cfg *config, b *Build) func(i int) decoderLayer {
	cfg.is("compression_ratio", "1", "1.0")
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 500000, Pairs: true, Fixed: true})
	return func(i int) decoderLayer {
		l := preNorm(&a.common, b, gqa(b, &a.common, i, 0, rope))
		l.Attn.QKV.Bias, l.Attn.O.Bias, l.MLP.GateUp.Bias, l.MLP.Down.Bias = a.Bias, a.Bias, a.Bias, a.Bias
		return l
	}
}
