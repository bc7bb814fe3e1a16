package quant

func init() { register(MXFP8, mxfp8{}) }

// mxfp8: w = scale·e4m3(code), groups of 32, scales are powers of two in a byte (e8m0). Codes 0x7f and 0xff are NaN.
type mxfp8 struct{}

func (mxfp8) Supports(bits, group int) bool { return bits == 8 && group == 32 }
func (mxfp8) ScaleType(t DType) bool        { return t == U8 }
func (mxfp8) HasBiases() bool               { return false }

func (mxfp8) Row(m *Matrix, dst []float32, t DType, r int) {
	src, n := m.RowBytes(r), m.In/32
	for j, s := range m.Scales[r*n : (r+1)*n] {
		scale, g := round(e8m0(s), t), dst[j*32:(j+1)*32]
		for i, b := range src[j*32 : (j+1)*32] {
			g[i] = e4m3[b] * scale
		}
		roundAll(g, t)
	}
}

func (mxfp8) Quantize(s Scheme, w []float32, rows, in int, t DType) *Matrix {
	m := s.empty(rows, in)
	for k := range m.Scales {
		g := w[k*32 : (k+1)*32]
		var scale float32
		m.Scales[k], scale = e8m0Scale(g, 448, t)
		for i, x := range g {
			m.Weight[k*32+i] = toE4M3(round(x/scale, t))
		}
	}
	return m
}
