package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
	"hearth/internal/regular"
)

func init() { register("qwen3_next", newQwen3Next) }

// qwen3NextArgs: layers attend by their type, or if Interval divides their number, the others have the gated delta
// rule; a layer is dense if it is listed, or not the last of Step, or there are no experts.
type qwen3NextArgs struct {
	common
	Interval  int      `json:"full_attention_interval"`
	KHeads    int      `json:"linear_num_key_heads"`
	VHeads    int      `json:"linear_num_value_heads"`
	KDim      int      `json:"linear_key_head_dim"`
	VDim      int      `json:"linear_value_head_dim"`
	Kernel    int      `json:"linear_conv_kernel_dim"`
	AttnBias  bool     `json:"attention_bias"`
	Types     []string `json:"layer_types"` // or Interval
	Experts   int      `json:"num_experts"`
	TopK      int      `json:"num_experts_per_tok"`
	Step      int      `json:"decoder_sparse_step"`
	Dense     layerSet `json:"mlp_only_layers"`
	ExpFFN    int      `json:"moe_intermediate_size"`
	SharedFFN int      `json:"shared_expert_intermediate_size"`
	Renorm    bool     `json:"norm_topk_prob"`
	always    bool     // Renorm is a key of conversions alone
}

// hybrid is a decoder with layers of both kinds. Its families differ in how checkpoints name and order what they store.
type hybrid struct {
	declared
	names  decoder // whose names these are
	renorm bool    // weights of experts, whatever the config says, but in a conversion

	Embed  nn.Embedding  `w:"model.embed_tokens"`
	Layers []hybridLayer `w:"model.layers"`
	Norm   nn.RMSNorm    `w:"model.norm"`
	Head   nn.Linear     `w:"lm_head,tied=Embed"`
}

// hybridLayer has one of Attn and Delta, and one of MLP and MoE.
type hybridLayer struct {
	Attn     *nn.Attention  `w:"self_attn"`
	Delta    *nn.GatedDelta `w:"linear_attn"`
	MLP      *nn.GLUMLP     `w:"mlp"`
	MoE      *nn.MoE        `w:"mlp"`
	InNorm   nn.RMSNorm     `w:"input_layernorm"`
	PostNorm nn.RMSNorm     `w:"post_attention_layernorm"`
}

func newQwen3Next(cfg *config, b *Build) (Generator, error) {
	a := qwen3NextArgs{Step: 1, Renorm: true}
	a.KVHeads = 2
	cfg.into(&a)
	m, err := newHybrid(cfg, &a, rotation{Base: 10000, Share: 0.25, Fixed: true}, b)
	if err != nil {
		return nil, err
	}
	for i := range m.Layers {
		if d := m.Layers[i].Delta; d != nil { // q, k, v and z of a key head follow each other, and so do b and a
			s := &d.Spec
			r := s.VHeads / s.KHeads
			d.In.Fused, d.BA.Fused = true, true
			d.In.Perm = [][]int32{interleave(s.KHeads, s.KDim, s.KDim, r*s.VDim, r*s.VDim)}
			d.BA.Perm = [][]int32{interleave(s.KHeads, r, r)}
		}
	}
	return m, nil
}

// newHybrid declares the layers that both families have.
func newHybrid(cfg *config, a *qwen3NextArgs, r rotation, b *Build) (*hybrid, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	cfg.is("attn_output_gate", "true")
	r.Head = a.HeadDim
	rope := cfg.rope(r)
	m := &hybrid{Embed: nn.Embedding{Vocab: a.Vocab, Dim: a.D}, Norm: *a.norm(), Head: nn.Lin(a.D, a.Vocab)}
	m.Head.Tied = a.tie()
	m.names.family, m.renorm = sharedNames, a.always
	for i := range a.Layers {
		l := hybridLayer{InNorm: *a.norm(), PostNorm: *a.norm()}
		if a.attends(i) {
			l.Attn = a.attention(b, i, rope)
		} else {
			l.Delta = a.delta(b, i)
		}
		if a.Experts == 0 || a.Dense[i] || (i+1)%a.Step != 0 {
			mlp := nn.NewGLUMLP(a.D, b.Local(a.FFN), B.SiLU)
			l.MLP = &mlp
		} else {
			l.MoE = a.experts(b)
		}
		m.Layers = append(m.Layers, l)
	}
	m.declared = b.declared(&a.common)
	return m, nil
}

