package model

func init() { register("qwen3_5", newQwen35) }

// newQwen35 is qwen3_next with the projections of a delta layer in four tensors, and with experts in every layer or in
// none. It is the language model of a model of text and images.
func newQwen35(cfg []byte, b *Build) (Generator, error) {
	a := qwen3NextArgs{Interval: 4, Step: 1, Renorm: true}
	a.Partial = 0.25
	if err := parseInto(cfg, &a); err != nil {
		return nil, err
	}
	a.Step, a.Dense = 1, nil
	if a.Parameters != nil { // then the older spelling does not count
		a.Scaling, a.Theta, a.Partial = nil, 0, 0.25
	}
	m, err := newHybrid(&a, a.rope(100000), b)
	if err != nil {
		return nil, err
	}
	m.names.nested = true
	return m, nil
}
