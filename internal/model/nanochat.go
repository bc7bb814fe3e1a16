package model

import (
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("nanochat", newNanochat) }

// newNanochat: no norm has weights, and there is one of the embedding; positions rotate the other way, queries and keys are normalised
// after that; an MLP of two products with squared relu between; logits below 15.
func newNanochat(cfg *config, b *Build) (Generator, error) {
	a, err := read[common](cfg)
	if err != nil {
		return nil, err
	}
	a.Eps, a.HeadDim = 1e-5, 0 // heads are always a share of the width
	if err := a.check(); err != nil {
		return nil, err
	}
	rope, err := cfg.rope(rotation{Head: a.HeadDim, Base: 10000})
	if err != nil {
		return nil, err
	}
	for i := range rope.InvFreq {
		rope.InvFreq[i] = -rope.InvFreq[i]
	}
	unit := func() *nn.RMSNorm {
		n := a.norm()
		n.Unit = true
		return n
	}
	m := newDecoder(&a, b, func(i int) decoderLayer {
		t := gqa(b, &a, i, 0, rope)
		t.Even = &B.Norm{Eps: 1e-5, Width: a.HeadDim}
		return decoderLayer{Attn: &t, Two: nn.NewMLP(a.D, b.Local(a.FFN), B.ReLU2), InNorm: unit(), PostNorm: unit()}
	})
	m.Norm.Unit, m.first = true, unit()
	m.family, m.cap, m.Head.Tied = nanochatNames, &B.Activation{Kind: B.TanhCap, A: 15}, nn.TieNever
	return m, nil
}

var nanochatNames = strings.NewReplacer("transformer.wte", "model.embed_tokens", "transformer.h.", "model.layers.", ".attn.c_q", ".self_attn.q_proj",
	".attn.c_k", ".self_attn.k_proj", ".attn.c_v", ".self_attn.v_proj", ".attn.c_proj", ".self_attn.o_proj", ".mlp.c_fc", ".mlp.up_proj", ".mlp.c_proj", ".mlp.down_proj")
