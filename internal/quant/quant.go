// Package quant owns the published weight formats: their bit layout, reference dequantisation and quantisation, one
// file per format. Backends and the checkpoint reader call it; it imports nothing of ours and never runs a model.
package quant

import "fmt"

// Mode names a family of formats as config.json spells it.
type Mode string

// The modes. Affine is MLX's default: w = scale·q + bias with unsigned codes, scales and biases per group along the
// input. The others have small floats as codes and no biases.
const (
	Affine Mode = "affine"
	MXFP4  Mode = "mxfp4"
	MXFP8  Mode = "mxfp8"
	NVFP4  Mode = "nvfp4"
)

// Modes lists them in the order people read about them.
func Modes() []Mode { return []Mode{Affine, MXFP4, MXFP8, NVFP4} }

// Default is the scheme of a mode where nothing else is said, as in MLX; ok is false for an unknown mode.
func (m Mode) Default() (s Scheme, ok bool) {
	switch m {
	case Affine:
		return Scheme{m, 4, 64}, true
	case MXFP4:
		return Scheme{m, 4, 32}, true
	case MXFP8:
		return Scheme{m, 8, 32}, true
	case NVFP4:
		return Scheme{m, 4, 16}, true
	}
	return Scheme{}, false
}

// Scheme is how one tensor is quantised. The zero value means plain floats.
type Scheme struct {
	Mode  Mode
	Bits  int // bits per code: 2, 3, 4, 5, 6, 8
	Group int // input columns that share a scale: 16, 32, 64, 128
}

// None reports a plain float tensor.
func (s Scheme) None() bool { return s.Mode == "" }

// String is "float" or, for example, "affine 4 bits, group 64".
func (s Scheme) String() string {
	if s.None() {
		return "float"
	}
	return fmt.Sprintf("%s %d bits, group %d", s.Mode, s.Bits, s.Group)
}

// RowBytes is the length of one row of codes.
func (s Scheme) RowBytes(in int) int { return in * s.Bits / 8 }

// Check says whether this package can read s for rows of in columns.
func (s Scheme) Check(in int) error {
	if s.None() {
		return nil
	}
	f, ok := formats[s.Mode]
	if !ok {
		return fmt.Errorf("quantisation mode %q is not supported", s.Mode)
	}
	if !f.Supports(s.Bits, s.Group) {
		return fmt.Errorf("quantisation %s is not supported", s)
	}
	if in <= 0 || in%s.Group != 0 {
		return fmt.Errorf("%d columns do not divide into groups of %d", in, s.Group)
	}
	return nil
}

// Format is one quantisation mode. Each lives in a file of its own that registers it.
// Methods that take a Matrix may rely on NewMatrix having checked it.
type Format interface {
	// Supports reports whether the mode is defined for codes of so many bits in groups of so many columns.
	Supports(bits, group int) bool
	// ScaleType reports whether scales are stored as t.
	ScaleType(t DType) bool
	// HasBiases reports whether every scale has a bias beside it.
	HasBiases() bool
	// Row writes the dequantised row r of m, every step rounded to t, to dst (m.In long).
	Row(m *Matrix, dst []float32, t DType, r int)
	// Quantize is the inverse, the way MLX rounds; see the package function.
	Quantize(s Scheme, w []float32, rows, in int, t DType) *Matrix
}

// uniformFormat is a Format whose values are scale·code + bias with codes of few bits.
type uniformFormat interface {
	Uniform(m *Matrix) Uniform
	Codes(m *Matrix, dst []uint8, r int)
	ScalesBiases(m *Matrix, scales, biases []float32, r int)
}

var formats = map[Mode]Format{}

func register(m Mode, f Format) { formats[m] = f }

// Infer finds the scheme of a stored tensor from its shapes, as mlx-lm does: in is the input width the layer
// declares, words the uint32 per row of codes, groups the scales per row, t their type.
func Infer(in, words, groups int, t DType) (Scheme, error) {
	if in <= 0 || words <= 0 || groups <= 0 || in%groups != 0 || words*32%in != 0 {
		return Scheme{}, fmt.Errorf("%d words of codes and %d scales per row fit no quantisation of %d columns", words, groups, in)
	}
	s := Scheme{Bits: words * 32 / in, Group: in / groups}
	for m, f := range formats {
		if f.ScaleType(t) && f.Supports(s.Bits, s.Group) {
			s.Mode = m
			return s, nil
		}
	}
	return Scheme{}, fmt.Errorf("no known quantisation has %d bits in groups of %d with %s scales", s.Bits, s.Group, t)
}

// Quantize turns rows×in floats (already rounded to t where that is narrower) into a Matrix whose scales and biases
// are stored as t. Codes, scales and biases are bit-equal to mx.quantize of an array of type t; formats
// with scales of their own type leave t to the arithmetic. NaNs have no meaning in codes.
func Quantize(s Scheme, w []float32, rows, in int, t DType) (*Matrix, error) {
	if len(w) != rows*in {
		return nil, fmt.Errorf("quantize: %d values for a %d×%d matrix", len(w), rows, in)
	}
	if s.None() {
		return nil, fmt.Errorf("quantize: no scheme given")
	}
	if err := s.Check(in); err != nil {
		return nil, fmt.Errorf("quantize: %w", err)
	}
	return formats[s.Mode].Quantize(s, w, rows, in, t), nil
}
