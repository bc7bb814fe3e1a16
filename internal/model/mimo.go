package model

func init() { register("mimo", newMiMo) }

// newMiMo is qwen2 in all but its defaults, with layers that predict further tokens, which are left out.
func newMiMo(cfg *config, b *Build) (Generator, error) {
	a := read[common](cfg)
	a.HeadDim = 0 // always a share of the width
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000})
	m := newDecoder(&a, b, func(i int) decoderLayer {
		t := gqa(b, &a, i, 0, rope)
		t.QKV.Bias = true
		return preNorm(&a, b, t)
	})
	m.extra = "model.mtp_layers."
	return m, nil
}
