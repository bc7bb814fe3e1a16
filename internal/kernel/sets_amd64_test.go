//go:build amd64 && !purego

package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestSetsAgree: products add in the same order with every instruction set, so that their bits are the same.
func TestSetsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 3))
	const rows = 14
	for _, s := range specs() {
		w, x := randomWeights(r, s), randomRows(r, rows, s.Cols)
		want := map[Precision][]float32{}
		eachImplementation(t, func(t *testing.T) {
			if Current() == "generic" {
				t.Skip("it may not fuse multiply and add")
			}
			for _, prec := range precisions(w.Matrix) {
				y := make([]float32, rows*s.Rows)
				w.Mul(y, s.Rows, acts(prec, x, w.Group()), 0, rows, 0, w.Panels())
				if want[prec] == nil {
					want[prec] = y
				}
				equal(t, fmt.Sprintf("%+v precision %d", s, prec), y, want[prec])
			}
		})
	}
}

// TestWeightsAhead: how far ahead weights are fetched changes no bit, and asking for what is not there does no harm.
func TestWeightsAhead(t *testing.T) {
	before := weightsAhead
	defer func() { weightsAhead = before }()
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(8, 3))
		for _, f := range append([]Format{DenseBF16, DenseF32, FloatE2M1, FloatE4M3}, codeFormats...) {
			w := randomWeights(r, Spec{Rows: 40, Cols: 128, Format: f, Group: 32})
			for _, prec := range precisions(w.Matrix) {
				a := acts(prec, randomRows(r, 5, 128), w.Group())
				var want []float32
				for _, weightsAhead = range []int{0, 8192, 1 << 40} {
					y := make([]float32, 5*40)
					w.Mul(y, 40, a, 0, 5, 0, w.Panels())
					w.Mul(y, 40, a, 1, 2, 0, w.Panels())
					if want == nil {
						want = y
					}
					equal(t, fmt.Sprintf("format %d precision %d, %d bytes ahead", f, prec, weightsAhead), y, want)
				}
			}
		}
	})
}
