package model

import (
	"fmt"
	"math"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { towers["gemma3"] = newGemma3Vision }

// gemma3Vision sees as Gemma 3 does: images of one size, patches with learned places that see each other, and the means of
// squares of them as rows. Rows of an image see each other in the language model too.
type gemma3Vision struct {
	args  siglipArgs
	side  int // of an image, in patches
	pool  int // of a square whose mean is a row
	width int

	Patch  nn.Patches   `w:"embeddings.patch_embedding"`
	Places nn.Embedding `w:"embeddings.position_embedding"`
	Net    siglip       `w:""`
	Soft   nn.RMSNorm   `w:"projector.mm_soft_emb_norm"`
	Out    nn.Linear    `w:"projector.mm_input_projection"`
}

func newGemma3Vision(cfg *config, width int) (vision, error) {
	a := siglipArgs{D: 768, FFN: 3072, Layers: 12, Heads: 12, Channels: 3, Image: 224, Side: 16, Eps: 1e-6, Act: "gelu_pytorch_tanh"}
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
	m := &gemma3Vision{args: a, side: a.Image / a.Side, width: width, Net: a.net(cfg)}
	tokens := int(math.Sqrt(float64(max(beside.Tokens, 0))))
	if tokens < 1 || tokens*tokens != beside.Tokens || m.side%tokens != 0 {
		return nil, fmt.Errorf("mm_tokens_per_image %d are no square that divides %d·%d patches", beside.Tokens, m.side, m.side)
	}
	eps := float32(a.Eps)
	m.pool = m.side / tokens
	m.Patch = nn.Patches{Out: a.D, Window: []int{a.Channels, a.Side, a.Side}, Bias: true}
	m.Places = nn.Embedding{Vocab: m.side * m.side, Dim: a.D}
	m.Soft, m.Out = nn.RMS(a.D, eps), nn.Lin(a.D, width)
	m.Soft.Plus1, m.Out.Transposed = true, true
	return m, nil
}

// States implements stateful.
func (m *gemma3Vision) States() []B.StateSpec { return nil }

// Rename implements renamer.
func (m *gemma3Vision) Rename(name string) string {
	if rest, ok := strings.CutPrefix(strings.TrimPrefix(name, "model."), "multi_modal_projector."); ok {
		if rest == "mm_input_projection_weight" {
			rest = "mm_input_projection.weight"
		}
		return "projector." + rest
	}
	return siglipName(name)
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

func (m *gemma3Vision) at(_ [3]int, i int) [3]int32 { return inLine(i) }

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
	h = means(o, m.Net.Forward(o, h), grid, m.pool)
	return []B.Array{m.Out.Forward(o, m.Soft.Forward(o, h))}
}
