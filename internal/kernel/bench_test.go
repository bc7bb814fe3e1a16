package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// benchMatrix has random bytes for codes: products do not care. It lies on huge pages, as those of models do.
func benchMatrix(tb testing.TB, f Format, rows, cols int) *Matrix {
	var mem Memory
	tb.Cleanup(mem.Free)
	m := mem.NewMatrix(Spec{Rows: rows, Cols: cols, Format: f, Group: 64})
	r := rand.New(rand.NewPCG(9, 9))
	for i := 0; i+8 <= len(m.data); i += 8 {
		v := r.Uint64()
		// Numbers below 1, as floats and as bfloat16, but no denormal ones, which take several times as long.
		put32(m.data[i:], uint32(v)&0x1fff1fff|0x20002000)
		put32(m.data[i+4:], uint32(v>>32)&0x1fff1fff|0x20002000)
	}
	return m
}

// BenchmarkMul reports matrix bytes per second from memory: hold one-row figures against BenchmarkRead.
func BenchmarkMul(b *testing.B) {
	for _, f := range benchFormats {
		m := benchMatrix(b, f, 64<<10, 2048) // larger than the last-level cache of most machines
		eachForBench(b, func(b *testing.B) {
			for _, prec := range forms(m) {
				for _, rows := range []int{1, 2, 4, 8, 12} {
					for _, threads := range []int{1, 2} {
						name := fmt.Sprintf("format=%d/precision=%d/rows=%d/threads=%d", f, prec, rows, threads)
						b.Run(name, func(b *testing.B) { benchMul(b, m, prec, rows, threads) })
					}
				}
			}
		})
	}
}

// BenchmarkMulCached multiplies panels that stay in the second-level cache.
func BenchmarkMulCached(b *testing.B) {
	for _, f := range benchFormats {
		for _, cols := range []int{1024, 3072, 4096} {
			m := benchMatrix(b, f, 128, cols)
			eachForBench(b, func(b *testing.B) {
				for _, prec := range forms(m) {
					for _, rows := range []int{1, 2, 3, 4, 6, 8, 10, 12, 16, 63, 64, 512} {
						name := fmt.Sprintf("format=%d/precision=%d/cols=%d/rows=%d", f, prec, cols, rows)
						b.Run(name, func(b *testing.B) { benchMul(b, m, prec, rows, 1) })
					}
				}
			})
		}
	}
}

var benchFormats = []Format{Codes4, Codes8, Codes2, Codes3, Codes5, Codes6, CodesE2M1, FloatE2M1, FloatE4M3, DenseBF16, DenseF32}

// forms are those of activations that fast and exact products have.
func forms(m *Matrix) []Precision {
	if fast := m.Format().Form(Fast); fast != Floats {
		return []Precision{fast, Floats}
	}
	return []Precision{Floats}
}

// eachForBench runs bench under every implementation, by whose name -bench selects.
func eachForBench(b *testing.B, bench func(b *testing.B)) {
	before := Current()
	for _, name := range Implementations() {
		b.Run(name, func(b *testing.B) {
			if err := Use(name); err != nil {
				b.Fatal(err)
			}
			bench(b)
		})
	}
	if err := Use(before); err != nil {
		b.Fatal(err)
	}
}

func benchMul(b *testing.B, m *Matrix, prec Precision, rows, threads int) {
	a := acts(prec, randomRows(rand.New(rand.NewPCG(1, 9)), rows, m.Cols()), m.Group())
	y := make([]float32, rows*m.Rows())
	b.SetBytes(int64(m.Bytes()))
	best := time.Duration(math.MaxInt64) // others that share the machine make most runs longer
	for b.Loop() {
		start := time.Now()
		var done sync.WaitGroup
		for t := range threads {
			done.Go(func() {
				from, to := m.Panels()*t/threads, m.Panels()*(t+1)/threads
				for p := from; p < to; p += 16 {
					m.Mul(y, m.Rows(), a, 0, rows, p, min(p+16, to))
				}
			})
		}
		done.Wait()
		best = min(best, time.Since(start))
	}
	b.ReportMetric(2*float64(rows*m.Rows()*m.Cols())*float64(b.N)/b.Elapsed().Seconds()/1e9, "GOPS")
	b.ReportMetric(2*float64(rows*m.Rows()*m.Cols())/best.Seconds()/1e9, "best-GOPS")
}

