package cpu

import (
	"math"

	"hearth/internal/backend"
	"hearth/internal/kernel"
)

// activate writes y = act(x): in float64, rounded once.
func activate(kind backend.ActKind, a float32, y, x []float32) {
	switch kind {
	case backend.GeluErf:
		gelu(kind, &normalTable, y, x)
		return
	case backend.GeluTanh:
		if kernel.HasSwish() {
			kernel.Swish(y, x, nearNormalA, nearNormalB)
		} else {
			gelu(kind, &nearNormalTable, y, x)
		}
		return
	case backend.QuickGelu:
		kernel.Swish(y, x, 1.702, 0)
		return
	}
	for i, v := range x {
		y[i] = float32(act(kind, float64(a), float64(v)))
	}
}

// clamp is activate for the kind that has two bounds.
func clamp(low, high float32, y, x []float32) {
	for i, v := range x {
		y[i] = min(max(v, low), high)
	}
}

// xielu is activate for the kind that has more than one parameter.
func xielu(a *backend.Activation, y, x []float32) {
	for i, v := range x {
		v := float64(v)
		s := float64(a.C) * v
		if v > 0 {
			s += float64(a.A) * v * v
		} else {
			s += float64(a.B) * (math.Expm1(min(v, float64(a.E))) - v)
		}
		y[i] = float32(s)
	}
}

func act(kind backend.ActKind, a, x float64) float64 {
	switch kind {
	case backend.ActNone:
		return x
	case backend.SiLU:
		return x / (1 + math.Exp(-x))
	case backend.GeluTanh:
		return x / (1 + math.Exp(-nearNormalA*x-nearNormalB*x*x*x))
	case backend.GeluErf:
		return 0.5 * x * (1 + math.Erf(x/math.Sqrt2))
	case backend.QuickGelu:
		return x / (1 + math.Exp(-1.702*x))
	case backend.ReLU2:
		return max(x, 0) * max(x, 0)
	case backend.SigmoidAct:
		return 1 / (1 + math.Exp(-x))
	case backend.SoftplusAct:
		return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
	case backend.TanhCap:
		return a * math.Tanh(x/a)
	}
	panic("cpu: unknown activation")
}

// gate writes y = act(g)·x with the limits of s. y may be g or x; g may be one number for all of x.
func gate(s *backend.GLU, y, g, x []float32) {
	if s.Act == backend.SiLU && s.Limit == 0 && !s.UpPlus1 && len(g) == len(x) {
		kernel.SiLUMul(y, g, x)
		return
	}
	if s.Act == backend.SigmoidAct && s.Limit == 0 && !s.UpPlus1 && len(g) == len(x) {
		kernel.SigmoidMul(y, g, x)
		return
	}
	if s.Act == backend.GeluTanh && s.Limit == 0 && !s.UpPlus1 && len(g) == len(x) {
		geluMul(y, g, x)
		return
	}
	each := len(x) / len(g) // columns with one gate
	for i, v := range x {
		u := g[i/each]
		if s.Limit != 0 {
			v = max(min(v, s.Limit), -s.Limit)
			if s.After {
				y[i] = min(float32(act(s.Act, 0, float64(u))), s.Limit) * v
				continue
			}
			u = min(u, s.Limit)
		}
		if s.UpPlus1 {
			v++
		}
		y[i] = float32(act(s.Act, 0, float64(u))) * v
	}
}

// Steps of the normal distribution's table per unit, and where it begins and ends.
const normalSteps, normalFrom, normalTo = 64, -4, 6

// stepped is a function from 0 to 1 and its derivative, times the width of a step, at every step. Cubics between them have as
// many right digits as a float32, at either end too: further down they would not.
type stepped [normalSteps*(normalTo-normalFrom) + 1][2]float64

// normalTable holds Φ.
var normalTable = func() (t stepped) {
	for i := range t {
		x := float64(i)/normalSteps + normalFrom
		t[i] = [2]float64{math.Erfc(-x/math.Sqrt2) / 2, math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) / normalSteps}
	}
	return t
}()

// What GeluTanh has in the place of Φ is the logistic function of nearNormalA·x + nearNormalB·x³.
var (
	nearNormalA = 2 * math.Sqrt(2/math.Pi)
	nearNormalB = 0.044715 * nearNormalA
)

// nearNormalTable holds it.
var nearNormalTable = func() (t stepped) {
	for i := range t {
		x := float64(i)/normalSteps + normalFrom
		s := 1 / (1 + math.Exp(-nearNormalA*x-nearNormalB*x*x*x))
		t[i] = [2]float64{s, s * (1 - s) * (nearNormalA + 3*nearNormalB*x*x) / normalSteps}
	}
	return t
}()

// gelu writes y = x·Φ(x), six times as fast as by math.Erf or math.Tanh.
func gelu(kind backend.ActKind, t *stepped, y, x []float32) {
	for i, v := range x {
		if !(v > normalFrom && v < normalTo) {
			y[i] = float32(act(kind, 0, float64(v)))
			continue
		}
		y[i] = float32(float64(v) * t.at(v))
	}
}

// geluMul writes y = gelu(g)·x by tanh, as gate has it.
func geluMul(y, g, x []float32) {
	for i, u := range g {
		v := x[i]
		if u > normalFrom && u < normalTo {
			y[i] = float32(float64(u)*nearNormalTable.at(u)) * v
			continue
		}
		y[i] = float32(act(backend.GeluTanh, 0, float64(u))) * v
	}
}

// at is the function between steps.
func (t *stepped) at(x float32) float64 {
	at := (float64(x) - normalFrom) * normalSteps
	n := int(at)
	f := at - float64(n)
	a, b := &t[n], &t[n+1]
	d := b[0] - a[0]
	return a[0] + f*(a[1]+f*(3*d-2*a[1]-b[1]+f*(a[1]+b[1]-2*d)))
}
