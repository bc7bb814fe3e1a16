package quant

func init() { register(NVFP4, nvfp4{}) }

// nvfp4: w = scale·e2m1(code), groups of 16, scales are e4m3 in a byte. A matrix may also have one float32 for the whole
// tensor, its largest magnitude, in units of which the scales are then: scale = e4m3·(global/2688), rounded to float32.
// With it MLX dequantises to float32 whatever type is asked for.
type nvfp4 struct{}

// GlobalUnit is 6·448, the largest code times the largest scale: a tensor's global scale stands for a factor of
// global/GlobalUnit.
const GlobalUnit = 2688

func (nvfp4) Supports(bits, group int) bool { return bits == 4 && group == 16 }
func (nvfp4) ScaleType(t DType) bool        { return t == U8 }
func (nvfp4) HasBiases() bool               { return false }

func (nvfp4) Row(m *Matrix, dst []float32, t DType, r int) {
	src, n, factor := m.RowBytes(r), m.In/16, m.Factor()
	if m.Global != nil {
		t = F32
	}
	for j, s := range m.Scales[r*n : (r+1)*n] {
		scaleE2M1(dst[j*16:(j+1)*16], src[j*8:(j+1)*8], e4m3[s]*factor, t)
	}
}

func (nvfp4) Quantize(s Scheme, w []float32, rows, in int, t DType) *Matrix {
	m := s.empty(rows, in)
	m.nvfp4(w, t, 1)
	return m
}

// nvfp4 fills codes and scales; unit is what scales are multiplied by before they are rounded. A group whose scale
// rounds to 0 has codes 0.
func (m *Matrix) nvfp4(w []float32, t DType, unit float32) {
	var codes [16]uint8
	var rounded [16]float32
	from := t
	if unit != 1 {
		from = F32
	}
	for k := range m.Scales {
		g := w[k*16 : (k+1)*16]
		m.Scales[k] = toE4M3(round(largest(g)/6, t) * unit)
		scale := round(e4m3[m.Scales[k]], t)
		for i, x := range g {
			rounded[i] = float32(round(x/scale, t) * unit) // the conversion forbids fusing with what follows
		}
		allE2M1(codes[:], rounded[:], from, F32)
		Pack(m.Weight[k*8:(k+1)*8], codes[:], 4)
	}
}
