package cpu

import (
	"math"
	"testing"

	"hearth/internal/backend"
)

// TestGeluErf compares the table with the formula, ends and beyond included.
func TestGeluErf(t *testing.T) {
	var x []float32
	for v := float32(-7); v <= 7; v += 1.0 / 1024 {
		x = append(x, v, math.Nextafter32(v, 8))
	}
	x = append(x, 0, float32(math.Copysign(0, -1)), 1e30, -1e30, float32(math.Inf(1)), 1e-30)
	y := make([]float32, len(x))
	activate(backend.GeluErf, 0, y, x)
	for i, v := range x {
		want := 0.5 * float64(v) * (1 + math.Erf(float64(v)/math.Sqrt2))
		if d := math.Abs(float64(y[i]) - want); d > 1.3e-7*math.Abs(want)+1e-15 {
			t.Errorf("gelu(%g) = %g, want %g", v, y[i], want)
		}
	}
	if y := []float32{float32(math.NaN())}; true {
		if activate(backend.GeluErf, 0, y, y); y[0] == y[0] {
			t.Error("gelu(NaN) is a number")
		}
	}
}
