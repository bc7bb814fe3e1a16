package model

import (
	"fmt"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("llama4", newLlama4) }

type llama4Args struct {
	common
	AttnBias bool   `json:"attention_bias"`
	Chunk    int    `json:"attention_chunk_size"`
	Step     int    `json:"interleave_moe_layer_step"` // every so many layers have experts
	DenseFFN int    `json:"intermediate_size_mlp"`     // of the other layers
	Experts  int    `json:"num_local_experts"`
	TopK     int    `json:"num_experts_per_tok"`
	QKNorm   bool   `json:"use_qk_norm"`
	Tuning   truthy `json:"attn_temperature_tuning"`
	Floor    int    `json:"floor_scale"`
	Growth   float  `json:"attn_scale"`
}

// truthy is a bool that may be a number.
type truthy bool

// UnmarshalJSON implements json.Unmarshaler.
func (t *truthy) UnmarshalJSON(b []byte) error {
	*t = string(b) != "false" && string(b) != "0" && string(b) != "null"
	return nil
}

// newLlama4 is the language model of a model of text and images. Three layers of four rotate and see the chunk of the text that
// they are in; the fourth sees everything, knows no positions and has queries that grow with theirs. One expert of a layer
// works, beside a shared one, on an input that the router weighs.
func newLlama4(cfg *config, b *Build) (Generator, error) {
	a := llama4Args{Tuning: true, Floor: 8192, Growth: 0.1}
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	rope, err := cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Pairs: true})
	if err != nil {
		return nil, err
	}
	grow := &B.Rope{Head: a.HeadDim, QBeta: float32(a.Growth), QOrig: a.Floor, QFrom: 1}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		l := preNorm(&a.common, b, gqa(b, &a.common, i, a.window(i), rope))
		l.Attn.QKV.Bias, l.Attn.O.Bias = a.AttnBias, a.AttnBias
		switch {
		case a.window(i) > 0:
			l.Attn.Spec.Chunks = true
			if a.QKNorm {
				l.Attn.Even = &B.Norm{Eps: 1e-6, Width: a.HeadDim}
			}
		case bool(a.Tuning):
			l.Attn.Rope, l.Attn.QRope = nil, grow
		default:
			l.Attn.Rope = nil
		}
		if i%a.Step != a.Step-1 {
			mlp := nn.NewGLUMLP(a.D, b.Local(a.DenseFFN), B.SiLU)
			l.MLP = &mlp
			return l
		}
		moe := nn.NewMoE(a.D, b.Local(a.FFN), a.Experts, B.Router{Score: B.SoftmaxSelected, K: 1}, &B.GLU{Act: B.SiLU})
		moe.Weigh = &B.Router{Score: B.Sigmoid, K: 1}
		moe.Shared = l.MLP
		return l.routed(&moe)
	})
	m.nested, m.family, m.drop, m.Head.Tied = true, llama4Names, []string{"vision_model."}, nn.TieNever
	return m, nil
}

// window is the chunk that layer i sees, 0 if it sees everything.
func (a *llama4Args) window(i int) int {
	if (i+1)%4 == 0 {
		return 0
	}
	return a.Chunk
}

var llama4Names = strings.NewReplacer(".feed_forward.router", ".mlp.gate", ".feed_forward.experts.", ".mlp.switch_mlp.",
	".feed_forward.shared_expert.", ".mlp.shared_experts.", ".feed_forward.", ".mlp.")

func (a *llama4Args) check() error {
	if err := checkExperts("num_local_experts", a.Experts, "num_experts_per_tok", a.TopK); err != nil {
		return err
	}
	switch {
	case a.TopK != 1:
		return fmt.Errorf("num_experts_per_tok %d is not supported, only 1", a.TopK)
	case a.Chunk <= 0 || a.Chunk > 1<<30 || a.Floor <= 0 || a.Step <= 0:
		return fmt.Errorf("attention_chunk_size %d, floor_scale %d or interleave_moe_layer_step %d is missing or out of range", a.Chunk, a.Floor, a.Step)
	case a.DenseFFN <= 0 || a.DenseFFN > maxSize:
		return fmt.Errorf("intermediate_size_mlp %d is missing or out of range", a.DenseFFN)
	case !(a.Growth >= 0 && a.Growth <= 100):
		return fmt.Errorf("attn_scale %g is out of range", float64(a.Growth))
	}
	return a.common.check()
}