// attention: of every head, q_proj has the query and then the gate of its result.
func (a *qwen3NextArgs) attention(b *Build, i int, rope *B.Rope) *nn.Attention {
	t := gqa(b, &a.common, i, 0, rope)
	t.Gated, t.QKV.Bias, t.O.Bias = true, a.AttnBias, a.AttnBias
	t.QKV.Outs[0] *= 2
	t.QKV.Perm = [][]int32{interleave(t.Spec.Heads, a.HeadDim, a.HeadDim)}
	t.QNorm, t.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
	return &t
}

func (a *qwen3NextArgs) delta(b *Build, i int) *nn.GatedDelta {
	kh, vh := b.Local(a.KHeads), b.Local(a.VHeads)
	kd, vd := kh*a.KDim, vh*a.VDim
	g := nn.GatedDelta{
		In: nn.Lin(a.D, 2*kd+vd, vd), BA: nn.Lin(a.D, vh, vh),
		Conv: nn.NewConv(2*kd+vd, a.Kernel, B.SiLU, b.Conv(i, 2*kd+vd, a.Kernel)),
		ALog: nn.Vec{N: vh}, Dt: nn.Vec{N: vh}, Norm: *nn.HeadRMS(a.VDim, float32(a.Eps)), Out: nn.Lin(vd, a.D),
		Spec: B.Delta{State: b.Recurrent(i, vh, a.KDim, a.VDim), KHeads: kh, VHeads: vh, KDim: a.KDim, VDim: a.VDim},
	}
	g.BA.Least = B.Float32 // what a decay is off by, all later rows see
	return &g
}

func (a *qwen3NextArgs) experts(b *Build) *nn.MoE {
	moe := nn.NewMoE(a.D, b.Local(a.ExpFFN), a.Experts, B.Router{Score: B.Softmax, K: a.TopK, Renorm: a.Renorm}, &B.GLU{Act: B.SiLU})
	shared, gate := nn.NewGLUMLP(a.D, b.Local(a.SharedFFN), B.SiLU), nn.Lin(a.D, 1)
	moe.Shared, moe.SharedGate = &shared, &gate
	return &moe
}

// interleave is the row order that turns n groups of parts of these widths into all first parts, all second ones and so on.
func interleave(n int, widths ...int) []int32 {
	total, off := sum(widths), 0
	p := make([]int32, 0, n*total)
	for _, w := range widths {
		for g := range n {
			for j := range w {
				p = append(p, int32(g*total+off+j))
			}
		}
		off += w
	}
	return p
}

// attends is what layer_types says, or full_attention_interval where that says nothing of this family's kinds.
func (a *qwen3NextArgs) attends(i int) bool {
	if slices.Contains(a.Types, linear) || !slices.ContainsFunc(a.Types, func(t string) bool { return t != full }) && len(a.Types) > 0 {
		return a.Types[i] == full
	}
	return (i+1)%a.Interval == 0
}

