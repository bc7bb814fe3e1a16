package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// attnCase is a cache of n positions with two kv heads side by side, and queries for the second one.
type attnCase struct {
	q, kf, vf  []float32
	kh, vh     []uint16
	n, ldk     int
	kdim, vdim int
}

// randomAttn takes widths that the tile routines do not cover, or do.
func randomAttn(r *rand.Rand, n int) attnCase { return randomAttnOf(r, n, 48, 40) }

func randomAttnOf(r *rand.Rand, n, kdim, vdim int) attnCase {
	c := attnCase{n: n, kdim: kdim, vdim: vdim, ldk: 2*kdim + 8}
	c.q = randomFloats(r, 3*c.kdim)
	c.kf, c.vf = randomFloats(r, n*c.ldk), randomFloats(r, n*c.ldk)
	c.kh, c.vh = make([]uint16, n*c.ldk), make([]uint16, n*c.ldk)
	ToBF16(c.kh, c.kf)
	ToBF16(c.vh, c.vf)
	FromBF16(c.kf, c.kh)
	FromBF16(c.vf, c.vh)
	return c
}

// run attends over [from, n) in runs that end at the given positions.
func run[T KV](c attnCase, k, v []T, from int, cuts ...int) []float32 {
	a := Attn{Heads: 3, KDim: c.kdim, VDim: c.vdim, Scale: 0.2}
	a.Reset()
	base := 0
	for _, cut := range append(cuts, c.n) {
		if cut > from {
			at := base*c.ldk + 5
			Attend(&a, c.q, k[at:], c.ldk, v[at:], c.ldk, base, max(from, base), cut)
		}
		base = cut
	}
	out := make([]float32, 3*c.vdim)
	a.Finish(out, nil)
	return out
}

func (c attnCase) reference(from int) []float64 {
	out := make([]float64, 3*c.vdim)
	for h := range 3 {
		var sum float64
		for i := from; i < c.n; i++ {
			var s float64
			for d := range c.kdim {
				s += float64(c.q[h*c.kdim+d]) * float64(c.kf[i*c.ldk+5+d])
			}
			p := math.Exp(s * 0.2)
			sum += p
			for d := range c.vdim {
				out[h*c.vdim+d] += p * float64(c.vf[i*c.ldk+5+d])
			}
		}
		for d := range c.vdim {
			out[h*c.vdim+d] /= sum
		}
	}
	return out
}

func TestAttend(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(21, 1))
		for i, n := range []int{1, 1, 15, 15, 16, 16, 17, 17, 33, 33, 100, 100, 259, 259} {
			c := randomAttn(r, n+1)
			if i%2 == 1 {
				c = randomAttnOf(r, n+1, 64, 96)
			}
			c.n = n
			for _, from := range []int{0, n / 2, n - 1} {
				want := c.reference(from)
				whole := run(c, c.kf, c.vf, from)
				for i, w := range want {
					if math.Abs(float64(whole[i])-w) > 1e-5 {
						t.Fatalf("%d positions from %d: element %d is %g, want %g", n, from, i, whole[i], w)
					}
				}
				// The same numbers as bfloat16, and the same cache in pages, give the same bits.
				equal(t, "bf16", run(c, c.kh, c.vh, from), whole)
				var cuts []int
				for p := 16; p < n; p += 32 {
					cuts = append(cuts, p)
				}
				equal(t, "paged", run(c, c.kf, c.vf, from, cuts...), whole)
			}
		}
	})
}

// TestAttnTiles holds the tile routines to the bits of the row by row ones.
func TestAttnTiles(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(24, 1))
		for n := 1; n <= AttnTile; n++ {
			c := randomAttnOf(r, n, 96, 64)
			s, want := make([]float32, n), make([]float32, n)
			acc := randomFloats(r, c.vdim)
			sum := append([]float32(nil), acc...)
			scores(s, c.q[:c.kdim], c.kh[5:], c.ldk)
			for i := range want {
				want[i] = DotBF16(c.q[:c.kdim], c.kh[i*c.ldk+5:][:c.kdim])
			}
			equal(t, "scores", s, want)
			addValues(acc, s, c.vh[5:], c.ldk)
			for i, p := range s {
				AxpyBF16(sum, c.vh[i*c.ldk+5:][:c.vdim], p)
			}
			equal(t, "values", acc, sum)
		}
	})
}

func equal(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: element %d is %g, want the bits of %g", what, i, got[i], want[i])
		}
	}
}

func TestMergeAndSinks(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 1))
	c := randomAttn(r, 64)
	c.n = 63
	a := Attn{Heads: 3, KDim: c.kdim, VDim: c.vdim, Scale: 0.2}
	b, empty := a, a
	a.Reset()
	b.Reset()
	empty.Reset()
	Attend(&a, c.q, c.kf[5:], c.ldk, c.vf[5:], c.ldk, 0, 0, 32)
	Attend(&b, c.q, c.kf[32*c.ldk+5:], c.ldk, c.vf[32*c.ldk+5:], c.ldk, 32, 32, c.n)
	a.Merge(&b)
	a.Merge(&empty)
	out := make([]float32, 3*c.vdim)
	a.Finish(out, nil)
	want := c.reference(0)
	for i, w := range want {
		if math.Abs(float64(out[i])-w) > 1e-5 {
			t.Fatalf("merged element %d is %g, want %g", i, out[i], w)
		}
	}
	sunk := make([]float32, len(out))
	a.Finish(sunk, []float32{-1e30, 0.5, 1e30})
	for d := range c.vdim {
		if sunk[d] != out[d] || sunk[2*c.vdim+d] != 0 || math.Abs(float64(sunk[c.vdim+d])) > math.Abs(float64(out[c.vdim+d])) {
			t.Fatalf("sinks: element %d", d)
		}
	}
	empty.Finish(out, nil)
	for _, v := range out {
		if v != 0 {
			t.Fatalf("a query that saw nothing gives %g", v)
		}
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 1))
	c := randomAttn(r, 64)
	w := randomWeights(r, Spec{40, 64, Codes4, 64, ScaleBF16})
	x, y := randomFloats(r, 64), make([]float32, 40)
	var acts Acts
	a := Attn{Heads: 3, KDim: c.kdim, VDim: c.vdim, Scale: 0.2}
	out := make([]float32, 3*c.vdim)
	n := testing.AllocsPerRun(10, func() {
		acts.Reset(Fast, 1, 64, 64)
		acts.SetRow(0, x)
		w.Mul(y, 40, &acts, 0, 1, 0, 3)
		a.Reset()
		Attend(&a, c.q, c.kh, c.ldk, c.vh, c.ldk, 0, 0, 63)
		a.Finish(out, nil)
	})
	if n != 0 {
		t.Fatalf("%v allocations in a step", n)
	}
}
