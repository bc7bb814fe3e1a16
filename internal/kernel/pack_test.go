package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"hearth/internal/quant"
)

// packCase is what a Packer reads, and the matrix that comes of it row by row.
type packCase struct {
	name string
	form Form
	bits int
	spec Spec
}

func packCases() []packCase {
	var out []packCase
	for _, f := range []Format{Codes2, Codes3, Codes4, Codes5, Codes6, Codes8} {
		bits := f.bits()
		for _, g := range []int{32, 64, 128} {
			for _, cols := range []int{g, 5 * g, 4096 + 3*g} {
				out = append(out, packCase{"codes", FormCodes, bits, Spec{Rows: 35, Cols: cols, Format: f, Group: g}},
					packCase{"wide", FormCodes, bits, Spec{Rows: 35, Cols: cols, Format: Codes8, Group: g}})
			}
		}
	}
	for _, cols := range []int{32, 96, 1024, 2080} {
		out = append(out, packCase{"mxfp4", FormE2M1Codes, 4, Spec{Rows: 35, Cols: cols, Format: CodesE2M1, Group: 32}},
			packCase{"wide mxfp4", FormE2M1Codes, 4, Spec{Rows: 35, Cols: cols, Format: Codes8, Group: 32}},
			packCase{"mxfp8", FormE4M3, 8, Spec{Rows: 35, Cols: cols, Format: DenseBF16}},
			packCase{"nvfp4", FormE2M1, 4, Spec{Rows: 35, Cols: cols + 16, Format: DenseBF16}},
			packCase{"small mxfp8", FormE4M3, 8, Spec{Rows: 35, Cols: cols, Format: FloatE4M3}},
			packCase{"small nvfp4", FormE2M1, 4, Spec{Rows: 35, Cols: cols - 16, Format: FloatE2M1}})
	}
	for _, cols := range []int{1, 2, 3, 4, 7, 8, 31, 64, 130, 513, 1024} {
		out = append(out, packCase{"bf16", FormBF16, 0, Spec{Rows: 35, Cols: cols, Format: DenseBF16}},
			packCase{"f16", FormF16, 0, Spec{Rows: 35, Cols: cols, Format: DenseF32}},
			packCase{"f32", FormF32, 0, Spec{Rows: 35, Cols: cols, Format: DenseF32}})
	}
	return out
}

// stored are random rows of a case.
type storedRows struct {
	rows           [][]byte
	small          [][]float32 // scales of small floats
	scales, biases [][]byte    // bfloat16
}

func (c *packCase) random(r *rand.Rand) storedRows {
	var p Packer
	p.form, p.bits = c.form, c.bits
	var s storedRows
	for range c.spec.Rows {
		row := make([]byte, c.spec.Cols*p.rowBits()/8)
		for i := range row {
			row[i] = byte(r.Uint32())
			if c.form == FormF16 && i%2 == 1 && row[i]&0x7c == 0x7c {
				row[i] &^= 4 // no NaN: hardware makes signalling ones quiet
			}
			if c.spec.Format == CodesE2M1 && (row[i]&15 == 8 || row[i]>>4 == 8) {
				row[i] = 0x2f // no -0, which rows of codes do not tell from 0
			}
		}
		s.rows = append(s.rows, row)
		switch c.form {
		case FormE2M1:
			s.small = append(s.small, randomScales(r, c.spec.Cols/16))
		case FormE4M3:
			s.small = append(s.small, randomScales(r, c.spec.Cols/32))
		}
		if c.spec.Group > 0 {
			n := 2 * c.spec.Cols / c.spec.Group
			both := make([]byte, 2*n)
			for i := range both {
				both[i] = byte(r.Uint32())
			}
			s.scales, s.biases = append(s.scales, both[:n]), append(s.biases, both[n:])
		}
	}
	return s
}

