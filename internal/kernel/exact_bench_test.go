package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkExact reports arithmetic of products with float activations, two operations per weight and row, in the shortest of all
// passes over a matrix in the second-level cache: others that share the machine make most of them longer.
func BenchmarkExact(b *testing.B) {
	for _, f := range []Format{Codes4, Codes8, Codes2, Codes3, Codes5, Codes6, CodesE2M1, DenseBF16, DenseF32} {
		for _, cols := range []int{1024, 3072} {
			m := benchMatrix(b, f, 128, cols)
			for _, rows := range []int{1, 2, 4, 8, 12, 63, 512} {
				b.Run(fmt.Sprintf("%s/format=%d/cols=%d/rows=%d", Current(), f, cols, rows), func(b *testing.B) {
					a := acts(Exact, randomRows(rand.New(rand.NewPCG(1, 9)), rows, cols), m.Group())
					y := make([]float32, rows*m.Rows())
					best := time.Duration(math.MaxInt64)
					for b.Loop() {
						start := time.Now()
						m.Mul(y, m.Rows(), a, 0, rows, 0, m.Panels())
						best = min(best, time.Since(start))
					}
					b.ReportMetric(2*float64(rows*m.Rows()*cols)/best.Seconds()/1e9, "GFLOP/s")
					b.ReportMetric(float64(m.Bytes())/best.Seconds()/1e9, "GB/s")
				})
			}
		}
	}
}
