package model

import (
	"fmt"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() {
	register("cohere", func(cfg *config, b *Build) (Generator, error) { return newCohere(cfg, b, false) })
	register("cohere2", func(cfg *config, b *Build) (Generator, error) { return newCohere(cfg, b, true) })
}

type cohereArgs struct {
	centredArgs
	Scale    float `json:"logit_scale"`
	AttnBias bool  `json:"attention_bias"`
	NormBias bool  `json:"layer_norm_bias"`
	QKNorm   bool  `json:"use_qk_norm"`
	Window   int   `json:"sliding_window"`
	Pattern  int   `json:"sliding_window_pattern"`
}

// newCohere: attention and MLP side by side, rotation in pairs of neighbours, the embedding table as head. In cohere2 every so
// many layers see everything and know no positions; the others have a window.
func newCohere(cfg *config, b *Build, windows bool) (Generator, error) {
	a := cohereArgs{Scale: 0.0625, Window: 4096, Pattern: 4}
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	turn := rotation{Base: 8e6, Pairs: true}
	if windows {
		turn.Base = 50000
	} else {
		a.HeadDim = 0 // always a share of the width
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	turn.Head = a.HeadDim
	rope, err := cfg.rope(turn)
	if err != nil {
		return nil, err
	}
	m := newCentred(&a.common, b, nn.LayerNorm{NoBias: !a.NormBias}, func(i int, l *centredLayer) {
		window, turn := 0, rope
		if windows {
			if window = a.Window; (i+1)%a.Pattern == 0 {
				window, turn = 0, nil
			}
		}
		l.Attn = gqa(b, &a.common, i, window, turn)
		l.Attn.QKV.Bias, l.Attn.O.Bias = a.AttnBias, a.AttnBias
		mlp := nn.NewGLUMLP(a.D, b.Local(a.FFN), B.SiLU)
		l.GLU, l.PostNorm = &mlp, nil
	})
	m.Head.Tied, m.logits = nn.TieAlways, float32(a.Scale)
	return m, nil
}

func (a *cohereArgs) check() error {
	switch {
	case !(a.Scale > 0 && a.Scale < 1e6):
		return fmt.Errorf("logit_scale %g is out of range", float64(a.Scale))
	case a.Window <= 0 || a.Window > 1<<30 || a.Pattern <= 0:
		return fmt.Errorf("sliding_window %d or sliding_window_pattern %d is out of range", a.Window, a.Pattern)
	case a.QKNorm:
		return fmt.Errorf("use_qk_norm is not supported: norms of queries and keys that take the mean away")
	}
	return a.centredArgs.check(a.LNEps)
}
