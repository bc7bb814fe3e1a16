package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// cacheTypes are all of them.
var cacheTypes = []CacheType{CacheF32, CacheBF16, CacheF16, CacheQ8, CacheQ4}

// attnCase is a cache of n positions with two heads side by side, and rows of queries for the second one.
type attnCase struct {
	n, rows, heads int
	q              []float32
	k, v           Rows
	lo, hi         []int // what a row sees
	cap            float32
	half, codes    bool
	i16, columns   bool
}

// randomAttn has the last rows see all before them and themselves.
func randomAttn(r *rand.Rand, t CacheType, n, rows, heads, kdim, vdim int) attnCase {
	c := attnCase{n: n, rows: rows, heads: heads, q: randomFloats(r, rows*heads*kdim), k: randomCache(r, n, t, kdim), v: randomCache(r, n, t, vdim)}
	for i := range rows {
		c.lo, c.hi = append(c.lo, 0), append(c.hi, n-rows+i+1)
	}
	return c
}

// window lets rows see only the last of what they saw.
func (c attnCase) window(w int) attnCase {
	c.lo = slices.Clone(c.lo)
	for i, hi := range c.hi {
		c.lo[i] = max(hi-w, 0)
	}
	return c
}

// row is the case of one row alone.
func (c attnCase) row(i int) attnCase {
	n := c.heads * c.k.Width
	c.q, c.lo, c.hi, c.rows = c.q[i*n:][:n], c.lo[i:i+1], c.hi[i:i+1], 1
	return c
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

func (c attnCase) attn() *Attn {
	a := &Attn{Heads: c.heads, KDim: c.k.Width, VDim: c.v.Width, Scale: 0.2, Cap: c.cap, Half: c.half, Codes: c.codes, I16: c.i16, Columns: c.columns}
	a.Reset(c.rows)
	n := c.heads * c.k.Width
	for i := range c.rows {
		a.SetRow(i, c.q[i*n:][:n], c.lo[i], c.hi[i])
	}
	return a
}

// run attends in runs that end at the given positions.
func (c attnCase) run(cuts ...int) []float32 {
	a, base := c.attn(), 0
	var w AttnSpace
	for _, cut := range append(cuts, c.n) {
		k, v := c.k.from(base), c.v.from(base)
		Attend(a, &w, &k, &v, base, base, cut)
		base = cut
	}
	return c.finish(a, nil)
}

func (c attnCase) finish(a *Attn, sinks []float32) []float32 {
	n := c.heads * c.v.Width
	out := make([]float32, c.rows*n)
	for i := range c.rows {
		a.Finish(i, out[i*n:][:n], sinks)
	}
	return out
}

func (c attnCase) reference() []float64 {
	kdim, vdim := c.k.Width, c.v.Width
	out, k, v := make([]float64, c.rows*c.heads*vdim), make([]float32, kdim), make([]float32, vdim)
	for h := range c.rows * c.heads {
		var sum float64
		out := out[h*vdim:][:vdim]
		for i := c.lo[h/c.heads]; i < c.hi[h/c.heads]; i++ {
			c.k.Get(k, i)
			c.v.Get(v, i)
			var s float64
			for d, x := range k {
				s += float64(c.q[h*kdim+d]) * float64(x)
			}
			s *= 0.2
			if c.cap != 0 {
				s = float64(c.cap) * math.Tanh(s/float64(c.cap))
			}
			p := math.Exp(s)
			sum += p
			for d, x := range v {
				out[d] += p * float64(x)
			}
		}
		for d := range vdim {
			out[d] /= sum
		}
	}
	return out
}

// check holds a case to float64, to its rows alone, to the same in pages, and to the same numbers as float32.
func (c attnCase) check(t *testing.T) {
	t.Helper()
	whole, off := c.run(), 5e-5
	switch {
	case c.half:
		off = 0.02
	case c.codes:
		off = 1e-3
	case c.i16:
		off = 8e-3
	}
	for i, w := range c.reference() {
		if !(math.Abs(float64(whole[i])-w) <= off) {
			t.Fatalf("%d rows on %d: element %d is %g, want %g", c.rows, c.n, i, whole[i], w)
		}
	}
	n := c.heads * c.v.Width
	for i := range c.rows {
		equal(t, fmt.Sprintf("row %d of %d alone", i, c.rows), whole[i*n:][:n], c.row(i).run())
	}
	var cuts []int
	for p := AttnTile; p < c.n; p += 2 * AttnTile {
		cuts = append(cuts, p)
	}
	equal(t, "paged", c.run(cuts...), whole)
	if c.half || c.codes || c.i16 {
		return
	}
	wide := c
	wide.k, wide.v = c.k.floats(c.n), c.v.floats(c.n)
	equal(t, "float32", wide.run(), whole)
}

func TestAttend(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		for _, typ := range cacheTypes {
			t.Run(typ.String(), func(t *testing.T) {
				r := rand.New(rand.NewPCG(21, 1))
				for i, dims := range [][2]int{{64, 96}, {48, 40}, {72, 24}, {7, 9}, {128, 128}, {80, 64}, {32, 256}, {96, 224}} {
					for _, n := range []int{1, 15, 63, 64, 65, 200} {
						c := randomAttn(r, typ, n, min(n, 1+r.IntN(9)), 1+i%4, dims[0], dims[1])
						c.check(t)
						c.columns = typ == CacheF32
						c.check(t)
						c.cap = 1.5
						c.window(1 + r.IntN(n)).check(t)
					}
				}
			})
		}
	})
}

