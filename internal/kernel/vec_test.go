package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// lengths covers every tail of the widest routine, of 64 elements, twice over.
const lengths = 3*64 + 5

func TestDots(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(11, 1))
		for n := range lengths {
			a, b := randomFloats(r, n), randomFloats(r, n)
			check := func(name string, got float32, other func(i int) float32) {
				var want, abs float64
				for i := range a {
					p := float64(a[i]) * float64(other(i))
					want += p
					abs += math.Abs(p)
				}
				if !(math.Abs(float64(got)-want) <= 2*float64(n+1)*0x1p-24*abs) {
					t.Fatalf("%s of %d: %g, want %g", name, n, got, want)
				}
			}
			check("dot", Dot(a, b), func(i int) float32 { return b[i] })
		}
	})
}

// TestElementwise holds every element to a float64 formula within a few units in the last place, and to the same bits
// wherever the element stands.
func TestElementwise(t *testing.T) {
	ops := map[string]struct {
		run  func(dst, a, b []float32)
		want func(a, b, old float64) float64
		ulps float64
	}{
		"add":     {func(d, a, b []float32) { Add(d, a, b) }, func(a, b, _ float64) float64 { return a + b }, 0.5},
		"mul":     {func(d, a, b []float32) { Mul(d, a, b) }, func(a, b, _ float64) float64 { return a * b }, 0.5},
		"sigmoid": {func(d, a, b []float32) { SigmoidMul(d, a, b) }, func(a, b, _ float64) float64 { return b / (1 + math.Exp(-a)) }, 4},
		"silu":    {func(d, a, b []float32) { SiLUMul(d, a, b) }, func(a, b, _ float64) float64 { return a / (1 + math.Exp(-a)) * b }, 8},
		"swish":   {func(d, a, _ []float32) { Swish(d, a, 1.5, 0.1) }, func(a, _, _ float64) float64 { return a / (1 + math.Exp(-1.5*a-0.1*a*a*a)) }, 0.55},
		"exp":     {func(d, a, _ []float32) { ExpSum(d, a, 0.5) }, func(a, _, _ float64) float64 { return math.Exp(float64(float32(a) - 0.5)) }, 4},
		"axpy":    {func(d, a, _ []float32) { Axpy(d, a, 1.25) }, func(a, _, old float64) float64 { return old + 1.25*a }, 4},
	}
	for name, op := range ops {
		t.Run(name, func(t *testing.T) {
			eachImplementation(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(12, 1))
				for n := range lengths {
					a, b, old := randomFloats(r, n), randomFloats(r, n), randomFloats(r, n)
					got := append([]float32(nil), old...)
					op.run(got, a, b)
					for i := range got {
						want := op.want(float64(a[i]), float64(b[i]), float64(old[i]))
						scale := math.Abs(want)
						if name == "axpy" {
							scale = math.Abs(float64(old[i])) + 1.25*math.Abs(float64(a[i]))
						}
						if !(math.Abs(float64(got[i])-want) <= op.ulps*0x1p-23*scale) {
							t.Fatalf("element %d of %d: %g, want %g", i, n, got[i], want)
						}
						one := []float32{old[i]}
						op.run(one, a[i:i+1], b[i:i+1])
						if math.Float32bits(one[0]) != math.Float32bits(got[i]) {
							t.Fatalf("element %d of %d: %g in place and %g alone", i, n, got[i], one[0])
						}
					}
				}
			})
		})
	}
}

func TestExpEdges(t *testing.T) {
	inf := float32(math.Inf(1))
	x := []float32{0, float32(math.Copysign(0, -1)), -inf, inf, -87, -87.34, -88, -104, -1e30, 88, 88.3, 88.4, 1e30, 1e-38, float32(math.NaN())}
	eachImplementation(t, func(t *testing.T) {
		got := make([]float32, len(x))
		ExpSum(got, x, 0)
		for i, v := range x {
			want := math.Exp(float64(v))
			switch {
			case v != v:
				if got[i] == got[i] {
					t.Errorf("exp(NaN) = %g", got[i])
				}
			case v < expLo:
				if got[i] != 0 {
					t.Errorf("exp(%g) = %g, want 0", v, got[i])
				}
			case v > expHi:
				if got[i] != inf {
					t.Errorf("exp(%g) = %g, want +Inf", v, got[i])
				}
			default:
				if !(math.Abs(float64(got[i])-want) <= 4*0x1p-24*want) {
					t.Errorf("exp(%g) = %g, want %g", v, got[i], want)
				}
			}
		}
	})
}

