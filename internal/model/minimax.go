package model

import (
	"fmt"

	B "hearth/internal/backend"
	"hearth/internal/nn"
	"hearth/internal/regular"
)

func init() { register("minimax", newMiniMax) }

type miniMaxArgs struct {
	common
	Experts int    `json:"num_local_experts"`
	TopK    int    `json:"num_experts_per_tok"`
	Rotary  int    `json:"rotary_dim"` // columns of a head that rotate
	Scoring string `json:"scoring_func"`
	Norm    bool   `json:"use_qk_norm"`
}

// newMiniMax: experts in every layer, picked by sigmoids and a bias; norms over all heads of the queries and all of the keys.
func newMiniMax(cfg *config, b *Build) (Generator, error) {
	a := miniMaxArgs{Scoring: "sigmoid", Norm: true}
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	rope, err := cfg.rope(rotation{Head: a.HeadDim, Base: 1e6, Share: 1, Turns: a.Rotary})
	if err != nil {
		return nil, err
	}
	silu := &B.GLU{Act: B.SiLU}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		t := gqa(b, &a.common, i, 0, rope)
		if a.Norm {
			a.wholeNorms(&t)
		}
		moe := nn.NewMoE(a.D, b.Local(a.FFN), a.Experts, B.Router{Score: B.Sigmoid, K: a.TopK, Renorm: true}, silu)
		moe.Bias = &nn.Vec{N: a.Experts}
		return preNorm(&a.common, b, t).routed(&moe)
	})
	m.family = sparseNames
	m.ownHead(&a.common)
	return m, nil
}

func (a *miniMaxArgs) check() error {
	if err := checkExperts("num_local_experts", a.Experts, "num_experts_per_tok", a.TopK); err != nil {
		return err
	}
	if a.Scoring != "sigmoid" {
		return fmt.Errorf("scoring_func %s is not supported", regular.Quote(a.Scoring))
	}
	if err := a.common.check(); err != nil {
		return err
	}
	if a.Rotary <= 0 || a.Rotary > a.HeadDim {
		return fmt.Errorf("rotary_dim %d is missing or above the head's %d", a.Rotary, a.HeadDim)
	}
	return nil
}
