package model

import (
	"fmt"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("apertus", newApertus) }

// newApertus: norms per head of queries and keys, and an MLP of two products with a learned curve between.
func newApertus(cfg *config, b *Build) (Generator, error) {
	a := read[llamaArgs](cfg)
	cfg.is("qk_norm", "true")
	cfg.is("hidden_act", `"xielu"`)
	cfg.is("post_norm", "false")
	a.Types, a.HeadDim = nil, 0 // the family has no windows, and heads are always a share of the width
	if a.Eps == 0 {
		a.Eps = 1e-5
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	cfg.ropeless(`{"rope_type": "llama3", "rope_theta": 12000000.0, "factor": 8.0, "original_max_position_embeddings": 8192,
		"low_freq_factor": 1.0, "high_freq_factor": 4.0}`) // then rope_theta does not count either
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 12e6})
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		t := gqa(b, &a.common, i, 0, rope)
		t.QNorm, t.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
		l := preNorm(&a.common, b, t)
		l.MLP, l.Two = nil, nn.NewMLP(a.D, b.Local(a.FFN), B.XIELU)
		l.Two.Up.Bias, l.Two.Down.Bias, l.Two.Curve = a.MLPBias, a.MLPBias, &nn.Curve{}
		return l
	})
	m.family = apertusNames
	return m.plain(), nil
}

var apertusNames = strings.NewReplacer("attention_layernorm", "input_layernorm", "feedforward_layernorm", "post_attention_layernorm")

// plain is for types whose MLPs have no biases in folders that transformers saved, whatever mlp_bias says.
func (m *decoder) plain() *decoder {
	m.look = m.lookPlain
	return m
}

func (m *decoder) lookPlain(shape func(name string) []int) {
	for i := range m.Layers {
		path := fmt.Sprintf("model.layers.%d.mlp.up_proj.", i)
		if shape(path+"weight") == nil || shape(path+"bias") != nil {
			continue
		}
		if l := &m.Layers[i]; l.Two != nil {
			l.Two.Up.Bias, l.Two.Down.Bias = false, false
		} else {
			l.MLP.GateUp.Bias, l.MLP.Down.Bias = false, false
		}
	}
}
