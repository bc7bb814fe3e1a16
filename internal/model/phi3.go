package model

func init() { register("phi3", newPhi3) }

// phi3Args: the context of the longrope is a key beside rope_scaling.
type phi3Args struct {
	common
	windows
	Orig float `json:"original_max_position_embeddings"`
}

// newPhi3 is llama with q, k and v in one tensor, gate and up in another, and a part of each head rotated.
func newPhi3(cfg *config, b *Build) (Generator, error) {
	a := phi3Args{common: common{MaxPos: 131072}, Orig: 4096}
	cfg.into(&a)
	cfg.is("full_attn_mod", "1") // of the first code: layers without a window, and how far positions are stretched
	cfg.is("interpolate_factor", "1")
	a.Types = nil // sliding_window is that of every layer, whatever layer_types says
	a.everywhere(cfg, a.Layers, 0)
	if err := a.check(); err != nil {
		return nil, err
	}
	if err := a.checkWindows(a.Layers); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Share: 1, Orig: float64(a.Orig),
		Types: []string{"default", "linear", "longrope", "su", "yarn"}, Yarn: "longrope"})
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		l := preNorm(&a.common, b, gqa(b, &a.common, i, a.window(i), rope))
		l.Attn.QKV.Fused, l.MLP.GateUp.Fused = true, true
		return l
	})
	m.Head.Tied = a.ownTie()
	return m, nil
}
