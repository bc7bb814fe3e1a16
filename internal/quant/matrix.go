package quant

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Data is a stored tensor as a safetensors file describes it. Bytes may be unaligned and must not be written to.
type Data struct {
	DType DType
	Shape []int
	Bytes []byte
}

// Matrix is one stored matrix of Rows × In, plain floats or quantised. It refers to its bytes, it does not copy them.
// Stacked tensors ([experts, out, in]) are one matrix of experts·out rows.
type Matrix struct {
	Rows, In int
	Scheme   Scheme

	Weight []byte // floats of type Type, or codes: Rows little-endian bit streams of In·Bits bits each
	Type   DType  // of a plain float matrix

	Scales, Biases      []byte // Rows × In/Group each; Biases only where the format has them
	ScaleType, BiasType DType
	Global              *float32 // nvfp4: scale of the whole tensor; nil: none
}

// NewMatrix checks that the tensors are what s says of a rows×in matrix. scales and biases are nil where s has none.
func NewMatrix(rows, in int, s Scheme, weight, scales, biases *Data) (*Matrix, error) {
	m := &Matrix{Rows: rows, In: in, Scheme: s, Weight: weight.Bytes}
	if s.None() {
		if !weight.DType.Float() {
			return nil, fmt.Errorf("weight is %s, not a float type", weight.DType)
		}
		m.Type = weight.DType
		return m, weight.check("weight", rows, in)
	}
	if err := s.Check(in); err != nil {
		return nil, err
	}
	f := formats[s.Mode]
	if weight.DType != U32 {
		return nil, fmt.Errorf("quantised weight is %s, not U32", weight.DType)
	}
	if err := weight.check("weight", rows, in*s.Bits/32); err != nil {
		return nil, err
	}
	switch {
	case scales == nil:
		return nil, fmt.Errorf("scales are missing")
	case !f.ScaleType(scales.DType):
		return nil, fmt.Errorf("scales are %s, which %s has not", scales.DType, s.Mode)
	case (biases != nil) != f.HasBiases():
		if biases == nil {
			return nil, fmt.Errorf("biases are missing")
		}
		return nil, fmt.Errorf("biases are there, which %s has not", s.Mode)
	}
	m.Scales, m.ScaleType = scales.Bytes, scales.DType
	if err := scales.check("scales", rows, in/s.Group); err != nil {
		return nil, err
	}
	if biases == nil {
		return m, nil
	}
	if !biases.DType.Float() {
		return nil, fmt.Errorf("biases are %s, not a float type", biases.DType)
	}
	m.Biases, m.BiasType = biases.Bytes, biases.DType
	return m, biases.check("biases", rows, in/s.Group)
}

// check compares the shape, leading dimensions multiplied together, and the byte length.
func (d *Data) check(what string, rows, cols int) error {
	n, last := 1, 1
	if k := len(d.Shape); k > 0 {
		last = d.Shape[k-1]
		for _, x := range d.Shape[:k-1] {
			n *= x
		}
	}
	if n != rows || last != cols {
		return fmt.Errorf("%s have shape %v, expected [%d %d]", what, d.Shape, rows, cols)
	}
	if want := rows * cols * d.DType.Size(); len(d.Bytes) != want {
		return fmt.Errorf("%s have %d bytes, expected %d", what, len(d.Bytes), want)
	}
	return nil
}

// SetGlobal gives the matrix a scale for the whole tensor, one float32. Only nvfp4 may have one.
func (m *Matrix) SetGlobal(d *Data) error {
	if m.Scheme.Mode != NVFP4 {
		return fmt.Errorf("a global scale is there, which %s has not", m.Scheme)
	}
	if d.DType != F32 || len(d.Bytes) != 4 {
		return fmt.Errorf("the global scale is %s of shape %v, expected one F32", d.DType, d.Shape)
	}
	var g [1]float32
	Floats(g[:], F32, d.Bytes)
	if !(g[0] >= 0 && g[0] <= math.MaxFloat32) {
		return fmt.Errorf("the global scale is %g", g[0])
	}
	m.Global = &g[0]
	return nil
}

