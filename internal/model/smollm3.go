package model

import (
	"fmt"
)

func init() { register("smollm3", newSmolLM3) }

// smolLM3Args: layer i rotates if Rotates[i] is not 0; without the list, all but every Interval-th do.
type smolLM3Args struct {
	llamaArgs
	Interval int   `json:"no_rope_layer_interval"`
	Rotates  []int `json:"no_rope_layers"`
}

// newSmolLM3 is llama with layers that know no positions.
func newSmolLM3(cfg *config, b *Build) (Generator, error) {
	a := smolLM3Args{Interval: 4}
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	rope, err := cfg.rope(rotation{Head: a.HeadDim, Base: 10000})
	if err != nil {
		return nil, err
	}
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
	if err := a.llamaArgs.check(); err != nil {
		return err
	}
	if a.Rotates != nil && len(a.Rotates) != a.Layers {
		return fmt.Errorf("no_rope_layers has %d entries for %d layers", len(a.Rotates), a.Layers)
	}
	return nil
}

func (a *smolLM3Args) rotates(i int) bool {
	if a.Rotates != nil {
		return a.Rotates[i] != 0
	}
	return (i+1)%a.Interval != 0
}
