package model

import (
	"encoding/json"

	"hearth/internal/nn"
)

func init() {
	register("qwen2_vl", newQwen2VL)
	register("qwen3_vl", newQwen3VL)
	register("qwen3_vl_moe", newQwen3VLMoE)
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

// tieBeside ties the head of a nested model by what the config says beside the language model's part, or in that part, as older folders
// do; missing is for configs that do not say it beside. A folder's own head counts where they say that it is tied.
func (c *config) tieBeside(head *nn.Linear, missing *bool) error {
	var in struct {
		Tied *bool `json:"tie_word_embeddings"`
	}
	out := struct {
		Tied *bool `json:"tie_word_embeddings"`
	}{missing}
	if err := c.into(&in); err != nil {
		return err
	}
	if err := c.beside(&out); err != nil {
		return err
	}
	head.Tied = nn.TieNever
	if (in.Tied == nil && out.Tied == nil) || (in.Tied != nil && *in.Tied) || (out.Tied != nil && *out.Tied) {
		head.Tied = nn.TieFile
	}
	return nil
}

// newQwen3VLMoE is qwen3_moe whose picked weights always add up to 1, and without windows.
func newQwen3VLMoE(cfg *config, b *Build) (Generator, error) {
	cfg.is("norm_topk_prob", "true")
	cfg.harmless("use_sliding_window", "sliding_window", "max_window_layers", "layer_types") // as in transformers
	g, err := newNested(func(cfg *config, b *Build) (Generator, error) {
		return qwen3MoE(cfg, b, qwen3MoEArgs{Step: 1, Renorm: true}, 500000)
	}, cfg, b)
	if err != nil {
		return nil, err
	}
	return g, cfg.tieBeside(&g.(*decoder).Head, new(bool))
}

// newQwen2VL is also for older folders, whose config has all keys in one.
func newQwen2VL(cfg *config, b *Build) (Generator, error) {
	g, err := newNested(func(cfg *config, b *Build) (Generator, error) { return qwen2(cfg, b, 80, 1e6) }, cfg, b)
	if err != nil {
		return nil, err
	}
	return g, cfg.tieBeside(&g.(*decoder).Head, nil)
}

func newQwen3VL(cfg *config, b *Build) (Generator, error) {
	g, err := newNested(qwen3Text, cfg, b)
	if err != nil {
		return nil, err
	}
	return g, cfg.tieBeside(&g.(*decoder).Head, nil)
}

// qwen3Text is qwen3 without windows.
func qwen3Text(cfg *config, b *Build) (Generator, error) {
	var a qwenArgs
	if err := cfg.into(&a.common); err != nil {
		return nil, err
	}
	cfg.harmless("use_sliding_window", "sliding_window", "max_window_layers", "layer_types") // as in transformers
	if err := a.common.check(); err != nil {
		return nil, err
	}
	return a.qwen3(cfg, b, 500000)
}

// newPixtral is llama with a head of its own. Its configs leave out the number of heads where it is 32.
func newPixtral(cfg *config, b *Build) (Generator, error) {
	if _, ok := cfg.text["num_attention_heads"]; !ok {
		cfg.text["num_attention_heads"] = json.RawMessage("32")
	}
	g, err := newNested(newLlama, cfg, b)
	if err != nil {
		return nil, err
	}
	return g, cfg.tieBeside(&g.(*decoder).Head, new(bool))
}
