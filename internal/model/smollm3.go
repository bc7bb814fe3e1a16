package model

import (
	"fmt"
)

func init() { register("smollm3", newSmolLM3) }

// smolLM3Args: layer i rotates if Rotates[i] is not 0; without the list, all but every Interval-th do. The others may
// have a window.
type smolLM3Args struct {
	llamaArgs
	Interval int   `json:"no_rope_layer_interval"`
	Rotates  []int `json:"no_rope_layers"`
	Slides   bool  `json:"use_sliding_window"` // where layer_types does not say which
}

// newSmolLM3 is llama with layers that know no positions.
func newSmolLM3(cfg *config, b *Build) (Generator, error) {
	cfg.harmless("max_window_layers") // layers that do not rotate have the window
	a := smolLM3Args{Interval: 4}
	cfg.into(&a)
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 2e6})
	return newDecoder(&a.common, b, func(i int) decoderLayer {
		if a.rotates(i) {
			return a.layer(b, i, rope)
		}
		return a.layer(b, i, nil)
	}), nil
}

func (a *smolLM3Args) check() error {
	if a.Interval <= 0 {
		return fmt.Errorf("no_rope_layer_interval %d is not positive", a.Interval)
	}
	if a.Rotates != nil && len(a.Rotates) != a.Layers {
		return fmt.Errorf("no_rope_layers has %d entries for %d layers", len(a.Rotates), a.Layers)
	}
	a.fill(a.Layers, func(i int) bool { return a.Slides && !a.rotates(i) })
	return a.llamaArgs.check()
}

func (a *smolLM3Args) rotates(i int) bool {
	if a.Rotates != nil {
		return a.Rotates[i] != 0
	}
	return (i+1)%a.Interval != 0
}
