package model

import (
	"fmt"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("nanochat", newNanochat) }

// newNanochat: no norm has weights, and there is one of the embedding; positions rotate the other way, queries and
// keys are normalised after that; an MLP of two products with squared relu between; a cap on logits.
func newNanochat(cfg *config, b *Build) (Generator, error) {
	a := struct {
		common
		Cap *float `json:"final_logit_softcapping"`
	}{common: common{Eps: 1e-6}}
	cfg.into(&a)
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Fixed: true})
	for i := range rope.InvFreq {
		rope.InvFreq[i] = -rope.InvFreq[i]
	}
	unit := func() *nn.RMSNorm {
		n := a.norm()
		n.Unit = true
		return n
	}
	act := cfg.act("hidden_act", "relu2")
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		t := gqa(b, &a.common, i, 0, rope)
		t.Even = &B.Norm{Eps: float32(a.Eps), Width: a.HeadDim}
		return decoderLayer{Attn: &t, Two: nn.NewMLP(a.D, b.Local(a.FFN), act), InNorm: unit(), PostNorm: unit()}
	})
	m.Norm.Unit, m.first = true, unit()
	m.family, m.cap = nanochatNames, &B.Activation{Kind: B.TanhCap, A: 15}
	if _, given := cfg.text["final_logit_softcapping"]; given {
		if m.cap = nil; a.Cap != nil { // null is none
			if !(*a.Cap > 0) {
				return nil, fmt.Errorf("final_logit_softcapping %g is not positive", float64(*a.Cap))
			}
			m.cap = &B.Activation{Kind: B.TanhCap, A: float32(*a.Cap)}
		}
	}
	return m, nil
}

// nanochatNames are those of the model's first trainer, and those of Hugging Face.
var nanochatNames = strings.NewReplacer("transformer.wte", "model.embed_tokens", "transformer.h.", "model.layers.", ".attn.c_q", ".self_attn.q_proj",
	".attn.c_k", ".self_attn.k_proj", ".attn.c_v", ".self_attn.v_proj", ".attn.c_proj", ".self_attn.o_proj", ".mlp.c_fc", ".mlp.up_proj", ".mlp.c_proj", ".mlp.down_proj",
	".mlp.fc1", ".mlp.up_proj", ".mlp.fc2", ".mlp.down_proj")
