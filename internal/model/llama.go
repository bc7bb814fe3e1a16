package model

import (
	"slices"

	B "hearth/internal/backend"
)

func init() {
	register("llama", newLlama)
	register("mistral", newMistral)
}

// llamaArgs: attention_bias and mlp_bias make the biases obligatory; without them a bias in the files is still used.
// Only layers that layer_types calls sliding have a window; in llama itself sliding_window alone means nothing, in
// mistral it is that of every layer.
type llamaArgs struct {
	common
	windows
	AttnBias bool `json:"attention_bias"`
	MLPBias  bool `json:"mlp_bias"`
}

func (a *llamaArgs) check() error {
	if err := a.common.check(); err != nil {
		return err
	}
	return a.checkWindows(a.Layers)
}

func newLlama(cfg *config, b *Build) (Generator, error) {
	a := read[llamaArgs](cfg)
	if slices.Contains(a.Types, slides) {
		cfg.differs("layer_types", "as mlx-lm reads it; in transformers no layer of this architecture has a window")
	}
	return a.llama(cfg, b)
}

// newMistral is llama that has a window in every layer, unless sliding_window is null or layer_types tells layers apart.
func newMistral(cfg *config, b *Build) (Generator, error) {
	a := read[llamaArgs](cfg)
	a.AttnBias, a.MLPBias = false, false // there may be some, but no key says so
	if cfg.at != "" {
		a.Types = nil // transformers looks for it at the top alone, where it makes another type of the model
	}
	a.everywhere(cfg, a.Layers, 4096)
	return a.llama(cfg, b)
}

func (a *llamaArgs) llama(cfg *config, b *Build) (Generator, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000})
	return newDecoder(&a.common, b, func(i int) decoderLayer { return a.layer(b, i, rope) }), nil
}

// everywhere gives all layers the window of sliding_window where layer_types tells none apart; null is none, and a config without
// the key means missing.
func (w *windows) everywhere(cfg *config, layers, missing int) {
	if _, ok := cfg.text["sliding_window"]; !ok {
		w.Window = missing
	}
	w.fill(layers, func(int) bool { return true })
}

// layer is also that of smollm3 and granite.
func (a *llamaArgs) layer(b *Build, i int, rope *B.Rope) decoderLayer {
	t := gqa(b, &a.common, i, a.window(i), rope)
	t.QKV.Bias, t.O.Bias = a.AttnBias, a.AttnBias
	l := preNorm(&a.common, b, t)
	l.MLP.GateUp.Bias, l.MLP.Down.Bias = a.MLPBias, a.MLPBias
	return l
}
