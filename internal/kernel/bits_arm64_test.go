//go:build !purego

package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// asGeneric holds every implementation to the bits of the generic one, which f's result has under it: Go fuses
// multiply-adds on arm64 wherever the assembly does.
func asGeneric(t *testing.T, what string, f func() []float32) {
	t.Helper()
	before := Current()
	defer func() {
		if err := Use(before); err != nil {
			t.Fatal(err)
		}
	}()
	var want []float32
	for _, name := range Implementations() {
		if err := Use(name); err != nil {
			t.Fatal(err)
		}
		if got := f(); want == nil {
			want = got
		} else {
			equal(t, name+" "+what, got, want)
		}
	}
}

func TestProductsAsGeneric(t *testing.T) {
	r := rand.New(rand.NewPCG(61, 1))
	counts := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 17, 22}
	next := 0
	for _, s := range specs() {
		if s.Rows != 35 { // whole panels and one that is not
			continue
		}
		w := randomWeights(r, s)
		for _, prec := range precisions(w.Matrix) {
			for range 2 {
				rows := counts[next%len(counts)]
				next++
				a := acts(prec, randomRows(r, rows, s.Cols), w.Group())
				asGeneric(t, fmt.Sprintf("%+v precision %d rows %d", s, prec, rows), func() []float32 {
					y := make([]float32, rows*s.Rows)
					w.Mul(y, s.Rows, a, 0, rows, 0, w.Panels())
					return y
				})
			}
		}
		next++ // or every format would have the same counts at the same group
	}
}

func TestOutliersAsGeneric(t *testing.T) {
	r := rand.New(rand.NewPCG(66, 1))
	for _, group := range []int{32, 64, 96, 128} {
		for i := range 500 {
			x := randomFloats(r, 5*group)
			for n := r.IntN(3 + i/4); n > 0; n-- { // from none to most of a row
				x[r.IntN(3*group)] *= float32(math.Exp(r.Float64() * float64(i%13)))
			}
			if i%7 == 0 { // alike
				x[9], x[14], x[20] = -3*x[20], 3*x[20], 3*x[20]
			}
			asGeneric(t, fmt.Sprintf("group %d, row %d", group, i), func() []float32 {
				a := acts(Outliers, [][]float32{x}, group)
				out := slices.Concat(a.scale, a.sum)
				for g, q := range a.quads {
					out = append(out, float32(q>>16), float32(q&0xffff), float32(a.offset[g]))
				}
				for k, q := range a.q[:len(x)] {
					out = append(out, float32(q), float32(a.high[k]))
				}
				return out
			})
		}
	}
}

func TestVectorsAsGeneric(t *testing.T) {
	r := rand.New(rand.NewPCG(62, 1))
	for n := 1; n < lengths; n++ {
		a, b := randomFloats(r, n), randomFloats(r, n)
		a[n/2] *= 50
		for name, op := range map[string]func(y []float32){
			"add":     func(y []float32) { Add(y, a, b) },
			"axpy":    func(y []float32) { Axpy(y, a, 1.3) },
			"mul add": func(y []float32) { MulAdd(y, a, b) },
			"norm":    func(y []float32) { RMSNorm(y, a, b, 1e-5) },
			"silu":    func(y []float32) { SiLUMul(y, a, b) },
			"exp":     func(y []float32) { y[0] = ExpSum(y, a, 0.5) },
			"dot":     func(y []float32) { y[0] = Dot(a, b) },
		} {
			asGeneric(t, fmt.Sprintf("%s of %d", name, n), func() []float32 {
				y := slices.Clone(b)
				op(y)
				return y
			})
		}
	}
}

func TestDeltaAsGeneric(t *testing.T) {
	r := rand.New(rand.NewPCG(63, 1))
	for _, kdim := range []int{1, 5, 64} {
		for _, tokens := range []int{1, 3} {
			d := randomDelta(r, tokens, kdim)
			asGeneric(t, fmt.Sprintf("%d tokens of %d", tokens, kdim), func() []float32 {
				c := *d
				c.State, c.Y = slices.Clone(d.State), slices.Clone(d.Y)
				c.Run()
				return append(c.State, c.Y...)
			})
		}
	}
}

func TestAttendAsGeneric(t *testing.T) {
	r := rand.New(rand.NewPCG(64, 1))
	for _, typ := range cacheTypes {
		for heads := 1; heads <= 5; heads++ { // one row, as in a step that decodes
			for _, dim := range []int{64, 40} {
				c := randomAttn(r, typ, 70, 1, heads, dim, dim)
				asGeneric(t, fmt.Sprintf("%v, %d heads of %d", typ, heads, dim), func() []float32 { return c.run() })
			}
		}
		for i, dims := range [][2]int{{64, 96}, {48, 40}, {7, 9}, {128, 128}} {
			for _, n := range []int{1, 15, 65, 130} {
				c := randomAttn(r, typ, n, min(n, 1+r.IntN(9)), 1+i%3, dims[0], dims[1])
				asGeneric(t, fmt.Sprintf("%v of %v, %d positions", typ, dims, n), func() []float32 { return c.run() })
				c.cap = 1.5
				c = c.window(1 + r.IntN(n))
				asGeneric(t, fmt.Sprintf("window of %v of %v, %d positions", typ, dims, n), func() []float32 { return c.run() })
			}
		}
	}
}

func TestScanAsGeneric(t *testing.T) {
	r := rand.New(rand.NewPCG(65, 1))
	for _, kdim := range []int{1, 5, 64} {
		for _, tokens := range []int{1, 3} {
			s, d := randomScan(r, tokens, kdim), randomDelta(r, tokens, kdim)
			gate, kg := randomFloats(r, (tokens-1)*d.KStride+kdim), randomFloats(r, (tokens-1)*d.KStride+kdim)
			wide, a := randomFloats(r, kdim*DeltaLanes), randomFloats(r, kdim*DeltaLanes)
			asGeneric(t, fmt.Sprintf("%d tokens of %d", tokens, kdim), func() []float32 {
				c := *s
				c.State, c.Y = slices.Clone(s.State), slices.Clone(s.Y)
				c.Run()
				w := c
				w.N, w.Wide, w.Gate, w.Y = 1, true, wide, slices.Clone(s.Y)
				w.Run()
				k := KeyDelta{State: slices.Clone(d.State), K: d.K, Q: d.Q, V: d.V, Y: slices.Clone(d.Y), Gate: gate, KG: kg, Beta: d.Beta,
					N: tokens, KDim: kdim, KStride: d.KStride, VStride: d.VStride, YStride: d.YStride, GStride: d.KStride, BStride: d.GStride}
				k.Run()
				decays := make([]float32, len(a))
				Decays(decays, a, wide[:DeltaLanes])
				return slices.Concat(c.State, c.Y, w.Y, k.State, k.Y, decays)
			})
		}
	}
}
