package quant

import (
	"fmt"
	"math"
)

// QuantizeGlobal is Quantize to nvfp4 with a scale for the whole tensor. global is max |w| in mlx-lm; any other value
// moves what the scales can reach.
func QuantizeGlobal(w []float32, rows, in int, t DType, global float32) (*Matrix, error) {
	s := Scheme{NVFP4, 4, 16}
	if err := s.Check(in); err != nil || len(w) != rows*in || !(global > 0) || math.IsInf(float64(global), 0) {
		return nil, fmt.Errorf("quantize: %d values for a %d×%d matrix of %s with global scale %g", len(w), rows, in, s, global)
	}
	m := s.empty(rows, in)
	m.Global = &global
	m.nvfp4(w, t, GlobalUnit/global)
	return m, nil
}
