package model

func init() { register("internlm3", newInternLM3) }

// newInternLM3 is llama. Older folders have other keys for its biases.
func newInternLM3(cfg *config, b *Build) (Generator, error) {
	var a struct {
		llamaArgs
		QKVBias bool `json:"qkv_bias"` // of attention's result too
		Bias    bool `json:"bias"`
	}
	cfg.into(&a)
	a.Types = nil // the family has no windows
	a.AttnBias, a.MLPBias = a.AttnBias || a.QKVBias, a.MLPBias || a.Bias
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000})
	return newDecoder(&a.common, b, func(i int) decoderLayer { return a.layer(b, i, rope) }), nil
}
