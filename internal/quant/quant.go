// Package quant owns the published weight formats: their bit layout, reference dequantisation and quantisation, one
// file per format. Backends and the checkpoint reader call it; it imports nothing of ours and never runs a model.
package quant

// Mode names a family of formats as config.json spells it.
type Mode string

// Affine is MLX's default: w = scale·q + bias with unsigned codes, scales and biases per group along the input.
const Affine Mode = "affine"

// Scheme is how one tensor is quantised. The zero value means plain floats.
type Scheme struct {
	Mode  Mode
	Bits  int // bits per code: 2, 3, 4, 5, 6, 8
	Group int // input columns that share a scale: 32, 64, 128
}

// None reports a plain float tensor.
func (s Scheme) None() bool { return s.Mode == "" }