// Factor is what the global scale multiplies every value by, 1 where there is none.
func (m *Matrix) Factor() float32 {
	if m.Global == nil {
		return 1
	}
	return *m.Global / GlobalUnit
}

// UnscaledRow is Row without the global scale: what is left is exact, and fits bfloat16.
func (m *Matrix) UnscaledRow(dst []float32, r int) {
	u := *m
	u.Global = nil
	u.Row(dst, r)
}

// Row writes row r, dequantised in float32 (for affine: round(scale·code) + bias, rounded once more), to dst, which is In long.
func (m *Matrix) Row(dst []float32, r int) { m.RowAs(dst, F32, r) }

// RowAs is Row with every step rounded to the float type t. For t the type of an affine matrix's scales, and any t for
// the other modes, the result is bit-equal to mx.dequantize with dtype t. Plain floats are only rounded.
func (m *Matrix) RowAs(dst []float32, t DType, r int) {
	dst = dst[:m.In]
	if !m.Scheme.None() {
		formats[m.Scheme.Mode].Row(m, dst, t, r)
		return
	}
	n := m.In * m.Type.Size()
	Floats(dst, m.Type, m.Weight[r*n:])
	roundAll(dst, t)
}

// RowBytes is the stored form of row r: its bit stream of codes, or its floats.
func (m *Matrix) RowBytes(r int) []byte {
	n := m.Scheme.RowBytes(m.In)
	if m.Scheme.None() {
		n = m.In * m.Type.Size()
	}
	return m.Weight[r*n : (r+1)*n]
}

// Uniform says that a matrix is scale·code + bias, exactly, with unsigned codes of so many bits and a scale and bias per
// group. Codes and ScalesBiases give the three.
type Uniform struct {
	Bits int
	BF16 bool // scales and biases are bfloat16 values
}

// Uniform reports whether the matrix can be read so.
func (m *Matrix) Uniform() (u Uniform, ok bool) {
	f, ok := formats[m.Scheme.Mode].(uniformFormat)
	if ok {
		u = f.Uniform(m)
	}
	return u, ok
}

// Codes writes the codes of row r of a uniform matrix to dst, which is In long.
func (m *Matrix) Codes(dst []uint8, r int) {
	formats[m.Scheme.Mode].(uniformFormat).Codes(m, dst[:m.In], r)
}

// ScalesBiases writes the scales and biases of row r of a uniform matrix; both slices are In/Group long.
func (m *Matrix) ScalesBiases(scales, biases []float32, r int) {
	formats[m.Scheme.Mode].(uniformFormat).ScalesBiases(m, scales, biases, r)
}

// Unpack reads len(dst) codes of 2 to 8 bits from a little-endian bit stream: code i is bits [i·bits, (i+1)·bits).
// len(dst) is a multiple of 8, so that every eight codes start at a byte.
func Unpack(dst []uint8, src []byte, bits int) {
	mask := uint64(1)<<bits - 1
	for len(dst) >= 8 {
		var x uint64
		if len(src) >= 8 {
			x = binary.LittleEndian.Uint64(src)
		} else {
			for i, b := range src[:bits] {
				x |= uint64(b) << (8 * i)
			}
		}
		d := dst[:8:8]
		for i := range d {
			d[i] = uint8(x & mask)
			x >>= bits
		}
		dst, src = dst[8:], src[bits:]
	}
}

// Pack is the inverse of Unpack.
func Pack(dst []byte, src []uint8, bits int) {
	for len(src) >= 8 {
		var x uint64
		for i, c := range src[:8] {
			x |= uint64(c) << (i * bits)
		}
		for i := range dst[:bits] {
			dst[i] = uint8(x >> (8 * i))
		}
		dst, src = dst[bits:], src[8:]
	}
}
