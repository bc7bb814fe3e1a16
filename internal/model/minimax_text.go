package model

import (
	"fmt"
	"math"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

// miniMaxTextArgs: what layers keep of their normalised input, and what they add to it, has factors.
type miniMaxTextArgs struct {
	common
	Types   []string `json:"layer_types"`
	Window  int      `json:"sliding_window"`
	Experts int      `json:"num_local_experts"`
	TopK    int      `json:"num_experts_per_tok"`

	FullKeep   float `json:"full_attn_alpha_factor"`
	FullAdd    float `json:"full_attn_beta_factor"`
	LinearKeep float `json:"linear_attn_alpha_factor"`
	LinearAdd  float `json:"linear_attn_beta_factor"`
	MLPKeep    float `json:"mlp_alpha_factor"`
	MLPAdd     float `json:"mlp_beta_factor"`
}

// miniMaxText is MiniMax-Text-01: layers add to what their norms give, not to what these see.
type miniMaxText struct {
	declared
	names decoder // whose names these are

	Embed  nn.Embedding       `w:"model.embed_tokens"`
	Layers []miniMaxTextLayer `w:"model.layers"`
	Norm   nn.RMSNorm         `w:"model.norm"`
	Head   nn.Linear          `w:"lm_head,tied=Embed"`
}

// miniMaxTextLayer has one of Attn and Light.
type miniMaxTextLayer struct {
	Attn     *nn.Attention     `w:"self_attn"`
	Light    *miniMaxLightning `w:"self_attn"`
	MoE      *nn.MoE           `w:"mlp"`
	InNorm   nn.RMSNorm        `w:"input_layernorm"`
	PostNorm nn.RMSNorm        `w:"post_attention_layernorm"`

	keep, add, mlpKeep, mlpAdd float32
}

// miniMaxLightning is linear attention whose heads forget at rates of their own, the same in every row. An activation
// sees queries, keys and values, which the checkpoint has head by head.
type miniMaxLightning struct {
	QKV  nn.Linear  `w:"qkv_proj"`
	Gate nn.Linear  `w:"output_gate"`
	Norm nn.RMSNorm `w:"norm"`
	O    nn.Linear  `w:"out_proj"`
	act  B.Activation
	spec B.SSM
}

// Forward is the layer without norm and residual: [rows, D] to [rows, D].
func (l *miniMaxLightning) Forward(o B.Ops, x B.Array) B.Array {
	y := o.Act(l.QKV.Forward(o, x), &l.act)
	y = o.SSM(l.QKV.Part(o, y, 2), l.QKV.Part(o, y, 1), l.QKV.Part(o, y, 0), B.Array{}, &l.spec)
	return l.O.Forward(o, o.Gate(l.Gate.Forward(o, x), l.Norm.Forward(o, y), &B.GLU{Act: B.SigmoidAct}))
}

func newMiniMaxText(cfg *config, b *Build) (Generator, error) {
	cfg.also("num_local_experts", "num_experts")
	cfg.harmless("block_size") // how many rows are computed at once
	a := miniMaxTextArgs{TopK: 2, Experts: 8, FullKeep: 1, FullAdd: 1, LinearKeep: 1, LinearAdd: 1, MLPKeep: 1, MLPAdd: 1}
	a.Eps = 1e-5
	cfg.into(&a)
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 1e6, Fixed: true})
	act := cfg.act("hidden_act", "silu")
	m := &miniMaxText{Embed: nn.Embedding{Vocab: a.Vocab, Dim: a.D}, Norm: *a.norm(), Head: nn.Lin(a.D, a.Vocab)}
	m.Head.Tied = a.tie()
	m.names = decoder{family: sparseNames, drop: []string{".slope_rate", ".query_decay", ".key_decay", ".diagonal_decay"}}
	for i := range a.Layers {
		l := miniMaxTextLayer{InNorm: *a.norm(), PostNorm: *a.norm(), keep: float32(a.FullKeep), add: float32(a.FullAdd),
			mlpKeep: float32(a.MLPKeep), mlpAdd: float32(a.MLPAdd)}
		if a.Types[i] == full {
			t := gqa(b, &a.common, i, a.Window, rope)
			l.Attn = &t
		} else {
			l.keep, l.add = float32(a.LinearKeep), float32(a.LinearAdd)
			l.Light = a.lightning(b, i, act)
		}
		moe := nn.NewMoE(a.D, b.Local(a.FFN), a.Experts, B.Router{Score: B.SoftmaxSelected, K: a.TopK}, &B.GLU{Act: act})
		l.MoE = &moe
		m.Layers = append(m.Layers, l)
	}
	m.declared = b.declared(&a.common)
	return m, nil
}

