package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomDelta has room for n tokens of kdim, with strides wider than their rows.
func randomDelta(r *rand.Rand, n, kdim int) *Delta {
	d := &Delta{N: n, KDim: kdim, KStride: kdim + 3, VStride: DeltaLanes + 5, YStride: DeltaLanes + 1, GStride: 2}
	fill := func(n int, f func(x float32) float32) []float32 {
		x := randomFloats(r, n)
		for i := range x {
			x[i] = f(x[i])
		}
		return x
	}
	same := func(x float32) float32 { return x }
	unit := func(x float32) float32 { return x / float32(math.Sqrt(float64(kdim))) }
	share := func(x float32) float32 { return 1 / (1 + x*x) }
	d.State = fill(kdim*DeltaLanes, same)
	d.K, d.Q = fill((n-1)*d.KStride+kdim, unit), fill((n-1)*d.KStride+kdim, unit)
	d.V, d.Y = fill((n-1)*d.VStride+DeltaLanes, same), make([]float32, (n-1)*d.YStride+DeltaLanes)
	d.Gate, d.Beta = fill((n-1)*d.GStride+1, share), fill((n-1)*d.GStride+1, share)
	return d
}

// exact is Run in float64, with the largest magnitude that any number has had on the way.
func (d *Delta) exact() (state, y []float64, top float64) {
	state, y = make([]float64, len(d.State)), make([]float64, len(d.Y))
	for i, v := range d.State {
		state[i] = float64(v)
	}
	for t := range d.N {
		k, q, g, beta := d.K[t*d.KStride:], d.Q[t*d.KStride:], float64(d.Gate[t*d.GStride]), float64(d.Beta[t*d.GStride])
		for j := range DeltaLanes {
			sum, abs, out := 0.0, 0.0, 0.0
			for i := range d.KDim {
				sum += g * float64(k[i]) * state[i*DeltaLanes+j]
				abs += math.Abs(g * float64(k[i]) * state[i*DeltaLanes+j])
			}
			delta := beta * (float64(d.V[t*d.VStride+j]) - sum)
			for i := range d.KDim {
				s := &state[i*DeltaLanes+j]
				*s = g**s + float64(k[i])*delta
				out += *s * float64(q[i])
				abs += math.Abs(*s * float64(q[i]))
			}
			y[t*d.YStride+j], top = out, max(top, abs, math.Abs(delta))
		}
	}
	return state, y, top
}

// TestDelta holds the rule to float64, and to the same bits however many tokens a call has.
func TestDelta(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(51, 1))
		for _, kdim := range []int{1, 2, 16, 33, 128, 192} {
			for _, n := range []int{1, 2, 9, 65} {
				d := randomDelta(r, n, kdim)
				before := slices.Clone(d.State)
				state, y, top := d.exact()
				d.Run()
				bound := 4 * float64((kdim+8)*(n+1)) * 0x1p-24 * top
				what := fmt.Sprintf("%d tokens of %d", n, kdim)
				for i, want := range state {
					if !(math.Abs(float64(d.State[i])-want) <= bound) {
						t.Fatalf("%s: state %d is %g, want %g ± %g", what, i, d.State[i], want, bound)
					}
				}
				for i, want := range y {
					if !(math.Abs(float64(d.Y[i])-want) <= bound) {
						t.Fatalf("%s: y %d is %g, want %g ± %g", what, i, d.Y[i], want, bound)
					}
				}
				c := *d
				c.State, c.Y, c.N = before, make([]float32, len(d.Y)), 1
				for range n {
					c.Run()
					c.K, c.Q = c.K[min(c.KStride, len(c.K)):], c.Q[min(c.KStride, len(c.Q)):]
					c.V, c.Y = c.V[min(c.VStride, len(c.V)):], c.Y[min(c.YStride, len(c.Y)):]
					c.Gate, c.Beta = c.Gate[min(c.GStride, len(c.Gate)):], c.Beta[min(c.GStride, len(c.Beta)):]
				}
				equal(t, what+" one by one", c.State, d.State)
			}
		}
	})
}

// TestMulAdd: every element has the bits it has alone.
func TestMulAdd(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(52, 1))
		for n := range lengths {
			y, a, b := randomFloats(r, n), randomFloats(r, n), randomFloats(r, n)
			got := slices.Clone(y)
			MulAdd(got, a, b)
			for i := range got {
				want := float64(y[i]) + float64(a[i])*float64(b[i])
				if scale := math.Abs(float64(y[i])) + math.Abs(float64(a[i])*float64(b[i])); !(math.Abs(float64(got[i])-want) <= 0x1p-23*scale) {
					t.Fatalf("element %d of %d: %g, want %g", i, n, got[i], want)
				}
				MulAdd(y[i:i+1], a[i:i+1], b[i:i+1])
			}
			equal(t, fmt.Sprintf("%d elements alone", n), y, got)
		}
	})
}

func BenchmarkDelta(b *testing.B) {
	d := randomDelta(rand.New(rand.NewPCG(53, 1)), 64, 128)
	for i := range d.Gate {
		d.Gate[i] = 0.9
	}
	for b.Loop() {
		d.Run()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*d.N), "ns/token-block")
}
