package model

import (
	"fmt"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { towers["idefics3"], towers["smolvlm"] = newIdefics3Vision, newIdefics3Vision }

// idefics3Vision sees as Idefics 3 and SmolVLM do: a SigLIP whose learned places are a square; a patch has that in which its
// corner lies. Squares of patches become rows.
type idefics3Vision struct {
	args  siglipArgs
	side  int // of the square of places
	merge int
	width int

	Patch  nn.Patches   `w:"embeddings.patch_embedding"`
	Places nn.Embedding `w:"embeddings.position_embedding"`
	Net    siglip       `w:""`
	Out    nn.Linear    `w:"connector.modality_projection.proj"`
}

func newIdefics3Vision(cfg *config, width int) (vision, error) {
	a := siglipArgs{D: 1152, FFN: 3072, Layers: 12, Heads: 16, Channels: 3, Image: 224, Side: 32, Eps: 1e-6, Act: "gelu_pytorch_tanh"}
	cfg.vision(&a)
	beside := struct {
		Factor int `json:"scale_factor"`
	}{2}
	cfg.beside(&beside)
	a.Patches = 0 // the key is of other towers
	if err := a.check(cfg); err != nil {
		return nil, err
	}
	if beside.Factor < 1 || beside.Factor > 16 {
		return nil, fmt.Errorf("scale_factor %d is out of range", beside.Factor)
	}
	m := &idefics3Vision{args: a, side: a.Image / a.Side, merge: beside.Factor, width: width}
	m.Patch = nn.Patches{Out: a.D, Window: []int{a.Channels, a.Side, a.Side}, Bias: true}
	m.Places, m.Net = nn.Embedding{Vocab: m.side * m.side, Dim: a.D}, a.net(cfg)
	m.Out = nn.Lin(a.D*m.merge*m.merge, width)
	return m, nil
}

// States implements stateful.
func (m *idefics3Vision) States() []B.StateSpec { return nil }

// Rename implements renamer.
func (m *idefics3Vision) Rename(name string) string {
	if rest := strings.TrimPrefix(name, "model."); strings.HasPrefix(rest, "connector.") {
		return rest
	}
	return siglipName(name)
}

func (m *idefics3Vision) sizes() (patch, width, deep int) { return product(m.Patch.Window), m.width, 0 }

func (m *idefics3Vision) together() bool { return false }

// fits: transformers joins patches of square images only.
func (m *idefics3Vision) fits(grid [3]int) error {
	if grid[1] != grid[2] {
		return fmt.Errorf("an image of %v patches is not square", grid)
	}
	return squared(grid, m.merge)
}

func (m *idefics3Vision) rows(grid [3]int) int { return product(grid[:]) / (m.merge * m.merge) }

func (m *idefics3Vision) at(_ [3]int, i int) [3]int32 { return inLine(i) }

func (m *idefics3Vision) extent(grid [3]int) int { return m.rows(grid) }

func (m *idefics3Vision) batch(grid [3]int) *B.Batch {
	b := frames(grid)
	b.Pos[0], b.Pos[1] = squares(grid, 1)
	return b
}

func (m *idefics3Vision) encode(o B.Ops, b *B.Batch, grid [3]int, patches B.Array) []B.Array {
	// As exact fractions. transformers has them in float32, whose last bit depends on the processor; for the sizes of published
	// models both say the same.
	place := func(i int32, n int) int32 { return i * int32(m.side) / int32(n) }
	ix := B.Index{}
	for i := range b.Rows() {
		ix.IDs = append(ix.IDs, place(b.Pos[0][i], grid[1])*int32(m.side)+place(b.Pos[1][i], grid[2]))
	}
	h := o.Add(m.Patch.Forward(o, patches), o.Embed(m.Places.W, ix))
	return []B.Array{m.Out.Forward(o, merge(o, m.Net.Forward(o, h), grid, m.merge))}
}