// onThreads is a Spread of goroutines.
func onThreads(threads int) Spread {
	return func(n int, f func(worker, i int)) {
		var next atomic.Int64
		var done sync.WaitGroup
		for t := range threads {
			done.Go(func() {
				for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
					f(t, i)
				}
			})
		}
		done.Wait()
	}
}

func BenchmarkRead(b *testing.B) {
	p := NewProbe(256 << 20)
	defer p.Close()
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(p.Read(onThreads(threads))/1e9, "GB/s")
			}
		})
	}
}

func BenchmarkQuantize(b *testing.B) {
	x := randomFloats(rand.New(rand.NewPCG(2, 9)), 4096)
	var a Acts
	a.Reset(Fast, 1, len(x), 64)
	b.SetBytes(int64(4 * len(x)))
	for b.Loop() {
		a.SetRow(0, x)
	}
}

// BenchmarkAttend reports cache bytes per second for one query token of two heads on 4096 positions.
func BenchmarkAttend(b *testing.B) {
	const n, dim = 4096, 128
	for _, t := range cacheTypes {
		b.Run(t.String(), func(b *testing.B) {
			c := randomAttn(rand.New(rand.NewPCG(3, 9)), t, n, 1, 2, dim, dim)
			b.SetBytes(int64(2 * n * c.k.RowBytes()))
			benchAttend(b, c)
		})
	}
}

// benchCache is a way to attend.
type benchCache struct {
	CacheType
	half, codes  bool
	i16, columns bool
}

func (c benchCache) String() string {
	switch {
	case c.half:
		return "half"
	case c.codes:
		return "codes"
	case c.i16:
		return "i16"
	case c.columns:
		return "columns"
	}
	return c.CacheType.String()
}

var benchCaches = []benchCache{{CacheType: CacheBF16}, {CacheType: CacheBF16, half: true}, {CacheType: CacheI16, i16: true},
	{CacheType: CacheQ8}, {CacheType: CacheQ8, codes: true}}

// canHalf skips a benchmark that this machine has not.
func canHalf(b *testing.B, r *Rows) bool {
	if !HalfAttention(r, r) {
		b.Skip("no products of bfloat16 numbers")
	}
	return true
}

// canCodes likewise.
func canCodes(b *testing.B, r *Rows) bool {
	if !CodeAttention(r, r) {
		b.Skip("no products of bytes in vectors of 64")
	}
	return true
}

// canI16 likewise.
func canI16(b *testing.B, r *Rows) bool {
	if !I16Cache(r.Width) {
		b.Skip("no products of 16-bit numbers in vectors of 32, or faster ones of bfloat16 numbers")
	}
	return true
}

// BenchmarkAttendRows reports arithmetic of a block of rows of two heads: two operations per number of a key and of a value.
func BenchmarkAttendRows(b *testing.B) {
	const n = 4096
	eachForBench(b, func(b *testing.B) {
		for _, t := range append(benchCaches, benchCache{CacheType: CacheF32, columns: true}) {
			for _, dim := range []int{64, 128, 256} {
				for _, rows := range []int{1, 2, 4, 8, 24, 48, 96, 192} {
					b.Run(fmt.Sprintf("%v/dim=%d/rows=%d", t, dim, rows), func(b *testing.B) {
						c := randomAttn(rand.New(rand.NewPCG(3, 9)), t.CacheType, n, rows, 2, dim, dim)
						c.half, c.codes = t.half && canHalf(b, &c.k), t.codes && canCodes(b, &c.k)
						c.i16, c.columns = t.i16 && canI16(b, &c.k), t.columns
						b.ReportMetric(float64(n*rows*2*4*dim)/benchAttend(b, c).Seconds()/1e9, "best-GFLOP/s")
					})
				}
			}
		}
	})
}

