package model

import (
	"fmt"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("gpt2", newGPT2) }

// gpt2Args are the family's names for the common keys.
type gpt2Args struct {
	centredArgs
	Width     int   `json:"n_embd"`
	NLayers   int   `json:"n_layer"`
	NHeads    int   `json:"n_head"`
	Positions int   `json:"n_positions"`
	Inner     int   `json:"n_inner"` // 0: four times the width
	NormEps   float `json:"layer_norm_epsilon"`
	Scaled    *bool `json:"scale_attn_weights"`              // scores are divided by the root of a head's width; null: true
	ByLayer   bool  `json:"scale_attn_by_inverse_layer_idx"` // and by the layer's number
}

func (a *gpt2Args) check() error {
	a.D, a.Layers, a.Heads, a.KVHeads, a.MaxPos, a.HeadDim, a.FFN = a.Width, a.NLayers, a.NHeads, a.NHeads, a.Positions, 0, a.Inner
	a.odd = true
	if a.FFN == 0 {
		a.FFN = 4 * min(max(a.D, 0), maxSize/4)
	}
	if a.Positions <= 0 || a.Positions > maxSize {
		return fmt.Errorf("n_positions %d is missing or out of range", a.Positions)
	}
	return a.checkEps("layer_norm_epsilon", a.NormEps)
}

// attention is that of layer i.
func (a *gpt2Args) attention(b *Build, i int, rope *B.Rope) nn.Attention {
	t := gqa(b, &a.common, i, 0, rope)
	if a.Scaled != nil && !*a.Scaled {
		t.Spec.Scale = 1
	}
	if a.ByLayer {
		t.Spec.Scale /= float32(i + 1)
	}
	return t
}

// learned gives a model a table of positions.
func (a *gpt2Args) learned(m *centred) { m.Positions = &nn.Embedding{Vocab: a.Positions, Dim: a.D} }

var gpt2Names = strings.NewReplacer("wte", "embed_tokens", "wpe", "positions", "ln_f", "norm", ".ln_1", ".input_layernorm", ".ln_2", ".post_attention_layernorm",
	".attn.c_attn", ".self_attn.qkv_proj", ".attn.c_proj", ".self_attn.o_proj", ".mlp.c_fc", ".mlp.up_proj", ".mlp.c_proj", ".mlp.down_proj",
	"model.h.", "model.layers.")

// newGPT2: positions from a table, biases everywhere. Published folders have every product the other way round.
func newGPT2(cfg *config, b *Build) (Generator, error) {
	var a gpt2Args
	cfg.into(&a)
	act := cfg.act("activation_function", "gelu_new")
	if err := a.check(); err != nil {
		return nil, err
	}
	m := newCentred(&a.common, b, nn.LayerNorm{}, func(i int, l *centredLayer) {
		l.Attn = a.attention(b, i, nil)
		l.Attn.QKV.Fused, l.Attn.QKV.Bias, l.Attn.O.Bias = true, true, true
		l.MLP = nn.NewMLP(a.D, b.Local(a.FFN), act)
		l.MLP.Up.Bias, l.MLP.Down.Bias = true, true
	})
	a.learned(m)
	m.family, m.drop, m.root = gpt2Names, []string{".attn.bias", ".attn.masked_bias"}, []string{"transformer.", "model."}
	m.Head.Tied = nn.TieFile // mlx-lm has no head of its own, whatever the config says
	m.look = func(shape func(name string) []int) {
		s := shape("model.layers.0.self_attn.qkv_proj.weight")
		transposed := len(s) == 2 && s[0] == a.D
		for i := range m.Layers {
			l := &m.Layers[i]
			for _, x := range []*nn.Linear{&l.Attn.QKV, &l.Attn.O, &l.MLP.Up, &l.MLP.Down} {
				x.Transposed = transposed
			}
		}
	}
	return m, nil
}
