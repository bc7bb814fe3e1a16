//go:build unix

package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// guarded returns n elements that end right before a page that must not be touched (front: begin right after one).
func guarded[T any](t testing.TB, n int, front bool) []T {
	t.Helper()
	var z T
	page := unix.Getpagesize()
	size := int(unsafe.Sizeof(z))
	body := roundUp(max(n*size, 1), page)
	b, err := unix.Mmap(-1, 0, body+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatalf("map guarded pages: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(b); err != nil {
			t.Error(err)
		}
	})
	for _, edge := range [][]byte{b[:page], b[page+body:]} {
		if err := unix.Mprotect(edge, unix.PROT_NONE); err != nil {
			t.Fatalf("protect page: %v", err)
		}
	}
	at := page + body - n*size
	if front {
		at = page
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[at])), n)
}

func guardedCopy[T any](t testing.TB, s []T, front bool) []T {
	g := guarded[T](t, len(s), front)
	copy(g, s)
	return g
}

// TestAllImplementations runs every kernel of every implementation with its operands flush against protected pages, at
// both ends: results must be those of ordinary memory, and a stray load or store faults.
func TestAllImplementations(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		for _, front := range []bool{false, true} {
			t.Run(fmt.Sprintf("front=%v", front), func(t *testing.T) {
				t.Run("products", func(t *testing.T) { guardProducts(t, front) })
				t.Run("vectors", func(t *testing.T) { guardVectors(t, front) })
				t.Run("delta", func(t *testing.T) { guardDelta(t, front) })
				t.Run("scan", func(t *testing.T) { guardScan(t, front) })
				t.Run("attention", func(t *testing.T) { guardAttention(t, front) })
				t.Run("packing", func(t *testing.T) { guardPacking(t, front) })
			})
		}
	})
}

func guardProducts(t *testing.T, front bool) {
	r := rand.New(rand.NewPCG(31, 1))
	for _, s := range specs() {
		w := randomWeights(r, s)
		for _, prec := range precisions(w.Matrix) {
			rows := 1 + r.IntN(maxTile+2)
			a := acts(prec, randomRows(r, rows, s.Cols), w.Group())
			want := make([]float32, rows*s.Rows)
			w.Mul(want, s.Rows, a, 0, rows, 0, w.Panels())

			m, b := *w.Matrix, *a
			m.data = guardedCopy(t, m.data, front)
			b.x, b.q = guardedCopy(t, a.x, front), guardedCopy(t, a.q, front)
			b.scale, b.sum, b.offset = guardedCopy(t, a.scale, front), guardedCopy(t, a.sum, front), guardedCopy(t, a.offset, front)
			b.half, b.high = guardedCopy(t, a.half, front), guardedCopy(t, a.high, front)
			b.lists.heads, b.lists.records = guardedCopy(t, a.lists.heads, front), guardedCopy(t, a.lists.records, front)
			got := guarded[float32](t, rows*s.Rows, front)
			m.Mul(got, s.Rows, &b, 0, rows, 0, m.Panels())
			equal(t, fmt.Sprintf("%+v precision %d rows %d", s, prec, rows), got, want)
		}
	}
}

func guardPacking(t *testing.T, front bool) {
	r := rand.New(rand.NewPCG(42, 1))
	var p Packer
	for _, c := range packCases() {
		if c.spec.Cols > 600 {
			continue // pieces are all alike
		}
		s := c.random(r)
		for i := range s.small {
			s.small[i] = guardedCopy(t, s.small[i], front)
		}
		got := c.byPanels(t, &p, s, func(b []byte) []byte { return guardedCopy(t, b, front) })
		if i := c.differ(got, c.byRows(s)); i >= 0 {
			t.Fatalf("%s %d bits %+v: byte %d differs", c.name, c.bits, c.spec, i)
		}
	}
}

func guardVectors(t *testing.T, front bool) {
	r := rand.New(rand.NewPCG(32, 1))
	for n := 1; n < lengths; n++ {
		x, w, y := randomFloats(r, 2*n), randomFloats(r, 2*n), randomFloats(r, 2*n)
		h := make([]uint16, 2*n)
		ToBF16(h, w)
		all := func(x, w, y []float32, h []uint16) []float32 {
			out := []float32{Dot(x, w), ExpSum(y, x, 1)}
			Axpy(y, x, 2)
			Add(y, y, w)
			SiLUMul(y, y, x)
			Swish(y, y, 1, 1)
			RMSNorm(y, y, w, 1e-5)
			RoPE(y, x[:n], w[:n], n, false)
			ToBF16(h, y)
			FromBF16(y, h)
			return append(out, y...)
		}
		gx, gw, gy, gh := guardedCopy(t, x, front), guardedCopy(t, w, front), guardedCopy(t, y, front), guardedCopy(t, h, front)
		equal(t, fmt.Sprintf("length %d", 2*n), all(gx, gw, gy, gh), all(x, w, y, h))
	}
	for _, group := range []int{16, 32, 64, 128} {
		x := randomFloats(r, 3*group)
		want := quantized(x, group, quantizeRow)
		q, scale, sum, offset := guarded[int8](t, 3*group, front), guarded[float32](t, 3, front), guarded[float32](t, 3, front), guarded[int32](t, 3, front)
		quantizeRow(q, scale, sum, offset, guardedCopy(t, x, front), group)
		equal(t, "scales", scale, want.scale)
		equal(t, "sums", sum, want.sum)
	}
}

func guardDelta(t *testing.T, front bool) {
	r := rand.New(rand.NewPCG(34, 1))
	for _, n := range []int{1, 2, 7} {
		d := randomDelta(r, n, 1+r.IntN(40))
		g := *d
		for _, s := range []*[]float32{&g.State, &g.K, &g.Q, &g.V, &g.Y, &g.Gate, &g.Beta} {
			*s = guardedCopy(t, *s, front)
		}
		d.Run()
		g.Run()
		equal(t, "state", g.State, d.State)
		equal(t, "y", g.Y, d.Y)
		MulAdd(g.K, g.K, g.Q)
	}
}

func guardAttention(t *testing.T, front bool) {
	r := rand.New(rand.NewPCG(33, 1))
	for i, typ := range append(cacheTypes, CacheI16, CacheF32) {
		for _, n := range []int{1, 3, 64, 101} {
			for _, dims := range [][2]int{{40, 48}, {64, 32}, {128, 64}} {
				if typ == CacheI16 && !(i16Width(dims[0]) && i16Width(dims[1])) {
					continue
				}
				c := randomAttn(r, typ, n, min(n, 5), 2, dims[0], dims[1])
				c.codes, c.i16, c.columns = codeRows(&c.k) && codeRows(&c.v), typ == CacheI16, i > len(cacheTypes)
				want := c.run()
				c.q, c.k, c.v = guardedCopy(t, c.q, front), c.k.guarded(t, n, front), c.v.guarded(t, n, front)
				equal(t, typ.String(), c.run(), want)
				x := guardedCopy(t, randomFloats(r, c.k.Width), front)
				c.k.Set(n-1, x)
			}
		}
	}
}

// guarded ends with the last row.
func (r Rows) guarded(t testing.TB, n int, front bool) Rows {
	r.Data = guardedCopy(t, r.Data[:(n-1)*r.Stride+r.RowBytes()], front)
	return r
}
