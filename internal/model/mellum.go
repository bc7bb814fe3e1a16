package model

import (
	"fmt"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("mellum", newMellum) }

// ropesByKind are rotations that differ with the type of a layer.
type ropesByKind map[string]*ropeJSON

// rope is that of layers of one type.
func (r ropesByKind) rope(c common, kind string, change func(*nn.RopeArgs)) (*B.Rope, error) {
	c.Theta, c.Scaling, c.Parameters = 0, nil, r[kind]
	a := c.rope(10000)
	change(&a)
	rope, err := nn.NewRope(c.HeadDim, a)
	if err != nil {
		return nil, fmt.Errorf("rope_parameters of %s: %w", kind, err)
	}
	return rope, nil
}

// newMellum is qwen3_moe with windows and a rotation per type of layer.
func newMellum(cfg []byte, b *Build) (Generator, error) {
	var a struct {
		qwen3MoEArgs
		windows
		Ropes ropesByKind `json:"rope_parameters"`
	}
	a.Step = 1
	if err := parseInto(cfg, &a); err != nil {
		return nil, err
	}
	a.Step, a.Dense = 1, nil
	if err := a.check(); err != nil {
		return nil, err
	}
	if err := a.checkWindows(a.Layers); err != nil {
		return nil, err
	}
	ropes := map[bool]*B.Rope{}
	for i := range a.Layers {
		kind, slides := "full_attention", a.window(i) > 0
		if slides {
			kind = "sliding_attention"
		}
		if a.Ropes[kind] == nil {
			return nil, fmt.Errorf("rope_parameters has nothing for %s", kind)
		}
		rope, err := a.Ropes.rope(a.common, kind, func(r *nn.RopeArgs) {
			if r.Partial = 1; r.Type == "linear" {
				r.Type = "" // as in the reference
			}
		})
		if err != nil {
			return nil, err
		}
		ropes[slides] = rope
	}
	silu := &B.GLU{Act: B.SiLU}
	return newDecoder(&a.common, b, func(i int) decoderLayer {
		t := gqa(b, &a.common, i, a.window(i), ropes[a.window(i) > 0])
		t.QNorm, t.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
		l := preNorm(&a.common, b, t)
		moe := nn.NewMoE(a.D, b.Local(a.ExpFFN), a.Experts, B.Router{Score: B.Softmax, K: a.TopK, Renorm: a.Renorm}, silu)
		return l.routed(&moe)
	}), nil
}
