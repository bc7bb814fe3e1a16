package model

func init() { register("internlm3", newInternLM3) }

// newInternLM3 is llama with its own words for biases.
func newInternLM3(cfg *config, b *Build) (Generator, error) {
	var a struct {
		llamaArgs
		QKVBias bool `json:"qkv_bias"` // of attention's result too
		Bias    bool `json:"bias"`
	}
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	a.Types, a.HeadDim = nil, 0 // the family has no windows, and heads are always a share of the width
	a.AttnBias, a.MLPBias = a.QKVBias, a.Bias
	if err := a.check(); err != nil {
		return nil, err
	}
	rope, err := cfg.rope(rotation{Head: a.HeadDim, Base: 10000})
	if err != nil {
		return nil, err
	}
	return newDecoder(&a.common, b, func(i int) decoderLayer { return a.layer(b, i, rope) }), nil
}
