package model

import (
	"fmt"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
	"hearth/internal/regular"
)

func init() { register("laguna", newLaguna) }

type lagunaArgs struct {
	common
	windows
	QKVBias   bool     `json:"qkv_bias"`
	AttnBias  bool     `json:"attention_bias"` // of the product behind attention
	Gating    bool     `json:"gating"`
	PerLayer  []int    `json:"num_attention_heads_per_layer"`
	MLPs      []string `json:"mlp_layer_types"`
	Experts   int      `json:"num_experts"`
	TopK      int      `json:"num_experts_per_tok"`
	ExpFFN    int      `json:"moe_intermediate_size"`
	SharedFFN int      `json:"shared_expert_intermediate_size"`
	Scale     float    `json:"moe_routed_scaling_factor"`
	SoftCap   float    `json:"moe_router_logit_softcapping"`
	Score     string   `json:"moe_router_score_func"`
}

var lagunaNames = strings.NewReplacer(".mlp.gate.proj", ".mlp.gate", ".mlp.experts.e_score_correction_bias", ".mlp.gate.e_score_correction_bias",
	".mlp.shared_expert.", ".mlp.shared_experts.")

// newLaguna: heads whose results have gates of softplus, as many as a layer says; rotations by the type of a layer; experts picked by
// sigmoids and a bias beside a shared one.
func newLaguna(cfg *config, b *Build) (Generator, error) {
	a := lagunaArgs{Gating: true, Experts: 256, TopK: 8, ExpFFN: 512, SharedFFN: 512, Scale: 1, Score: "sigmoid"}
	a.Eps, a.Window, a.HeadDim = 1e-6, 512, 128
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	ropes, err := cfg.ropesOf([]string{full, slides}, rotation{Head: a.HeadDim, Base: 10000, Share: 1})
	if err != nil {
		return nil, err
	}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		c := a.common
		if a.PerLayer != nil {
			c.Heads = a.PerLayer[i]
		}
		t := gqa(b, &c, i, a.window(i), ropes[a.kind(i)])
		t.QKV.Bias, t.O.Bias = a.QKVBias, a.AttnBias
		t.QNorm, t.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
		if a.Gating {
			gate := nn.Lin(a.D, t.Spec.Heads)
			t.HeadG, t.HeadAct = &gate, &B.GLU{Act: B.SoftplusAct}
		}
		l := preNorm(&a.common, b, t)
		if a.MLPs[i] != "sparse" {
			return l
		}
		moe := nn.NewMoE(a.D, b.Local(a.ExpFFN), a.Experts, B.Router{Score: B.Sigmoid, K: a.TopK, Renorm: true, Scale: float32(a.Scale)}, &B.GLU{Act: B.SiLU})
		shared := nn.NewGLUMLP(a.D, b.Local(a.SharedFFN), B.SiLU)
		moe.Bias, moe.Shared = &nn.Vec{N: a.Experts}, &shared
		return l.routed(&moe)
	})
	m.family, m.nested = lagunaNames, true
	m.ownHead(&a.common)
	return m, nil
}

func (a *lagunaArgs) check() error {
	if err := a.common.check(); err != nil {
		return err
	}
	if err := a.checkWindows(a.Layers); err != nil {
		return err
	}
	if a.MLPs == nil {
		a.MLPs = append([]string{"dense"}, strings.Fields(strings.Repeat("sparse ", a.Layers-1))...)
	}
	switch {
	case len(a.MLPs) != a.Layers || a.PerLayer != nil && len(a.PerLayer) != a.Layers:
		return fmt.Errorf("mlp_layer_types and num_attention_heads_per_layer have %d and %d entries for %d layers", len(a.MLPs), len(a.PerLayer), a.Layers)
	case a.Score != "sigmoid" || a.SoftCap > 0:
		return fmt.Errorf("moe_router_score_func %s with moe_router_logit_softcapping %g is not supported", regular.Quote(a.Score), float64(a.SoftCap))
	case a.ExpFFN <= 0 || a.ExpFFN > maxSize || a.SharedFFN <= 0 || a.SharedFFN > maxSize:
		return fmt.Errorf("moe_intermediate_size %d or shared_expert_intermediate_size %d is out of range", a.ExpFFN, a.SharedFFN)
	case !(a.Scale > 0 && a.Scale < 1e6):
		return fmt.Errorf("moe_routed_scaling_factor %g is out of range", float64(a.Scale))
	}
	for i, n := range a.PerLayer {
		if n <= 0 || n > 1<<12 || n%a.KVHeads != 0 {
			return fmt.Errorf("num_attention_heads_per_layer[%d] %d is no multiple of num_key_value_heads %d", i, n, a.KVHeads)
		}
	}
	return checkExperts("num_experts", a.Experts, "num_experts_per_tok", a.TopK)
}
