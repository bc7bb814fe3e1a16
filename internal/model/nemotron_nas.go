package model

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
	"hearth/internal/regular"
)

func init() { register("nemotron-nas", newNemotronNAS) }

// nasArgs: every layer says what its two halves are.
type nasArgs struct {
	common
	AttnBias bool       `json:"attention_bias"`
	MLPBias  bool       `json:"mlp_bias"`
	Act      string     `json:"hidden_act"`
	Blocks   []nasBlock `json:"block_configs"`
}

type nasBlock struct {
	Attention struct {
		None   bool `json:"no_op"`
		Linear bool `json:"replace_with_linear"`
		Group  int  `json:"n_heads_in_group"` // query heads of a key head

		Window json.RawMessage `json:"window_length"`
		Sinks  json.RawMessage `json:"num_sink_tokens"`
		Sparse json.RawMessage `json:"sparsify"`
		Early  json.RawMessage `json:"use_prefill_window_in_sink_attention"` // how sinks are used
		Kept   json.RawMessage `json:"unshifted_sink"`
	} `json:"attention"`
	FFN struct {
		None   bool  `json:"no_op"`
		Linear bool  `json:"replace_with_linear"`
		Mult   float `json:"ffn_mult"`

		Sparse json.RawMessage `json:"sparsify"`
	} `json:"ffn"`
}

// other is the first key of a block that asks for something unsupported, with its value; "": there is none.
func (k *nasBlock) other() (key, value string) {
	for _, f := range []struct {
		key string
		raw json.RawMessage
	}{
		{"attention.window_length", k.Attention.Window}, {"attention.num_sink_tokens", k.Attention.Sinks}, {"attention.sparsify", k.Attention.Sparse},
		{"ffn.sparsify", k.FFN.Sparse},
	} {
		if v := compact(f.raw); given(f.raw) && v != "0" && v != "[]" && v != "false" {
			return f.key, v
		}
	}
	return "", ""
}

// nas is llama after a search that replaced halves of layers by a product, or by nothing, and gave the others sizes of their own.
type nas struct {
	declared
	Embed  nn.Embedding `w:"model.embed_tokens"`
	Layers []nasLayer   `w:"model.layers"`
	Norm   nn.RMSNorm   `w:"model.norm"`
	Head   nn.Linear    `w:"lm_head,tied=Embed"`
}

// nasLayer has one, or none, of each pair.
type nasLayer struct {
	InNorm   *nn.RMSNorm   `w:"input_layernorm"`
	Attn     *nn.Attention `w:"self_attn"`
	Instead  *nn.Linear    `w:"self_attn.linear"`
	PostNorm *nn.RMSNorm   `w:"post_attention_layernorm"`
	MLP      *nn.GLUMLP    `w:"mlp"`
	Product  *nn.Linear    `w:"mlp.linear"`
}

var nasActs = map[string]B.ActKind{"silu": B.SiLU, "gelu": B.GeluErf, "gelu_new": B.GeluTanh, "gelu_fast": B.GeluTanh}

func newNemotronNAS(cfg *config, b *Build) (Generator, error) {
	a := nasArgs{Act: "silu"}
	cfg.into(&a)
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 500000, Fixed: true})
	m := &nas{Embed: nn.Embedding{Vocab: a.Vocab, Dim: a.D}, Norm: *a.norm(), Head: nn.Lin(a.D, a.Vocab)}
	m.Head.Tied = a.ownTie()
	for i := range a.Layers {
		m.Layers = append(m.Layers, a.layer(b, i, rope))
	}
	m.declared = b.declared(&a.common)
	return m, nil
}

