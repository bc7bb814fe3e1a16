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
