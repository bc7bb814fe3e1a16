package model

import (
	"encoding/json"
	"fmt"
	"slices"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() {
	register("minimax", newMiniMax)
	register("minimax_m2", newMiniMaxM2)
}

// newMiniMax: two architectures go by this name: MiniMax-Text-01, whose lightning attention Hugging Face calls so, and MiniMax-M2
// before it had a name of its own, as in mlx-lm. Keys that only one has tell them apart.
func newMiniMax(cfg *config, b *Build) (Generator, error) {
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { return given(cfg.text[k]) })
	}
	var types []string
	_ = json.Unmarshal(cfg.text["layer_types"], &types) // told of where it is read
	if !has("block_size", "full_attn_alpha_factor", "linear_attn_alpha_factor", "mlp_alpha_factor") && !slices.Contains(types, linear) &&
		has("rotary_dim", "scoring_func", "use_qk_norm", "use_routing_bias") {
		return newMiniMaxM2(cfg, b)
	}
	return newMiniMaxText(cfg, b)
}

type miniMaxArgs struct {
	common
	Experts int   `json:"num_local_experts"`
	TopK    int   `json:"num_experts_per_tok"`
	Rotary  int   `json:"rotary_dim"` // columns of a head that rotate
	Norm    bool  `json:"use_qk_norm"`
	Attends []int `json:"attn_type_list"`
}

// newMiniMaxM2: experts in every layer, picked by sigmoids and a bias; norms over all heads of the queries and all of the keys.
func newMiniMaxM2(cfg *config, b *Build) (Generator, error) {
	cfg.also("num_local_experts", "num_experts")
	cfg.is("qk_norm_type", `"per_layer"`)
	cfg.is("use_routing_bias", "true")
	cfg.is("scoring_func", `"sigmoid"`)
	cfg.is("shared_intermediate_size", "0")
	// MiniMax-Text-01 has these; the family's later configs still list them.
	cfg.harmless("layernorm_full_attention_beta", "layernorm_linear_attention_beta", "layernorm_mlp_beta", "mlp_intermediate_size", "shared_moe_mode")
	a := miniMaxArgs{Norm: true, TopK: 8}
	a.Eps = 1e-6
	cfg.into(&a)
	if err := a.check(); err != nil {
		return nil, err
	}
	r := rotation{Head: a.HeadDim, Base: 5e6, Share: 1, Fixed: true}
	if a.Rotary > 0 {
		r.Share = min((float64(a.Rotary)+0.5)/float64(a.HeadDim), 1)
	}
	rope := cfg.rope(r)
	glu := &B.GLU{Act: cfg.act("hidden_act", "silu")}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		t := gqa(b, &a.common, i, 0, rope)
		if a.Norm {
			a.wholeNorms(&t)
		}
		moe := nn.NewMoE(a.D, b.Local(a.FFN), a.Experts, B.Router{Score: B.Sigmoid, K: a.TopK, Renorm: true}, glu)
		moe.Bias = &nn.Vec{N: a.Experts}
		return preNorm(&a.common, b, t).routed(&moe)
	})
	m.family = sparseNames
	m.look = func(shape func(name string) []int) { // norms that a folder has are used, whatever use_qk_norm says
		for i := range m.Layers {
			if shape(fmt.Sprintf("model.layers.%d.self_attn.q_norm.weight", i)) != nil {
				a.wholeNorms(m.Layers[i].Attn)
			}
		}
	}
	m.Head.Tied = a.ownTie()
	return m, nil
}

func (a *miniMaxArgs) check() error {
	if err := checkExperts("num_local_experts", a.Experts, "num_experts_per_tok", a.TopK); err != nil {
		return err
	}
	if err := a.common.check(); err != nil {
		return err
	}
	if a.Rotary < 0 || a.Rotary > a.HeadDim {
		return fmt.Errorf("rotary_dim %d is above the head's %d", a.Rotary, a.HeadDim)
	}
	if slices.ContainsFunc(a.Attends, func(n int) bool { return n != 1 }) {
		return fmt.Errorf("attn_type_list %v has layers of another kind than 1, which are not supported", a.Attends)
	}
	return nil
}
