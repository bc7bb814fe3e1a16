package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// FuzzMul draws a shape from its arguments and the numbers from a seed, and holds every implementation to the float64
// bound, to a row's independence from its neighbours and, for integer sums, to the exact value.
func FuzzMul(f *testing.F) {
	f.Add(uint64(1), uint8(0), uint8(1), uint8(3), uint16(17), uint8(2))
	f.Add(uint64(2), uint8(1), uint8(0), uint8(1), uint16(1), uint8(13))
	f.Add(uint64(3), uint8(2), uint8(2), uint8(9), uint16(33), uint8(5))
	f.Add(uint64(4), uint8(3), uint8(2), uint8(255), uint16(16), uint8(1))
	f.Add(uint64(5), uint8(6), uint8(1), uint8(3), uint16(47), uint8(11))
	f.Add(uint64(6), uint8(8), uint8(0), uint8(4), uint16(20), uint8(14))
	f.Add(uint64(7), uint8(9), uint8(0), uint8(4), uint16(20), uint8(14))
	f.Add(uint64(8), uint8(10), uint8(0), uint8(2), uint16(33), uint8(3))
	f.Fuzz(func(t *testing.T, seed uint64, format, group, cols uint8, outputs uint16, rows uint8) {
		s := Spec{Rows: int(outputs)%70 + 1, Cols: int(cols) + 1, Format: Format(format) % (FloatE4M3 + 1), Scales: ScaleKind(seed % 2)}
		switch s.Format {
		case DenseBF16, DenseF32:
		case FloatE2M1, FloatE4M3:
			s.Cols = (int(cols)%9 + 1) * s.Format.unit()
		default:
			s.Group = 32 << (group % 3)
			s.Cols = (int(cols)%5 + 1) * s.Group
		}
		r := rand.New(rand.NewPCG(seed, 41))
		w := randomWeights(r, s)
		x := randomRows(r, int(rows)%15+1, s.Cols)
		for _, prec := range precisions(w.Matrix) {
			fuzzProduct(t, w, prec, x)
		}
	})
}

func fuzzProduct(t *testing.T, w weights, prec Precision, x [][]float32) {
	before := Current()
	defer func() {
		if err := Use(before); err != nil {
			t.Fatal(err)
		}
	}()
	for _, name := range Implementations() {
		if err := Use(name); err != nil {
			t.Fatal(err)
		}
		a := acts(prec, x, w.Group())
		y := make([]float32, len(x)*w.Rows())
		w.Mul(y, w.Rows(), a, 0, len(x), 0, w.Panels())
		m := len(x) - 1
		alone := make([]float32, len(y))
		w.Mul(alone, w.Rows(), a, m, m+1, 0, w.Panels())
		for i := range w.Rows() {
			got := y[m*w.Rows()+i]
			if math.Float32bits(got) != math.Float32bits(alone[m*w.Rows()+i]) {
				t.Fatalf("%s %+v precision %d: output %d differs alone", name, w.spec, prec, i)
			}
			want, abs := exactSums(a, m, x[m], w.ref[i])
			bound := 4 * float64(w.Cols()+8) * 0x1p-24 * codeSums(w, a, m, i, x[m], abs)
			if !(math.Abs(float64(got)-want) <= bound) {
				t.Fatalf("%s %+v precision %d output %d: %g, want %g ± %g", name, w.spec, prec, i, got, want, bound)
			}
		}
	}
}

// FuzzAttend draws shapes and bounds from its arguments and the numbers from a seed: see attnCase.check.
func FuzzAttend(f *testing.F) {
	f.Add(uint64(1), uint8(0), uint8(1), uint8(1), uint8(2), uint8(64), uint8(64), uint8(0))
	f.Add(uint64(2), uint8(1), uint8(130), uint8(30), uint8(1), uint8(32), uint8(96), uint8(70))
	f.Add(uint64(3), uint8(3), uint8(65), uint8(7), uint8(3), uint8(80), uint8(16), uint8(3))
	f.Add(uint64(4), uint8(4), uint8(200), uint8(2), uint8(4), uint8(5), uint8(33), uint8(200))
	f.Add(uint64(5), uint8(5), uint8(140), uint8(20), uint8(2), uint8(1), uint8(2), uint8(90))
	f.Fuzz(func(t *testing.T, seed uint64, typ, n, rows, heads, kdim, vdim, window uint8) {
		types := append(cacheTypes, CacheI16)
		size, which, kwidth, vwidth := int(n)+1, types[int(typ)%len(types)], int(kdim)%100+1, int(vdim)%100+1
		if which == CacheI16 {
			kwidth, vwidth = i16Columns*(int(kdim)%4+1), i16Columns*(int(vdim)%4+1)
		}
		c := randomAttn(rand.New(rand.NewPCG(seed, 43)), which, size, min(size, int(rows)%40+1), int(heads)%9+1, kwidth, vwidth)
		if c.i16 = which == CacheI16; c.i16 {
			for i := range c.q {
				c.q[i] *= 8 / float32(math.Sqrt(float64(kwidth)))
			}
		}
		if window > 0 {
			c = c.window(int(window))
		}
		if seed%3 == 0 {
			c.cap = 1.5
		}
		before := Current()
		defer func() {
			if err := Use(before); err != nil {
				t.Fatal(err)
			}
		}()
		for _, name := range Implementations() {
			if err := Use(name); err != nil {
				t.Fatal(err)
			}
			c.check(t)
		}
	})
}

// TestIntegerSumsAreExact multiplies with unit scales and no biases, so that a fast product is the integer sum itself,
// for the codes and activations that come closest to overflowing 16 bits.
func TestIntegerSumsAreExact(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(42, 1))
		for _, f := range codeFormats {
			top := int(f.top())
			for _, group := range []int{32, 64, 128} {
				for _, pick := range []func() int{
					func() int { return top }, func() int { return 0 }, func() int { return r.IntN(2) * top }, func() int { return int(randomCode(r, f)) },
				} {
					checkIntegers(t, r, Spec{Rows: 16, Cols: group, Format: f, Group: group}, pick)
				}
			}
		}
	})
}

func checkIntegers(t *testing.T, r *rand.Rand, s Spec, pick func() int) {
	m := NewMatrix(s)
	codes := make([][]uint8, s.Rows)
	for i := range codes {
		codes[i] = make([]uint8, s.Cols)
		for k := range codes[i] {
			codes[i][k] = uint8(pick())
		}
		m.SetRow(i, codes[i], []float32{1}, nil)
	}
	const rows = 9
	x := randomRows(r, rows, s.Cols)
	for k := range s.Cols {
		x[0][k], x[1][k], x[2][k] = 127, -127, 127*float32(1-2*(k%2))
	}
	for _, row := range x {
		row[0] = 127 // the scale is 1
		for k := range row {
			row[k] = min(127, max(-127, float32(math.RoundToEven(float64(row[k]*60)))))
		}
		row[0] = 127
	}
	y := make([]float32, rows*s.Rows)
	m.Mul(y, s.Rows, acts(Fast, x, s.Group), 0, rows, 0, 1)
	for j, row := range x {
		for i, c := range codes {
			want := 0
			for k := range c {
				want += int(c[k]) * int(row[k])
			}
			if int(y[j*s.Rows+i]) != want {
				t.Fatalf("%+v row %d output %d: %g, want %d", s, j, i, y[j*s.Rows+i], want)
			}
		}
	}
}