func (a *qwen3NextArgs) check() error {
	if a.Interval < 0 || a.Step <= 0 {
		return fmt.Errorf("full_attention_interval %d or decoder_sparse_step %d is not positive", a.Interval, a.Step)
	}
	for _, f := range []struct {
		key string
		n   int
		max int
	}{
		{"linear_num_key_heads", a.KHeads, 1 << 12}, {"linear_num_value_heads", a.VHeads, 1 << 12},
		{"linear_key_head_dim", a.KDim, 1 << 12}, {"linear_value_head_dim", a.VDim, 1 << 12},
	} {
		if f.n <= 0 || f.n > f.max {
			return fmt.Errorf("%s %d is missing or out of range", f.key, f.n)
		}
	}
	if len(a.Types) != 0 && len(a.Types) != a.Layers {
		return fmt.Errorf("layer_types has %d entries for %d layers", len(a.Types), a.Layers)
	}
	said := a.Interval > 0 && slices.Contains(a.Types, linear)
	for i, t := range a.Types {
		if said && (t == full) != ((i+1)%a.Interval == 0) {
			return fmt.Errorf("layer_types[%d] is %s, full_attention_interval is %d", i, regular.Quote(t), a.Interval)
		}
	}
	a.Interval = cmp.Or(a.Interval, 4)
	switch {
	case a.VHeads%a.KHeads != 0:
		return fmt.Errorf("linear_num_value_heads %d is no multiple of linear_num_key_heads %d", a.VHeads, a.KHeads)
	case a.Kernel < 2 || a.Kernel > 64:
		return fmt.Errorf("linear_conv_kernel_dim %d is out of range", a.Kernel)
	}
	if a.Experts != 0 {
		if err := checkExperts("num_experts", a.Experts, "num_experts_per_tok", a.TopK); err != nil {
			return err
		}
		if a.ExpFFN <= 0 || a.ExpFFN > maxSize || a.SharedFFN <= 0 || a.SharedFFN > maxSize {
			return fmt.Errorf("moe_intermediate_size %d or shared_expert_intermediate_size %d is missing or out of range", a.ExpFFN, a.SharedFFN)
		}
		if a.FFN == 0 && a.Step == 1 && len(a.Dense) == 0 {
			a.FFN = a.ExpFFN // no layer has it
		}
	}
	return a.common.check()
}

// Forward implements Model.
func (m *hybrid) Forward(o B.Ops, b *B.Batch) B.Array {
	h := m.Embed.Tokens(o, b)
	for i := range m.Layers {
		l := &m.Layers[i]
		x := l.InNorm.Forward(o, h)
		if l.Attn != nil {
			x = l.Attn.Forward(o, x)
		} else {
			x = l.Delta.Forward(o, x)
		}
		h = o.Add(h, x)
		if i == len(m.Layers)-1 {
			h = nn.Outputs(o, b, h) // the last MLP only runs for wanted rows
		}
		x = l.PostNorm.Forward(o, h)
		if l.MoE != nil {
			x = l.MoE.Forward(o, x)
		} else {
			x = l.MLP.Forward(o, x)
		}
		h = o.Add(h, x)
		o.Sweep(h)
	}
	return m.Norm.Forward(o, h)
}

// Logits implements Generator.
func (m *hybrid) Logits(o B.Ops, h B.Array) B.Array { return m.Head.Forward(o, h) }

// Rename drops the layers that predict further tokens.
func (m *hybrid) Rename(name string) string {
	if strings.Contains(name, "mtp.") {
		return ""
	}
	return m.names.Rename(name)
}

// Inspect implements inspector. Hugging Face's tensors are as they were trained: norms apart from 1, convolutions as [C, 1,
// K], experts one by one. MLX's conversions changed all three.
func (m *hybrid) Inspect(shape func(name string) []int) {
	// The conversion leaves a model alone that has neither.
	plus1 := !slices.ContainsFunc(m.Layers, func(l hybridLayer) bool { return l.Delta != nil || l.MoE != nil && !m.renorm })
	for i := range m.Layers {
		path := fmt.Sprintf("model.layers.%d.", i)
		conv := shape(path + "linear_attn.conv1d.weight")
		plus1 = plus1 || len(conv) == 3 && conv[2] != 1 || shape(path+"mlp.experts.0.up_proj.weight") != nil || shape(path+"mlp.switch_mlp.gate_up_proj.weight") != nil
	}
	m.Norm.Plus1 = plus1
	for i := range m.Layers {
		l := &m.Layers[i]
		l.InNorm.Plus1, l.PostNorm.Plus1 = plus1, plus1
		if l.MoE != nil && m.renorm && plus1 {
			l.MoE.Router.Renorm = true
		}
		if l.Attn != nil {
			l.Attn.QNorm.Plus1, l.Attn.KNorm.Plus1 = plus1, plus1
		}
	}
}
