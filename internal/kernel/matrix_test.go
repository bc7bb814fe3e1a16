package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"hearth/internal/quant"
)

var codeFormats = []Format{Codes4, Codes8, Codes2, Codes3, Codes5, Codes6, CodesE2M1}

// top is the largest code.
func (f Format) top() uint8 {
	if f == CodesE2M1 {
		return 24
	}
	return uint8(1<<f.bits() - 1)
}

// randomCode is a code of the format.
func randomCode(r *rand.Rand, f Format) uint8 {
	if f == CodesE2M1 {
		return e2m1Codes12[r.IntN(16)]
	}
	return uint8(r.IntN(int(f.top()) + 1))
}

// specs are the matrix shapes under test; code formats at every group size, widths odd in panels.
func specs() []Spec {
	var out []Spec
	for _, f := range codeFormats {
		for _, g := range []int{32, 64, 128} {
			for _, s := range []ScaleKind{ScaleBF16, ScaleF32} {
				for _, rows := range []int{1, 16, 35} {
					out = append(out, Spec{rows, g, f, g, s}, Spec{rows, 3 * g, f, g, s})
				}
			}
		}
	}
	for _, f := range []Format{FloatE2M1, FloatE4M3} {
		for _, units := range []int{1, 2, 3, 8} {
			out = append(out, Spec{Rows: 35, Cols: units * f.unit(), Format: f}, Spec{Rows: 16, Cols: units * f.unit(), Format: f})
		}
	}
	for _, f := range []Format{DenseBF16, DenseF32} {
		for _, cols := range []int{1, 2, 3, 4, 5, 7, 8, 31, 64, 130} {
			out = append(out, Spec{Rows: 35, Cols: cols, Format: f}, Spec{Rows: 16, Cols: cols, Format: f})
		}
	}
	return out
}

// NewMatrix is that of Memory on the heap.
func NewMatrix(s Spec) *Matrix { return newMatrix(s, AlignedBytes) }

// weights is a random matrix with the exact values it holds.
type weights struct {
	*Matrix
	ref [][]float64
}

func randomWeights(r *rand.Rand, s Spec) weights {
	w := weights{Matrix: NewMatrix(s)}
	for i := range s.Rows {
		ref := make([]float64, s.Cols)
		switch {
		case s.Format.small():
			codes, scales, row := randomSmall(r, s, s.Format == FloatE4M3 && i == 0)
			w.SetSmall(i, codes, scales)
			for k, f := range row {
				ref[k] = float64(f)
			}
		case w.Dense():
			row := randomFloats(r, s.Cols)
			if s.Format == DenseBF16 {
				half := make([]uint16, s.Cols)
				ToBF16(half, row)
				FromBF16(row, half)
				w.SetBF16(i, half)
			} else {
				w.SetFloats(i, row)
			}
			for k, f := range row {
				ref[k] = float64(f)
			}
		default:
			codes := make([]uint8, s.Cols)
			for k := range codes {
				codes[k] = randomCode(r, s.Format)
				if i == 0 {
					codes[k] = s.Format.top() // the row that saturates 16-bit sums if anything does
				}
			}
			scales, biases := randomFloats(r, s.Cols/s.Group), randomFloats(r, s.Cols/s.Group)
			if s.Scales == ScaleBF16 {
				roundBF16(scales)
				roundBF16(biases)
			}
			w.SetRow(i, codes, scales, biases)
			for k, c := range codes {
				ref[k] = float64(c)*float64(scales[k/s.Group]) + float64(biases[k/s.Group])
			}
		}
		w.ref = append(w.ref, ref)
	}
	return w
}

// randomSmall is a row of small floats as stored, its scales, and the numbers. With subnormal all codes are below e4m3's normal
// numbers.
func randomSmall(r *rand.Rand, s Spec, subnormal bool) (codes []byte, scales, row []float32) {
	n := s.Format.unit()
	codes, scales, row = make([]byte, s.Cols*s.Format.bits()/8), randomScales(r, s.Cols/n), make([]float32, s.Cols)
	for i := range codes {
		for codes[i] = byte(r.Uint32()); s.Format == FloatE4M3 && noNumber(codes[i]); {
			codes[i] = byte(r.Uint32())
		}
		if subnormal {
			codes[i] &= 0x87
		}
	}
	for k := range row {
		if s.Format == FloatE2M1 {
			row[k] = quant.E2M1(nibble(codes, k)) * scales[k/n]
		} else {
			row[k] = quant.E4M3(codes[k]) * scales[k/n]
		}
	}
	return codes, scales, row
}

func randomFloats(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func TestMatrixRow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, s := range specs() {
		w := randomWeights(r, s)
		row := make([]float32, s.Cols)
		for i := range s.Rows {
			w.Row(row, i)
			for k, f := range row {
				if math.Abs(float64(f)-w.ref[i][k]) > 1e-4*(1+math.Abs(w.ref[i][k])) {
					t.Fatalf("%+v row %d col %d: %g, want %g", s, i, k, f, w.ref[i][k])
				}
			}
		}
	}
}

