package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"hearth/internal/quant"
)

// TestSmallFloats reads every code of small floats by products with a one among zeros, in few rows and in many.
func TestSmallFloats(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		for _, s := range []Spec{{Rows: 16, Cols: 256, Format: FloatE4M3}, {Rows: 16, Cols: 32, Format: FloatE2M1}} {
			codes, scales, want := make([]byte, s.Cols*s.Format.bits()/8), make([]float32, s.Cols/s.Format.unit()), make([]float32, s.Cols)
			for g := range scales {
				scales[g] = float32(math.Ldexp(1.25, g-4))
			}
			for k := range s.Cols {
				scale := scales[k/s.Format.unit()]
				if s.Format == FloatE2M1 {
					codes[k/2] |= byte(k&15) << (k % 2 * 4)
					want[k] = quant.E2M1(uint8(k&15)) * scale
					continue
				}
				if codes[k] = byte(k); noNumber(codes[k]) {
					codes[k] = 0
				}
				want[k] = quant.E4M3(codes[k]) * scale
			}
			m, x := NewMatrix(s), make([][]float32, s.Cols)
			for i := range s.Rows {
				m.SetSmall(i, codes, scales)
			}
			for k := range x {
				x[k] = make([]float32, s.Cols)
				x[k][k] = 1
			}
			a, y := acts(Floats, x, m.Group()), make([]float32, s.Cols*s.Rows)
			for _, rows := range []int{1, 7, s.Cols} {
				m.Mul(y, s.Rows, a, 0, rows, 0, 1)
				for k := range rows {
					for i, got := range y[k*s.Rows:][:s.Rows] {
						if got != want[k] {
							t.Fatalf("%+v: code %#x in row %d is %g, want %g", s, k, i, got, want[k])
						}
					}
				}
			}
			row := make([]float32, s.Cols)
			m.Row(row, 5)
			for k, got := range row {
				if got != want[k] {
					t.Fatalf("%+v: column %d reads %g, want %g", s, k, got, want[k])
				}
			}
		}
	})
}

// TestSmallIntegers: unit scales make a fast product the integer sum itself, for what comes closest to overflowing 16 bits as
// well.
func TestSmallIntegers(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 1))
		s := Spec{Rows: 16, Cols: 48, Format: FloatE2M1}
		m, codes := NewMatrix(s), make([][]byte, s.Rows)
		for i := range codes {
			codes[i] = make([]byte, s.Cols/2)
			for k := range codes[i] {
				codes[i][k] = []byte{0x77, 0xff, 0x7f, 0xf7, byte(r.Uint32())}[min(i, 4)]
			}
			m.SetSmall(i, codes[i], []float32{2, 2, 2}) // halves are 1
		}
		x := randomRows(r, 14, s.Cols)
		for j, row := range x {
			for k := range row {
				row[k] = float32([]int{127, -127, 127 * (1 - 2*(k%2)), r.IntN(255) - 127}[min(j, 3)])
			}
			row[0], row[16], row[32] = 127, 127, 127 // the scale is 1
		}
		y := make([]float32, len(x)*s.Rows)
		m.Mul(y, s.Rows, acts(Fast, x, 16), 0, len(x), 0, 1)
		for j, row := range x {
			for i := range s.Rows {
				want := 0
				for k, q := range row {
					want += int(2*quant.E2M1(nibble(codes[i], k))) * int(q)
				}
				if int(y[j*s.Rows+i]) != want {
					t.Fatalf("row %d output %d: %g, want %d", j, i, y[j*s.Rows+i], want)
				}
			}
		}
	})
}

// TestNoNumbers: a code that is no number makes every product with its row none, packed either way, and no other.
func TestNoNumbers(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		s := Spec{Rows: 16, Cols: 96, Format: FloatE4M3}
		r := rand.New(rand.NewPCG(8, 1))
		m, packed := NewMatrix(s), NewMatrix(s)
		var rows [PanelRows][]byte
		var scales [PanelRows][]float32
		for i := range rows {
			rows[i], scales[i], _ = randomSmall(r, s, false)
			if i == 3 {
				rows[i][40] = 0xff
			}
			m.SetSmall(i, rows[i], scales[i])
		}
		var p Packer
		p.Reset(packed, FormE4M3, 8)
		p.Pack(0, &rows, &scales)
		a := acts(Floats, randomRows(r, 2, s.Cols), 0)
		y, z := make([]float32, 2*s.Rows), make([]float32, 2*s.Rows)
		m.Mul(y, s.Rows, a, 0, 2, 0, 1)
		packed.Mul(z, s.Rows, a, 0, 2, 0, 1)
		for i, f := range y {
			if nan := f != f; nan != (i%s.Rows == 3) {
				t.Errorf("output %d is %g", i, f)
			}
		}
		equal(t, "packed", z, y)
	})
}
