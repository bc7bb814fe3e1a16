package model

import (
	"fmt"
	"math"
	"slices"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { towers["gemma4"] = newGemma4Vision }

// gemma4VisionArgs are the keys of vision_config.
type gemma4VisionArgs struct {
	D       int    `json:"hidden_size"`
	FFN     int    `json:"intermediate_size"`
	Layers  int    `json:"num_hidden_layers"`
	Heads   int    `json:"num_attention_heads"`
	KVHeads int    `json:"num_key_value_heads"`
	HeadDim int    `json:"head_dim"`
	Side    int    `json:"patch_size"`
	Pool    int    `json:"pooling_kernel_size"`
	Places  int    `json:"position_embedding_size"`
	Clips   bool   `json:"use_clipped_linears"`
	Centred bool   `json:"standardize"`
	Eps     float  `json:"rms_norm_eps"`
	Act     string `json:"hidden_activation"`
	Rope    struct {
		Theta float `json:"rope_theta"`
	} `json:"rope_parameters"`
}

// gemma4Vision sees as Gemma 4 does: patches of an image of any shape, whose places are learned along both sides and turn heads
// too, see each other, and the means of squares of them are rows. Patches are rows of pixels from 0 to 1.
type gemma4Vision struct {
	args  gemma4VisionArgs
	width int
	both  bool // rows of an image see each other in the language model
	ropes [2]*B.Rope
	gate  *B.GLU
	out   B.Norm

	Patch  nn.Linear           `w:"patch_embedder.input_proj"`
	Places nn.Embedding        `w:"patch_embedder.position_embedding_table"` // first of columns, then of rows
	Layers []gemma4VisionLayer `w:"encoder.layers"`
	Mean   *nn.Row             `w:"std_bias"`
	Spread *nn.Row             `w:"std_scale"`
	Out    nn.Linear           `w:"embed_vision.embedding_projection"`
}

type gemma4VisionLayer struct {
	Q        clipped     `w:"self_attn.q_proj"`
	K        clipped     `w:"self_attn.k_proj"`
	V        clipped     `w:"self_attn.v_proj"`
	O        clipped     `w:"self_attn.o_proj"`
	QNorm    *nn.RMSNorm `w:"self_attn.q_norm"`
	KNorm    *nn.RMSNorm `w:"self_attn.k_norm"`
	Gate     clipped     `w:"mlp.gate_proj"`
	Up       clipped     `w:"mlp.up_proj"`
	Down     clipped     `w:"mlp.down_proj"`
	InNorm   nn.RMSNorm  `w:"input_layernorm"`
	AttnNorm nn.RMSNorm  `w:"post_attention_layernorm"` // of attention's result
	PreNorm  nn.RMSNorm  `w:"pre_feedforward_layernorm"`
	MLPNorm  nn.RMSNorm  `w:"post_feedforward_layernorm"` // of the MLP's result
	spec     B.Attn
}

// clipped is a matrix with bounds on what comes in and goes out.
type clipped struct {
	Linear nn.Linear `w:"linear"`
	Bounds *bounds   `w:""` // nil: there are none
}

type bounds struct {
	InMin  nn.Scalar `w:"input_min"`
	InMax  nn.Scalar `w:"input_max"`
	OutMin nn.Scalar `w:"output_min"`
	OutMax nn.Scalar `w:"output_max"`

	in, out B.Activation
}

// Bind runs when the weights are loaded.
func (b *bounds) Bind() {
	b.in = B.Activation{Kind: B.Clamp, A: b.InMin.V, B: b.InMax.V}
	b.out = B.Activation{Kind: B.Clamp, A: b.OutMin.V, B: b.OutMax.V}
}

func (c *clipped) Forward(o B.Ops, x B.Array) B.Array {
	if c.Bounds == nil {
		return c.Linear.Forward(o, x)
	}
	return o.Act(c.Linear.Forward(o, o.Act(x, &c.Bounds.in)), &c.Bounds.out)
}

func newGemma4Vision(cfg *config, width int) (vision, error) {
	if strings.HasPrefix(cfg.typ, "gemma4_unified") {
		return nil, errBlind // its language model takes pixels without a tower
	}
	a := gemma4VisionArgs{D: 768, FFN: 3072, Layers: 16, Heads: 12, KVHeads: 12, HeadDim: 64, Side: 16, Pool: 3, Places: 10240, Eps: 1e-6,
		Act: "gelu_pytorch_tanh"}
	a.Rope.Theta = 100
	cfg.vision(&a)
	var text struct {
		Both *string `json:"use_bidirectional_attention"`
	}
	cfg.into(&text)
	if err := a.check(cfg); err != nil {
		return nil, err
	}
	if width == 0 {
		width = gemma4Defaults().D
	}
	eps, heads, kv := float32(a.Eps), a.Heads*a.HeadDim, a.KVHeads*a.HeadDim
	m := &gemma4Vision{args: a, width: width, both: text.Both != nil && *text.Both == "vision", gate: &B.GLU{Act: cfg.actNamed(visionKey+".hidden_activation", a.Act)},
		out: B.Norm{Eps: eps}, Patch: nn.Lin(3*a.Side*a.Side, a.D), Places: nn.Embedding{Vocab: 2 * a.Places, Dim: a.D, Planes: 2}, Out: nn.Lin(a.D, width)}
	for axis := range m.ropes {
		m.ropes[axis] = halfRope(a.HeadDim, axis, float64(a.Rope.Theta))
	}
	if a.Centred {
		m.Mean, m.Spread = &nn.Row{N: a.D}, &nn.Row{N: a.D}
	}
	lin := func(in, out int) clipped {
		c := clipped{Linear: nn.Lin(in, out)}
		if a.Clips {
			c.Bounds = &bounds{}
		}
		return c
	}
	norm := func() nn.RMSNorm { return nn.RMS(a.D, eps) }
	for range a.Layers {
		m.Layers = append(m.Layers, gemma4VisionLayer{Q: lin(a.D, heads), K: lin(a.D, kv), V: lin(a.D, kv), O: lin(heads, a.D),
			QNorm: nn.HeadRMS(a.HeadDim, eps), KNorm: nn.HeadRMS(a.HeadDim, eps), Gate: lin(a.D, a.FFN), Up: lin(a.D, a.FFN), Down: lin(a.FFN, a.D),
			InNorm: norm(), AttnNorm: norm(), PreNorm: norm(), MLPNorm: norm(),
			spec: B.Attn{State: B.NoState, Heads: a.Heads, KVHeads: a.KVHeads, KDim: a.HeadDim, VDim: a.HeadDim, Scale: 1, Both: true}})
	}
	return m, nil
}

// halfRope turns one half of every head by one axis.
func halfRope(head, axis int, theta float64) *B.Rope {
	half := head / 2
	r := &B.Rope{Head: head, Offset: axis * half}
	for i := range half / 2 {
		r.InvFreq = append(r.InvFreq, float32(math.Pow(theta, -2*float64(i)/float64(half))))
		r.Axis = append(r.Axis, uint8(axis))
	}
	return r
}

func (a *gemma4VisionArgs) check(cfg *config) error {
	cfg.outOf("hidden_size", a.D, 1, 1<<16)
	cfg.outOf("intermediate_size", a.FFN, 1, maxSize)
	cfg.outOf("num_hidden_layers", a.Layers, 1, maxLayers)
	cfg.outOf("num_attention_heads", a.Heads, 1, 1<<12)
	cfg.outOf("num_key_value_heads", a.KVHeads, 1, 1<<12)
	cfg.outOf("head_dim", a.HeadDim, 4, 1<<12)
	cfg.outOf("patch_size", a.Side, 1, 256)
	cfg.outOf("pooling_kernel_size", a.Pool, 1, 16)
	cfg.outOf("position_embedding_size", a.Places, 1, 1<<20)
	switch {
	case cfg.err != nil:
		return cfg.err
	case a.HeadDim%4 != 0:
		return fmt.Errorf("%s.head_dim %d is no multiple of four", visionKey, a.HeadDim)
	case a.Heads%a.KVHeads != 0:
		return fmt.Errorf("%s.num_attention_heads %d is no multiple of num_key_value_heads %d", visionKey, a.Heads, a.KVHeads)
	case !(a.Eps > 0 && a.Eps < 1):
		return fmt.Errorf("%s.rms_norm_eps %g is out of range", visionKey, float64(a.Eps))
	case !(a.Rope.Theta > 1):
		return fmt.Errorf("%s.rope_parameters.rope_theta %g is out of range", visionKey, float64(a.Rope.Theta))
	}
	return nil
}

// States implements stateful.
func (m *gemma4Vision) States() []B.StateSpec { return nil }

// Rename implements renamer. Bounds are stored even of models that do not use them.
func (m *gemma4Vision) Rename(name string) string {
	bare := strings.TrimPrefix(name, "model.")
	if strings.HasPrefix(bare, "embed_vision.") {
		return bare
	}
	bare = visionName(name)
	unread := []string{"rotary_emb."}
	if !m.args.Clips {
		unread = append(unread, ".input_min", ".input_max", ".output_min", ".output_max")
	}
	if !m.args.Centred && strings.HasPrefix(bare, "std_") || slices.ContainsFunc(unread, func(s string) bool { return strings.Contains(bare, s) }) {
		return ""
	}
	return bare
}

func (m *gemma4Vision) sizes() (patch, width, deep int) { return m.Patch.In, m.width, 0 }

func (m *gemma4Vision) together() bool { return m.both }

func (m *gemma4Vision) fits(grid [3]int) error {
	if most := max(grid[1], grid[2]); most > m.args.Places {
		return fmt.Errorf("an image of %v patches has more than %d along a side", grid, m.args.Places)
	}
	return squared(grid, m.args.Pool)
}

func (m *gemma4Vision) rows(grid [3]int) int { return product(grid[:]) / (m.args.Pool * m.args.Pool) }

func (m *gemma4Vision) at(_ [3]int, i int) [3]int32 { return inLine(i) }

func (m *gemma4Vision) extent(grid [3]int) int { return m.rows(grid) }

// centre implements centring.
func (m *gemma4Vision) centre(numbers []float32) []float32 {
	all := make([]float32, len(numbers))
	for i, v := range numbers {
		all[i] = 2 * (v - 0.5)
	}
	return all
}

// batch has columns first, as the family does.
func (m *gemma4Vision) batch(grid [3]int) *B.Batch {
	b := frames(grid)
	b.Pos[1], b.Pos[0] = squares(grid, 1)
	return b
}

func (m *gemma4Vision) encode(o B.Ops, b *B.Batch, grid [3]int, patches B.Array) []B.Array {
	h := m.Patch.Forward(o, patches)
	places := B.Index{PerRow: 2}
	for i := range b.Rows() {
		places.IDs = append(places.IDs, b.Pos[0][i], int32(m.args.Places)+b.Pos[1][i])
	}
	h = o.Add(h, o.Embed(m.Places.W, places))
	v := &B.Norm{Eps: m.out.Eps, Width: m.args.HeadDim}
	for i := range m.Layers {
		l := &m.Layers[i]
		x := l.InNorm.Forward(o, h)
		q := m.turn(o, l.QNorm.Forward(o, l.Q.Forward(o, x)))
		k := m.turn(o, l.KNorm.Forward(o, l.K.Forward(o, x)))
		y := o.Attention(q, k, o.RMSNorm(l.V.Forward(o, x), nil, v), &l.spec)
		h = o.Add(h, l.AttnNorm.Forward(o, l.O.Forward(o, y)))
		x = l.PreNorm.Forward(o, h)
		h = o.Add(h, l.MLPNorm.Forward(o, l.Down.Forward(o, o.Gate(l.Gate.Forward(o, x), l.Up.Forward(o, x), m.gate))))
		o.Sweep(h)
	}
	h = o.Scale(means(o, h, grid, m.args.Pool), float32(math.Sqrt(float64(m.args.D))))
	if m.Mean != nil {
		h = o.Gate(m.everyRow(o, m.Spread, h, 1), o.Add(h, m.everyRow(o, m.Mean, h, -1)), &B.GLU{})
	}
	return []B.Array{m.Out.Forward(o, o.RMSNorm(h, nil, &m.out))}
}

// turn rotates both halves of every head.
func (m *gemma4Vision) turn(o B.Ops, x B.Array) B.Array {
	return o.RoPE(o.RoPE(x, m.ropes[0]), m.ropes[1])
}

// everyRow is f times a row, once for every row of h.
func (m *gemma4Vision) everyRow(o B.Ops, r *nn.Row, h B.Array, f float32) B.Array {
	return o.Embed(r.W, B.Index{IDs: make([]int32, h.Rows()), Scale: slices.Repeat([]float32{f}, h.Rows())})
}
