package model

import (
	"fmt"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("bailing_moe", newBailing) }

type bailingArgs struct {
	common
	Experts    int    `json:"num_experts"`
	Shared     int    `json:"num_shared_experts"`
	UseShared  bool   `json:"moe_router_enable_shared_expert"`
	SharedFFN  int    `json:"moe_shared_expert_intermediate_size"` // 0: that of the others
	TopK       int    `json:"num_experts_per_tok"`
	ExpFFN     int    `json:"moe_intermediate_size"`
	Dense      int    `json:"first_k_dense_replace"` // layers without experts, at the start
	Groups     int    `json:"n_group"`
	TopGroups  int    `json:"topk_group"`
	Scale      float  `json:"routed_scaling_factor"`
	Renorm     bool   `json:"norm_topk_prob"`
	Bias       bool   `json:"use_bias"` // in every product but that of queries, keys and values
	QKVBias    bool   `json:"use_qkv_bias"`
	QKNorm     bool   `json:"use_qk_norm"`
	ExpertBias bool   `json:"moe_router_enable_expert_bias"`
	Score      string `json:"score_function"`
	Rotary     int    `json:"rotary_dim"` // columns of a head that rotate; 0: by the share
}

// newBailing: experts picked by softmax, or by sigmoids and a bias in groups, beside shared ones.
func newBailing(cfg *config, b *Build) (Generator, error) {
	cfg.onlyBailing()
	cfg.is("moe_router_enable_routed_scaling", "true")
	a := bailingArgs{UseShared: true, Groups: 1, TopGroups: 4, Scale: 1, Score: "softmax"}
	cfg.into(&a)
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Share: 1, Turns: a.Rotary, Fixed: true})
	router := B.Router{Score: B.Softmax, K: a.TopK, Renorm: a.Renorm && a.TopK > 1, Scale: float32(a.Scale)}
	if a.Score == "sigmoid" {
		router.Score, router.Groups, router.TopGroups = B.Sigmoid, a.Groups, a.TopGroups
	}
	m := newDecoder(&a.common, b, func(i int) decoderLayer { return a.layer(b, i, rope, router) })
	m.family = bailingNames
	m.Head.Tied = a.ownTie()
	return m, nil
}

// onlyBailing refuses what neither type of the family supports.
func (c *config) onlyBailing() {
	c.is("norm_head", "false")
	c.is("score_function", `"softmax"`, `"sigmoid"`)
}

func (a *bailingArgs) layer(b *Build, i int, rope *B.Rope, router B.Router) decoderLayer {
	t := gqa(b, &a.common, i, 0, rope)
	t.QKV.Fused, t.QKV.Bias, t.O.Bias = true, a.QKVBias, a.Bias
	if a.QKNorm {
		t.QNorm, t.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
	}
	l := a.mlp(b, i, router)
	l.Attn = &t
	return l
}

// mlp is layer i without its attention.
func (a *bailingArgs) mlp(b *Build, i int, router B.Router) decoderLayer {
	l := preNorm(&a.common, b, nn.Attention{})
	l.Attn = nil
	l.MLP.GateUp.Bias, l.MLP.Down.Bias = a.Bias, a.Bias
	if i < a.Dense {
		return l
	}
	moe := nn.NewMoE(a.D, b.Local(a.ExpFFN), a.Experts, router, &B.GLU{Act: B.SiLU})
	moe.Up.Bias, moe.Down.Bias = a.Bias, a.Bias
	if a.ExpertBias {
		moe.Bias = &nn.Vec{N: a.Experts}
	}
	if a.Shared > 0 && a.UseShared {
		shared := nn.NewGLUMLP(a.D, b.Local(a.SharedFFN*a.Shared), B.SiLU)
		shared.GateUp.Bias, shared.Down.Bias = a.Bias, a.Bias
		moe.Shared = &shared
	}
	return l.routed(&moe)
}

var bailingNames = strings.NewReplacer("word_embeddings", "embed_tokens", ".attention.query_key_value", ".self_attn.qkv_proj",
	".attention.dense", ".self_attn.o_proj", ".attention.query_layernorm", ".self_attn.q_norm", ".attention.key_layernorm", ".self_attn.k_norm",
	".gate.gate_proj", ".gate", ".gate.expert_bias", ".gate.e_score_correction_bias")

func (a *bailingArgs) check() error {
	if err := checkExperts("num_experts", a.Experts, "num_experts_per_tok", a.TopK); err != nil {
		return err
	}
	a.HeadDim = 0 // always a share of the width
	if a.SharedFFN == 0 {
		a.SharedFFN = a.ExpFFN
	}
	if a.Groups == 1 {
		a.TopGroups = 1
	}
	switch {
	case a.ExpFFN <= 0 || a.ExpFFN > maxSize || a.SharedFFN <= 0 || a.SharedFFN > maxSize || a.Shared < 0 || a.Shared > 64:
		return fmt.Errorf("moe_intermediate_size %d or num_shared_experts %d is missing or out of range", a.ExpFFN, a.Shared)
	case a.Score == "softmax" && (a.Groups > 1 || a.ExpertBias):
		return fmt.Errorf("score_function softmax with n_group %d or a bias is not supported", a.Groups)
	case !groupsFit(a.Groups, a.TopGroups, a.Experts):
		return fmt.Errorf("n_group %d and topk_group %d do not fit %d experts", a.Groups, a.TopGroups, a.Experts)
	case a.Groups > 1 && a.TopGroups*(a.Experts/a.Groups) < a.TopK:
		return fmt.Errorf("topk_group %d of n_group %d leaves fewer experts than num_experts_per_tok %d", a.TopGroups, a.Groups, a.TopK)
	case !(a.Scale > 0 && a.Scale < 1e6):
		return fmt.Errorf("routed_scaling_factor %g is out of range", float64(a.Scale))
	}
	if err := a.common.check(); err != nil {
		return err
	}
	if a.Rotary < 0 || a.Rotary > a.HeadDim {
		return fmt.Errorf("rotary_dim %d is above the head's %d", a.Rotary, a.HeadDim)
	}
	return nil
}
