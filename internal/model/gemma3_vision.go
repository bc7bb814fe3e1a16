package model

import (
	"fmt"
	"math"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { towers["gemma3"] = newGemma3Vision }

// gemma3VisionArgs are the keys of vision_config, a SigLIP.
type gemma3VisionArgs struct {
	D        int    `json:"hidden_size"`
	FFN      int    `json:"intermediate_size"`
	Layers   int    `json:"num_hidden_layers"`
	Heads    int    `json:"num_attention_heads"`
	Channels int    `json:"num_channels"`
	Image    int    `json:"image_size"` // along one side, in pixels
	Side     int    `json:"patch_size"`
	Eps      float  `json:"layer_norm_eps"`
	Act      string `json:"hidden_act"`
}

// gemma3Vision sees as Gemma 3 does: images of one size, patches with learned places that see each other, and the means of
// squares of them as rows. Rows of an image see each other in the language model too.
type gemma3Vision struct {
	args  gemma3VisionArgs
	side  int // of an image, in patches
	pool  int // of a square whose mean is a row
	width int
	act   B.Activation

	Patch  nn.Patches    `w:"embeddings.patch_embedding"`
	Places nn.Embedding  `w:"embeddings.position_embedding"`
	Layers []siglipLayer `w:"encoder.layers"`
	Norm   nn.LayerNorm  `w:"post_layernorm"`
	Soft   nn.RMSNorm    `w:"projector.mm_soft_emb_norm"`
	Out    nn.Linear     `w:"projector.mm_input_projection"`
}

type siglipLayer struct {
	Norm1 nn.LayerNorm `w:"layer_norm1"`
	QKV   nn.Linear    `w:"self_attn.q_proj+self_attn.k_proj+self_attn.v_proj"`
	O     nn.Linear    `w:"self_attn.out_proj"`
	Norm2 nn.LayerNorm `w:"layer_norm2"`
	Up    nn.Linear    `w:"mlp.fc1"`
	Down  nn.Linear    `w:"mlp.fc2"`
	spec  B.Attn
}

func newGemma3Vision(cfg *config, width int) (vision, error) {
	a := gemma3VisionArgs{D: 768, FFN: 3072, Layers: 12, Heads: 12, Channels: 3, Image: 224, Side: 16, Eps: 1e-6, Act: "gelu_pytorch_tanh"}
	cfg.vision(&a)
	beside := struct {
		Tokens int `json:"mm_tokens_per_image"`
	}{256}
	cfg.beside(&beside)
	if width == 0 {
		width = gemma3Defaults().D
	}
	if err := a.check(cfg); err != nil {
		return nil, err
	}
	m := &gemma3Vision{args: a, side: a.Image / a.Side, width: width, act: B.Activation{Kind: cfg.visionAct(a.Act)}}
	tokens := int(math.Sqrt(float64(max(beside.Tokens, 0))))
	if tokens < 1 || tokens*tokens != beside.Tokens || m.side%tokens != 0 {
		return nil, fmt.Errorf("mm_tokens_per_image %d are no square that divides %d·%d patches", beside.Tokens, m.side, m.side)
	}
	eps := float32(a.Eps)
	m.pool = m.side / tokens
	m.Patch = nn.Patches{Out: a.D, Window: []int{a.Channels, a.Side, a.Side}, Bias: true}
	m.Places = nn.Embedding{Vocab: m.side * m.side, Dim: a.D}
	m.Norm, m.Soft, m.Out = nn.LN(a.D, eps), nn.RMS(a.D, eps), nn.Lin(a.D, width)
	m.Soft.Plus1, m.Out.Transposed = true, true
	head := a.D / a.Heads
	for range a.Layers {
		m.Layers = append(m.Layers, siglipLayer{Norm1: nn.LN(a.D, eps), QKV: biased(a.D, a.D, a.D, a.D), O: biased(a.D, a.D),
			Norm2: nn.LN(a.D, eps), Up: biased(a.D, a.FFN), Down: biased(a.FFN, a.D),
			spec: B.Attn{State: B.NoState, Heads: a.Heads, KVHeads: a.Heads, KDim: head, VDim: head, Scale: float32(1 / math.Sqrt(float64(head))), Both: true}})
	}
	return m, nil
}

func (a *gemma3VisionArgs) check(cfg *config) error {
	cfg.outOf("hidden_size", a.D, 1, 1<<16)
	cfg.outOf("intermediate_size", a.FFN, 1, maxSize)
	cfg.outOf("num_hidden_layers", a.Layers, 1, maxLayers)
	cfg.outOf("num_attention_heads", a.Heads, 1, 1<<12)
	cfg.outOf("num_channels", a.Channels, 1, 16)
	cfg.outOf("patch_size", a.Side, 1, 256)
	cfg.outOf("image_size", a.Image, a.Side, 1<<13)
	switch {
	case cfg.err != nil:
		return cfg.err
	case a.D%a.Heads != 0:
		return fmt.Errorf("%s.hidden_size %d is no multiple of num_attention_heads %d", visionKey, a.D, a.Heads)
	case !(a.Eps > 0 && a.Eps < 1):
		return fmt.Errorf("%s.layer_norm_eps %g is out of range", visionKey, float64(a.Eps))
	}
	return nil
}

// States implements stateful.
func (m *gemma3Vision) States() []B.StateSpec { return nil }

// Rename implements renamer. The head of SigLIP, which makes one row of an image, is not part of the model.
func (m *gemma3Vision) Rename(name string) string {
	if rest, ok := strings.CutPrefix(strings.TrimPrefix(name, "model."), "multi_modal_projector."); ok {
		if rest == "mm_input_projection_weight" {
			rest = "mm_input_projection.weight"
		}
		return "projector." + rest
	}
	name = strings.TrimPrefix(visionName(name), "vision_model.")
	if strings.HasPrefix(name, "head.") || strings.HasSuffix(name, "position_ids") {
		return ""
	}
	return name
}

func (m *gemma3Vision) sizes() (patch, width, deep int) { return product(m.Patch.Window), m.width, 0 }

func (m *gemma3Vision) together() bool { return true }

func (m *gemma3Vision) fits(grid [3]int) error {
	if grid != [3]int{1, m.side, m.side} {
		return fmt.Errorf("an image of %v patches is not of one frame of %d·%d", grid, m.side, m.side)
	}
	return nil
}

func (m *gemma3Vision) rows([3]int) int { return (m.side / m.pool) * (m.side / m.pool) }

func (m *gemma3Vision) at(_ [3]int, i int) [3]int32 { return [3]int32{int32(i), int32(i), int32(i)} }

func (m *gemma3Vision) extent(grid [3]int) int { return m.rows(grid) }

func (m *gemma3Vision) batch(grid [3]int) *B.Batch {
	b := frames(grid)
	for i := range grid[1] * grid[2] {
		b.Pos[0] = append(b.Pos[0], int32(i))
	}
	return b
}

func (m *gemma3Vision) encode(o B.Ops, b *B.Batch, grid [3]int, patches B.Array) []B.Array {
	h := o.Add(m.Patch.Forward(o, patches), o.Embed(m.Places.W, B.Index{IDs: b.Pos[0]}))
	for i := range m.Layers {
		l := &m.Layers[i]
		y := l.QKV.Forward(o, l.Norm1.Forward(o, h))
		y = o.Attention(l.QKV.Part(o, y, 0), l.QKV.Part(o, y, 1), l.QKV.Part(o, y, 2), &l.spec)
		h = o.Add(h, l.O.Forward(o, y))
		h = o.Add(h, l.Down.Forward(o, o.Act(l.Up.Forward(o, l.Norm2.Forward(o, h)), &m.act)))
		o.Sweep(h)
	}
	h = m.mean(o, m.Norm.Forward(o, h))
	return []B.Array{m.Out.Forward(o, m.Soft.Forward(o, h))}
}

// mean makes one row of every square of patches.
func (m *gemma3Vision) mean(o B.Ops, h B.Array) B.Array {
	var order []int32
	for y := 0; y < m.side; y += m.pool {
		for x := 0; x < m.side; x += m.pool {
			for i := range m.pool * m.pool {
				order = append(order, int32((y+i/m.pool)*m.side+x+i%m.pool))
			}
		}
	}
	n, d := m.pool*m.pool, m.args.D
	all := o.MergeRows(o.Gather(h, order), n)
	sum := o.Cols(all, 0, d)
	for i := 1; i < n; i++ {
		sum = o.Add(sum, o.Cols(all, i*d, (i+1)*d))
	}
	return o.Scale(sum, 1/float32(n))
}