// TestAttendRows goes through the numbers of queries that a tile is taken apart into, and the latent form of keys whose
// beginning is the values.
func TestAttendRows(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(25, 1))
		for rows := 1; rows <= 26; rows++ {
			randomAttn(r, CacheBF16, 90, rows, 1, 32, 32).check(t)
			randomAttn(r, CacheQ8, 70, rows, 3, 32, 32).window(40).check(t)
			c := randomAttn(r, CacheF32, 90, rows, 1, 40, 32)
			c.columns = true
			c.check(t)
		}
		c := randomAttn(r, CacheBF16, 70, 2, 9, 576, 512)
		c.v = c.k
		c.v.Width = 512
		for i := range c.q {
			c.q[i] /= 4
		}
		c.check(t)
	})
}

// TestHalfAttentionIsGeneric: what the CPU's own products of bfloat16 numbers give is, to the bit, what Go says they do.
func TestHalfAttentionIsGeneric(t *testing.T) {
	before := Current()
	defer func() { _ = Use(before) }()
	r := rand.New(rand.NewPCG(27, 1))
	for i, dims := range [][2]int{{64, 96}, {128, 128}, {32, 256}, {96, 224}, {576, 512}, {64, 32}} {
		for _, n := range []int{1, 2, 15, 16, 63, 64, 65, 200} {
			for _, rows := range []int{1, 2, 3, 7, 29} {
				c := randomAttn(r, CacheBF16, n, min(n, rows), 1+i%4, dims[0], dims[1])
				if dims[0] == 576 { // latents
					c.v = c.k
					c.v.Width = 512
				}
				for i := range c.q {
					c.q[i] *= 8 / float32(math.Sqrt(float64(dims[0])))
				}
				c.half = true
				for _, c := range []attnCase{c, c.window(1 + r.IntN(n))} {
					_ = Use(before)
					got := c.run()
					if HalfAttention(&c.k, &c.v) && n < 70 {
						c.check(t)
						c.cap = 1.5
						c.check(t)
						c.cap = 0
					}
					_ = Use("generic")
					equal(t, fmt.Sprintf("%d rows on %d of %v", c.rows, n, dims), got, c.run())
				}
			}
		}
	}
}

// TestCodeAttentionIsGeneric: what the CPU's own products of codes give is, to the bit, what Go says they do.
func TestCodeAttentionIsGeneric(t *testing.T) {
	before := Current()
	defer func() { _ = Use(before) }()
	r := rand.New(rand.NewPCG(28, 1))
	for i, dims := range [][2]int{{64, 128}, {128, 128}, {256, 64}, {192, 256}, {576, 512}, {64, 64}} {
		for _, n := range []int{1, 2, 16, 63, 64, 65, 140} {
			if dims[0] == 576 && n > 65 {
				continue // takes long in Go
			}
			for _, rows := range []int{1, 2, 7, 17} {
				c := randomAttn(r, CacheQ8, n, min(n, rows), 1+i%4, dims[0], dims[1])
				if dims[0] == 576 { // latents
					c.v = c.k
					c.v.Width, c.v.Of = 512, 576
				}
				for i := range c.q {
					c.q[i] *= 8 / float32(math.Sqrt(float64(dims[0])))
				}
				c.codes = true
				for _, c := range []attnCase{c, c.window(1 + r.IntN(n))} {
					_ = Use(before)
					got := c.run()
					if CodeAttention(&c.k, &c.v) && n < 66 {
						c.check(t)
						c.cap = 1.5
						c.check(t)
						c.cap = 0
					}
					_ = Use("generic")
					equal(t, fmt.Sprintf("%d rows on %d of %v", c.rows, n, dims), got, c.run())
				}
			}
		}
	}
}

// TestI16AttentionIsGeneric: what the CPU's own products of whole numbers give is, to the bit, what Go says they do.
func TestI16AttentionIsGeneric(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		name := Current()
		r := rand.New(rand.NewPCG(29, 1))
		for i, dims := range [][2]int{{64, 128}, {128, 128}, {256, 64}, {192, 256}, {64, 64}} {
			for _, n := range []int{1, 2, 16, 17, 63, 64, 65, 140} {
				for _, rows := range []int{1, 2, 3, 7, 29} {
					c := randomAttn(r, CacheI16, n, min(n, rows), 1+i%4, dims[0], dims[1])
					for i := range c.q {
						c.q[i] *= 8 / float32(math.Sqrt(float64(dims[0])))
					}
					c.i16 = true
					if !I16Cache(c.k.Width) {
						t.Skip("it is generic itself")
					}
					for _, c := range []attnCase{c, c.window(1 + r.IntN(n))} {
						got := c.run()
						if n < 66 {
							c.check(t)
							c.cap = 1.5
							c.check(t)
							c.cap = 0
						}
						_ = Use("generic")
						equal(t, fmt.Sprintf("%d rows on %d of %v", c.rows, n, dims), got, c.run())
						_ = Use(name)
					}
				}
			}
		}
	})
}

