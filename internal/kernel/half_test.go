package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// halfKinds draw bfloat16 numbers of all sizes: sums of some lie below the normal numbers, those of others above.
var halfKinds = map[string]func(r *rand.Rand) uint16{
	"all normal": func(r *rand.Rand) uint16 { return uint16(r.IntN(2)<<15 | (1+r.IntN(254))<<7 | r.IntN(128)) },
	"usual":      func(r *rand.Rand) uint16 { return uint16(r.IntN(2)<<15 | (110+r.IntN(30))<<7 | r.IntN(128)) },
	"denormal":   func(r *rand.Rand) uint16 { return uint16(r.IntN(2)<<15 | r.IntN(128)) },
	"tiny":       func(r *rand.Rand) uint16 { return uint16(r.IntN(2)<<15 | (58+r.IntN(8))<<7 | r.IntN(128)) },
	"huge":       func(r *rand.Rand) uint16 { return uint16(r.IntN(2)<<15 | (188+r.IntN(6))<<7 | r.IntN(128)) },
	"infinite":   func(r *rand.Rand) uint16 { return uint16(r.IntN(2)<<15 | 255<<7) },
	"zero":       func(r *rand.Rand) uint16 { return uint16(r.IntN(2) << 15) },
}

// TestHalfIsGeneric: what the CPU's own products of bfloat16 numbers give is, to the bit, what Go says they do.
func TestHalfIsGeneric(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		for weights, w := range halfKinds {
			for numbers, x := range halfKinds {
				t.Run(weights+" times "+numbers, func(t *testing.T) { checkHalf(t, w, x) })
			}
		}
	})
}

func checkHalf(t *testing.T, weight, number func(*rand.Rand) uint16) {
	r := rand.New(rand.NewPCG(11, 1))
	const rows = 13
	for _, cols := range []int{1, 2, 3, 4, 6, 40} {
		m := NewMatrix(Spec{Rows: 32, Cols: cols, Format: DenseBF16})
		draw := func(of func(*rand.Rand) uint16) []uint16 {
			h := make([]uint16, cols)
			for i := range h {
				h[i] = of(r)
			}
			return h
		}
		for i := range m.Rows() {
			m.SetBF16(i, draw(weight))
		}
		x := randomRows(r, rows, cols)
		for _, row := range x {
			FromBF16(row, draw(number))
		}
		a := acts(Half, x, 0)
		got, want := make([]float32, rows*m.Rows()), make([]float32, rows*m.Rows())
		m.Mul(got, m.Rows(), a, 0, rows, 0, m.Panels())
		for i := range rows {
			mulGeneric(m, want[i*m.Rows():], a, i, 0, m.Panels())
		}
		for i, f := range want {
			if f != f && got[i] != got[i] {
				got[i] = f // one NaN is like another
			}
			if math.Float32bits(got[i]) != math.Float32bits(f) {
				t.Fatalf("%d columns, row %d output %d: %x, want %x", cols, i/m.Rows(), i%m.Rows(), math.Float32bits(got[i]), math.Float32bits(f))
			}
		}
	}
}

// TestForm: nothing changes where bfloat16 has no products, nor for any other weights or precision.
func TestForm(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		fast := map[bool]Precision{false: Floats, true: Half}[Current() == "avx512bf16"]
		for _, c := range []struct {
			f          Format
			from, want Precision
		}{
			{DenseBF16, Fast, fast}, {DenseBF16, Fine, Floats}, {DenseBF16, Floats, Floats}, {DenseF32, Fast, Floats}, {FloatE4M3, Fast, Floats},
			{Codes4, Fast, Fast}, {Codes4, Fine, Fine}, {Codes4, Floats, Floats}, {FloatE2M1, Fast, Fast},
		} {
			if got := c.f.Form(c.from); got != c.want {
				t.Errorf("format %d, precision %d: form %d, want %d", c.f, c.from, got, c.want)
			}
		}
	})
}

// TestHalfRefuses: no other matrix knows what to do with such activations.
func TestHalfRefuses(t *testing.T) {
	for _, f := range []Format{DenseF32, FloatE4M3} {
		t.Run(fmt.Sprint(f), func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Fatal("no panic")
				}
			}()
			m := NewMatrix(Spec{Rows: 16, Cols: 32, Format: f})
			m.Mul(make([]float32, 16), 16, acts(Half, [][]float32{make([]float32, 32)}, 0), 0, 1, 0, 1)
		})
	}
}
