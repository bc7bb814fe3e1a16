package model

import (
	"encoding/json"

	"hearth/internal/nn"
)

func init() {
	register("qwen2_vl", func(cfg []byte, b *Build) (Generator, error) { return newNested(newQwen2, cfg, b) })
	register("qwen3_vl", func(cfg []byte, b *Build) (Generator, error) { return newNested(newQwen3, cfg, b) })
	register("qwen3_vl_moe", func(cfg []byte, b *Build) (Generator, error) { return newNested(newQwen3MoE, cfg, b) })
	register("pixtral", newPixtral)
}

// newNested is the language model of a model of text and images, whose config and tensors are those of another type with a
// prefix.
func newNested(mk maker, cfg []byte, b *Build) (Generator, error) {
	g, err := mk(cfg, b)
	if err != nil {
		return nil, err
	}
	g.(*decoder).nested = true
	return g, nil
}

// newPixtral is llama with a head of its own. Its configs leave out the number of heads where it is 32.
func newPixtral(cfg []byte, b *Build) (Generator, error) {
	text, err := textConfig(cfg)
	if err != nil {
		return nil, err
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil {
		return nil, tidyJSON(err)
	}
	if _, ok := keys["num_attention_heads"]; !ok && keys != nil {
		keys["num_attention_heads"] = json.RawMessage("32")
	}
	if text, err = json.Marshal(keys); err != nil {
		return nil, err
	}
	g, err := newNested(newLlama, text, b)
	if err == nil {
		g.(*decoder).Head.Tied = nn.TieNever
	}
	return g, err
}
