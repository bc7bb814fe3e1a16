package kernel

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"testing"
)

// TestRevisions: products that get other bits get another revision.
func TestRevisions(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("compilers for other processors fuse operations of the portable kernels")
	}
	t.Cleanup(func() { _ = Use("") })
	if err := Use("generic"); err != nil {
		t.Fatal(err)
	}
	for prec, want := range map[Precision]string{Fast: "1: c7d7cbb7e47d22a1", Floats: "1: 8972e86fece3d886", Fine: "1: 12019b6e99cf5770", Outliers: "3: da7b5f6c1ec86a9a"} {
		h := fnv.New64a()
		r := rand.New(rand.NewPCG(61, 1))
		for _, f := range []Format{Codes4, Codes8} {
			w := NewMatrix(Spec{Rows: 32, Cols: 512, Format: f, Group: 64})
			codes, scales, biases := make([]uint8, 512), make([]float32, 8), make([]float32, 8)
			for i := range 32 {
				for k := range codes {
					codes[k] = uint8(r.Uint32()) & (1<<f.bits() - 1)
				}
				for g := range scales {
					scales[g], biases[g] = float32(1+r.IntN(99))/128, -float32(r.IntN(99))/16
				}
				w.SetRow(i, codes, scales, biases)
			}
			x := [][]float32{make([]float32, 512), make([]float32, 512)}
			for k := range x[0] {
				x[0][k], x[1][k] = r.Float32()-0.5, r.Float32()-0.5
			}
			x[1][70], x[1][300] = 40, -90
			y := make([]float32, 2*32)
			w.Mul(y, 32, acts(prec, x, 64), 0, 2, 0, w.Panels())
			fmt.Fprintf(h, "%x", y)
		}
		if got := fmt.Sprintf("%d: %x", revisions[prec], h.Sum64()); got != want {
			t.Errorf("precision %d: %s, want %s: raise its revision if the bits are to change", prec, got, want)
		}
	}
}