func TestBF16(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 1))
	eachImplementation(t, func(t *testing.T) {
		for n := range lengths {
			src := make([]float32, n)
			for i := range src {
				src[i] = math.Float32frombits(r.Uint32())
			}
			if n > 4 {
				src[0], src[1], src[2] = math.Float32frombits(0x3f808000), math.Float32frombits(0x3f818000), math.Float32frombits(0x7f800001)
			}
			half, back := make([]uint16, n), make([]float32, n)
			ToBF16(half, src)
			FromBF16(back, half)
			for i, f := range src {
				if f != f {
					if back[i] == back[i] {
						t.Fatalf("NaN %x became %g", math.Float32bits(f), back[i])
					}
					continue
				}
				if half[i] != nearestBF16(f) {
					t.Fatalf("%x rounds to %x, want %x", math.Float32bits(f), half[i], nearestBF16(f))
				}
			}
		}
	})
}

// nearestBF16 picks the closer of the two neighbours, the even one of a tie.
func nearestBF16(f float32) uint16 {
	down := uint16(math.Float32bits(f) >> 16)
	if math.IsInf(float64(f), 0) {
		return down
	}
	low := math.Float32bits(f) & 0xffff
	if low > 0x8000 || low == 0x8000 && down&1 == 1 {
		return down + 1
	}
	return down
}

// TestQuantize holds every implementation to the bits of the generic one, and that one to its definition.
func TestQuantize(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 1))
	for _, group := range []int{16, 32, 64, 128} {
		x := randomFloats(r, 5*group)
		clear(x[group : 2*group])
		for i := range group {
			x[2*group+i] *= 1e-32
			x[3*group+i] = -3 // every code at the limit
		}
		x[4*group+7] = float32(math.NaN())
		want := quantized(x, group, quantizeGeneric)
		for k, q := range want.q[:group] {
			if math.Abs(float64(q)*float64(want.scale[0])-float64(x[k])) > 0.501*float64(want.scale[0]) {
				t.Fatalf("group %d: %g became %d · %g", group, x[k], q, want.scale[0])
			}
		}
		if want.scale[1] != 0 || want.scale[2] != 0 || want.q[3*group] != -127 || want.scale[4] == want.scale[4] {
			t.Fatalf("group %d: scales %v", group, want.scale)
		}
		eachImplementation(t, func(t *testing.T) {
			got := quantized(x, group, quantizeRow)
			for i := range got.q {
				if got.q[i] != want.q[i] {
					t.Fatalf("group %d code %d: %d, want %d", group, i, got.q[i], want.q[i])
				}
			}
			for g := range got.scale {
				if sameBits(got.scale[g], want.scale[g]) && sameBits(got.sum[g], want.sum[g]) && got.offset[g] == want.offset[g] {
					continue
				}
				t.Fatalf("group %d of %d: %g %g %d, want %g %g %d", g, group, got.scale[g], got.sum[g], got.offset[g],
					want.scale[g], want.sum[g], want.offset[g])
			}
		})
	}
}

func sameBits(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

func quantized(x []float32, group int, f func([]int8, []float32, []float32, []int32, []float32, int)) *Acts {
	var a Acts
	a.Reset(Fast, 1, len(x), group)
	f(a.q[:len(x)], a.scale, a.sum, a.offset, x, group)
	return &a
}

func TestRMSNorm(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(15, 1))
		for n := 1; n < lengths; n++ {
			x, w, y := randomFloats(r, n), randomFloats(r, n), make([]float32, n)
			RMSNorm(y, x, w, 1e-6)
			var ss float64
			for _, v := range x {
				ss += float64(v) * float64(v)
			}
			inv := 1 / math.Sqrt(ss/float64(n)+1e-6)
			for i := range y {
				want := float64(x[i]) * inv * float64(w[i])
				if !(math.Abs(float64(y[i])-want) <= float64(n+8)*0x1p-24*math.Abs(want)) {
					t.Fatalf("element %d of %d: %g, want %g", i, n, y[i], want)
				}
			}
		}
	})
}

