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
	benchFormats(b, Exact, Codes4, Codes8, Codes2, Codes3, Codes5, Codes6, CodesE2M1, FloatE2M1, FloatE4M3, DenseBF16, DenseF32)
}

// BenchmarkSmall is the same for small floats and rounded activations.
func BenchmarkSmall(b *testing.B) { benchFormats(b, Fast, FloatE2M1) }

func benchFormats(b *testing.B, prec Precision, formats ...Format) {
	for _, f := range formats {
		for _, cols := range []int{1024, 3072} {
			m := benchMatrix(b, f, 128, cols)
			for _, rows := range []int{1, 2, 4, 8, 12, 63, 512} {
				b.Run(fmt.Sprintf("%s/format=%d/cols=%d/rows=%d", Current(), f, cols, rows), func(b *testing.B) {
					a := acts(prec, randomRows(rand.New(rand.NewPCG(1, 9)), rows, cols), m.Group())
					y := make([]float32, rows*m.Rows())
					best := time.Duration(math.MaxInt64)
					for b.Loop() {
						start := time.Now()
						m.Mul(y, m.Rows(), a, 0, rows, 0, m.Panels())
						best = min(best, time.Since(start))
					}
					b.ReportMetric(2*float64(rows*m.Rows()*cols)/best.Seconds()/1e9, "Gop/s")
					b.ReportMetric(float64(m.Bytes())/best.Seconds()/1e9, "GB/s")
				})
			}
		}
	}
}
