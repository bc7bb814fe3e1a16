//go:build amd64 && !purego

package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestExactSetsAgree: exact products add in the same order with AVX2 and AVX-512, so that their bits are the same.
func TestExactSetsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 3))
	const rows = 14
	for _, s := range specs() {
		w, x := randomWeights(r, s), randomRows(r, rows, s.Cols)
		var want []float32
		eachImplementation(t, func(t *testing.T) {
			if Current() == "generic" {
				t.Skip("it may not fuse multiply and add")
			}
			y := make([]float32, rows*s.Rows)
			w.Mul(y, s.Rows, acts(Exact, x, w.Group()), 0, rows, 0, w.Panels())
			if want == nil {
				want = y
			}
			equal(t, fmt.Sprintf("%+v", s), y, want)
		})
	}
}
