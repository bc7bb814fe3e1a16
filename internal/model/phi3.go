package model

func init() { register("phi3", newPhi3) }

// phi3Args: the context of the longrope is a key beside rope_scaling.
type phi3Args struct {
	common
	Orig float `json:"original_max_position_embeddings"`
}

// newPhi3 is llama with q, k and v in one tensor, gate and up in another, and a part of each head rotated.
func newPhi3(cfg *config, b *Build) (Generator, error) {
	a := phi3Args{common: common{MaxPos: 131072}, Orig: 4096}
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	a.HeadDim = 0 // always a share of the width
	if err := a.check(); err != nil {
		return nil, err
	}
	rope, err := cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Share: 1, Orig: float64(a.Orig), Types: []string{"default", "linear", "longrope", "su"}})
	if err != nil {
		return nil, err
	}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		l := preNorm(&a.common, b, gqa(b, &a.common, i, 0, rope))
		l.Attn.QKV.Fused, l.MLP.GateUp.Fused = true, true
		return l
	})
	m.ownHead(&a.common)
	return m, nil
}
