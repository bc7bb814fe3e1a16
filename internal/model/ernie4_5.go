package model

import (
	"hearth/internal/nn"
)

func init() { register("ernie4_5", newErnie) }

type ernieArgs struct {
	common
	Bias bool `json:"use_bias"` // in every product
}

// newErnie is llama with a rotation in pairs of neighbours, which no rope_scaling changes.
func newErnie(cfg []byte, b *Build) (Generator, error) {
	a, err := parse[ernieArgs](cfg)
	if err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	layer, err := a.layers(b)
	if err != nil {
		return nil, err
	}
	return newDecoder(&a.common, b, layer), nil
}

// layers is also for the family's models of experts.
func (a *ernieArgs) layers(b *Build) (func(i int) decoderLayer, error) {
	ra := nn.RopeArgs{Theta: 10000, Partial: 1, Traditional: true}
	if a.Theta != 0 {
		ra.Theta = float64(a.Theta)
	}
	rope, err := nn.NewRope(a.HeadDim, ra)
	return func(i int) decoderLayer {
		l := preNorm(&a.common, b, gqa(b, &a.common, i, 0, rope))
		l.Attn.QKV.Bias, l.Attn.O.Bias, l.MLP.GateUp.Bias, l.MLP.Down.Bias = a.Bias, a.Bias, a.Bias, a.Bias
		return l
	}, err
}
