package model

import (
	"math"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("llama", newLlama) }

type llamaArgs struct {
	common
}

// llama also serves mistral, qwen2 (bias follows the files) and, with norms, qwen3.
type llama struct {
	tokens
	Embed  nn.Embedding `w:"model.embed_tokens"`
	Layers []llamaLayer `w:"model.layers"`
	Norm   nn.RMSNorm   `w:"model.norm"`
	Head   nn.Linear    `w:"lm_head,tied=Embed"`
}

type llamaLayer struct {
	Attn     nn.Attention `w:"self_attn"`
	MLP      nn.GLUMLP    `w:"mlp"`
	InNorm   nn.RMSNorm   `w:"input_layernorm"`
	PostNorm nn.RMSNorm   `w:"post_attention_layernorm"`
}

func newLlama(cfg []byte, b *Build) (Model, error) {
	a, err := parse(cfg, func(a *llamaArgs) { a.defaults() })
	if err != nil {
		return nil, err
	}
	m := &llama{Embed: nn.Embedding{Vocab: a.Vocab, Dim: a.D}, Norm: nn.RMS(a.D, a.Eps), Head: nn.Lin(a.D, a.Vocab)}
	rope := nn.NewRope(a.HeadDim, a.rope())
	for i := range a.Layers {
		m.Layers = append(m.Layers, llamaLayer{
			Attn:   gqa(b, &a.common, i, a.window(i), rope),
			MLP:    nn.NewGLUMLP(a.D, b.Local(a.FFN), B.SiLU),
			InNorm: nn.RMS(a.D, a.Eps), PostNorm: nn.RMS(a.D, a.Eps),
		})
	}
	m.states = b.states
	return m, nil
}

// gqa builds the usual attention with its state.
func gqa(b *Build, a *common, i, window int, rope *B.Rope) nn.Attention {
	h, kv, hd := b.Local(a.Heads), b.LocalKV(a.KVHeads), a.HeadDim
	return nn.Attention{
		QKV: nn.Lin(a.D, h*hd, kv*hd, kv*hd), O: nn.Lin(h*hd, a.D), Rope: rope,
		Spec: B.Attn{State: b.KV(i, kv, hd, hd, window), Heads: h, KVHeads: kv, KDim: hd, VDim: hd,
			Scale: float32(1 / math.Sqrt(float64(hd))), Window: window},
	}
}

func (m *llama) Forward(o B.Ops, b *B.Batch) B.Array {
	h := m.Embed.Tokens(o, b, 0)
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

func (m *llama) Logits(o B.Ops, h B.Array) B.Array { return m.logits(o, h, &m.Head) }