// exactSums gives Σ a·b and Σ |a·b| in float64 for activation row r, weight row i, with the activations the product
// really sees: the rounded ones in Fast, Fine and Half.
func exactSums(a *Acts, r int, x []float32, ref []float64) (sum, abs float64) {
	for k, w := range ref {
		v := float64(x[k])
		switch a.prec {
		case Half:
			v = float64(widen(a.half[r*a.stride+k]))
		case Fast, Fine:
			v = 0
			for i := range a.prec.forms() {
				row := r*a.prec.forms() + i
				v += float64(a.q[row*a.stride+k]) * float64(a.scale[row*a.groups+k/a.group])
			}
		case Outliers:
			at := r*a.groups + k/a.group
			v = float64(a.q[r*a.stride+k])
			if a.quads[at]>>(k%a.group/4)&1 != 0 {
				v += highUnit * float64(a.high[r*a.stride+k])
			}
			v *= float64(a.scale[at])
		}
		sum += v * w
		abs += math.Abs(v * w)
	}
	return sum, abs
}

// codeSums is Σ|code·scale·x| + Σ|bias·x|: what rounding errors of a code format scale with, since the two terms are
// summed apart.
func codeSums(w weights, a *Acts, r, i int, x []float32, abs float64) float64 {
	if !w.coded() {
		return abs
	}
	var out float64
	grp := make([]float32, w.spec.Cols)
	w.Row(grp, i)
	at := w.data[w.panelAt(i):][:w.panel]
	for k := range grp {
		b := float64(w.scale(at[k/w.spec.Group*w.group+w.codeBytes():], PanelRows+i%PanelRows))
		out += math.Abs(float64(x[k])) * (math.Abs(float64(grp[k])-b) + math.Abs(b))
	}
	return 1.01*out + abs
}

func TestMulAgainstFloat64(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(2, 2))
		for _, s := range specs() {
			w := randomWeights(r, s)
			for _, prec := range precisions(w.Matrix) {
				const rows = 5
				x := randomRows(r, rows, s.Cols)
				a := acts(prec, x, w.Group())
				y := make([]float32, rows*s.Rows)
				w.Mul(y, s.Rows, a, 0, rows, 0, w.Panels())
				for m := range rows {
					for i := range s.Rows {
						want, abs := exactSums(a, m, x[m], w.ref[i])
						bound := 4 * float64(s.Cols+8) * 0x1p-24 * codeSums(w, a, m, i, x[m], abs)
						if got := float64(y[m*s.Rows+i]); !(math.Abs(got-want) <= bound) {
							t.Fatalf("%+v precision %d row %d output %d: %g, want %g ± %g", s, prec, m, i, got, want, bound)
						}
					}
				}
			}
		}
	})
}

// TestMulRowAlone holds the promise that a row's bits do not depend on the other rows, the tile or the panel range.
func TestMulRowAlone(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 3))
		for _, s := range specs() {
			w := randomWeights(r, s)
			for _, prec := range precisions(w.Matrix) {
				const most = 29
				x := randomRows(r, most, s.Cols)
				all := acts(prec, x, w.Group())
				alone := make([]float32, most*s.Rows)
				for m := range most {
					for p := range w.Panels() {
						one := acts(prec, x[m:m+1], w.Group())
						w.Mul(alone[m*s.Rows:], s.Rows, one, 0, 1, p, p+1)
					}
				}
				step := 1
				if Current() == "generic" {
					step = 14 // it takes rows one by one
				}
				for rows := 1; rows <= most; rows += step {
					first := (most - rows) / 2
					y := make([]float32, most*s.Rows)
					w.Mul(y, s.Rows, all, first, first+rows, 0, w.Panels())
					for i := first * s.Rows; i < (first+rows)*s.Rows; i++ {
						if math.Float32bits(y[i]) != math.Float32bits(alone[i]) {
							t.Fatalf("%+v precision %d: row %d output %d is %x among %d rows and %x alone", s, prec,
								i/s.Rows, i%s.Rows, math.Float32bits(y[i]), rows, math.Float32bits(alone[i]))
						}
					}
				}
			}
		}
	})
}

