package model

import (
	"fmt"

	"hearth/internal/nn"
	"hearth/internal/regular"
)

func init() { register("exaone4", newExaone4) }

type exaone4Args struct {
	common
	Window  int    `json:"sliding_window"`
	Pattern string `json:"sliding_window_pattern"` // for instance LLLG, repeated: L slides and rotates, G does neither; empty: all rotate
}

// newExaone4: norms after attention and MLP instead of before them, and one per head of queries and keys.
func newExaone4(cfg *config, b *Build) (Generator, error) {
	a, err := read[exaone4Args](cfg)
	if err != nil {
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
		window, turn := 0, rope
		if n := len(a.Pattern); n > 0 && a.Pattern[i%n] == 'L' {
			window = a.Window
		} else if n > 0 {
			turn = nil
		}
		l := preNorm(&a.common, b, gqa(b, &a.common, i, window, turn))
		l.Attn.QNorm, l.Attn.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
		l.InNorm, l.PostNorm = nil, nil
		l.AttnNorm, l.MLPNorm = a.norm(), a.norm()
		return l
	}), nil
}

func (a *exaone4Args) check() error {
	for _, c := range a.Pattern {
		switch {
		case c != 'L' && c != 'G':
			return fmt.Errorf("sliding_window_pattern %s has other letters than L and G", regular.Quote(a.Pattern))
		case c == 'L' && (a.Window <= 0 || a.Window > 1<<30):
			return fmt.Errorf("sliding_window_pattern has sliding layers, but sliding_window is %d", a.Window)
		}
	}
	return a.common.check()
}