// randomScales are powers of two and a few others, none of which needs more bits than bfloat16 has.
func randomScales(r *rand.Rand, n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = float32(math.Ldexp(1+float64(r.IntN(8))/8, r.IntN(40)-30))
	}
	return s
}

// floatsOf is a row as numbers, from the definition of its form.
func (c *packCase) floatsOf(row []byte, scales []float32) []float32 {
	x := make([]float32, c.spec.Cols)
	for i := range x {
		switch c.form {
		case FormE2M1:
			x[i] = quant.E2M1(row[i/2]>>(i%2*4)&15) * scales[i/16]
		case FormE4M3:
			x[i] = quant.E4M3(row[i]) * scales[i/32]
		case FormF16:
			x[i] = quant.F16ToF32(binary.LittleEndian.Uint16(row[2*i:]))
		case FormF32:
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(row[4*i:]))
		}
	}
	return x
}

// byRows packs row by row.
func (c *packCase) byRows(s storedRows) *Matrix {
	m := NewMatrix(c.spec)
	for i, row := range s.rows {
		switch {
		case c.spec.Group > 0:
			codes := make([]uint8, c.spec.Cols)
			if c.form == FormCodes {
				quant.Unpack(codes, row, c.bits)
			} else {
				for k := range codes {
					codes[k] = uint8(2*quant.E2M1(row[k/2]>>(k%2*4)&15) + 12)
				}
			}
			scales, biases := make([]float32, c.spec.Cols/c.spec.Group), make([]float32, c.spec.Cols/c.spec.Group)
			quant.Floats(scales, quant.BF16, s.scales[i])
			quant.Floats(biases, quant.BF16, s.biases[i])
			m.SetRow(i, codes, scales, biases)
		case c.form == FormBF16:
			half := make([]uint16, c.spec.Cols)
			for k := range half {
				half[k] = binary.LittleEndian.Uint16(row[2*k:])
			}
			m.SetBF16(i, half)
		case c.spec.Format.small():
			m.SetSmall(i, row, s.small[i])
		case s.small != nil:
			m.SetFloats(i, c.floatsOf(row, s.small[i]))
		default:
			m.SetFloats(i, c.floatsOf(row, nil))
		}
	}
	return m
}

// byPanels packs with p, panels in falling order, rows flush against pages that must not be touched.
func (c *packCase) byPanels(t *testing.T, p *Packer, s storedRows, guard func([]byte) []byte) *Matrix {
	m := NewMatrix(c.spec)
	m.data = guard(m.data)
	p.Reset(m, c.form, c.bits)
	for panel := m.Panels() - 1; panel >= 0; panel-- {
		var rows, scales, biases [PanelRows][]byte
		var small [PanelRows][]float32
		for r := range min(PanelRows, c.spec.Rows-panel*PanelRows) {
			i := panel*PanelRows + r
			rows[r] = guard(s.rows[i])
			if s.small != nil {
				small[r] = s.small[i]
			}
			if s.scales != nil {
				scales[r], biases[r] = guard(s.scales[i]), guard(s.biases[i])
			}
		}
		p.Pack(panel, &rows, &small)
		if s.scales != nil {
			p.Scales(panel, &scales, &biases)
		}
	}
	return m
}

func TestPack(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(41, 1))
		var p Packer
		for _, c := range packCases() {
			s := c.random(r)
			want := c.byRows(s)
			got := c.byPanels(t, &p, s, func(b []byte) []byte { return b })
			if i := c.differ(got, want); i >= 0 {
				t.Fatalf("%s %d bits %+v: byte %d of %d is %#x, want %#x", c.name, c.bits, c.spec, i, len(want.data), got.data[i], want.data[i])
			}
		}
	})
}

// differ is where two packed matrices do, -1 for nowhere. Which NaN a code for one becomes is left open.
func (c *packCase) differ(a, b *Matrix) int {
	for i := range a.data {
		if a.data[i] == b.data[i] {
			continue
		}
		at := i &^ 1
		if c.form == FormE4M3 && c.spec.Format == DenseBF16 && get16(a.data[at:])&0x7fff > 0x7f80 && get16(b.data[at:])&0x7fff > 0x7f80 {
			continue
		}
		return i
	}
	return -1
}

