package model

import (
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("granitemoe", newGraniteMoE) }

// newGraniteMoE is granite with experts in every layer.
func newGraniteMoE(cfg *config, b *Build) (Generator, error) {
	var a struct {
		graniteArgs
		Experts int `json:"num_local_experts"`
		TopK    int `json:"num_experts_per_tok"`
	}
	cfg.into(&a)
	if err := checkExperts("num_local_experts", a.Experts, "num_experts_per_tok", a.TopK); err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	layer := a.layers(cfg, b)
	silu := &B.GLU{Act: B.SiLU}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		moe := nn.NewMoE(a.D, b.Local(a.FFN), a.Experts, B.Router{Score: B.SoftmaxSelected, K: a.TopK}, silu)
		l := layer(i)
		return l.routed(&moe)
	})
	m.family = graniteMoENames
	a.multiply(m)
	m.gate(cfg)
	return m, nil
}

// graniteMoENames: Hugging Face has gate and up of all experts in one tensor.
var graniteMoENames = strings.NewReplacer(".block_sparse_moe.router.layer", ".mlp.gate", ".block_sparse_moe.router.", ".mlp.gate.", ".block_sparse_moe.input_linear", ".mlp.switch_mlp.gate_up_proj",
	".block_sparse_moe.output_linear", ".mlp.switch_mlp.down_proj", ".block_sparse_moe.", ".mlp.")
