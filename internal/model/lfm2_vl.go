package model

import (
	"fmt"
	"math"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { towers["lfm2"] = newLFM2Vision }

// lfm2Vision sees as LFM2-VL does: a SigLIP 2 for images of any shape, whose learned places are a square that is resized to the
// image's, and squares of patches that become rows.
type lfm2Vision struct {
	args  siglipArgs
	side  int // of the square of places
	merge int
	width int
	act   B.Activation

	Patch  nn.Linear     `w:"embeddings.patch_embedding"`
	Places nn.Embedding  `w:"embeddings.position_embedding"`
	Net    siglip        `w:""`
	Merged *nn.LayerNorm `w:"projector.layer_norm"`
	Up     nn.Linear     `w:"projector.linear_1"`
	Down   nn.Linear     `w:"projector.linear_2"`
}

func newLFM2Vision(cfg *config, width int) (vision, error) {
	a := siglipArgs{D: 768, FFN: 3072, Layers: 12, Heads: 12, Channels: 3, Side: 16, Eps: 1e-6, Act: "gelu_pytorch_tanh", Patches: 256}
	cfg.vision(&a)
	p := struct {
		Hidden int    `json:"projector_hidden_size"`
		Act    string `json:"projector_hidden_act"`
		Bias   bool   `json:"projector_bias"`
		Norm   bool   `json:"projector_use_layernorm"`
		Factor int    `json:"downsample_factor"`
	}{2560, "gelu", true, true, 2}
	cfg.beside(&p)
	cfg.outOf("num_patches", a.Patches, 1, 1<<16)
	if err := a.check(cfg); err != nil {
		return nil, err
	}
	m := &lfm2Vision{args: a, side: int(math.Sqrt(float64(a.Patches))), merge: p.Factor, width: width, act: B.Activation{Kind: acts[p.Act]}}
	_, known := acts[p.Act]
	switch {
	case m.side*m.side != a.Patches:
		return nil, fmt.Errorf("%s.num_patches %d is no square", visionKey, a.Patches)
	case p.Hidden < 1 || p.Hidden > maxSize:
		return nil, fmt.Errorf("projector_hidden_size %d is out of range", p.Hidden)
	case p.Factor < 1 || p.Factor > 16:
		return nil, fmt.Errorf("downsample_factor %d is out of range", p.Factor)
	case !known:
		return nil, fmt.Errorf("projector_hidden_act %q is not supported", p.Act)
	}
	in := a.D * p.Factor * p.Factor
	m.Patch, m.Places, m.Net = biased(a.Channels*a.Side*a.Side, a.D), nn.Embedding{Vocab: a.Patches, Dim: a.D}, a.net(cfg)
	m.Up, m.Down = nn.Lin(in, p.Hidden), nn.Lin(p.Hidden, width)
	m.Up.Bias, m.Down.Bias = p.Bias, p.Bias
	if p.Norm {
		norm := nn.LN(in, 1e-5)
		m.Merged = &norm
	}
	return m, nil
}

// States implements stateful.
func (m *lfm2Vision) States() []B.StateSpec { return nil }

// Rename implements renamer.
func (m *lfm2Vision) Rename(name string) string {
	if rest, ok := strings.CutPrefix(strings.TrimPrefix(name, "model."), "multi_modal_projector."); ok {
		if m.Merged == nil && strings.HasPrefix(rest, "layer_norm.") {
			return ""
		}
		return "projector." + rest
	}
	return siglipName(name)
}

func (m *lfm2Vision) sizes() (patch, width, deep int) { return m.Patch.In, m.width, 0 }

func (m *lfm2Vision) together() bool { return false }

func (m *lfm2Vision) fits(grid [3]int) error { return squared(grid, m.merge) }

func (m *lfm2Vision) rows(grid [3]int) int { return product(grid[:]) / (m.merge * m.merge) }

func (m *lfm2Vision) at(_ [3]int, i int) [3]int32 { return inLine(i) }

func (m *lfm2Vision) extent(grid [3]int) int { return m.rows(grid) }

func (m *lfm2Vision) batch(grid [3]int) *B.Batch {
	b := frames(grid)
	b.Pos[0], b.Pos[1] = squares(grid, 1)
	return b
}

func (m *lfm2Vision) encode(o B.Ops, b *B.Batch, grid [3]int, patches B.Array) []B.Array {
	h := o.Add(m.Patch.Forward(o, patches), o.Embed(m.Places.W, m.places(grid)))
	h = merge(o, m.Net.Forward(o, h), grid, m.merge)
	h = o.Act(m.Up.Forward(o, m.Merged.Forward(o, h)), &m.act)
	return []B.Array{m.Down.Forward(o, h)}
}

// taps are what one place of n along a side is made of, from one index on: linear interpolation that is as wide as places are
// apart where there are fewer than in the square.
type taps struct {
	from    int
	weights []float32
}

func (m *lfm2Vision) taps(n int) (all []taps, most int) {
	scale := float64(m.side) / float64(n)
	support := max(scale, 1)
	for i := range n {
		centre := (float64(i)+0.5)*scale - 0.5
		t := taps{from: max(int(math.Ceil(centre-support)), 0)}
		var weights []float64
		sum := 0.0
		for s := t.from; s < m.side && float64(s) < centre+support; s++ {
			w := max(1-math.Abs(float64(s)-centre)/support, 0)
			weights, sum = append(weights, w), sum+w
		}
		for _, w := range weights {
			t.weights = append(t.weights, float32(w/sum))
		}
		all, most = append(all, t), max(most, len(t.weights))
	}
	return all, most
}

// places weighs the places of the square for every patch.
func (m *lfm2Vision) places(grid [3]int) B.Index {
	rows, high := m.taps(grid[1])
	cols, wide := m.taps(grid[2])
	ix := B.Index{PerRow: high * wide}
	for _, r := range rows {
		for _, c := range cols {
			for y := range high {
				for x := range wide {
					if y >= len(r.weights) || x >= len(c.weights) {
						ix.IDs, ix.Scale = append(ix.IDs, 0), append(ix.Scale, 0)
						continue
					}
					ix.IDs = append(ix.IDs, int32((r.from+y)*m.side+c.from+x))
					ix.Scale = append(ix.Scale, r.weights[y]*c.weights[x])
				}
			}
		}
	}
	return ix
}
