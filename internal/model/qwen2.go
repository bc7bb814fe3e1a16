package model

func init() { register("qwen2", newQwen2) }

// newQwen2: queries, keys and values have a bias, nothing else does.
func newQwen2(cfg *config, b *Build) (Generator, error) {
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
		t.QKV.Bias = true
		return preNorm(&a, b, t)
	}), nil
}
