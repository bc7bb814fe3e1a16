package model

import (
	"fmt"
	"slices"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("qwen3_moe", newQwen3MoE) }

// qwen3MoEArgs: a layer is dense if it is listed, or not the last of Step.
type qwen3MoEArgs struct {
	common
	Experts int   `json:"num_experts"`
	TopK    int   `json:"num_experts_per_tok"`
	Step    int   `json:"decoder_sparse_step"`
	Dense   []int `json:"mlp_only_layers"`
	ExpFFN  int   `json:"moe_intermediate_size"`
	Renorm  bool  `json:"norm_topk_prob"`
}

// newQwen3MoE is qwen3 with routed experts.
func newQwen3MoE(cfg *config, b *Build) (Generator, error) {
	a := qwen3MoEArgs{Step: 1}
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	rope, err := cfg.rope(rotation{Head: a.HeadDim, Base: 1e6})
	if err != nil {
		return nil, err
	}
	silu := &B.GLU{Act: B.SiLU}
	return newDecoder(&a.common, b, func(i int) decoderLayer {
		t := gqa(b, &a.common, i, 0, rope)
		t.QNorm, t.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
		l := preNorm(&a.common, b, t)
		if !slices.Contains(a.Dense, i) && (i+1)%a.Step == 0 {
			moe := nn.NewMoE(a.D, b.Local(a.ExpFFN), a.Experts, B.Router{Score: B.Softmax, K: a.TopK, Renorm: a.Renorm}, silu)
			return l.routed(&moe)
		}
		return l
	}), nil
}

func (a *qwen3MoEArgs) check() error {
	switch {
	case a.Step <= 0:
		return fmt.Errorf("decoder_sparse_step %d is not positive", a.Step)
	case a.ExpFFN <= 0 || a.ExpFFN > maxSize:
		return fmt.Errorf("moe_intermediate_size %d is missing or out of range", a.ExpFFN)
	}
	if err := checkExperts("num_experts", a.Experts, "num_experts_per_tok", a.TopK); err != nil {
		return err
	}
	return a.common.check()
}