// TestUnseenIsNothing: what lies beyond a row's bounds may be anything, also where its neighbours look.
func TestUnseenIsNothing(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(26, 1))
		for i, typ := range append(cacheTypes, CacheBF16, CacheQ8, CacheI16, CacheF32) {
			c := randomAttn(r, typ, 140, 13, 2, 64, 64).window(70)
			c.half, c.codes, c.i16, c.columns = i == len(cacheTypes), i == len(cacheTypes)+1, i == len(cacheTypes)+2, i == len(cacheTypes)+3
			want := c.run()
			bad := randomFloats(r, 64)
			for i := range bad {
				bad[i] = float32(math.NaN())
			}
			c.k.Set(133, bad)
			c.v.Set(133, bad)
			got := c.run()
			sees := 133 - (140 - 13)
			equal(t, "rows before", got[:sees*2*64], want[:sees*2*64])
			for i, x := range got[sees*2*64:] {
				if x == x {
					t.Fatalf("%v: element %d of a row that sees a NaN is %g", typ, i, x)
				}
			}
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
	c := randomAttn(r, CacheF32, 127, 9, 3, 48, 40).window(60)
	want := c.reference()
	a, b, empty := c.attn(), c.attn(), c.attn()
	var w AttnSpace
	Attend(a, &w, &c.k, &c.v, 0, 0, 64) // the last rows see nothing of it
	k, v := c.k.from(64), c.v.from(64)
	Attend(b, &w, &k, &v, 64, 64, c.n)
	empty.Merge(a)
	empty.Merge(b)
	a.Merge(b)
	a.Merge(c.attn())
	out := c.finish(a, nil)
	equal(t, "merged into nothing", c.finish(empty, nil), out)
	for i, w := range want {
		if math.Abs(float64(out[i])-w) > 1e-5 {
			t.Fatalf("merged element %d is %g, want %g", i, out[i], w)
		}
	}
	sunk := c.finish(a, []float32{-1e30, 0.5, 1e30})
	for d := range c.v.Width {
		if sunk[d] != out[d] || sunk[2*c.v.Width+d] != 0 || math.Abs(float64(sunk[c.v.Width+d])) > math.Abs(float64(out[c.v.Width+d])) {
			t.Fatalf("sinks: element %d", d)
		}
	}
	for _, v := range c.finish(c.attn(), nil) {
		if v != 0 {
			t.Fatalf("a query that saw nothing gives %g", v)
		}
	}
}

func TestSoftcap(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		const cap = 2.5
		x := make([]float32, 20*AttnTile)
		for i := range x {
			x[i] = float32(i-10*AttnTile) / 80
		}
		x[0], x[1], x[2] = float32(math.Inf(1)), float32(math.Inf(-1)), 1e-20
		y := slices.Clone(x)
		softcap(y, 0.75, cap)
		for i, got := range y {
			want := cap * math.Tanh(float64(x[i])*0.75/cap)
			if !(math.Abs(float64(got)-want) <= 6*0x1p-24*math.Abs(want)) {
				t.Errorf("cap of %g is %g, want %g", x[i], got, want)
			}
		}
	})
}

func TestStepAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 1))
	w := randomWeights(r, Spec{40, 64, Codes4, 64, ScaleBF16})
	x, y := randomFloats(r, 64), make([]float32, 40)
	var acts Acts
	var cases []attnCase
	var states []*Attn
	for _, typ := range cacheTypes {
		cases = append(cases, randomAttn(r, typ, 90, 3, 2, 64, 64), randomAttn(r, typ, 90, 3, 2, 40, 24))
	}
	numbers := randomAttn(r, CacheI16, 90, 3, 2, 64, 64)
	numbers.i16 = true
	cases = append(cases, numbers)
	for _, c := range cases {
		states = append(states, c.attn())
	}
	var space AttnSpace
	out := make([]float32, 2*64)
	n := testing.AllocsPerRun(10, func() {
		acts.Reset(Outliers, 1, 64, 64)
		acts.SetRow(0, x)
		w.Mul(y, 40, &acts, 0, 1, 0, 3)
		for i := range cases {
			c, a := &cases[i], states[i]
			c.k.Set(3, c.q[:c.k.Width])
			a.Reset(3)
			for row := range 3 {
				a.SetRow(row, c.q[row*2*c.k.Width:][:2*c.k.Width], c.lo[row], c.hi[row])
			}
			Attend(a, &space, &c.k, &c.v, 0, 0, 90)
			a.Finish(1, out[:2*c.v.Width], nil)
		}
	})
	if n != 0 {
		t.Fatalf("%v allocations in a step", n)
	}
}