func (a *nasArgs) layer(b *Build, i int, rope *B.Rope) nasLayer {
	var l nasLayer
	k := &a.Blocks[i]
	product := func(bias bool) *nn.Linear {
		p := nn.Lin(a.D, a.D)
		p.Bias = bias
		return &p
	}
	if !k.Attention.None {
		l.InNorm = a.norm()
		if k.Attention.Linear {
			l.Instead = product(a.AttnBias)
		} else {
			own := a.common
			own.KVHeads = a.Heads / k.Attention.Group
			t := gqa(b, &own, i, 0, rope)
			t.QKV.Bias, t.O.Bias = a.AttnBias, a.AttnBias
			l.Attn = &t
		}
	}
	if !k.FFN.None {
		l.PostNorm = a.norm()
		if k.FFN.Linear {
			l.Product = product(a.MLPBias)
		} else {
			mlp := nn.NewGLUMLP(a.D, b.Local(k.ffn(a.D)), nasActs[a.Act])
			mlp.GateUp.Bias, mlp.Down.Bias = a.MLPBias, a.MLPBias
			l.MLP = &mlp
		}
	}
	return l
}

// ffn is the width of an MLP: a share of the hidden one, rounded up to a multiple of 256.
func (k *nasBlock) ffn(d int) int {
	mult := math.Round(float64(k.FFN.Mult)*1e6) / 1e6
	return (int(2*mult*float64(d)/3) + 255) / 256 * 256
}

func (a *nasArgs) check() error {
	a.HeadDim, a.KVHeads = 0, a.Heads // heads are always a share of the width; layers say how many share a key
	if a.FFN == 0 {
		a.FFN = a.D // layers say theirs
	}
	if err := a.common.check(); err != nil {
		return err
	}
	if len(a.Blocks) != a.Layers {
		return fmt.Errorf("block_configs has %d entries for %d layers", len(a.Blocks), a.Layers)
	}
	if _, ok := nasActs[a.Act]; !ok {
		return fmt.Errorf("hidden_act %s is not supported", regular.Quote(a.Act))
	}
	attends := false
	for i := range a.Blocks {
		k := &a.Blocks[i]
		if key, value := k.other(); key != "" {
			return fmt.Errorf("block_configs[%d].%s is %s: only null is done here", i, key, regular.Clip(value))
		}
		if t := &k.Attention; !t.None && !t.Linear {
			attends = true
			if t.Group <= 0 || a.Heads%t.Group != 0 {
				return fmt.Errorf("block_configs[%d]: n_heads_in_group %d does not divide %d heads", i, t.Group, a.Heads)
			}
		}
		if f := &k.FFN; !f.None && !f.Linear && !(f.Mult > 0 && f.Mult <= 64) {
			return fmt.Errorf("block_configs[%d]: ffn_mult %g is missing or out of range", i, float64(f.Mult))
		}
	}
	if !attends {
		return fmt.Errorf("block_configs has no layer that attends")
	}
	return nil
}

// Forward implements Model.
func (m *nas) Forward(o B.Ops, b *B.Batch) B.Array {
	h := m.Embed.Tokens(o, b)
	for i := range m.Layers {
		l := &m.Layers[i]
		switch {
		case l.Attn != nil:
			h = o.Add(h, l.Attn.Forward(o, l.InNorm.Forward(o, h)))
		case l.Instead != nil:
			h = o.Add(h, l.Instead.Forward(o, l.InNorm.Forward(o, h)))
		}
		if i == len(m.Layers)-1 {
			h = nn.Outputs(o, b, h) // the last MLP only runs for wanted rows
		}
		switch {
		case l.MLP != nil:
			h = o.Add(h, l.MLP.Forward(o, l.PostNorm.Forward(o, h)))
		case l.Product != nil:
			h = o.Add(h, l.Product.Forward(o, l.PostNorm.Forward(o, h)))
		}
		o.Sweep(h)
	}
	return m.Norm.Forward(o, h)
}

// Logits implements Generator.
func (m *nas) Logits(o B.Ops, h B.Array) B.Array { return m.Head.Forward(o, h) }

// Rename drops the rotation tables that old exporters wrote.
func (m *nas) Rename(name string) string {
	if strings.HasSuffix(name, "rotary_emb.inv_freq") {
		return ""
	}
	return name
}
