package model

import (
	"math"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("gemma3n", newGemma3n) }

// gemma3n carries several streams of hidden states side by side. Every layer predicts all of them, runs attention and
// MLP on the active one, and corrects all by how wrong its prediction was. Inputs per layer and shared keys and
// values are those of gemma4.
type gemma3n struct {
	declared
	streams int
	narrow  int // from this layer on nothing writes state
	cap     *B.Activation
	Embed   nn.Embedding   `w:"model.embed_tokens"`
	Inputs  layerInputs    `w:"model"`
	Spread  []nn.Linear    `w:"model.altup_projections"`         // of the first stream, to the others
	Gather  []nn.Linear    `w:"model.altup_unembed_projections"` // of the others, at the end
	Layers  []gemma3nLayer `w:"model.layers"`
	Norm    nn.RMSNorm     `w:"model.norm"`
	Head    nn.Linear      `w:"lm_head,tied=Embed"`
}

type gemma3nLayer struct {
	Attn     nn.Attention `w:"self_attn"`
	Streams  altUp        `w:"altup"`
	Laurel   laurel       `w:"laurel"`
	GateUp   nn.Linear    `w:"mlp.gate_proj+mlp.up_proj,shard=col"`
	Down     nn.Linear    `w:"mlp.down_proj,shard=row"`
	Input    layerInput   `w:""`
	InNorm   nn.RMSNorm   `w:"input_layernorm"`
	AttnNorm nn.RMSNorm   `w:"post_attention_layernorm"` // of attention's result
	PreNorm  nn.RMSNorm   `w:"pre_feedforward_layernorm"`
	MLPNorm  nn.RMSNorm   `w:"post_feedforward_layernorm"` // of the MLP's result

	gate   *B.GLU
	sparse *B.Activation // of gates; nil: all pass
}

// laurel is a residual of low rank.
type laurel struct {
	Left  nn.Linear  `w:"linear_left"`
	Right nn.Linear  `w:"linear_right"`
	Norm  nn.RMSNorm `w:"post_laurel_norm"`
}

// altUp mixes the streams by numbers that it reads off the active one.
type altUp struct {
	Scale   nn.Row     `w:"correct_output_scale"`
	Predict nn.Linear  `w:"prediction_coefs"`
	Correct nn.Linear  `w:"correction_coefs"`
	Router  nn.Linear  `w:"modality_router"`
	Norm    nn.RMSNorm `w:"router_norm"`

	d, active   int
	scaled      bool // what leaves the layer for its input's gate
	mix, spread B.Mix
}

var bounded = B.Activation{Kind: B.TanhCap, A: 1}

// Forward implements Model.
func (m *gemma3n) Forward(o B.Ops, b *B.Batch) B.Array {
	h := m.Embed.Tokens(o, b)
	in := m.Inputs.forward(o, b, h)
	first := h
	for i := range m.Spread {
		h = o.Concat(h, o.ScaleLike(m.Spread[i].Forward(o, first), first))
	}
	o.Sweep(h)
	w := m.Inputs.width
	for i := range m.Layers {
		if i == m.narrow {
			h, in = outputs(o, b, h, in)
		}
		h, in = m.Layers[i].attend(o, b, h, in, i == len(m.Layers)-1)
		o.Sweep(h)
		h = m.Layers[i].correct(o, h, in, i*w)
		o.Sweep(h)
	}
	return m.Norm.Forward(o, m.join(o, h))
}

// join is the mean of the streams, the others brought back and scaled to the first.
func (m *gemma3n) join(o B.Ops, h B.Array) B.Array {
	d := h.Cols() / m.streams
	first := o.Cols(h, 0, d)
	sum := first
	for i := range m.Gather {
		sum = o.Add(sum, o.ScaleLike(m.Gather[i].Forward(o, o.Cols(h, (i+1)*d, (i+2)*d)), first))
	}
	return o.Scale(sum, 1/float32(m.streams))
}

// attend gives the predicted streams and, beside them, the active one after attention. The rest of the last layer runs for wanted
// rows only.
func (l *gemma3nLayer) attend(o B.Ops, b *B.Batch, h, in B.Array, last bool) (B.Array, B.Array) {
	s := &l.Streams
	h = o.Add(h, o.Mix(h, s.Predict.Forward(o, s.route(o, s.stream(o, h))), &s.mix))
	o.Sweep(h)
	x := s.stream(o, h)
	y := l.InNorm.Forward(o, x)
	low := o.Add(y, l.Laurel.Norm.Forward(o, l.Laurel.Right.Forward(o, l.Laurel.Left.Forward(o, y))))
	x = o.Add(x, l.AttnNorm.Forward(o, l.Attn.Forward(o, y)))
	h = o.Concat(h, o.Scale(o.Add(x, low), math.Sqrt2/2))
	if last {
		return outputs(o, b, h, in)
	}
	return h, in
}

// correct runs the MLP on the last stream of what attend gave and corrects the predicted ones. The layer's input is in the
// columns of in from at on.
func (l *gemma3nLayer) correct(o B.Ops, h, in B.Array, at int) B.Array {
	s := &l.Streams
	x := o.Cols(h, h.Cols()-s.d, h.Cols())
	x = o.Add(x, l.MLPNorm.Forward(o, l.mlp(o, l.PreNorm.Forward(o, x))))
	h = o.Cols(h, 0, h.Cols()-s.d)
	wrong := o.Add(x, o.Scale(s.stream(o, h), -1))
	h = o.Add(h, o.Mix(wrong, s.Correct.Forward(o, s.route(o, x)), &s.spread))
	o.Sweep(h)
	y := s.stream(o, h)
	if s.scaled {
		y = s.Scale.Times(o, y)
	}
	y = l.Input.value(o, y, o.Cols(in, at, at+l.Input.Gate.Outs[0]))
	out := o.Cols(h, 0, s.d)
	for from := s.d; from < h.Cols(); from += s.d {
		out = o.Concat(out, o.Add(o.Cols(h, from, from+s.d), y))
	}
	return out
}

func (l *gemma3nLayer) mlp(o B.Ops, x B.Array) B.Array {
	y := l.GateUp.Forward(o, x)
	g := l.GateUp.Part(o, y, 0)
	if l.sparse != nil {
		g = o.Act(g, l.sparse)
	}
	return l.Down.Forward(o, o.Gate(g, l.GateUp.Part(o, y, 1), l.gate))
}

func (s *altUp) stream(o B.Ops, h B.Array) B.Array {
	return o.Cols(h, s.active*s.d, (s.active+1)*s.d)
}

// route gives a number per stream.
func (s *altUp) route(o B.Ops, x B.Array) B.Array {
	return o.Act(s.Router.Forward(o, o.Scale(s.Norm.Forward(o, x), 1/float32(s.d))), &bounded)
}

// Logits implements Generator.
func (m *gemma3n) Logits(o B.Ops, h B.Array) B.Array {
	y := m.Head.Forward(o, h)
	if m.cap != nil {
		y = o.Act(y, m.cap)
	}
	return y
}
