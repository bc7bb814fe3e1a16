package model

import (
	"fmt"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("qwen2_moe", newQwen2MoE) }

type qwen2MoEArgs struct {
	common
	Experts   int `json:"num_experts"`
	TopK      int `json:"num_experts_per_tok"`
	ExpFFN    int `json:"moe_intermediate_size"`
	SharedFFN int `json:"shared_expert_intermediate_size"`
}

// newQwen2MoE is qwen2 with experts in every layer, and a shared one behind a gate.
func newQwen2MoE(cfg *config, b *Build) (Generator, error) {
	a, err := read[qwen2MoEArgs](cfg)
	if err != nil {
		return nil, err
	}
	a.HeadDim = 0 // always a share of the width
	if err := a.check(); err != nil {
		return nil, err
	}
	rope, err := cfg.rope(rotation{Head: a.HeadDim, Base: 1e6})
	if err != nil {
		return nil, err
	}
	silu := &B.GLU{Act: B.SiLU}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		t := gqa(b, &a.common, i, 0, rope)
		t.QKV.Bias = true
		moe := nn.NewMoE(a.D, b.Local(a.ExpFFN), a.Experts, B.Router{Score: B.Softmax, K: a.TopK}, silu)
		shared, gate := nn.NewGLUMLP(a.D, b.Local(a.SharedFFN), B.SiLU), nn.Lin(a.D, 1)
		moe.Shared, moe.SharedGate = &shared, &gate
		return preNorm(&a.common, b, t).routed(&moe)
	})
	m.family = sharedNames
	m.ownHead(&a.common)
	return m, nil
}

// sharedNames: this family has one shared expert and says so.
var sharedNames = strings.NewReplacer(".shared_expert.", ".shared_experts.")

func (a *qwen2MoEArgs) check() error {
	if err := checkExperts("num_experts", a.Experts, "num_experts_per_tok", a.TopK); err != nil {
		return err
	}
	if a.ExpFFN <= 0 || a.ExpFFN > maxSize || a.SharedFFN <= 0 || a.SharedFFN > maxSize {
		return fmt.Errorf("moe_intermediate_size %d or shared_expert_intermediate_size %d is missing or out of range", a.ExpFFN, a.SharedFFN)
	}
	return a.common.check()
}
