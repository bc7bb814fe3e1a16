package model

import (
	"fmt"
)

func init() { register("granite", newGranite) }

// graniteArgs are the keys of llama and the factors of the family.
type graniteArgs struct {
	llamaArgs
	Embedding float `json:"embedding_multiplier"`
	Attention float `json:"attention_multiplier"` // of scores, instead of 1/√(head width)
	Residual  float `json:"residual_multiplier"`
	Logits    float `json:"logits_scaling"` // divides
}

func newGranite(cfg *config, b *Build) (Generator, error) {
	a := read[graniteArgs](cfg)
	if err := a.check(); err != nil {
		return nil, err
	}
	m := newDecoder(&a.common, b, a.layers(cfg, b))
	a.multiply(m)
	return m, nil
}

// layers is also for the family's models of experts.
func (a *graniteArgs) layers(cfg *config, b *Build) func(i int) decoderLayer {
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Fixed: true})
	return func(i int) decoderLayer {
		l := a.layer(b, i, rope)
		l.Attn.Spec.Scale = float32(a.Attention)
		return l
	}
}

func (a *graniteArgs) multiply(m *decoder) {
	m.Embed.Scale, m.branch, m.logits = float32(a.Embedding), float32(a.Residual), float32(1/a.Logits)
}

func (a *graniteArgs) check() error {
	a.Types = nil // the family has no windows
	for _, f := range []struct {
		key string
		x   float
	}{
		{"embedding_multiplier", a.Embedding}, {"attention_multiplier", a.Attention}, {"residual_multiplier", a.Residual}, {"logits_scaling", a.Logits},
	} {
		if !(f.x > 0 && f.x < 1e6) {
			return fmt.Errorf("%s %g is missing or out of range", f.key, float64(f.x))
		}
	}
	return a.llamaArgs.check()
}
