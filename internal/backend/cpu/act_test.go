package cpu

import (
	"math"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/kernel"
)

// TestGelu compares tables and routines with the formulas, ends and beyond included.
func TestGelu(t *testing.T) {
	before := kernel.Current()
	defer func() { _ = kernel.Use(before) }()
	for _, name := range []string{"generic", before} {
		if err := kernel.Use(name); err != nil {
			t.Fatal(err)
		}
		t.Run(name+" erf", func(t *testing.T) {
			testGelu(t, backend.GeluErf, func(x float64) float64 { return 0.5 * x * (1 + math.Erf(x/math.Sqrt2)) })
		})
		t.Run(name+" tanh", func(t *testing.T) {
			testGelu(t, backend.GeluTanh, func(x float64) float64 { return x / (1 + math.Exp(-2*math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) })
		})
		t.Run(name+" quick", func(t *testing.T) {
			testGelu(t, backend.QuickGelu, func(x float64) float64 { return x / (1 + math.Exp(-1.702*x)) })
		})
	}
}

func testGelu(t *testing.T, kind backend.ActKind, formula func(float64) float64) {
	var x []float32
	for v := float32(-7); v <= 7; v += 1.0 / 1024 {
		x = append(x, v, math.Nextafter32(v, 8))
	}
	x = append(x, 0, float32(math.Copysign(0, -1)), 1e30, -1e30, float32(math.Inf(1)), 1e-30)
	y := make([]float32, len(x))
	activate(kind, 0, y, x)
	for i, v := range x {
		want := formula(float64(v))
		if d := math.Abs(float64(y[i]) - want); d > 1.3e-7*math.Abs(want)+1e-15 {
			t.Errorf("gelu(%g) = %g, want %g", v, y[i], want)
		}
	}
	if y := []float32{float32(math.NaN())}; true {
		if activate(kind, 0, y, y); y[0] == y[0] {
			t.Error("gelu(NaN) is a number")
		}
	}
}
