package model

import (
	"strings"
)

func init() { register("exaone", newExaone) }

// newExaone is llama under other names.
func newExaone(cfg *config, b *Build) (Generator, error) {
	var a struct {
		llamaArgs
		NumLayers int   `json:"num_layers"`
		LNEps     float `json:"layer_norm_epsilon"`
	}
	cfg.into(&a)
	cfg.is("activation_function", `"silu"`)
	a.Types = nil // the family has no windows
	if a.NumLayers != 0 {
		a.Layers = a.NumLayers
	}
	if a.LNEps != 0 {
		a.Eps = a.LNEps
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 500000})
	m := newDecoder(&a.common, b, func(i int) decoderLayer { return a.layer(b, i, rope) })
	m.family = exaoneNames
	return m, nil
}

var exaoneNames = strings.NewReplacer("transformer.wte", "model.embed_tokens", "transformer.h.", "model.layers.", "transformer.ln_f", "model.norm",
	".attn.attention.out_proj", ".self_attn.o_proj", ".attn.attention.", ".self_attn.", ".ln_1", ".input_layernorm", ".ln_2", ".post_attention_layernorm",
	".c_fc_0", ".gate_proj", ".c_fc_1", ".up_proj", ".c_proj", ".down_proj")
