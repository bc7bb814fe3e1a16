package model

import (
	"encoding/json"
	"fmt"

	"hearth/internal/nn"
	"hearth/internal/regular"
)

func init() { register("exaone4", newExaone4) }

// exaone4Args: without layer_types, sliding_window_pattern says which layers slide. It is a number of layers of which
// the last sees everything, or a word like LLLG: L slides, G does not. null is none.
type exaone4Args struct {
	common
	windows
}

// newExaone4: norms after attention and MLP instead of before them, and one per head of queries and keys. Where some
// layers have a window, the others do not rotate.
func newExaone4(cfg *config, b *Build) (Generator, error) {
	a := read[exaone4Args](cfg)
	if _, ok := cfg.text["sliding_window"]; !ok {
		a.Window = 4096
	}
	if err := a.pattern(cfg.raw("sliding_window_pattern")); err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Fixed: true})
	return newDecoder(&a.common, b, func(i int) decoderLayer {
		window, turn := a.window(i), rope
		if a.Window > 0 && len(a.Types) > 0 && window == 0 {
			turn = nil
		}
		l := preNorm(&a.common, b, gqa(b, &a.common, i, window, turn))
		l.Attn.QNorm, l.Attn.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
		l.InNorm, l.PostNorm = nil, nil
		l.AttnNorm, l.MLPNorm = a.norm(), a.norm()
		return l
	}), nil
}

// pattern fills in what layer_types leaves to sliding_window_pattern.
func (a *exaone4Args) pattern(raw json.RawMessage) error {
	if raw == nil || len(a.Types) > 0 {
		return nil
	}
	var word string
	if json.Unmarshal(raw, &word) == nil {
		for _, c := range word {
			if c != 'L' && c != 'G' {
				return fmt.Errorf("sliding_window_pattern %s has other letters than L and G", regular.Quote(word))
			}
		}
		if word != "" {
			a.fill(a.Layers, func(i int) bool { return word[i%len(word)] == 'L' })
		}
		return nil
	}
	var every int
	if err := json.Unmarshal(raw, &every); err != nil {
		return keyed("sliding_window_pattern", err)
	}
	if every < 1 && a.Window != 0 {
		return fmt.Errorf("sliding_window_pattern %d is not positive", every)
	}
	a.fill(a.Layers, func(i int) bool { return (i+1)%every != 0 })
	return nil
}

func (a *exaone4Args) check() error {
	if err := a.common.check(); err != nil {
		return err
	}
	return a.checkWindows(a.Layers)
}
