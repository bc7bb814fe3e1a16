package model

import (
	"encoding/json"

	"hearth/internal/nn"
)

func init() {
	register("qwen2_vl", func(cfg *config, b *Build) (Generator, error) { return newNested(newQwen2, cfg, b) })
	register("qwen3_vl", func(cfg *config, b *Build) (Generator, error) { return newNested(newQwen3, cfg, b) })
	register("qwen3_vl_moe", func(cfg *config, b *Build) (Generator, error) { return newNested(newQwen3MoE, cfg, b) })
	register("pixtral", newPixtral)
}

// newNested is the language model of a model of text and images, whose config and tensors are those of another type with a
// prefix.
func newNested(mk maker, cfg *config, b *Build) (Generator, error) {
	g, err := mk(cfg, b)
	if err != nil {
		return nil, err
	}
	g.(*decoder).nested = true
	return g, nil
}

// newPixtral is llama with a head of its own. Its configs leave out the number of heads where it is 32.
func newPixtral(cfg *config, b *Build) (Generator, error) {
	if _, ok := cfg.text["num_attention_heads"]; !ok {
		cfg.text["num_attention_heads"] = json.RawMessage("32")
	}
	g, err := newNested(newLlama, cfg, b)
	if err == nil {
		g.(*decoder).Head.Tied = nn.TieNever
	}
	return g, err
}
