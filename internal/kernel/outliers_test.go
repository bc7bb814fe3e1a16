package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// TestOutliers: a row in which one channel is large keeps the resolution of the others, a plain row has the bits of Fast, and
// neither changes the other.
func TestOutliers(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(51, 1))
		for _, s := range specs() {
			if s.Format == FloatE2M1 || s.Group == 0 || s.Cols == s.Group || s.Rows == 1 {
				continue // a group that is all of a row stands out of nothing, and errors of one output are a matter of luck
			}
			w := randomWeights(r, s)
			plain, large := make([]float32, s.Cols), make([]float32, s.Cols)
			for k := range plain { // largest numbers are alike
				plain[k] = float32(k%7-3) / 3
				large[k] = float32(r.NormFloat64())
			}
			large[5] = 100
			x := [][]float32{plain, large}
			y := map[Precision][]float32{}
			var squares [Outliers + 1]float64
			for _, prec := range []Precision{Fast, Outliers} {
				y[prec] = make([]float32, 2*s.Rows)
				w.Mul(y[prec], s.Rows, acts(prec, x, w.Group()), 0, 2, 0, w.Panels())
				for i := range s.Rows {
					want := 0.0
					for k, v := range large {
						want += float64(v) * w.ref[i][k]
					}
					e := float64(y[prec][s.Rows+i]) - want
					squares[prec] += e * e
				}
			}
			equal(t, fmt.Sprintf("%+v: the plain row", s), y[Outliers][:s.Rows], y[Fast][:s.Rows])
			if squares[Outliers]*5 > squares[Fast] {
				t.Errorf("%+v: squares of errors %.2g, of fast %.2g", s, squares[Outliers], squares[Fast])
			}
			for i := range x {
				alone := make([]float32, s.Rows)
				w.Mul(alone, s.Rows, acts(Outliers, x[i:i+1], w.Group()), 0, 1, 0, w.Panels())
				equal(t, fmt.Sprintf("%+v: row %d alone", s, i), alone, y[Outliers][i*s.Rows:][:s.Rows])
			}
		}
	})
}

// TestOutliersCopied: copied rows multiply as those that are set.
func TestOutliersCopied(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 2))
	w := randomWeights(r, Spec{Rows: 35, Cols: 192, Format: Codes4, Group: 64})
	const rows = 17
	x := randomRows(r, rows, 192)
	from := acts(Outliers, x, 64)
	var to Acts
	to.Reset(Outliers, rows, 192, 64)
	for i := range rows {
		to.CopyRow(i, from, rows-1-i)
	}
	want, got := make([]float32, rows*35), make([]float32, rows*35)
	w.Mul(want, 35, from, 0, rows, 0, w.Panels())
	w.Mul(got, 35, &to, 0, rows, 0, w.Panels())
	for i := range rows {
		equal(t, fmt.Sprint("row ", i), got[i*35:][:35], want[(rows-1-i)*35:][:35])
	}
}

// TestOutliersOfLargeNumbers: numbers whose squares are none are what Fast makes of them.
func TestOutliersOfLargeNumbers(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(51, 6))
		w := randomWeights(r, Spec{Rows: 16, Cols: 256, Format: Codes4, Group: 64})
		for _, size := range []float32{1e20, 1e25, 1e36} {
			x := randomRows(r, 1, 256)
			for k := range x[0] {
				x[0][k] *= size
			}
			x[0][70] *= 90
			fast, got := make([]float32, 16), make([]float32, 16)
			w.Mul(fast, 16, acts(Fast, x, 64), 0, 1, 0, 1)
			w.Mul(got, 16, acts(Outliers, x, 64), 0, 1, 0, 1)
			equal(t, fmt.Sprint("numbers of ", size), got, fast)
		}
	})
}

// TestOutliersOfNoNumbers: rows of zeros, of infinities and of what is no number are what Fast makes of them.
func TestOutliersOfNoNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 3))
	w := randomWeights(r, Spec{Rows: 16, Cols: 128, Format: Codes8, Group: 32})
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	x := randomRows(r, 4, 128)
	clear(x[0])
	x[1][40], x[2][40] = inf, nan
	clear(x[3][32:])
	fast, got := make([]float32, 64), make([]float32, 64)
	w.Mul(fast, 16, acts(Fast, x, 32), 0, 4, 0, 1)
	w.Mul(got, 16, acts(Outliers, x, 32), 0, 4, 0, 1)
	for i, v := range fast {
		if math.IsNaN(float64(v)) != math.IsNaN(float64(got[i])) || i < 16 && v != got[i] {
			t.Errorf("row %d output %d: %g, fast has %g", i/16, i%16, got[i], v)
		}
	}
}

// TestSplitAsGeneric: routines choose what the specification chooses, whatever the numbers are, and leave the same codes.
func TestSplitAsGeneric(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(51, 4))
		chosen := 0
		for i := range 30000 {
			group := 32 << (i % 3)
			x := make([]float32, group)
			for k := range x {
				switch i % 5 {
				case 0:
					x[k] = float32(r.NormFloat64())
				case 1:
					x[k] = float32(r.NormFloat64() * math.Exp(2*r.NormFloat64()))
				case 2:
					x[k] = float32(r.IntN(5) - 2) // many are alike
				case 3:
					x[k] = float32(math.Ldexp(r.Float64()-0.5, r.IntN(200)-100))
				default:
					x[k] = math.Float32frombits(r.Uint32() &^ (1 << 30))
				}
			}
			x[r.IntN(group)] *= float32(math.Exp(4 * r.Float64()))
			var top float32
			for _, v := range x {
				top = max(top, float32(math.Abs(float64(v))))
			}
			var q, high [2][128]int8
			cost := min(float32(math.Exp(-8*r.Float64()))*top*top, math.MaxFloat32)
			got := splitArgs{x: unsafe.Pointer(&x[0]), q: unsafe.Pointer(&q[0]), high: unsafe.Pointer(&high[0]), group: group, cost: cost}
			want := got
			if !splitAsm(&got) {
				t.Skip("no routine")
			}
			want.generic(x, q[1][:group], high[1][:group])
			if want.chosen != 0 {
				chosen++
			} else {
				got.limit, want.limit = 0, 0
			}
			if got != want || q[0] != q[1] || high[0] != high[1] {
				t.Fatalf("case %d: %+v, want %+v of %v; codes %v %v, want %v %v", i, got, want, x, q[0], high[0], q[1], high[1])
			}
		}
		if chosen < 5000 || chosen > 25000 {
			t.Errorf("%d of 30,000 groups are split", chosen)
		}
	})
}