// lightning declares layer i of the other kind. It is the same on every rank.
func (a *miniMaxTextArgs) lightning(b *Build, i int, act B.ActKind) *miniMaxLightning {
	h, hd := a.Heads, a.HeadDim
	inner := h * hd
	l := &miniMaxLightning{QKV: nn.Lin(a.D, inner, inner, inner), Gate: nn.Lin(a.D, inner), O: nn.Lin(inner, a.D), Norm: nn.RMS(inner, 1e-6),
		act: B.Activation{Kind: act}, spec: B.SSM{State: b.Recurrent(i, h, hd, hd), Heads: h, Groups: h, KDim: hd, VDim: hd}}
	l.QKV.Perm = [][]int32{interleave(h, hd, hd, hd)}
	for k := range h { // later layers forget less
		s := math.Pow(2, -8*float64(k+1)/float64(h)) * (1 - float64(i)/(float64(a.Layers)-1+1e-5) + 1e-5)
		l.spec.Slopes = append(l.spec.Slopes, float32(s))
	}
	return l
}

func (a *miniMaxTextArgs) check() error {
	if err := checkExperts("num_local_experts", a.Experts, "num_experts_per_tok", a.TopK); err != nil {
		return err
	}
	if err := a.common.check(); err != nil {
		return err
	}
	for _, f := range []struct {
		key string
		x   float
	}{
		{"full_attn_alpha_factor", a.FullKeep}, {"full_attn_beta_factor", a.FullAdd}, {"linear_attn_alpha_factor", a.LinearKeep},
		{"linear_attn_beta_factor", a.LinearAdd}, {"mlp_alpha_factor", a.MLPKeep}, {"mlp_beta_factor", a.MLPAdd},
	} {
		if !(f.x > -1e6 && f.x < 1e6) {
			return fmt.Errorf("%s %g is out of range", f.key, float64(f.x))
		}
	}
	if a.Window < 0 || a.Window > 1<<30 {
		return fmt.Errorf("sliding_window %d is out of range", a.Window)
	}
	if a.Types == nil {
		for i := range a.Layers {
			a.Types = append(a.Types, []string{full, linear}[i%2])
		}
	}
	return checkKinds("layer_types", a.Types, a.Layers, full, linear)
}

// Forward implements Model.
func (m *miniMaxText) Forward(o B.Ops, b *B.Batch) B.Array {
	h := m.Embed.Tokens(o, b)
	for i := range m.Layers {
		l := &m.Layers[i]
		h = l.InNorm.Forward(o, h)
		var x B.Array
		if l.Attn != nil {
			x = l.Attn.Forward(o, h)
		} else {
			x = l.Light.Forward(o, h)
		}
		h = o.Add(times(o, h, l.keep), times(o, x, l.add))
		if i == len(m.Layers)-1 {
			h = nn.Outputs(o, b, h) // the last experts only see wanted rows
		}
		h = l.PostNorm.Forward(o, h)
		h = o.Add(times(o, h, l.mlpKeep), times(o, l.MoE.Forward(o, h), l.mlpAdd))
		o.Sweep(h)
	}
	return m.Norm.Forward(o, h)
}

// Logits implements Generator.
func (m *miniMaxText) Logits(o B.Ops, h B.Array) B.Array { return m.Head.Forward(o, h) }

// Rename implements renamer.
func (m *miniMaxText) Rename(name string) string { return m.names.Rename(name) }
