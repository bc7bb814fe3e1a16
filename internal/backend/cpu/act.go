package cpu

import (
	"math"

	"hearth/internal/backend"
	"hearth/internal/kernel"
)

// activate writes y = act(x): in float64, rounded once.
func activate(kind backend.ActKind, a float32, y, x []float32) {
	for i, v := range x {
		y[i] = float32(act(kind, float64(a), float64(v)))
	}
}

func act(kind backend.ActKind, a, x float64) float64 {
	switch kind {
	case backend.ActNone:
		return x
	case backend.SiLU:
		return x / (1 + math.Exp(-x))
	case backend.GeluTanh:
		return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	case backend.GeluErf:
		return 0.5 * x * (1 + math.Erf(x/math.Sqrt2))
	case backend.QuickGelu:
		return x / (1 + math.Exp(-1.702*x))
	case backend.ReLU2:
		return max(x, 0) * max(x, 0)
	case backend.SigmoidAct:
		return 1 / (1 + math.Exp(-x))
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
	for i, v := range x {
		u := g[min(i, len(g)-1)]
		if s.Limit != 0 {
			u, v = min(u, s.Limit), max(min(v, s.Limit), -s.Limit)
		}
		if s.UpPlus1 {
			v++
		}
		y[i] = float32(act(s.Act, 0, float64(u))) * v
	}
}
