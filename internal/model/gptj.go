package model

import (
	"fmt"
	"strings"

	"hearth/internal/nn"
)

func init() { register("gptj", newGPTJ) }

// newGPTJ: attention and an MLP of two products read the same norm; neighbours of a part of each head rotate; the
// head has a bias.
func newGPTJ(cfg *config, b *Build) (Generator, error) {
	part := 64
	a := struct {
		gpt2Args
		Rotary *int `json:"rotary_dim"` // null: all of a head
	}{Rotary: &part}
	cfg.into(&a)
	act := cfg.act("activation_function", "gelu_new")
	cfg.is("rotary", "true")
	a.Scaled, a.ByLayer = nil, false
	if err := a.check(); err != nil {
		return nil, err
	}
	if a.Rotary == nil || *a.Rotary == 0 {
		a.Rotary = &a.HeadDim
	}
	if *a.Rotary < 2 || *a.Rotary > a.HeadDim {
		return nil, fmt.Errorf("rotary_dim %d is not part of a head's %d", *a.Rotary, a.HeadDim)
	}
	rope, err := nn.NewRope(*a.Rotary, nn.RopeArgs{Theta: 10000, Partial: 1, Traditional: true})
	if err != nil {
		return nil, err
	}
	rope = nn.At(rope, a.HeadDim, 0)
	m := newCentred(&a.common, b, nn.LayerNorm{}, func(i int, l *centredLayer) {
		l.Attn = gqa(b, &a.common, i, 0, rope)
		l.MLP, l.PostNorm = nn.NewMLP(a.D, b.Local(a.FFN), act), nil
		l.MLP.Up.Bias, l.MLP.Down.Bias = true, true
	})
	m.Head.Bias, m.Head.Tied = true, a.ownTie()
	m.family, m.drop, m.root = gptjNames, []string{".attn.bias", ".attn.masked_bias"}, []string{"transformer.", "model."}
	return m, nil
}

var gptjNames = strings.NewReplacer("wte", "embed_tokens", "ln_f", "norm", ".ln_1", ".input_layernorm", ".attn.out_proj", ".self_attn.o_proj", ".attn.",
	".self_attn.", ".mlp.fc_in", ".mlp.up_proj", ".mlp.fc_out", ".mlp.down_proj", "model.h.", "model.layers.")
