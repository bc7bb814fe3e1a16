package model

func init() {
	register("qwen3_5", newQwen35)
	towers["qwen3_5"] = newQwen35Vision
}

// newQwen35Vision is that of qwen3_vl, of which no layers are added later.
func newQwen35Vision(cfg *config, width int) (vision, error) {
	a := qwen3VisionDefaults()
	a.Deep = nil
	return a.vision(cfg, width)
}

// newQwen35 is qwen3_next with the projections of a delta layer in four tensors, and with experts in every layer or in
// none. It is the language model of a model of text and images.
func newQwen35(cfg *config, b *Build) (Generator, error) {
	a := qwen3NextArgs{Step: 1, Renorm: true}
	cfg.into(&a)
	if a.Step, a.Dense, a.always = 1, nil, true; a.KVHeads == 0 {
		a.KVHeads = 4
		if a.Experts > 0 {
			a.KVHeads = 2
		}
	}
	cfg.is("output_gate_type", `"swish"`)
	m, err := newHybrid(cfg, &a, rotation{Base: 10000, Share: 0.25, Fixed: true, Axes: axes{sections: []int{11, 11, 10}, inTurn: true}}, b)
	if err != nil {
		return nil, err
	}
	cfg.tieBeside(m.within(), nil)
	return m, nil
}
