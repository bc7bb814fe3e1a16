package model

import (
	"hearth/internal/nn"
)

func init() { register("helium", newHelium) }

// newHelium is llama with a rotation in pairs of neighbours and no bias of attention's result.
func newHelium(cfg []byte, b *Build) (Generator, error) {
	a, err := parse[llamaArgs](cfg)
	if err != nil {
		return nil, err
	}
	a.Types, a.HeadDim = nil, 0 // the family has no windows, and heads are always a share of the width
	if err := a.check(); err != nil {
		return nil, err
	}
	ra := nn.RopeArgs{Theta: 10000, Partial: 1, Traditional: true}
	if a.Theta != 0 {
		ra.Theta = float64(a.Theta)
	}
	rope, err := nn.NewRope(a.HeadDim, ra)
	if err != nil {
		return nil, err
	}
	return newDecoder(&a.common, b, func(i int) decoderLayer {
		l := a.layer(b, i, rope)
		l.Attn.O.Bias = false
		return l
	}), nil
}