func TestRoPE(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(16, 1))
		for n := 1; n < 40; n++ {
			for _, traditional := range []bool{false, true} {
				x := randomFloats(r, 2*n+3)
				cos, sin := make([]float32, n), make([]float32, n)
				for i := range cos {
					s, c := math.Sincos(r.Float64() * 100)
					cos[i], sin[i] = float32(c), float32(s)
				}
				y := append([]float32(nil), x...)
				RoPE(y, cos, sin, n, traditional)
				for i := range n {
					lo, hi := i, n+i
					if traditional {
						lo, hi = 2*i, 2*i+1
					}
					a, b, c, s := float64(x[lo]), float64(x[hi]), float64(cos[i]), float64(sin[i])
					bound := 4 * 0x1p-24 * (math.Abs(a) + math.Abs(b))
					if math.Abs(float64(y[lo])-(a*c-b*s)) > bound || math.Abs(float64(y[hi])-(a*s+b*c)) > bound {
						t.Fatalf("pair %d of %d, traditional %v: (%g, %g)", i, n, traditional, y[lo], y[hi])
					}
				}
				for i := 2 * n; i < len(x); i++ {
					if x[i] != y[i] {
						t.Fatalf("element %d beyond the pairs changed", i)
					}
				}
			}
		}
	})
}

func TestProbe(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		p := NewProbe(1 << 20)
		defer p.Close()
		for _, threads := range []int{1, 3} {
			if rate := p.Read(onThreads(threads)); !(rate > 0) || math.IsInf(rate, 0) {
				t.Errorf("%d threads read %g bytes per second", threads, rate)
			}
			for name, peak := range map[string]float64{"int8": p.Int8(onThreads(threads)), "float": p.Float(onThreads(threads))} {
				if known := int8Loop(1) > 0; known != (peak > 0) || math.IsInf(peak, 0) {
					t.Errorf("%d threads do %g operations per second in %s", threads, peak, name)
				}
			}
		}
	})
}

func TestUse(t *testing.T) {
	before := Current()
	if err := Use("abacus"); err == nil || Current() != before {
		t.Fatalf("an unknown implementation: %v, now %s", err, Current())
	}
	for _, auto := range []string{"", "auto"} {
		if err := Use(auto); err != nil {
			t.Fatal(err)
		}
	}
	all := impls
	defer func() { impls = all }()
	impls = append(slices.Clone(all), impl{name: "last", usable: true, slower: true, enable: func() {}})
	if err := Use(""); err != nil || Current() == "last" {
		t.Fatalf("of itself the slower %s: %v", Current(), err)
	}
	if err := Use("last"); err != nil || Current() != "last" {
		t.Fatalf("by name %s: %v", Current(), err)
	}
	if err := Use(before); err != nil {
		t.Fatal(err)
	}
}

// TestFine: two rows of codes leave out less than 1/64516 of a group's largest number.
func TestFine(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 1))
	for _, group := range []int{32, 64, 128} {
		x := randomFloats(r, 3*group)
		clear(x[:group])
		var a, b Acts
		for _, p := range []*Acts{&a, &b} {
			p.Reset(Fine, 2, len(x), group)
		}
		a.SetRow(1, x)
		b.CopyRow(0, &a, 1)
		for k, v := range x {
			most, g := float32(0), k/group
			for _, w := range x[g*group:][:group] {
				most = max(most, float32(math.Abs(float64(w))))
			}
			for _, from := range []struct {
				*Acts
				row int
			}{{&a, 2}, {&b, 0}} {
				var sum float64
				for i := range 2 {
					sum += float64(from.q[(from.row+i)*from.stride+k]) * float64(from.scale[(from.row+i)*from.groups+g])
				}
				if d := math.Abs(sum - float64(v)); d > 1.001*float64(most)/(4*127*127) {
					t.Fatalf("group %d: %g became %g, off by %g of the largest", group, v, sum, d/float64(most))
				}
			}
		}
	}
}
