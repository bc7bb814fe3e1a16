package model

import (
	"fmt"
	"slices"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("llama4", newLlama4) }

type llama4Args struct {
	common
	Types    []string `json:"layer_types"`
	Turns    []truthy `json:"no_rope_layers"`         // layers that rotate, whatever the key is called
	Still    int      `json:"no_rope_layer_interval"` // every so many layers do not
	MoE      layerSet `json:"moe_layers"`
	AttnBias bool     `json:"attention_bias"`
	Chunk    int      `json:"attention_chunk_size"`
	Step     int      `json:"interleave_moe_layer_step"` // every so many layers have experts
	DenseFFN int      `json:"intermediate_size_mlp"`     // of the other layers
	Experts  int      `json:"num_local_experts"`
	TopK     int      `json:"num_experts_per_tok"`
	QKNorm   bool     `json:"use_qk_norm"`
	Tuning   truthy   `json:"attn_temperature_tuning"`
	Floor    int      `json:"floor_scale"`
	Growth   float    `json:"attn_scale"`
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
	a := llama4Args{Tuning: true, Floor: 8192, Growth: 0.1, TopK: 1, QKNorm: true, Chunk: 8192, Still: 4, Step: 1}
	a.HeadDim = 128
	if cfg.null("head_dim") {
		a.HeadDim = 0
	}
	if cfg.null("attention_chunk_size") {
		a.Chunk = 0
	}
	cfg.into(&a)
	var beside struct {
		Tied *bool `json:"tie_word_embeddings"` // the language model's part has its own, which counts
	}
	cfg.beside(&beside)
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 500000, Pairs: true, Fixed: true})
	grow := &B.Rope{Head: a.HeadDim, QBeta: float32(a.Growth), QOrig: a.Floor, QFrom: 1}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		l := preNorm(&a.common, b, gqa(b, &a.common, i, a.window(i), rope))
		l.Attn.QKV.Bias, l.Attn.O.Bias = a.AttnBias, a.AttnBias
		l.Attn.Spec.Chunks = a.window(i) > 0
		switch {
		case bool(a.Turns[i]):
			if a.QKNorm {
				l.Attn.Even = &B.Norm{Eps: float32(a.Eps), Width: a.HeadDim}
			}
		case bool(a.Tuning):
			l.Attn.Rope, l.Attn.QRope = nil, grow
		default:
			l.Attn.Rope = nil
		}
		if !a.MoE[i] {
			mlp := nn.NewGLUMLP(a.D, b.Local(a.DenseFFN), B.SiLU)
			l.MLP = &mlp
			return l
		}
		moe := nn.NewMoE(a.D, b.Local(a.FFN), a.Experts, B.Router{Score: B.SoftmaxSelected, K: 1}, &B.GLU{Act: B.SiLU})
		moe.Weigh = &B.Router{Score: B.Sigmoid, K: 1}
		moe.Shared = l.MLP
		return l.routed(&moe)
	})
	m.nested, m.family, m.drop = true, llama4Names, []string{"vision_model."}
	m.Head.Tied = a.ownTie()
	m.gate(cfg)
	return m, nil
}

// window is the chunk that layer i sees, 0 if it sees everything.
func (a *llama4Args) window(i int) int {
	if a.Types[i] == chunked {
		return a.Chunk
	}
	return 0
}

var llama4Names = strings.NewReplacer(".feed_forward.router", ".mlp.gate", ".feed_forward.experts.", ".mlp.switch_mlp.",
	".feed_forward.shared_expert.", ".mlp.shared_experts.", ".feed_forward.", ".mlp.", "output.", "lm_head.")

func (a *llama4Args) check() error {
	if err := a.common.check(); err != nil {
		return err
	}
	if err := a.fillLayers(); err != nil {
		return err
	}
	if len(a.MoE) > 0 {
		if err := checkExperts("num_local_experts", a.Experts, "num_experts_per_tok", a.TopK); err != nil {
			return err
		}
	}
	switch {
	case len(a.MoE) > 0 && a.TopK != 1:
		return fmt.Errorf("num_experts_per_tok %d is not supported, only 1", a.TopK)
	case a.Chunk < 0 || a.Chunk > 1<<30 || a.Floor <= 0:
		return fmt.Errorf("attention_chunk_size %d or floor_scale %d is out of range", a.Chunk, a.Floor)
	case a.DenseFFN <= 0 || a.DenseFFN > maxSize:
		return fmt.Errorf("intermediate_size_mlp %d is missing or out of range", a.DenseFFN)
	case !(a.Growth >= 0 && a.Growth <= 100):
		return fmt.Errorf("attn_scale %g is out of range", float64(a.Growth))
	}
	return nil
}

const chunked = "chunked_attention"

// fillLayers says of every layer what the config leaves out.
func (a *llama4Args) fillLayers() error {
	if a.Still <= 0 || a.MoE == nil && a.Step <= 0 {
		return fmt.Errorf("no_rope_layer_interval %d or interleave_moe_layer_step %d is not positive", a.Still, a.Step)
	}
	if len(a.Turns) == 0 {
		for i := range a.Layers {
			a.Turns = append(a.Turns, truthy((i+1)%a.Still != 0))
		}
	}
	if len(a.Turns) < a.Layers {
		return fmt.Errorf("no_rope_layers has %d entries for %d layers", len(a.Turns), a.Layers)
	}
	if a.MoE == nil {
		a.MoE = layerSet{}
		for i := a.Step - 1; i < a.Layers; i += a.Step {
			a.MoE[i] = true
		}
	}
	if len(a.Types) == 0 {
		for i := range a.Layers {
			a.Types = append(a.Types, either(bool(a.Turns[i]) && a.Chunk > 0, chunked, full))
		}
	}
	if i := slices.Index(a.Types, chunked); i >= 0 && a.Chunk <= 0 {
		return fmt.Errorf("layer_types[%d] is %s, but attention_chunk_size is %d", i, chunked, a.Chunk)
	}
	return checkKinds("layer_types", a.Types, a.Layers, full, chunked)
}
