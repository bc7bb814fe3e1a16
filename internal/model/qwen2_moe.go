package model

import (
	"fmt"
	"slices"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("qwen2_moe", newQwen2MoE) }

type qwen2MoEArgs struct {
	common
	windows
	UseWindow bool     `json:"use_sliding_window"`
	MaxWindow int      `json:"max_window_layers"`
	Step      int      `json:"decoder_sparse_step"`
	Dense     layerSet `json:"mlp_only_layers"`
	Renorm    bool     `json:"norm_topk_prob"`
	QKVBias   bool     `json:"qkv_bias"`
	Experts   int      `json:"num_experts"`
	TopK      int      `json:"num_experts_per_tok"`
	ExpFFN    int      `json:"moe_intermediate_size"`
	SharedFFN int      `json:"shared_expert_intermediate_size"`
}

// newQwen2MoE is qwen2 with experts in most layers, and a shared one behind a gate.
func newQwen2MoE(cfg *config, b *Build) (Generator, error) {
	cfg.also("num_experts", "num_local_experts")
	a := qwen2MoEArgs{Step: 1, MaxWindow: 28, QKVBias: true}
	a.Window = 4096
	cfg.into(&a)
	if i := slices.Index(a.Types, slides); i >= 0 && !a.UseWindow {
		return nil, fmt.Errorf("use_sliding_window is false, but layer_types[%d] is sliding", i)
	}
	if !a.UseWindow || cfg.null("sliding_window") {
		a.Window = 0
	}
	a.fill(a.Layers, func(i int) bool { return i%2 == 0 && i < a.MaxWindow })
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Fixed: true})
	silu := &B.GLU{Act: B.SiLU}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		t := gqa(b, &a.common, i, a.window(i), rope)
		t.QKV.Bias = a.QKVBias
		l := preNorm(&a.common, b, t)
		if a.Dense[i] || (i+1)%a.Step != 0 {
			return l
		}
		moe := nn.NewMoE(a.D, b.Local(a.ExpFFN), a.Experts, B.Router{Score: B.Softmax, K: a.TopK, Renorm: a.Renorm}, silu)
		shared, gate := nn.NewGLUMLP(a.D, b.Local(a.SharedFFN), B.SiLU), nn.Lin(a.D, 1)
		moe.Shared, moe.SharedGate = &shared, &gate
		return l.routed(&moe)
	})
	m.family = sharedNames
	m.Head.Tied = a.ownTie()
	m.gate(cfg)
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
	if a.Step <= 0 {
		return fmt.Errorf("decoder_sparse_step %d is not positive", a.Step)
	}
	if err := a.checkWindows(a.Layers); err != nil {
		return err
	}
	return a.common.check()
}
