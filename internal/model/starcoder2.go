package model

import (
	"strings"

	"hearth/internal/nn"
)

func init() { register("starcoder2", newStarcoder2) }

// newStarcoder2: an MLP of two products, biases everywhere, and perhaps a window in every layer.
func newStarcoder2(cfg *config, b *Build) (Generator, error) {
	var a struct {
		centredArgs
		windows
		NormEps float `json:"norm_epsilon"`
		Bias    bool  `json:"use_bias"`
	}
	a.Bias, a.KVHeads = true, 2
	cfg.into(&a)
	cfg.is("mlp_type", `"default"`)
	cfg.is("norm_type", `"layer_norm"`)
	cfg.harmless("activation_function", "layer_norm_epsilon") // starcoder's; hidden_act and norm_epsilon count
	act := cfg.act("hidden_act", "gelu_pytorch_tanh")
	if err := a.checkEps("norm_epsilon", a.NormEps); err != nil {
		return nil, err
	}
	a.Types = nil // sliding_window is that of every layer, whatever layer_types says
	a.everywhere(cfg, a.Layers, 0)
	if err := a.checkWindows(a.Layers); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Fixed: true})
	m := newCentred(&a.common, b, nn.LayerNorm{}, func(i int, l *centredLayer) {
		l.Attn = gqa(b, &a.common, i, a.window(i), rope)
		l.Attn.QKV.Bias, l.Attn.O.Bias = a.Bias, a.Bias
		l.MLP = nn.NewMLP(a.D, b.Local(a.FFN), act)
		l.MLP.Up.Bias, l.MLP.Down.Bias = a.Bias, a.Bias
	})
	m.family = plainNames
	return m, nil
}

// plainNames are names of the two products of an MLP, and of norms of heads.
var plainNames = strings.NewReplacer(".c_fc", ".up_proj", ".c_proj", ".down_proj", ".mlp.fc1", ".mlp.up_proj", ".mlp.fc2", ".mlp.down_proj",
	".self_attn.dense", ".self_attn.o_proj", ".q_layernorm", ".q_norm", ".k_layernorm", ".k_norm", "final_layernorm", "norm")
