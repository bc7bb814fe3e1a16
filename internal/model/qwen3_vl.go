package model

import (
	"fmt"
	"math"
	"slices"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() {
	register("qwen3_vl", newQwen3VL)
	register("qwen3_vl_moe", newQwen3VLMoE)
	towers["qwen3_vl"], towers["qwen3_vl_moe"] = newQwen3Vision, newQwen3Vision
}

// qwen3VLTurns is how its language model turns heads: pairs of frame, row and column take turns.
func qwen3VLTurns() rotation {
	return rotation{Base: 500000, Fixed: true, Axes: axes{sections: []int{24, 20, 20}, inTurn: true}}
}

func newQwen3VL(cfg *config, b *Build) (Generator, error) {
	return newNested(func(cfg *config, b *Build) (Generator, error) {
		var a qwenArgs
		cfg.into(&a.common)
		cfg.harmless("use_sliding_window", "sliding_window", "max_window_layers", "layer_types") // as in transformers
		if err := a.common.check(); err != nil {
			return nil, err
		}
		return a.qwen3(cfg, b, qwen3VLTurns())
	}, cfg, b, nil)
}

// newQwen3VLMoE is qwen3_moe whose picked weights always add up to 1, and without windows.
func newQwen3VLMoE(cfg *config, b *Build) (Generator, error) {
	cfg.is("norm_topk_prob", "true")
	cfg.harmless("use_sliding_window", "sliding_window", "max_window_layers", "layer_types") // as in transformers
	return newNested(func(cfg *config, b *Build) (Generator, error) {
		return qwen3MoE(cfg, b, qwen3MoEArgs{Step: 1, Renorm: true}, qwen3VLTurns())
	}, cfg, b, new(bool))
}

// qwen3VisionArgs are the keys of vision_config.
type qwen3VisionArgs struct {
	Depth     int    `json:"depth"`
	D         int    `json:"hidden_size"`
	FFN       int    `json:"intermediate_size"`
	Heads     int    `json:"num_heads"`
	Channels  int    `json:"in_channels"`
	Side      int    `json:"patch_size"` // of a patch, in pixels
	Frames    int    `json:"temporal_patch_size"`
	Merge     int    `json:"spatial_merge_size"`
	Out       int    `json:"out_hidden_size"`
	Positions int    `json:"num_position_embeddings"`
	Deep      []int  `json:"deepstack_visual_indexes"`
	Act       string `json:"hidden_act"`
	Rope      struct {
		Theta float `json:"rope_theta"`
	} `json:"rope_parameters"`
}

// qwen3Vision sees as Qwen3-VL does: patches of an image see each other, their places are learned in a square that is stretched
// over the image, and squares of Merge·Merge patches become one row. What some layers hold becomes rows too, for later layers of
// the language model.
type qwen3Vision struct {
	args qwen3VisionArgs
	side int   // of the square of positions
	deep []int // of the layer: its place in DeepMergers, or -1
	act  B.Activation
	rope *B.Rope

	Patch       nn.Patches     `w:"patch_embed.proj"`
	Positions   nn.Embedding   `w:"pos_embed"`
	Blocks      []visionBlock  `w:"blocks"`
	Merger      visionMerger   `w:"merger"`
	DeepMergers []visionMerger `w:"deepstack_merger_list"`
}

type visionBlock struct {
	Norm1 nn.LayerNorm `w:"norm1"`
	Attn  visionAttn   `w:"attn"`
	Norm2 nn.LayerNorm `w:"norm2"`
	Up    nn.Linear    `w:"mlp.linear_fc1"`
	Down  nn.Linear    `w:"mlp.linear_fc2"`
}

// visionAttn lets patches see each other: those of a frame, or of a window of it.
type visionAttn struct {
	QKV  nn.Linear `w:"qkv"`
	O    nn.Linear `w:"proj"`
	spec B.Attn
}

func newVisionAttn(d, heads int) visionAttn {
	return visionAttn{QKV: biased(d, d, d, d), O: biased(d, d),
		spec: eachOther(heads, d/heads)}
}

func (a *visionAttn) Forward(o B.Ops, x B.Array, rope *B.Rope) B.Array {
	y := a.QKV.Forward(o, x)
	q, k := o.RoPE(a.QKV.Part(o, y, 0), rope), o.RoPE(a.QKV.Part(o, y, 1), rope)
	return a.O.Forward(o, o.Attention(q, k, a.QKV.Part(o, y, 2), &a.spec))
}

// visionMerger makes one row of Merge·Merge. The norm is of each, or of the row.
type visionMerger struct {
	Norm nn.LayerNorm `w:"norm"`
	Up   nn.Linear    `w:"linear_fc1"`
	Down nn.Linear    `w:"linear_fc2"`
	n    int          // patches of a row
	late bool         // the norm is of the row
}

var gelu = B.Activation{Kind: B.GeluErf}

func (m *visionMerger) Forward(o B.Ops, x B.Array) B.Array {
	if m.late {
		x = m.Norm.Forward(o, o.MergeRows(x, m.n))
	} else {
		x = o.MergeRows(m.Norm.Forward(o, x), m.n)
	}
	return m.Down.Forward(o, o.Act(m.Up.Forward(o, x), &gelu))
}

func newQwen3Vision(cfg *config, width int) (vision, error) {
	a := qwen3VisionDefaults()
	return a.vision(cfg, width)
}

// qwen3VisionDefaults are those of transformers.
func qwen3VisionDefaults() qwen3VisionArgs {
	a := qwen3VisionArgs{Depth: 27, D: 1152, FFN: 4304, Heads: 16, Channels: 3, Side: 16, Frames: 2, Merge: 2, Out: 3584, Positions: 2304,
		Deep: []int{8, 16, 24}, Act: "gelu_pytorch_tanh"}
	a.Rope.Theta = 10000
	return a
}

func (a *qwen3VisionArgs) vision(cfg *config, width int) (vision, error) {
	cfg.vision(a)
	if err := a.check(cfg, width); err != nil {
		return nil, err
	}
	const eps = 1e-6
	n := a.Merge * a.Merge
	m := &qwen3Vision{args: *a, side: int(math.Sqrt(float64(a.Positions))), act: B.Activation{Kind: cfg.visionAct(a.Act)},
		rope:      planeRope(a.D/a.Heads, float64(a.Rope.Theta)),
		Patch:     nn.Patches{Out: a.D, Window: []int{a.Channels, a.Frames, a.Side, a.Side}, Bias: true},
		Positions: nn.Embedding{Vocab: a.Positions, Dim: a.D},
		Merger:    visionMerger{Norm: nn.LN(a.D, eps), Up: biased(n*a.D, n*a.D), Down: biased(n*a.D, a.Out), n: n}}
	for i := range a.Depth {
		m.Blocks = append(m.Blocks, visionBlock{Norm1: nn.LN(a.D, eps), Attn: newVisionAttn(a.D, a.Heads),
			Norm2: nn.LN(a.D, eps), Up: biased(a.D, a.FFN), Down: biased(a.FFN, a.D)})
		m.deep = append(m.deep, slices.Index(a.Deep, i))
	}
	for range a.Deep {
		m.DeepMergers = append(m.DeepMergers, visionMerger{Norm: nn.LN(n*a.D, eps), Up: biased(n*a.D, n*a.D), Down: biased(n*a.D, a.Out), n: n, late: true})
	}
	return m, nil
}

// planeRope turns half of a head's pairs by the row of a patch, the others by its column.
func planeRope(head int, theta float64) *B.Rope {
	r := &B.Rope{Head: head}
	for axis := range uint8(2) {
		for i := range head / 4 {
			r.InvFreq = append(r.InvFreq, float32(math.Pow(theta, -4*float64(i)/float64(head))))
			r.Axis = append(r.Axis, axis)
		}
	}
	return r
}

func (a *qwen3VisionArgs) check(cfg *config, width int) error {
	cfg.outOf("depth", a.Depth, 1, maxLayers)
	cfg.outOf("hidden_size", a.D, 1, 1<<16)
	cfg.outOf("intermediate_size", a.FFN, 1, maxSize)
	cfg.outOf("num_heads", a.Heads, 1, 1<<12)
	cfg.outOf("in_channels", a.Channels, 1, 16)
	cfg.outOf("patch_size", a.Side, 1, 256)
	cfg.outOf("temporal_patch_size", a.Frames, 1, 16)
	cfg.outOf("spatial_merge_size", a.Merge, 1, 16)
	cfg.outOf("num_position_embeddings", a.Positions, 1, maxSize)
	if cfg.err != nil {
		return cfg.err
	}
	switch {
	case a.D%a.Heads != 0 || a.D/a.Heads%4 != 0:
		return fmt.Errorf("%s.hidden_size %d is no multiple of four times num_heads %d", visionKey, a.D, a.Heads)
	case a.Out != width:
		return fmt.Errorf("%s.out_hidden_size is %d, the language model's hidden_size is %d", visionKey, a.Out, width)
	case !(a.Rope.Theta > 1):
		return fmt.Errorf("%s.rope_parameters.rope_theta %g is out of range", visionKey, float64(a.Rope.Theta))
	}
	for i, layer := range a.Deep {
		if layer < 0 || layer >= a.Depth || slices.Contains(a.Deep[:i], layer) {
			return fmt.Errorf("%s.deepstack_visual_indexes[%d] is %d, of %d layers", visionKey, i, layer, a.Depth)
		}
	}
	return nil
}

// States implements stateful.
func (m *qwen3Vision) States() []B.StateSpec { return nil }

// Rename implements renamer.
func (m *qwen3Vision) Rename(name string) string { return visionName(name) }

func (m *qwen3Vision) sizes() (patch, width, deep int) {
	return product(m.Patch.Window), m.args.Out, len(m.DeepMergers)
}

func (m *qwen3Vision) together() bool { return false }

func (m *qwen3Vision) fits(grid [3]int) error { return squared(grid, m.args.Merge) }

// squared refuses a grid of one image that squares do not fill.
func squared(grid [3]int, side int) error {
	if grid[0] != 1 || grid[1]%side != 0 || grid[2]%side != 0 {
		return fmt.Errorf("an image of %v patches is not of one frame and squares of %d·%d patches", grid, side, side)
	}
	return nil
}

func (m *qwen3Vision) rows(grid [3]int) int { return product(grid[:]) / (m.args.Merge * m.args.Merge) }

func (m *qwen3Vision) at(grid [3]int, i int) [3]int32 { return merged(grid, m.args.Merge, i) }

func (m *qwen3Vision) extent(grid [3]int) int { return max(grid[1], grid[2]) / m.args.Merge }

// merged is the frame, row and column of row i of an image whose squares have become rows.
func merged(grid [3]int, side, i int) [3]int32 {
	rows, cols := grid[1]/side, grid[2]/side
	return [3]int32{int32(i / (rows * cols)), int32(i / cols % rows), int32(i % cols)}
}

func (m *qwen3Vision) batch(grid [3]int) *B.Batch {
	b := frames(grid)
	b.Pos[0], b.Pos[1] = squares(grid, m.args.Merge)
	return b
}

// places are the four corners in the square of positions that each patch lies between, and their weights.
func (m *qwen3Vision) places(grid [3]int, b *B.Batch) B.Index {
	ix := B.Index{PerRow: 4}
	at := func(i int32, n int) (int32, float32) {
		if n == 1 {
			return 0, 0
		}
		x := float64(i) * float64(m.side-1) / float64(n-1)
		return int32(x), float32(x - math.Floor(x))
	}
	last := int32(m.side - 1)
	for i := range b.Rows() {
		y, dy := at(b.Pos[0][i], grid[1])
		x, dx := at(b.Pos[1][i], grid[2])
		up, down := y*int32(m.side), min(y+1, last)*int32(m.side)
		right := min(x+1, last)
		ix.IDs = append(ix.IDs, up+x, up+right, down+x, down+right)
		ix.Scale = append(ix.Scale, (1-dy)*(1-dx), (1-dy)*dx, dy*(1-dx), dy*dx)
	}
	return ix
}

func (m *qwen3Vision) encode(o B.Ops, b *B.Batch, grid [3]int, patches B.Array) []B.Array {
	out := make([]B.Array, 1, 1+len(m.DeepMergers))
	h := o.Add(m.Patch.Forward(o, patches), o.Embed(m.Positions.W, m.places(grid, b)))
	for i := range m.Blocks {
		l := &m.Blocks[i]
		h = o.Add(h, l.Attn.Forward(o, l.Norm1.Forward(o, h), m.rope))
		h = o.Add(h, l.Down.Forward(o, o.Act(l.Up.Forward(o, l.Norm2.Forward(o, h)), &m.act)))
		if n := m.deep[i]; n >= 0 {
			out = append(out, o.Keep(m.DeepMergers[n].Forward(o, h)))
		}
		o.Sweep(h)
	}
	out[0] = m.Merger.Forward(o, h)
	return out
}
