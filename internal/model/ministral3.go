package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"hearth/internal/regular"
)

func init() {
	register("ministral3", newMinistral3)
	register("mistral3", newMistral3)
	register("llava", newLlava)
}

type ministral3Args struct {
	common
	windows
}

// newMinistral3 is llama whose queries grow with the logarithm of their position, once that is past the context the model
// was first trained on.
func newMinistral3(cfg *config, b *Build) (Generator, error) {
	a, err := read[ministral3Args](cfg)
	if err != nil {
		return nil, err
	}
	a.everywhere(cfg, a.Layers, 0)
	if err := a.check(); err != nil {
		return nil, err
	}
	if slices.Contains(a.Types, full) && slices.Contains(a.Types, slides) {
		cfg.differs("layer_types", "as mlx-lm reads it; in transformers every layer of this architecture has the window")
	}
	rope, err := cfg.rope(rotation{Head: a.HeadDim, Base: 10000})
	if err != nil {
		return nil, err
	}
	queries := *rope
	if queries.QBeta, queries.QOrig, err = cfg.growth(); err != nil {
		return nil, err
	}
	return newDecoder(&a.common, b, func(i int) decoderLayer {
		t := gqa(b, &a.common, i, a.window(i), rope)
		t.QRope = &queries
		return preNorm(&a.common, b, t)
	}), nil
}

// growth is what makes queries grow: how fast, and from which position on.
func (c *config) growth() (beta float32, from int, err error) {
	older, newer, at, err := c.ropes("", false)
	p := newer
	if p == nil {
		p, at = older, "rope_scaling"
	}
	switch {
	case err != nil:
		return 0, 0, err
	case p == nil:
		return 0, 0, fmt.Errorf("rope_parameters is missing")
	case !(p.Orig >= 1 && p.Orig <= maxSize):
		return 0, 0, fmt.Errorf("%s: original_max_position_embeddings %g is missing or out of range", at, float64(p.Orig))
	case !(p.Beta >= 0 && p.Beta <= 100):
		return 0, 0, fmt.Errorf("%s: llama_4_scaling_beta %g is out of range", at, float64(p.Beta))
	}
	return float32(p.Beta), int(p.Orig), nil
}

func (a *ministral3Args) check() error {
	if err := a.common.check(); err != nil {
		return err
	}
	return a.checkWindows(a.Layers)
}

// newMistral3 is the language model of a model of text and images, of one of the types that textTypes has.
func newMistral3(cfg *config, b *Build) (Generator, error) {
	return newTexts(cfg, b, "mistral", true)
}

// newLlava is newMistral3 with other defaults.
func newLlava(cfg *config, b *Build) (Generator, error) {
	return newTexts(cfg, b, "llama", false)
}

// textTypes are the types of language models that these two may have.
var textTypes = []string{"llama", "ministral3", "mistral", "mistral4", "qwen2", "qwen3"}

// textDefaults are the sizes of those types in transformers, which used to leave them out inside of a config.
var textDefaults = map[string]map[string]string{
	"llama": {"hidden_size": "4096", "intermediate_size": "11008", "num_hidden_layers": "32", "num_attention_heads": "32", "vocab_size": "32000",
		"rms_norm_eps": "1e-6", "max_position_embeddings": "2048"},
	"mistral": {"hidden_size": "4096", "intermediate_size": "14336", "num_hidden_layers": "32", "num_attention_heads": "32", "num_key_value_heads": "8",
		"vocab_size": "32000", "rms_norm_eps": "1e-6", "max_position_embeddings": "131072"},
	"qwen2": {"hidden_size": "4096", "intermediate_size": "22016", "num_hidden_layers": "32", "num_attention_heads": "32", "num_key_value_heads": "32",
		"vocab_size": "151936", "rms_norm_eps": "1e-6", "max_position_embeddings": "32768"},
}

func newTexts(cfg *config, b *Build, typ string, tied bool) (Generator, error) {
	var head struct {
		Type string `json:"model_type"`
	}
	if err := cfg.into(&head); err != nil {
		return nil, err
	}
	if cfg.at != "" && head.Type != "" {
		typ = head.Type
	}
	if !slices.Contains(textTypes, typ) {
		return nil, fmt.Errorf("%smodel_type %s is not supported in %s; these are: %s", cfg.at, regular.Quote(typ), regular.Quote(cfg.typ), strings.Join(textTypes, ", "))
	}
	for key, value := range textDefaults[typ] {
		if _, ok := cfg.text[key]; !ok && cfg.at != "" {
			cfg.text[key] = json.RawMessage(value)
		}
	}
	g, err := newNested(registry[typ], cfg, b)
	if err != nil {
		return nil, err
	}
	return g, cfg.tieBeside(&g.(*decoder).Head, &tied)
}
