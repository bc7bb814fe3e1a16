package model

import (
	"fmt"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("mixtral", newMixtral) }

type mixtralArgs struct {
	common
	Experts int `json:"num_local_experts"`
	TopK    int `json:"num_experts_per_tok"`
	Window  int `json:"sliding_window"` // of all layers
}

// sparseNames are what mixtral and minimax call their experts and the parts of each.
var sparseNames = strings.NewReplacer(
	".block_sparse_moe.e_score_correction_bias", ".mlp.gate.e_score_correction_bias", ".mlp.e_score_correction_bias", ".mlp.gate.e_score_correction_bias", ".block_sparse_moe.", ".mlp.",
	".w1.", ".gate_proj.", ".w2.", ".down_proj.", ".w3.", ".up_proj.")

// newMixtral is llama with experts in every layer.
func newMixtral(cfg *config, b *Build) (Generator, error) {
	cfg.also("num_local_experts", "num_experts")
	a := mixtralArgs{Experts: 8, TopK: 2, common: common{
		D: 4096, Layers: 32, FFN: 14336, Heads: 32, KVHeads: 8, Eps: 1e-5, Vocab: 32000}}
	cfg.into(&a)
	if err := checkExperts("num_local_experts", a.Experts, "num_experts_per_tok", a.TopK); err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	if a.Window < 0 || a.Window > 1<<30 {
		return nil, fmt.Errorf("sliding_window %d is out of range", a.Window)
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 1e6})
	silu := &B.GLU{Act: B.SiLU}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		moe := nn.NewMoE(a.D, b.Local(a.FFN), a.Experts, B.Router{Score: B.SoftmaxSelected, K: a.TopK}, silu)
		return preNorm(&a.common, b, gqa(b, &a.common, i, a.Window, rope)).routed(&moe)
	})
	m.family = sparseNames
	m.Head.Tied = a.ownTie()
	m.gate(cfg)
	return m, nil
}

// routed has experts in the place of the MLP.
func (l decoderLayer) routed(m *nn.MoE) decoderLayer {
	l.MLP, l.MoE = nil, m
	return l
}
