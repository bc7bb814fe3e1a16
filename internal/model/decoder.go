package model

import (
	"math"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

// decoder is the pre-norm transformer that llama, qwen2 and qwen3 are; their files say what differs.
type decoder struct {
	states []B.StateSpec
	Embed  nn.Embedding   `w:"model.embed_tokens"`
	Layers []decoderLayer `w:"model.layers"`
	Norm   nn.RMSNorm     `w:"model.norm"`
	Head   nn.Linear      `w:"lm_head,tied=Embed"`
}

type decoderLayer struct {
	Attn     nn.Attention `w:"self_attn"`
	MLP      nn.GLUMLP    `w:"mlp"`
	InNorm   nn.RMSNorm   `w:"input_layernorm"`
	PostNorm nn.RMSNorm   `w:"post_attention_layernorm"`
}

// newDecoder declares the parts common to all, with layer i's attention from attn.
func newDecoder(a *common, b *Build, attn func(i int) nn.Attention) *decoder {
	m := &decoder{Embed: nn.Embedding{Vocab: a.Vocab, Dim: a.D}, Norm: nn.RMS(a.D, float32(a.Eps)), Head: nn.Lin(a.D, a.Vocab)}
	m.Head.Tied = a.tie()
	for i := range a.Layers {
		m.Layers = append(m.Layers, decoderLayer{
			Attn:     attn(i),
			MLP:      nn.NewGLUMLP(a.D, b.Local(a.FFN), B.SiLU),
			InNorm:   nn.RMS(a.D, float32(a.Eps)),
			PostNorm: nn.RMS(a.D, float32(a.Eps)),
		})
	}
	m.states = b.states
	return m
}

// gqa declares the usual attention of layer i with its state.
func gqa(b *Build, a *common, i, window int, rope *B.Rope) nn.Attention {
	h, kv, hd := b.Local(a.Heads), b.LocalKV(a.KVHeads), a.HeadDim
	return nn.Attention{
		QKV: nn.Lin(a.D, h*hd, kv*hd, kv*hd), O: nn.Lin(h*hd, a.D), Rope: rope,
		Spec: B.Attn{State: b.KV(i, kv, hd, hd, window), Heads: h, KVHeads: kv, KDim: hd, VDim: hd,
			Scale: float32(1 / math.Sqrt(float64(hd))), Window: window},
	}
}

// States implements Model.
func (m *decoder) States() []B.StateSpec { return m.states }

// Forward implements Model.
func (m *decoder) Forward(o B.Ops, b *B.Batch) B.Array {
	h := m.Embed.Tokens(o, b)
	for i := range m.Layers {
		l := &m.Layers[i]
		h = o.Add(h, l.Attn.Forward(o, l.InNorm.Forward(o, h)))
		if i == len(m.Layers)-1 {
			h = nn.Outputs(o, b, h) // the last MLP only runs for wanted rows
		}
		h = o.Add(h, l.MLP.Forward(o, l.PostNorm.Forward(o, h)))
		o.Sweep(h)
	}
	return m.Norm.Forward(o, h)
}

// Logits implements Generator.
func (m *decoder) Logits(o B.Ops, h B.Array) B.Array { return m.Head.Forward(o, h) }

// Rename drops the rotation tables that old exporters wrote.
func (m *decoder) Rename(name string) string {
	if strings.HasSuffix(name, "rotary_emb.inv_freq") {
		return ""
	}
	return name
}
