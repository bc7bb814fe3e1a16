package model

import (
	"math"
	"slices"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() {
	register("gemma4_text", newGemma4Text)
	register("gemma4", newGemma4)
}

// gemma4 adds three things to a decoder: inputs of their own for each layer, layers at the end that read the keys and values of
// earlier ones, and experts beside the MLP. Which of them a model has, its config says.
type gemma4 struct {
	declared
	narrow int           // from this layer on nothing writes state: rows nobody asked for stop before it
	cap    *B.Activation // on logits; nil: none
	Embed  nn.Embedding  `w:"model.embed_tokens"`
	Inputs *layerInputs  `w:"model"`
	Layers []gemma4Layer `w:"model.layers"`
	Norm   nn.RMSNorm    `w:"model.norm"`
	Head   nn.Linear     `w:"lm_head,tied=Embed"`
}

// layerInputs makes the small inputs of all layers, side by side, from tokens and their embeddings.
type layerInputs struct {
	Table nn.Embedding `w:"embed_tokens_per_layer"`
	Proj  nn.Linear    `w:"per_layer_model_projection"`
	Norm  nn.RMSNorm   `w:"per_layer_projection_norm"`

	width int     // of one layer's
	root  float32 // of what is projected
	pad   int32   // the token that stands for rows of images
}

type gemma4Layer struct {
	Attn     nn.Attention   `w:"self_attn"`
	MLP      nn.GLUMLP      `w:"mlp"`
	MoE      *gemma4Experts `w:""`
	Input    *layerInput    `w:""`
	InNorm   nn.RMSNorm     `w:"input_layernorm"`
	AttnNorm nn.RMSNorm     `w:"post_attention_layernorm"` // of attention's result
	PreNorm  nn.RMSNorm     `w:"pre_feedforward_layernorm"`
	MLPNorm  nn.RMSNorm     `w:"post_feedforward_layernorm"` // of what MLP and experts add
	Scalar   nn.Scalar      `w:"layer_scalar"`
}

// layerInput lets a layer's input through a gate that the hidden state opens.
type layerInput struct {
	Gate nn.Linear  `w:"per_layer_input_gate"`
	Proj nn.Linear  `w:"per_layer_projection"`
	Norm nn.RMSNorm `w:"post_per_layer_input_norm"`

	gate *B.GLU
}

// gemma4Experts run beside the dense MLP; their router reads the residual stream itself.
type gemma4Experts struct {
	Scale  nn.Vec     `w:"router.scale"`
	Router nn.Linear  `w:"router.proj"`
	Each   nn.Vec     `w:"router.per_expert_scale"`
	Up     nn.Stack   `w:"experts.switch_glu.gate_proj+experts.switch_glu.up_proj,fused=experts.switch_glu.gate_up_proj,shard=col,glu"`
	Down   nn.Stack   `w:"experts.switch_glu.down_proj,shard=row"`
	Pre    nn.RMSNorm `w:"pre_feedforward_layernorm_2"`
	Post1  nn.RMSNorm `w:"post_feedforward_layernorm_1"` // of the dense MLP's result
	Post2  nn.RMSNorm `w:"post_feedforward_layernorm_2"` // of the experts'

	norm   B.Norm
	root   float32
	router B.Router
	spec   B.Experts
}

// Bind runs when the weights are loaded.
func (e *gemma4Experts) Bind() {
	e.router.Each, e.spec.Up, e.spec.Down = e.Each.W, e.Up.W, e.Down.W
}

// Forward implements Model.
func (m *gemma4) Forward(o B.Ops, b *B.Batch) B.Array {
	h := m.Embed.Tokens(o, b)
	in := m.Inputs.forward(o, b, h)
	for i := range m.Layers {
		l := &m.Layers[i]
		if i == m.narrow {
			h, in = outputs(o, b, h, in)
		}
		h = o.Add(h, l.AttnNorm.Forward(o, l.Attn.Forward(o, l.InNorm.Forward(o, h))))
		if i == len(m.Layers)-1 {
			h, in = outputs(o, b, h, in) // the last MLP only runs for wanted rows
		}
		o.Sweep(h)
		h = o.Add(h, l.MLPNorm.Forward(o, l.mlp(o, h)))
		if l.Input != nil {
			w := m.Inputs.width
			h = o.Add(h, l.Input.value(o, h, o.Cols(in, i*w, (i+1)*w)))
		}
		h = o.Scale(h, l.Scalar.V)
		o.Sweep(h)
	}
	return m.Norm.Forward(o, h)
}

// outputs narrows the hidden state and the inputs that are still to come.
func outputs(o B.Ops, b *B.Batch, h, in B.Array) (B.Array, B.Array) {
	if !in.IsZero() {
		in = o.Keep(nn.Outputs(o, b, in))
	}
	return nn.Outputs(o, b, h), in
}

// forward gives [rows, layers·width], kept for the step; no array where the model has no such inputs.
func (n *layerInputs) forward(o B.Ops, b *B.Batch, h B.Array) B.Array {
	if n == nil {
		return B.Array{}
	}
	t := o.Scale(o.Embed(n.Table.W, B.Index{IDs: n.known(n.blank(b)), Late: b.Late}), n.Table.Scale)
	p := n.Norm.Forward(o, o.Scale(n.Proj.Forward(o, h), n.root))
	return o.Keep(o.Scale(o.Add(p, t), math.Sqrt2/2))
}

// blank gives tokens in which padding stands for rows of images.
func (n *layerInputs) blank(b *B.Batch) []int32 {
	if len(b.Media) == 0 {
		return b.Tokens
	}
	tokens := slices.Clone(b.Tokens)
	for _, m := range b.Media {
		for _, row := range m.Rows {
			tokens[row] = n.pad
		}
	}
	return tokens
}

// value is what the input adds where the hidden state is h.
func (n *layerInput) value(o B.Ops, h, in B.Array) B.Array {
	return n.Norm.Forward(o, n.Proj.Forward(o, o.Gate(n.Gate.Forward(o, h), in, n.gate)))
}

// known replaces tokens that the table has no row for, as the reference does.
func (n *layerInputs) known(tokens []int32) []int32 {
	for i, t := range tokens {
		if int(t) < n.Table.Vocab {
			continue
		}
		all := slices.Clone(tokens)
		for j, t := range all[i:] {
			if int(t) >= n.Table.Vocab {
				all[i+j] = 0
			}
		}
		return all
	}
	return tokens
}

func (l *gemma4Layer) mlp(o B.Ops, h B.Array) B.Array {
	y := l.MLP.Forward(o, l.PreNorm.Forward(o, h))
	if l.MoE == nil {
		return y
	}
	return o.Add(l.MoE.Post1.Forward(o, y), l.MoE.forward(o, h))
}

func (e *gemma4Experts) forward(o B.Ops, h B.Array) B.Array {
	s := o.Scale(o.RMSNorm(h, e.Scale.W, &e.norm), e.root)
	y := o.MoE(e.Pre.Forward(o, h), o.Route(e.Router.Forward(o, s), &e.router), &e.spec)
	if e.Down.W.Partial() {
		y = o.AllSum(y)
	}
	return e.Post2.Forward(o, y)
}

// Logits implements Generator.
func (m *gemma4) Logits(o B.Ops, h B.Array) B.Array {
	y := m.Head.Forward(o, h)
	if m.cap != nil {
		y = o.Act(y, m.cap)
	}
	return y
}
