package quant

import "math"

func init() { register(Affine, affine{}) }

// affine: w = scale·q + bias, q unsigned, one scale and bias of the checkpoint's float type per group. Scales may be
// negative. Layout and rounding as in mlx 0.32.4 (mlx/backend/cpu/quantized.cpp).
type affine struct{}

func (affine) Supports(bits, group int) bool {
	switch bits {
	case 2, 3, 4, 5, 6, 8:
		return group == 32 || group == 64 || group == 128
	}
	return false
}

func (affine) ScaleType(t DType) bool { return t.Float() }
func (affine) HasBiases() bool        { return true }

func (affine) Row(m *Matrix, dst []float32, t DType, r int) {
	var codes [128]uint8
	var scale, bias [1]float32
	g, bits := m.Scheme.Group, m.Scheme.Bits
	src := m.RowBytes(r)
	ss, bs := m.ScaleType.Size(), m.BiasType.Size()
	for j := range m.In / g {
		k := r*(m.In/g) + j
		Floats(scale[:], m.ScaleType, m.Scales[k*ss:])
		Floats(bias[:], m.BiasType, m.Biases[k*bs:])
		Unpack(codes[:g], src[j*g*bits/8:(j+1)*g*bits/8], bits)
		for i, c := range codes[:g] {
			dst[j*g+i] = round(round(float32(scale[0]*float32(c)), t)+bias[0], t) // the conversion forbids a fused multiply-add
		}
	}
}

func (affine) Uniform(m *Matrix) Uniform {
	return Uniform{Bits: m.Scheme.Bits, BF16: m.ScaleType == BF16 && m.BiasType == BF16}
}

func (affine) Codes(m *Matrix, dst []uint8, r int) { Unpack(dst, m.RowBytes(r), m.Scheme.Bits) }

func (affine) ScalesBiases(m *Matrix, scales, biases []float32, r int) {
	n := m.In / m.Scheme.Group
	Floats(scales[:n], m.ScaleType, m.Scales[r*n*m.ScaleType.Size():])
	Floats(biases[:n], m.BiasType, m.Biases[r*n*m.BiasType.Size():])
}

func (affine) Quantize(s Scheme, w []float32, rows, in int, t DType) *Matrix {
	groups := rows * in / s.Group
	m := &Matrix{Rows: rows, In: in, Scheme: s, ScaleType: t, BiasType: t,
		Weight: make([]byte, rows*s.RowBytes(in)), Scales: make([]byte, groups*t.Size()), Biases: make([]byte, groups*t.Size())}
	codes := make([]uint8, s.Group)
	step := s.Group * s.Bits / 8
	for k := range groups {
		scale, bias := affineGroup(codes, w[k*s.Group:(k+1)*s.Group], s.Bits)
		Pack(m.Weight[k*step:(k+1)*step], codes, s.Bits)
		PutFloats(m.Scales[k*t.Size():], t, []float32{scale})
		PutFloats(m.Biases[k*t.Size():], t, []float32{bias})
	}
	return m
}

// affineGroup picks codes with the unrounded float32 scale, as MLX does: the end of the range that is farther from
// zero becomes the bias, so that it and (nearly) zero are represented exactly.
func affineGroup(codes []uint8, w []float32, bits int) (scale, bias float32) {
	lo, hi := float32(math.Inf(1)), float32(math.Inf(-1))
	for _, x := range w {
		lo, hi = min(lo, x), max(hi, x)
	}
	top := float32(int(1)<<bits - 1)
	scale = max((hi-lo)/top, 1e-7)
	edge := lo
	if abs(lo) <= abs(hi) {
		scale, edge = -scale, hi
	}
	if q0 := rint(edge / scale); q0 != 0 {
		scale, bias = edge/q0, edge
	}
	for i, x := range w {
		codes[i] = uint8(min(max(rint((x-bias)/scale), 0), top))
	}
	return scale, bias
}

func abs(x float32) float32  { return float32(math.Abs(float64(x))) }
func rint(x float32) float32 { return float32(math.RoundToEven(float64(x))) }
