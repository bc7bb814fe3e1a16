package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// cacheTypes are all of them.
var cacheTypes = []CacheType{CacheF32, CacheBF16, CacheF16, CacheQ8, CacheQ4}

// attnCase is a cache of n positions with two heads side by side, and queries for the second one.
type attnCase struct {
	q    []float32
	k, v Rows
	n    int
}

// randomAttn takes widths that the tile routines do not cover, or do.
func randomAttn(r *rand.Rand, n int) attnCase { return randomAttnOf(r, n, CacheF32, 48, 40) }

func randomAttnOf(r *rand.Rand, n int, t CacheType, kdim, vdim int) attnCase {
	return attnCase{q: randomFloats(r, 3*kdim), k: randomCache(r, n, t, kdim), v: randomCache(r, n, t, vdim), n: n}
}

// cacheGroup divides every width up to 64 and most others.
func cacheGroup(width int) int {
	for _, g := range []int{64, 32, 40} {
		if width%g == 0 {
			return g
		}
	}
	return width
}

// randomCache is the second of two heads of n positions.
func randomCache(r *rand.Rand, n int, t CacheType, width int) Rows {
	c := Rows{Type: t, Width: width, Group: cacheGroup(width)}
	size := c.RowBytes()
	c.Stride = 2*size + 32
	c.Data = make([]byte, n*c.Stride)[size+20:]
	for i := range n {
		c.Set(i, randomFloats(r, width))
	}
	return c
}

// floats is the same cache with what can be read from it as float32.
func (r Rows) floats(n int) Rows {
	f := make([]float32, n*r.Width)
	for i := range n {
		r.Get(f[i*r.Width:][:r.Width], i)
	}
	return FloatRows(f, r.Width, r.Width)
}

// from is the cache without its first rows.
func (r Rows) from(row int) Rows {
	r.Data = r.Data[row*r.Stride:]
	return r
}

func (c attnCase) attn() Attn {
	a := Attn{Heads: 3, KDim: c.k.Width, VDim: c.v.Width, Scale: 0.2}
	a.Reset()
	return a
}

// run attends over [from, n) in runs that end at the given positions.
func (c attnCase) run(from int, cuts ...int) []float32 {
	a, base := c.attn(), 0
	for _, cut := range append(cuts, c.n) {
		if cut > from {
			k, v := c.k.from(base), c.v.from(base)
			Attend(&a, c.q, &k, &v, base, max(from, base), cut)
		}
		base = cut
	}
	out := make([]float32, 3*c.v.Width)
	a.Finish(out, nil)
	return out
}

func (c attnCase) reference(from int) []float64 {
	kdim, vdim := c.k.Width, c.v.Width
	out, k, v := make([]float64, 3*vdim), make([]float32, kdim), make([]float32, vdim)
	for h := range 3 {
		var sum float64
		for i := from; i < c.n; i++ {
			c.k.Get(k, i)
			c.v.Get(v, i)
			var s float64
			for d, x := range k {
				s += float64(c.q[h*kdim+d]) * float64(x)
			}
			p := math.Exp(s * 0.2)
			sum += p
			for d, x := range v {
				out[h*vdim+d] += p * float64(x)
			}
		}
		for d := range vdim {
			out[h*vdim+d] /= sum
		}
	}
	return out
}

func TestAttend(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		for _, typ := range cacheTypes {
			t.Run(typ.String(), func(t *testing.T) { testAttend(t, typ) })
		}
	})
}

func testAttend(t *testing.T, typ CacheType) {
	r := rand.New(rand.NewPCG(21, 1))
	for i, n := range []int{1, 1, 15, 15, 16, 16, 17, 17, 33, 33, 100, 100, 259, 259} {
		c := randomAttnOf(r, n+1, typ, 48, 40)
		if i%2 == 1 {
			c = randomAttnOf(r, n+1, typ, 64, 96)
		}
		c.n = n
		for _, from := range []int{0, n / 2, n - 1} {
			want := c.reference(from)
			whole := c.run(from)
			for i, w := range want {
				if math.Abs(float64(whole[i])-w) > 2e-5 {
					t.Fatalf("%d positions from %d: element %d is %g, want %g", n, from, i, whole[i], w)
				}
			}
			var cuts []int
			for p := 16; p < n; p += 32 {
				cuts = append(cuts, p)
			}
			equal(t, "paged", c.run(from, cuts...), whole)
			if typ < CacheF16 || typ == CacheF16 && c.k.Width == 64 { // the same numbers as float32 give the same bits
				wide := c
				wide.k, wide.v = c.k.floats(n), c.v.floats(n)
				equal(t, "float32", wide.run(from), whole)
			}
		}
	}
}

