package model

import (
	"fmt"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("llama", newLlama) }

// llamaArgs: attention_bias and mlp_bias make the biases obligatory; without them a bias in the files is still used.
// Only layers that layer_types calls sliding have a window: as in mlx-lm, sliding_window alone means nothing.
type llamaArgs struct {
	common
	AttnBias bool     `json:"attention_bias"`
	MLPBias  bool     `json:"mlp_bias"`
	Types    []string `json:"layer_types"`
	Window   int      `json:"sliding_window"`
}

func (a *llamaArgs) check() error {
	if err := a.common.check(); err != nil {
		return err
	}
	if len(a.Types) != 0 && len(a.Types) != a.Layers {
		return fmt.Errorf("layer_types has %d entries for %d layers", len(a.Types), a.Layers)
	}
	for i, t := range a.Types {
		if t != "full_attention" && t != "sliding_attention" {
			return fmt.Errorf("layer_types[%d] is %q; full_attention and sliding_attention are known", i, t)
		}
		if a.window(i) < 0 || t == "sliding_attention" && a.Window == 0 {
			return fmt.Errorf("layer_types[%d] is sliding, but sliding_window is %d", i, a.Window)
		}
	}
	return nil
}

func (a *llamaArgs) window(i int) int {
	if len(a.Types) > 0 && a.Types[i] == "sliding_attention" {
		return a.Window
	}
	return 0
}

func newLlama(cfg []byte, b *Build) (Generator, error) {
	a, err := parse[llamaArgs](cfg)
	if err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	rope, err := nn.NewRope(a.HeadDim, a.rope(10000))
	if err != nil {
		return nil, err
	}
	m := newDecoder(&a.common, b, func(i int) nn.Attention { return a.attention(b, i, rope) })
	for i := range m.Layers {
		mlp := &m.Layers[i].MLP
		mlp.GateUp.Bias, mlp.Down.Bias = a.MLPBias, a.MLPBias
	}
	return m, nil
}

func (a *llamaArgs) attention(b *Build, i int, rope *B.Rope) nn.Attention {
	t := gqa(b, &a.common, i, a.window(i), rope)
	t.QKV.Bias, t.O.Bias = a.AttnBias, a.AttnBias
	return t
}