// TestPlanesAreBytes: codes in planes give the bits that the same codes give as bytes, in either precision.
func TestPlanesAreBytes(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(6, 3))
		for _, s := range specs() {
			if !s.Format.planes() {
				continue
			}
			wider := s
			wider.Format = Codes8
			m, b := NewMatrix(s), NewMatrix(wider)
			codes, got, want := make([]uint8, s.Cols), make([]float32, s.Cols), make([]float32, s.Cols)
			for i := range s.Rows {
				for k := range codes {
					codes[k] = randomCode(r, s.Format)
				}
				scales, biases := randomFloats(r, s.Cols/s.Group), randomFloats(r, s.Cols/s.Group)
				if s.Scales == ScaleBF16 {
					roundBF16(scales)
					roundBF16(biases)
				}
				m.SetRow(i, codes, scales, biases)
				b.SetRow(i, codes, scales, biases)
				m.Row(got, i)
				b.Row(want, i)
				equal(t, fmt.Sprintf("%+v row %d", s, i), got, want)
			}
			for _, prec := range precisions(m) {
				for _, rows := range []int{1, 2, 3, 7, 13} {
					a := acts(prec, randomRows(r, rows, s.Cols), s.Group)
					y, z := make([]float32, rows*s.Rows), make([]float32, rows*s.Rows)
					m.Mul(y, s.Rows, a, 0, rows, 0, m.Panels())
					b.Mul(z, s.Rows, a, 0, rows, 0, b.Panels())
					equal(t, fmt.Sprintf("%+v precision %d, %d rows", s, prec, rows), y, z)
				}
			}
		}
	})
}

func roundBF16(x []float32) {
	for i, f := range x {
		x[i] = math.Float32frombits(uint32(bf16(f)) << 16)
	}
}

// TestMulManyRows holds the same promise where rows go through the caches in blocks, as those of a prompt do.
func TestMulManyRows(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(4, 3))
		for _, s := range []Spec{
			{Rows: 40, Cols: 2048, Format: Codes4, Group: 64},
			{Rows: 24, Cols: 2048, Format: Codes8, Group: 128, Scales: ScaleF32},
			{Rows: 24, Cols: 1024, Format: DenseBF16},
			{Rows: 24, Cols: 1600, Format: Codes6, Group: 64},
			{Rows: 24, Cols: 1088, Format: Codes5, Group: 32, Scales: ScaleF32},
			{Rows: 24, Cols: 1024, Format: Codes3, Group: 128},
			{Rows: 40, Cols: 1152, Format: Codes2, Group: 64},
			{Rows: 24, Cols: 1024, Format: CodesE2M1, Group: 32},
			{Rows: 40, Cols: 1040, Format: FloatE2M1},
			{Rows: 24, Cols: 1056, Format: FloatE4M3},
		} {
			w := randomWeights(r, s)
			for _, prec := range precisions(w.Matrix) {
				const rows = 512
				all := acts(prec, randomRows(r, rows, s.Cols), w.Group())
				y, alone := make([]float32, rows*s.Rows), make([]float32, rows*s.Rows)
				for from := 0; from < rows; {
					to := min(from+[]int{8, 12, 64, 200, 512}[r.IntN(5)], rows)
					w.Mul(y, s.Rows, all, from, to, 0, w.Panels())
					from = to
				}
				for _, m := range []int{0, 1, 2, 7, 8, 11, 29, 30, 62, 63, 64, 65, 127, 200, 510, 511} {
					w.Mul(alone, s.Rows, all, m, m+1, 0, w.Panels())
					equal(t, fmt.Sprintf("%+v precision %d row %d", s, prec, m), y[m*s.Rows:][:s.Rows], alone[m*s.Rows:][:s.Rows])
				}
			}
		}
	})
}

func precisions(m *Matrix) []Precision {
	switch {
	case m.Format() == DenseBF16:
		return []Precision{Floats, Half}
	case m.Dense():
		return []Precision{Floats}
	}
	if m.Format() == FloatE2M1 {
		return []Precision{Fast, Floats, Fine}
	}
	return []Precision{Fast, Floats, Fine, Outliers}
}

func randomRows(r *rand.Rand, rows, cols int) [][]float32 {
	x := make([][]float32, rows)
	for i := range x {
		x[i] = randomFloats(r, cols)
		if i%3 > 0 { // rows with outliers beside plain ones
			for range 1 + cols/50 {
				x[i][r.IntN(cols)] *= float32(math.Exp(r.Float64() * 8))
			}
		}
	}
	return x
}

func acts(prec Precision, x [][]float32, group int) *Acts {
	var a Acts
	a.Reset(prec, len(x), len(x[0]), group)
	for i, row := range x {
		a.SetRow(i, row)
	}
	return &a
}

// eachImplementation runs test under every implementation this machine can execute, and restores the choice.
func eachImplementation(t *testing.T, test func(t *testing.T)) {
	before := Current()
	t.Cleanup(func() {
		if err := Use(before); err != nil {
			t.Fatal(err)
		}
	})
	for _, name := range Implementations() {
		if err := Use(name); err != nil {
			t.Fatal(err)
		}
		t.Run(name, test)
	}
}

func TestNewMatrixRefuses(t *testing.T) {
	for _, s := range []Spec{{}, {Rows: 1, Cols: 33, Group: 32}, {Rows: 1, Cols: 48, Group: 48}, {Rows: 1, Cols: 1, Format: 99},
		{Rows: 1, Cols: 24, Format: FloatE2M1}, {Rows: 1, Cols: 48, Format: FloatE4M3}} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Fatalf("no panic for %+v", s)
				}
			}()
			NewMatrix(s)
		})
	}
}
