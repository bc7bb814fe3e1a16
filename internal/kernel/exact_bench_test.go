package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkExact reports arithmetic of products with float activations: two operations per weight and row.
func BenchmarkExact(b *testing.B) {
	for _, f := range []Format{Codes4, Codes8, Codes2, Codes3, Codes5, Codes6, CodesE2M1, DenseBF16, DenseF32} {
		for _, cols := range []int{1024, 3072} {
			m := benchMatrix(f, 1024, cols)
			for _, rows := range []int{1, 2, 4, 8, 12, 63, 512} {
				b.Run(fmt.Sprintf("%s/format=%d/cols=%d/rows=%d", Current(), f, cols, rows), func(b *testing.B) {
					a := acts(Exact, randomRows(rand.New(rand.NewPCG(1, 9)), rows, cols), m.Group())
					y := make([]float32, rows*m.Rows())
					for b.Loop() {
						for p := 0; p < m.Panels(); p += 16 {
							m.Mul(y, m.Rows(), a, 0, rows, p, min(p+16, m.Panels()))
						}
					}
					b.ReportMetric(2*float64(rows*m.Rows()*cols)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
					b.ReportMetric(float64(m.Bytes())*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
				})
			}
		}
	}
}
