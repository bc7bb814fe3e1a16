package model

import (
	"fmt"

	"hearth/internal/nn"
)

func init() {
	register("cohere", func(cfg *config, b *Build) (Generator, error) { return newCohere(cfg, b, false) })
	register("cohere2", func(cfg *config, b *Build) (Generator, error) { return newCohere(cfg, b, true) })
}

type cohereArgs struct {
	centredArgs
	windows
	Scale    float `json:"logit_scale"`
	AttnBias bool  `json:"attention_bias"`
	NormBias bool  `json:"layer_norm_bias"`
	QKNorm   bool  `json:"use_qk_norm"`
	Pattern  int   `json:"sliding_window_pattern"`
}

// newCohere: attention and MLP side by side, rotation in pairs of neighbours, the embedding table as head. In cohere2
// layers that see everything, every so many, know no positions; the others have a window.
func newCohere(cfg *config, b *Build, two bool) (Generator, error) {
	yes := true
	a := cohereArgs{Scale: 0.0625, Pattern: 4}
	a.Tied = &yes
	turn := rotation{Base: 500000, Pairs: true, Fixed: true}
	if two {
		turn.Base, a.Window = 10000, 4096
	}
	cfg.into(&a)
	cfg.harmless("model_max_length")        // how long texts may be; max_position_embeddings is read
	cfg.harmless("_sliding_window_pattern") // the reference reads layer_types and the key without the line
	if !two {
		a.windows = windows{}
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	act := cfg.act("hidden_act", "silu")
	turn.Head = a.HeadDim
	rope := cfg.rope(turn)
	m := newCentred(&a.common, b, nn.LayerNorm{NoBias: !a.NormBias}, func(i int, l *centredLayer) {
		turn := rope
		if two && a.kind(i) == full {
			turn = nil
		}
		l.Attn = gqa(b, &a.common, i, a.window(i), turn)
		l.Attn.QKV.Bias, l.Attn.O.Bias = a.AttnBias, a.AttnBias
		if a.QKNorm && !two {
			l.Attn.QLayer, l.Attn.KLayer = nn.HeadLN(b.Local(a.Heads), a.HeadDim, float32(a.Eps)), nn.HeadLN(b.LocalKV(a.KVHeads), a.HeadDim, float32(a.Eps))
			for _, n := range []*nn.LayerNorm{l.Attn.QLayer, l.Attn.KLayer} {
				n.NoBias, n.Flat = true, true
			}
		}
		mlp := nn.NewGLUMLP(a.D, b.Local(a.FFN), act)
		l.GLU, l.PostNorm = &mlp, nil
	})
	m.logits = float32(a.Scale)
	return m, nil
}

func (a *cohereArgs) check() error {
	switch {
	case !(a.Scale > 0 && a.Scale < 1e6):
		return fmt.Errorf("logit_scale %g is out of range", float64(a.Scale))
	case a.Pattern <= 0:
		return fmt.Errorf("sliding_window_pattern %d is not positive", a.Pattern)
	}
	if err := a.centredArgs.check(a.LNEps); err != nil {
		return err
	}
	a.fill(a.Layers, func(i int) bool { return (i+1)%a.Pattern != 0 })
	return a.checkWindows(a.Layers)
}
