//go:build unix

package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomScan has room for n tokens of kdim, with strides wider than their rows.
func randomScan(r *rand.Rand, n, kdim int) *Scan {
	d := randomDelta(r, n, kdim)
	s := &Scan{State: d.State, K: d.K, V: d.V, Y: d.Y, Gate: d.Gate, N: n, KDim: kdim,
		KStride: d.KStride, QStride: kdim + 1, VStride: d.VStride, YStride: d.YStride, GStride: d.GStride}
	s.Q = randomFloats(r, (n-1)*s.QStride+kdim)
	return s
}

// alone is token t of a scan.
func (s *Scan) alone(t int) *Scan {
	one := *s
	one.N, one.K, one.Q, one.V, one.Y, one.Gate = 1, s.K[t*s.KStride:], s.Q[t*s.QStride:], s.V[t*s.VStride:], s.Y[t*s.YStride:], s.Gate[t*s.GStride:]
	return &one
}

// close holds numbers to those of float64.
func close64(t *testing.T, what string, got []float32, want []float64, bound float64) {
	t.Helper()
	for i, w := range want {
		if !(math.Abs(float64(got[i])-w) <= bound) {
			t.Fatalf("%s: number %d is %g, want %g ± %g", what, i, got[i], w, bound)
		}
	}
}

// TestScan holds the recurrence to float64, and to the same bits however many tokens a call has and however the decays are given.
func TestScan(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(61, 1))
		for _, kdim := range []int{1, 2, 16, 33, 128} {
			for _, n := range []int{1, 2, 9, 65} {
				s := randomScan(r, n, kdim)
				before := slices.Clone(s.State)
				state, y, top := make([]float64, len(s.State)), make([]float64, len(s.Y)), 0.0
				for i, v := range s.State {
					state[i] = float64(v)
				}
				for tok := range n {
					for j := range DeltaLanes {
						abs := 0.0
						for i := range kdim {
							at := &state[i*DeltaLanes+j]
							*at = *at*float64(s.Gate[tok*s.GStride]) + float64(s.K[tok*s.KStride+i])*float64(s.V[tok*s.VStride+j])
							y[tok*s.YStride+j] += *at * float64(s.Q[tok*s.QStride+i])
							abs += math.Abs(*at * float64(s.Q[tok*s.QStride+i]))
						}
						top = max(top, abs, 1)
					}
				}
				s.Run()
				what, bound := fmt.Sprintf("%d tokens of %d", n, kdim), 4*float64((kdim+8)*(n+1))*0x1p-24*top
				close64(t, what, s.State, state, bound)
				close64(t, what, s.Y, y, bound)

				one, wide := *s, *s
				one.State, one.Y = slices.Clone(before), make([]float32, len(s.Y))
				wide.State, wide.Y = before, make([]float32, len(s.Y))
				for tok := range n {
					one.alone(tok).Run()
					w := wide.alone(tok)
					w.Wide, w.Gate = true, slices.Repeat(w.Gate[:1], kdim*DeltaLanes)
					w.Run()
				}
				equal(t, what+" one by one", one.State, s.State)
				equal(t, what+" with a decay per number", wide.State, s.State)
				equal(t, what+" with a decay per number", wide.Y, one.Y)
			}
		}
	})
}

// TestDecays: exp(a·by), lane by lane.
func TestDecays(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(62, 1))
		for _, rows := range []int{0, 1, 16, 33} {
			a, by := randomFloats(r, rows*DeltaLanes), randomFloats(r, DeltaLanes)
			got := make([]float32, len(a))
			Decays(got, a, by)
			for i, v := range got {
				if want := math.Exp(float64(a[i] * by[i%DeltaLanes])); !(math.Abs(float64(v)-want) <= 1e-6*want) {
					t.Fatalf("%d rows: number %d is %g, want %g", rows, i, v, want)
				}
			}
		}
	})
}