// TestAttnTiles holds the tile routines to the row by row ones: bits where those are assembly too, else a bound.
func TestAttnTiles(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(24, 1))
		for n := 1; n <= AttnTile; n++ {
			c := randomAttnOf(r, n, CacheBF16, 96, 64)
			s, want := make([]float32, n), make([]float32, n)
			acc := randomFloats(r, 64)
			sum := append([]float32(nil), acc...)
			scores(s, c.q[:96], nil, &c.k, 0)
			for i := range want {
				want[i] = DotBF16(c.q[:96], as[uint16](c.k.from(i).Data[:2*96]))
			}
			equal(t, "scores", s, want)
			addValues(acc, s, &c.v, 0)
			for i, p := range s {
				AxpyBF16(sum, as[uint16](c.v.from(i).Data[:2*64]), p)
			}
			equal(t, "values", acc, sum)
			for _, typ := range []CacheType{CacheQ8, CacheQ4} {
				testCodeTiles(t, randomAttnOf(r, n, typ, 96, 128))
				testCodeTiles(t, randomAttnOf(r, n, typ, 128, 32))
			}
		}
	})
}

// testCodeTiles compares with the generic sums, which round more often.
func testCodeTiles(t *testing.T, c attnCase) {
	t.Helper()
	q := c.q[:c.k.Width]
	sums := make([]float32, c.k.Width/c.k.Group)
	sumGroups(sums, q, c.k.Group)
	s := make([]float32, c.n)
	scores(s, q, sums, &c.k, 0)
	near := func(what string, i int, got, want, size float32) {
		t.Helper()
		if !(math.Abs(float64(got-want)) <= 1e-5*float64(size)) {
			t.Fatalf("%v, %s %d: %g, want %g", c.k.Type, what, i, got, want)
		}
	}
	for i := range s {
		near("score", i, s[i], c.k.dotCodes(q, sums, c.k.from(i).Data), 30)
	}
	acc, want := make([]float32, c.v.Width), make([]float32, c.v.Width)
	addValues(acc, s, &c.v, 0)
	c.v.addCodes(want, s, 0)
	for i := range acc {
		near("value", i, acc[i], want[i], 30*float32(c.n))
	}
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
	a, b, empty := c.attn(), c.attn(), c.attn()
	Attend(&a, c.q, &c.k, &c.v, 0, 0, 32)
	k, v := c.k.from(32), c.v.from(32)
	Attend(&b, c.q, &k, &v, 32, 32, c.n)
	a.Merge(&b)
	a.Merge(&empty)
	out := make([]float32, 3*c.v.Width)
	a.Finish(out, nil)
	want := c.reference(0)
	for i, w := range want {
		if math.Abs(float64(out[i])-w) > 1e-5 {
			t.Fatalf("merged element %d is %g, want %g", i, out[i], w)
		}
	}
	sunk := make([]float32, len(out))
	a.Finish(sunk, []float32{-1e30, 0.5, 1e30})
	for d := range c.v.Width {
		if sunk[d] != out[d] || sunk[2*c.v.Width+d] != 0 || math.Abs(float64(sunk[c.v.Width+d])) > math.Abs(float64(out[c.v.Width+d])) {
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
	codes := randomAttnOf(r, 64, CacheQ4, 64, 64)
	a := c.attn()
	b := codes.attn()
	out := make([]float32, 3*c.v.Width)
	n := testing.AllocsPerRun(10, func() {
		acts.Reset(Fast, 1, 64, 64)
		acts.SetRow(0, x)
		w.Mul(y, 40, &acts, 0, 1, 0, 3)
		a.Reset()
		Attend(&a, c.q, &c.k, &c.v, 0, 0, 63)
		a.Finish(out, nil)
		b.Reset()
		codes.k.Set(3, codes.q[:64])
		Attend(&b, codes.q, &codes.k, &codes.v, 0, 0, 63)
	})
	if n != 0 {
		t.Fatalf("%v allocations in a step", n)
	}
}
