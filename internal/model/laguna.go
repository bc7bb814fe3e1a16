package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("laguna", newLaguna) }

type lagunaArgs struct {
	common
	windows
	QKVBias  bool            `json:"qkv_bias"`
	AttnBias bool            `json:"attention_bias"` // of the product behind attention
	Gating   json.RawMessage `json:"gating"`         // true, "per-head": per head; else the folder says: per column or none
	PerLayer []int           `json:"num_attention_heads_per_layer"`
	mlpTypes
	DenseAt   layerSet `json:"mlp_only_layers"` // where mlp_layer_types does not say
	Experts   int      `json:"num_experts"`
	TopK      int      `json:"num_experts_per_tok"`
	ExpFFN    int      `json:"moe_intermediate_size"`
	SharedFFN int      `json:"shared_expert_intermediate_size"`
	Scale     float    `json:"moe_routed_scaling_factor"`
	SoftCap   float    `json:"moe_router_logit_softcapping"`
}

var lagunaNames = strings.NewReplacer(".mlp.gate.proj", ".mlp.gate", ".mlp.experts.e_score_correction_bias", ".mlp.gate.e_score_correction_bias",
	".mlp.shared_expert.", ".mlp.shared_experts.")

// newLaguna: heads whose results have gates of softplus, as many as a layer says; rotations by the type of a layer;
// experts picked by sigmoids and a bias beside a shared one.
func newLaguna(cfg *config, b *Build) (Generator, error) {
	a := lagunaArgs{Gating: json.RawMessage("true"), Experts: 256, TopK: 8, ExpFFN: 512, SharedFFN: 512, Scale: 1}
	a.Eps, a.Window, a.HeadDim = 1e-6, 512, 128
	cfg.into(&a)
	if err := a.check(); err != nil {
		return nil, err
	}
	cfg.is("moe_apply_router_weight_on_input", "false")
	cfg.is("norm_topk_prob", "true")
	cfg.is("moe_router_score_func", `"sigmoid"`)
	cfg.harmless("gating_types")                                     // the shapes of the gates say it
	cfg.harmless("rope_parameters.original_max_position_embeddings") // those of each layer type count
	cfg.is("decoder_sparse_step", "1")
	cfg.is("moe_router_use_sigmoid", "true")
	cfg.ropeless(`{"full_attention": {"rope_theta": 500000, "partial_rotary_factor": 0.5}, "sliding_attention": {"rope_theta": 10000}}`)
	ropes := cfg.ropesOf(append(a.Types, a.kind(0)), rotation{Head: a.HeadDim, Base: 10000, Share: 1, Fixed: true})
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		c := a.common
		if a.PerLayer != nil {
			c.Heads = a.PerLayer[i]
		}
		t := gqa(b, &c, i, a.window(i), ropes[a.kind(i)])
		t.QKV.Bias, t.O.Bias = a.QKVBias, a.AttnBias
		t.QNorm, t.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
		if a.gates() {
			gate := nn.Lin(a.D, t.Spec.Heads)
			t.HeadG, t.HeadAct = &gate, &B.GLU{Act: B.SoftplusAct}
		}
		l := preNorm(&a.common, b, t)
		if !a.sparse(i) {
			return l
		}
		moe := nn.NewMoE(a.D, b.Local(a.ExpFFN), a.Experts, B.Router{Score: B.Sigmoid, K: a.TopK, Renorm: true, Scale: float32(a.Scale)}, &B.GLU{Act: B.SiLU})
		shared := nn.NewGLUMLP(a.D, b.Local(a.SharedFFN), B.SiLU)
		moe.Bias, moe.Shared = &nn.Vec{N: a.Experts}, &shared
		if a.SoftCap > 0 {
			moe.Cap = capped(&a.SoftCap)
		}
		return l.routed(&moe)
	})
	// A gate per column is told by the folder: what transformers means by false, mlx-lm means by no gate at all.
	m.look = func(shape func(name string) []int) {
		for i := range m.Layers {
			t, g := m.Layers[i].Attn, shape(fmt.Sprintf("model.layers.%d.self_attn.g_proj.weight", i))
			if len(g) > 0 && g[0] == t.Spec.Heads*a.HeadDim*max(b.World, 1) && g[0] != t.Spec.Heads*max(b.World, 1) {
				gate := nn.Lin(a.D, t.Spec.Heads*a.HeadDim)
				t.HeadG, t.HeadAct = &gate, &B.GLU{Act: B.SoftplusAct}
			}
		}
	}
	m.family, m.nested = lagunaNames, true
	m.Head.Tied = a.ownTie()
	m.gate(cfg)
	return m, nil
}

// gates reports a gate per head.
func (a *lagunaArgs) gates() bool {
	return slices.Contains([]string{"true", `"per-head"`}, compact(a.Gating))
}

func (a *lagunaArgs) check() error {
	if err := a.common.check(); err != nil {
		return err
	}
	if err := a.checkWindows(a.Layers); err != nil {
		return err
	}
	if err := a.fillMLPs(a.Layers, func(i int) bool { return !a.DenseAt[i] && (i > 0 || a.DenseAt != nil) }); err != nil {
		return err
	}
	switch {
	case a.PerLayer != nil && len(a.PerLayer) != a.Layers:
		return fmt.Errorf("num_attention_heads_per_layer has %d entries for %d layers", len(a.PerLayer), a.Layers)
	case a.SoftCap < 0 || a.SoftCap > 1e6:
		return fmt.Errorf("moe_router_logit_softcapping %g is out of range", float64(a.SoftCap))
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
