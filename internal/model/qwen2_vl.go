package model

import (
	"fmt"
	"slices"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() {
	register("qwen2_vl", newQwen2VL)
	towers["qwen2_vl"] = newQwen2Vision
}

// newQwen2VL is also for older folders, whose config has all keys in one. Heads turn by frame, row and column in blocks of pairs.
func newQwen2VL(cfg *config, b *Build) (Generator, error) {
	return newNested(func(cfg *config, b *Build) (Generator, error) {
		return qwen2(cfg, b, 80, rotation{Base: 1e6, Axes: axes{sections: []int{}}})
	}, cfg, b, nil)
}

// qwen2VisionArgs are the keys of vision_config of Qwen2-VL and Qwen2.5-VL.
type qwen2VisionArgs struct {
	Depth    int    `json:"depth"`
	Embed    int    `json:"embed_dim"`   // of Qwen2-VL, whose
	D        int    `json:"hidden_size"` // is that of the language model
	Ratio    float  `json:"mlp_ratio"`
	FFN      int    `json:"intermediate_size"`
	Heads    int    `json:"num_heads"`
	Channels int    `json:"in_channels"`
	Side     int    `json:"patch_size"` // of a patch, in pixels
	Frames   int    `json:"temporal_patch_size"`
	Merge    int    `json:"spatial_merge_size"`
	Out      int    `json:"out_hidden_size"`
	Window   int    `json:"window_size"` // in pixels
	Whole    []int  `json:"fullatt_block_indexes"`
	Act      string `json:"hidden_act"`

	windows bool // Qwen2.5-VL
}

// qwen2Vision sees as Qwen2-VL and Qwen2.5-VL do: places turn heads and are not learned. In most layers of the second, patches
// see those of their window alone.
type qwen2Vision struct {
	args qwen2VisionArgs
	unit int // squares of patches along a window
	act  B.Activation
	rope *B.Rope

	Patch  nn.Patches    `w:"patch_embed.proj"`
	Blocks []qwen2Seeing `w:"blocks"`
	LNorm  *nn.LayerNorm `w:"merger.ln_q"` // or
	RNorm  *nn.RMSNorm   `w:"merger.ln_q"`
	Up     nn.Linear     `w:"merger.mlp.0"`
	Down   nn.Linear     `w:"merger.mlp.2"`
}

// qwen2Seeing has LayerNorms and an MLP of two products, or RMSNorms and one with a gate.
type qwen2Seeing struct {
	LNorm1 *nn.LayerNorm `w:"norm1"`
	LNorm2 *nn.LayerNorm `w:"norm2"`
	Up     *nn.Linear    `w:"mlp.fc1"`
	Down   *nn.Linear    `w:"mlp.fc2"`

	RNorm1 *nn.RMSNorm `w:"norm1"`
	RNorm2 *nn.RMSNorm `w:"norm2"`
	Gated  *nn.GLUMLP  `w:"mlp"`

	Attn visionAttn `w:"attn"`
}

func newQwen2Vision(cfg *config, width int) (vision, error) {
	a := qwen2VisionArgs{Depth: 32, Heads: 16, Channels: 3, Side: 14, Frames: 2, Merge: 2, windows: cfg.typ == "qwen2_5_vl"}
	if a.windows {
		a.D, a.FFN, a.Out, a.Window, a.Whole, a.Act = 3584, 3420, 3584, 112, []int{7, 15, 23, 31}, "silu"
	} else {
		a.Embed, a.D, a.Ratio, a.Act = 1280, 3584, 4, "quick_gelu"
	}
	if cfg.vision(&a); !a.windows {
		a.Out, a.D, a.FFN, a.Window, a.Whole = a.D, a.Embed, int(float64(a.Embed)*float64(a.Ratio)), 0, nil
	}
	if err := a.check(cfg, width); err != nil {
		return nil, err
	}
	const eps = 1e-6
	n := a.Merge * a.Merge
	m := &qwen2Vision{args: a, act: B.Activation{Kind: cfg.visionAct(a.Act)}, rope: planeRope(a.D/a.Heads, 10000),
		Patch: nn.Patches{Out: a.D, Window: []int{a.Channels, a.Frames, a.Side, a.Side}},
		Up:    biased(n*a.D, n*a.D), Down: biased(n*a.D, a.Out)}
	rms := func() *nn.RMSNorm { r := nn.RMS(a.D, eps); return &r }
	ln := func() *nn.LayerNorm { l := nn.LN(a.D, eps); return &l }
	if a.windows {
		m.unit, m.RNorm = a.Window/a.Merge/a.Side, rms()
	} else {
		m.LNorm = ln()
	}
	for i := range a.Depth {
		l := qwen2Seeing{Attn: newVisionAttn(a.D, a.Heads)}
		if a.windows {
			mlp := nn.NewGLUMLP(a.D, a.FFN, m.act.Kind)
			mlp.GateUp.Bias, mlp.Down.Bias = true, true
			l.RNorm1, l.RNorm2, l.Gated = rms(), rms(), &mlp
			l.Attn.spec.Alt = !slices.Contains(a.Whole, i)
		} else {
			up, down := biased(a.D, a.FFN), biased(a.FFN, a.D)
			l.LNorm1, l.LNorm2, l.Up, l.Down = ln(), ln(), &up, &down
		}
		m.Blocks = append(m.Blocks, l)
	}
	return m, nil
}

func (a *qwen2VisionArgs) check(cfg *config, width int) error {
	cfg.outOf("depth", a.Depth, 1, maxLayers)
	cfg.outOf(either(a.windows, "hidden_size", "embed_dim"), a.D, 1, 1<<16)
	cfg.outOf(either(a.windows, "intermediate_size", "mlp_ratio"), a.FFN, 1, maxSize)
	cfg.outOf("num_heads", a.Heads, 1, 1<<12)
	cfg.outOf("in_channels", a.Channels, 1, 16)
	cfg.outOf("patch_size", a.Side, 1, 256)
	cfg.outOf("temporal_patch_size", a.Frames, 1, 16)
	cfg.outOf("spatial_merge_size", a.Merge, 1, 16)
	switch {
	case cfg.err != nil:
		return cfg.err
	case a.D%a.Heads != 0 || a.D/a.Heads%4 != 0:
		return fmt.Errorf("%s: %d columns are no multiple of four times num_heads %d", visionKey, a.D, a.Heads)
	case a.Out != width:
		return fmt.Errorf("%s.%s is %d, the language model's hidden_size is %d", visionKey, either(a.windows, "out_hidden_size", "hidden_size"), a.Out, width)
	case a.windows && (a.Window < a.Merge*a.Side || a.Window > maxSize):
		return fmt.Errorf("%s.window_size %d is out of range", visionKey, a.Window)
	}
	return nil
}

// States implements stateful.
func (m *qwen2Vision) States() []B.StateSpec { return nil }

// Rename implements renamer.
func (m *qwen2Vision) Rename(name string) string { return visionName(name) }

func (m *qwen2Vision) sizes() (patch, width, deep int) {
	return product(m.Patch.Window), m.args.Out, 0
}

func (m *qwen2Vision) together() bool { return false }

func (m *qwen2Vision) fits(grid [3]int) error { return squared(grid, m.args.Merge) }

func (m *qwen2Vision) rows(grid [3]int) int { return product(grid[:]) / (m.args.Merge * m.args.Merge) }

func (m *qwen2Vision) at(grid [3]int, i int) [3]int32 { return merged(grid, m.args.Merge, i) }

func (m *qwen2Vision) extent(grid [3]int) int { return max(grid[1], grid[2]) / m.args.Merge }

// order lists the squares of patches window by window, and how many each window has.
func (m *qwen2Vision) order(grid [3]int) (squares []int32, windows []int) {
	rows, cols := grid[1]/m.args.Merge, grid[2]/m.args.Merge
	for y := 0; y < rows; y += m.unit {
		for x := 0; x < cols; x += m.unit {
			n := len(squares)
			for r := y; r < min(y+m.unit, rows); r++ {
				for c := x; c < min(x+m.unit, cols); c++ {
					squares = append(squares, int32(r*cols+c))
				}
			}
			windows = append(windows, len(squares)-n)
		}
	}
	return squares, windows
}

// patches lists the patches of squares.
func (m *qwen2Vision) patches(squares []int32) []int32 {
	n := int32(m.args.Merge * m.args.Merge)
	out := make([]int32, 0, int(n)*len(squares))
	for _, s := range squares {
		for i := range n {
			out = append(out, s*n+i)
		}
	}
	return out
}

func (m *qwen2Vision) batch(grid [3]int) *B.Batch {
	b := frames(grid)
	b.Pos[0], b.Pos[1] = squares(grid, m.args.Merge)
	if m.unit == 0 {
		return b
	}
	order, windows := m.order(grid)
	for axis := range 2 {
		pos := b.Pos[axis]
		b.Pos[axis] = nil
		for _, p := range m.patches(order) {
			b.Pos[axis] = append(b.Pos[axis], pos[p])
		}
	}
	row := 0
	for _, n := range windows {
		n *= m.args.Merge * m.args.Merge
		b.Alt = append(b.Alt, B.Span{Slot: -1, Row: row, Len: n})
		row += n
	}
	return b
}

func (m *qwen2Vision) encode(o B.Ops, b *B.Batch, grid [3]int, patches B.Array) []B.Array {
	var order []int32
	if m.unit > 0 {
		order, _ = m.order(grid)
		patches = o.Gather(patches, m.patches(order))
	}
	h := m.Patch.Forward(o, patches)
	for i := range m.Blocks {
		l := &m.Blocks[i]
		h = o.Add(h, l.Attn.Forward(o, l.LNorm1.Forward(o, l.RNorm1.Forward(o, h)), m.rope))
		x := l.LNorm2.Forward(o, l.RNorm2.Forward(o, h))
		if l.Gated != nil {
			x = l.Gated.Forward(o, x)
		} else {
			x = l.Down.Forward(o, o.Act(l.Up.Forward(o, x), &m.act))
		}
		h = o.Add(h, x)
		o.Sweep(h)
	}
	h = o.MergeRows(m.LNorm.Forward(o, m.RNorm.Forward(o, h)), m.args.Merge*m.args.Merge)
	h = m.Down.Forward(o, o.Act(m.Up.Forward(o, h), &gelu))
	if m.unit > 0 {
		back := make([]int32, len(order))
		for i, s := range order {
			back[s] = int32(i)
		}
		h = o.Gather(h, back)
	}
	return []B.Array{h}
}