// benchAttend gives the shortest run: others that share the machine make most of them longer.
func benchAttend(b *testing.B, c attnCase) time.Duration {
	a := c.attn()
	var w AttnSpace
	best := time.Duration(math.MaxInt64)
	for b.Loop() {
		start := time.Now()
		a.Reset(c.rows)
		for i := range c.rows {
			n := c.heads * c.k.Width
			a.SetRow(i, c.q[i*n:][:n], c.lo[i], c.hi[i])
		}
		Attend(a, &w, &c.k, &c.v, 0, 0, c.n)
		best = min(best, time.Since(start))
	}
	return best
}

// BenchmarkAttendDeep reports cache bytes per second that one query token of some heads reads out of memory: splits of 16 pages
// that lie layers apart, keys before values. It is the best twentieth of all splits, since other processes read as well.
func BenchmarkAttendDeep(b *testing.B) {
	eachForBench(b, func(b *testing.B) {
		for _, t := range benchCaches {
			for _, heads := range []int{1, 2, 4, 8} {
				b.Run(fmt.Sprintf("%v/heads=%d", t, heads), func(b *testing.B) { benchDeep(b, t, heads) })
			}
		}
	})
}

func benchDeep(b *testing.B, t benchCache, heads int) {
	const dim, pages, apart = 128, 16, 7 << 20
	row := Rows{Type: t.CacheType, Width: dim, Group: 64}
	row.Stride = row.RowBytes()
	half := AttnTile * row.Stride
	var m Memory
	defer m.Free()
	slab := m.Bytes((pages + 1) * apart)
	r := rand.New(rand.NewPCG(6, 9))
	row.Data = slab[:2*half]
	for i := range 2 * AttnTile {
		row.Set(i, randomFloats(r, dim))
	}
	for page := 0; page < len(slab); page += apart {
		for at := 0; at+2*half <= apart; at += 2 * half {
			copy(slab[page+at:], row.Data)
		}
	}
	a, q := Attn{Heads: heads, KDim: dim, VDim: dim, Scale: 0.1, Half: t.half && canHalf(b, &row), Codes: t.codes && canCodes(b, &row)}, randomFloats(r, heads*dim)
	a.I16 = t.i16 && canI16(b, &row)
	var w AttnSpace
	var rates []float64
	for b.Loop() {
		for at := 0; at+2*half <= apart; at += 2 * half {
			a.Reset(1)
			a.SetRow(0, q, 0, pages*AttnTile)
			start := time.Now()
			for p := range pages {
				k, v, page := row, row, slab[p*apart+at:]
				k.Data, v.Data, w.Next = page[:half], page[half:2*half], page[apart:][:half]
				Attend(&a, &w, &k, &v, p*AttnTile, p*AttnTile, (p+1)*AttnTile)
			}
			rates = append(rates, float64(pages*2*half)/time.Since(start).Seconds()/1e9)
		}
	}
	slices.Sort(rates)
	b.ReportMetric(rates[len(rates)*19/20], "GB/s")
}

// BenchmarkCacheSet stores one row.
func BenchmarkCacheSet(b *testing.B) {
	for _, t := range cacheTypes {
		b.Run(t.String(), func(b *testing.B) {
			r := rand.New(rand.NewPCG(4, 9))
			c, x := randomCache(r, 1, t, 128), randomFloats(r, 128)
			b.SetBytes(4 * 128)
			for b.Loop() {
				c.Set(0, x)
			}
		})
	}
}

func BenchmarkSiLUMul(b *testing.B) {
	x := randomFloats(rand.New(rand.NewPCG(4, 9)), 3072)
	y := make([]float32, len(x))
	b.SetBytes(int64(4 * len(x)))
	for b.Loop() {
		SiLUMul(y, x, x)
	}
}
