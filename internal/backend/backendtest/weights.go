package backendtest

import (
	"fmt"
	"math"
	"math/rand/v2"

	B "hearth/internal/backend"
	"hearth/internal/quant"
)

// format is one way to store a matrix.
type format struct {
	scheme quant.Scheme
	dtype  quant.DType // of floats, or of scales and biases
	global bool        // with a scale for the whole tensor
}

func (f format) String() string {
	if f.scheme.None() {
		return string(f.dtype)
	}
	switch {
	case f.global:
		return string(f.scheme.Mode) + "-global"
	case f.scheme.Mode != quant.Affine:
		return string(f.scheme.Mode)
	}
	return fmt.Sprintf("q%dg%d-%s", f.scheme.Bits, f.scheme.Group, f.dtype)
}

// uniform formats are scale·code + bias: backends may multiply them with 8-bit activations.
func (f format) uniform() bool { return f.scheme.Mode == quant.Affine || f.scheme.Mode == quant.MXFP4 }

func affine(bits, group int, t quant.DType) format {
	return format{scheme: quant.Scheme{Mode: quant.Affine, Bits: bits, Group: group}, dtype: t}
}

// small is a mode whose codes are small floats.
func small(m quant.Mode) format {
	s, ok := m.Default()
	if !ok {
		panic("backendtest: unknown mode " + m)
	}
	return format{scheme: s}
}

func nvfp4Global() format {
	f := small(quant.NVFP4)
	f.global = true
	return f
}

// formats are all a checkpoint may hold.
func formats() []format {
	f := []format{{dtype: quant.F32}, {dtype: quant.BF16}, {dtype: quant.F16}}
	for _, bits := range []int{2, 3, 4, 5, 6, 8} {
		for _, group := range []int{32, 64, 128} {
			f = append(f, affine(bits, group, quant.BF16))
		}
	}
	return append(f, affine(4, 64, quant.F16), affine(8, 32, quant.F32), affine(4, 128, quant.F32),
		small(quant.MXFP4), small(quant.MXFP8), small(quant.NVFP4), nvfp4Global())
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)) }

// normals are n numbers of about the size of activations, with an outlier now and then as real ones have.
func normals(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
		if r.IntN(97) == 0 {
			x[i] *= 12
		}
	}
	return x
}

// rounded are normals that bfloat16 holds exactly.
func rounded(r *rand.Rand, n int) []float32 {
	x := normals(r, n)
	for i := range x {
		x[i] = quant.BF16ToF32(quant.F32ToBF16(x[i]))
	}
	return x
}

func tensor(name string, t quant.DType, x []float32, shape ...int) *B.Tensor {
	b := make([]byte, len(x)*t.Size())
	quant.PutFloats(b, t, x)
	return &B.Tensor{Name: name, DType: string(t), Shape: shape, Bytes: b}
}

// part is a random rows×in matrix: random codes with scales of both signs, or random floats.
func part(r *rand.Rand, f format, rows, in int, bias bool) B.Part {
	var p B.Part
	name := fmt.Sprintf("w%dx%d.%v", rows, in, f)
	scale := float32(1 / math.Sqrt(float64(in)))
	switch {
	case f.scheme.None():
		x := normals(r, rows*in)
		for i := range x {
			x[i] *= scale
		}
		p.Weight = tensor(name, f.dtype, x, rows, in)
	case f.scheme.Mode != quant.Affine:
		p = smallPart(r, f, name, rows, in)
	default:
		codes := make([]uint8, rows*in)
		for i := range codes {
			codes[i] = uint8(r.IntN(1 << f.scheme.Bits))
		}
		words := in * f.scheme.Bits / 32
		packed := make([]byte, rows*words*4)
		quant.Pack(packed, codes, f.scheme.Bits)
		n := rows * in / f.scheme.Group
		s, b := make([]float32, n), make([]float32, n)
		step := scale / float32(int(1)<<f.scheme.Bits)
		for i := range s {
			s[i] = step * float32(1+r.Float64())
			if r.IntN(4) == 0 {
				s[i] = -s[i]
			}
			b[i] = -s[i] * float32(int(1)<<f.scheme.Bits) * float32(r.Float64())
		}
		p.Scheme = f.scheme
		p.Weight = &B.Tensor{Name: name, DType: string(quant.U32), Shape: []int{rows, words}, Bytes: packed}
		p.Scales = tensor(name+".scales", f.dtype, s, rows, in/f.scheme.Group)
		p.Biases = tensor(name+".biases", f.dtype, b, rows, in/f.scheme.Group)
	}
	if bias {
		p.Bias = tensor(name+".bias", quant.F32, normals(r, rows), rows)
	}
	return p
}

// smallPart has random codes that are no NaN, and scales around what makes weights of the usual size.
func smallPart(r *rand.Rand, f format, name string, rows, in int) B.Part {
	bytes := func(n int, next func() byte) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = next()
		}
		return b
	}
	code, scale := func() byte { return byte(r.UintN(256)) }, func() byte { return byte(120 + r.IntN(4)) }
	switch f.scheme.Mode {
	case quant.MXFP8:
		code = func() byte { return byte(r.UintN(127) | r.UintN(2)<<7) }
		scale = func() byte { return byte(113 + r.IntN(4)) }
	case quant.NVFP4:
		scale = func() byte { return byte(8 + r.IntN(12)) }
	}
	p := B.Part{Scheme: f.scheme}
	n := f.scheme.RowBytes(in)
	p.Weight = &B.Tensor{Name: name, DType: string(quant.U32), Shape: []int{rows, n / 4}, Bytes: bytes(rows*n, code)}
	groups := in / f.scheme.Group
	p.Scales = &B.Tensor{Name: name + ".scales", DType: string(quant.U8), Shape: []int{rows, groups},
		Bytes: bytes(rows*groups, scale)}
	if f.global {
		p.Global = tensor(name+".global_scale", quant.F32, []float32{1000 + 3000*r.Float32()}, 1)
	}
	return p
}

func matrix(use B.Use, in int, outs []int, parts ...B.Part) B.WeightSpec {
	return B.WeightSpec{Name: "test", Use: use, Out: outs, In: in, Count: 1, Parts: parts}
}

func vector(x []float32) B.WeightSpec {
	return B.WeightSpec{Name: "vector", Use: B.UseVector, Out: []int{len(x)}, In: 1, Count: 1,
		Parts: []B.Part{{Weight: tensor("vector", quant.F32, x, len(x))}}}
}

// magnitudes is, per stored row, what the sums of a product with it are made of: for floats |w|, for uniform codes
// |scale|·code + |bias|, which is larger than |w| where the two cancel.
func magnitudes(s *B.WeightSpec) [][]float64 {
	k, err := s.Stack()
	if err != nil {
		panic(err)
	}
	all := make([][]float64, k.Out)
	for r := range all {
		m, row := k.At(r)
		all[r] = make([]float64, k.In)
		if _, uniform := m.Uniform(); !uniform {
			f := make([]float32, k.In)
			m.Row(f, row)
			for i, v := range f {
				all[r][i] = math.Abs(float64(v))
			}
			continue
		}
		g := m.Scheme.Group
		codes, sc, bi := make([]uint8, k.In), make([]float32, k.In/g), make([]float32, k.In/g)
		m.Codes(codes, row)
		m.ScalesBiases(sc, bi, row)
		for i, c := range codes {
			all[r][i] = math.Abs(float64(sc[i/g]))*float64(c) + math.Abs(float64(bi[i/g]))
		}
	}
	return all
}