func TestPackRefuses(t *testing.T) {
	fine := Spec{Rows: 20, Cols: 64, Format: Codes4, Group: 64}
	for name, f := range map[string]func(*Packer, *Matrix){
		"another format":     func(p *Packer, m *Matrix) { p.Reset(m, FormCodes, 5) },
		"floats for codes":   func(p *Packer, m *Matrix) { p.Reset(m, FormBF16, 0) },
		"a panel too many":   func(p *Packer, m *Matrix) { p.Pack(2, &[PanelRows][]byte{}, nil) },
		"rows missing":       func(p *Packer, m *Matrix) { p.Pack(0, &[PanelRows][]byte{}, nil) },
		"a row of one byte":  func(p *Packer, m *Matrix) { p.Pack(1, &[PanelRows][]byte{{1}, {1}, {1}, {1}}, nil) },
		"scales of one byte": func(p *Packer, m *Matrix) { p.Scales(1, &[PanelRows][]byte{{1}, {1}, {1}, {1}}, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			m, p := NewMatrix(fine), &Packer{}
			p.Reset(m, FormCodes, 4)
			defer func() {
				if recover() == nil {
					t.Error("went through")
				}
			}()
			f(p, m)
		})
	}
}

// FuzzPack compares panels with rows for sizes and bits of the fuzzer's choice.
func FuzzPack(f *testing.F) {
	f.Add(uint64(1), uint8(0), uint16(3), uint8(17))
	f.Add(uint64(2), uint8(6), uint16(40), uint8(1))
	f.Fuzz(func(t *testing.T, seed uint64, which uint8, cols uint16, rows uint8) {
		cases := packCases()
		c := cases[int(which)%len(cases)]
		step := max(c.spec.Group, 1)
		if c.form == FormE2M1 || c.form == FormE4M3 {
			step = 32
		}
		c.spec.Cols, c.spec.Rows = step*(1+int(cols)%100), 1+int(rows)%50
		s := c.random(rand.New(rand.NewPCG(seed, 1)))
		want := c.byRows(s)
		if i := c.differ(c.byPanels(t, &Packer{}, s, func(b []byte) []byte { return b }), want); i >= 0 {
			t.Fatalf("%s %+v: byte %d differs", c.name, c.spec, i)
		}
	})
}

// BenchmarkPack reports bytes of panels per second, rows and panels in the second-level cache.
func BenchmarkPack(b *testing.B) {
	seen := map[string]bool{}
	for _, c := range packCases() {
		name := fmt.Sprintf("%s/%s/bits=%d", Current(), c.name, c.bits)
		if seen[name] {
			continue
		}
		seen[name] = true
		c.spec.Rows, c.spec.Cols = 64, 2048
		if c.spec.Group > 0 && c.form == FormCodes {
			c.spec.Group = 64
		}
		b.Run(name, func(b *testing.B) {
			s := c.random(rand.New(rand.NewPCG(1, 1)))
			m, p := NewMatrix(c.spec), &Packer{}
			p.Reset(m, c.form, c.bits)
			b.SetBytes(int64(m.Bytes()))
			for b.Loop() {
				for panel := range m.Panels() {
					p.Pack(panel, (*[PanelRows][]byte)(s.rows[panel*PanelRows:]), smallOf(s, panel))
					if s.scales != nil {
						p.Scales(panel, (*[PanelRows][]byte)(s.scales[panel*PanelRows:]), (*[PanelRows][]byte)(s.biases[panel*PanelRows:]))
					}
				}
			}
		})
	}
}

func smallOf(s storedRows, panel int) *[PanelRows][]float32 {
	if s.small == nil {
		return nil
	}
	return (*[PanelRows][]float32)(s.small[panel*PanelRows:])
}