// randomKeyDelta is a rule with a decay per key.
func randomKeyDelta(r *rand.Rand, n, kdim int) *KeyDelta {
	d := randomDelta(r, n, kdim)
	k := &KeyDelta{State: d.State, K: d.K, Q: d.Q, V: d.V, Y: d.Y, Beta: d.Beta, N: n, KDim: kdim,
		KStride: d.KStride, VStride: d.VStride, YStride: d.YStride, GStride: kdim + 2, BStride: d.GStride}
	k.Gate = randomFloats(r, (n-1)*k.GStride+kdim)
	k.KG = make([]float32, len(k.Gate))
	for i, g := range k.Gate {
		k.Gate[i] = 1 / (1 + g*g)
	}
	for t := range n {
		for i := range kdim {
			k.KG[t*k.GStride+i] = k.Gate[t*k.GStride+i] * k.K[t*k.KStride+i]
		}
	}
	return k
}

// TestKeyDelta holds the rule to float64, to Delta where all decays of a token are the same, and to the same bits however many
// tokens a call has.
func TestKeyDelta(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(63, 1))
		for _, kdim := range []int{1, 16, 33, 128} {
			for _, n := range []int{1, 2, 9, 65} {
				d := randomKeyDelta(r, n, kdim)
				before := slices.Clone(d.State)
				state, y, top := make([]float64, len(d.State)), make([]float64, len(d.Y)), 1.0
				for i, v := range d.State {
					state[i] = float64(v)
				}
				for tok := range n {
					for j := range DeltaLanes {
						sum, abs := 0.0, 0.0
						for i := range kdim {
							state[i*DeltaLanes+j] *= float64(d.Gate[tok*d.GStride+i])
							sum += float64(d.K[tok*d.KStride+i]) * state[i*DeltaLanes+j]
						}
						delta := float64(d.Beta[tok*d.BStride]) * (float64(d.V[tok*d.VStride+j]) - sum)
						for i := range kdim {
							s := &state[i*DeltaLanes+j]
							*s += float64(d.K[tok*d.KStride+i]) * delta
							y[tok*d.YStride+j] += *s * float64(d.Q[tok*d.KStride+i])
							abs += math.Abs(*s * float64(d.Q[tok*d.KStride+i]))
						}
						top = max(top, abs, math.Abs(delta))
					}
				}
				d.Run()
				what, bound := fmt.Sprintf("%d tokens of %d", n, kdim), 8*float64((kdim+8)*(n+1))*0x1p-24*top
				close64(t, what, d.State, state, bound)
				close64(t, what, d.Y, y, bound)
				one := *d
				one.State, one.N = before, 1
				for tok := range n {
					o := one
					o.K, o.Q, o.V, o.Y = d.K[tok*d.KStride:], d.Q[tok*d.KStride:], d.V[tok*d.VStride:], make([]float32, DeltaLanes)
					o.Gate, o.KG, o.Beta = d.Gate[tok*d.GStride:], d.KG[tok*d.GStride:], d.Beta[tok*d.BStride:]
					o.Run()
				}
				equal(t, what+" one by one", one.State, d.State)
			}
		}
	})
}

func guardScan(t *testing.T, front bool) {
	r := rand.New(rand.NewPCG(64, 1))
	for _, n := range []int{1, 2, 7} {
		s := randomScan(r, n, 1+r.IntN(40))
		g := *s
		for _, x := range []*[]float32{&g.State, &g.K, &g.Q, &g.V, &g.Y, &g.Gate} {
			*x = guardedCopy(t, *x, front)
		}
		s.Run()
		g.Run()
		equal(t, "state", g.State, s.State)
		equal(t, "y", g.Y, s.Y)
		w := g.alone(n - 1)
		w.Wide, w.Gate = true, guardedCopy(t, randomFloats(r, g.KDim*DeltaLanes), front)
		w.Run()
		Decays(w.Gate, w.Gate, guardedCopy(t, randomFloats(r, DeltaLanes), front))

		d := randomKeyDelta(r, n, 1+r.IntN(40))
		k := *d
		for _, x := range []*[]float32{&k.State, &k.K, &k.Q, &k.V, &k.Y, &k.Gate, &k.KG, &k.Beta} {
			*x = guardedCopy(t, *x, front)
		}
		d.Run()
		k.Run()
		equal(t, "state", k.State, d.State)
		equal(t, "y", k.Y, d.Y)
	}
}
