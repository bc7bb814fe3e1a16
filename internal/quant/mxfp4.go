package quant

func init() { register(MXFP4, mxfp4{}) }

// mxfp4: w = scale·e2m1(code), groups of 32, scales are powers of two in a byte (e8m0). Zeros dequantise to ±0 under
// any finite scale. In float16, whose exponents are fewer, scales may round to 0 or infinity.
type mxfp4 struct{}

func (mxfp4) Supports(bits, group int) bool { return bits == 4 && group == 32 }
func (mxfp4) ScaleType(t DType) bool        { return t == U8 }
func (mxfp4) HasBiases() bool               { return false }

func (mxfp4) Row(m *Matrix, dst []float32, t DType, r int) {
	src, n := m.RowBytes(r), m.In/32
	for j, s := range m.Scales[r*n : (r+1)*n] {
		scaleE2M1(dst[j*32:(j+1)*32], src[j*16:(j+1)*16], round(e8m0(s), t), t)
	}
}

// scaleE2M1 decodes one group.
func scaleE2M1(dst []float32, src []byte, scale float32, t DType) {
	for i, b := range src {
		dst[2*i], dst[2*i+1] = e2m1[b&15]*scale, e2m1[b>>4]*scale
	}
	roundAll(dst, t)
}

// Uniform: the values are halves of whole numbers from -12 to 12. Exact while 6·scale is finite.
func (mxfp4) Uniform(*Matrix) Uniform { return Uniform{Bits: 5, BF16: true} }

func (mxfp4) Codes(m *Matrix, dst []uint8, r int) {
	for i, b := range m.RowBytes(r) {
		dst[2*i] = e2m1Uniform[b&15]
		dst[2*i+1] = e2m1Uniform[b>>4]
	}
}

func (mxfp4) ScalesBiases(m *Matrix, scales, biases []float32, r int) {
	n := m.In / 32
	for j, s := range m.Scales[r*n : (r+1)*n] {
		scales[j] = e8m0(s) / 2
		biases[j] = -12 * scales[j]
	}
}

func (mxfp4) Quantize(s Scheme, w []float32, rows, in int, t DType) *Matrix {
	m := s.empty(rows, in)
	var codes [32]uint8
	var rounded [32]float32
	for k := range m.Scales {
		g := w[k*32 : (k+1)*32]
		var scale float32
		m.Scales[k], scale = e8m0Scale(g, 6, t)
		for i, x := range g {
			rounded[i] = round(x/scale, t)
		}
		allE2M1(codes[:], rounded[:], t, t)
		Pack(m.Weight[k*16:(k+1)*16], codes[:], 4)
	}
	return m
}

// empty is a matrix with one byte of scale per group.
func (s Scheme) empty(rows, in int) *Matrix {
	return &Matrix{Rows: rows, In: in, Scheme: s, ScaleType: U8,
		Weight: make([]byte, rows*s.RowBytes(in)), Scales: make([]byte, rows*in/s.Group)}
}
