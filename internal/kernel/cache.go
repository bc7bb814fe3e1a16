package kernel

import (
	"fmt"
	"math"
	"unsafe"

	"hearth/internal/quant"
)

// CacheType is how cached keys and values are stored.
type CacheType uint8

const (
	CacheF32  CacheType = iota
	CacheBF16           // rounded to nearest even
	CacheF16            // the same; what is beyond ±65504 becomes that
	CacheQ8             // 8-bit codes with a scale and a bias per group
	CacheQ4             // 4-bit codes likewise
	CacheI16            // whole numbers up to i16Reach with a step per row
)

// Quantised reports a type of codes.
func (t CacheType) Quantised() bool { return t == CacheQ8 || t == CacheQ4 }

func (t CacheType) String() string { return [...]string{"f32", "bf16", "f16", "q8", "q4", "i16"}[t] }

// Rows is a run of cached keys or values of one head: row i is the RowBytes at Data[i·Stride].
//
// Float types store Width numbers. Codes come first: a byte each in CacheQ8, padded to a multiple of 4; in CacheQ4
// every 8 bytes hold 16 numbers, byte j the j-th in its low nibble and the one eight further in its high one. Then,
// per group, its scale and its bias in bfloat16. A number is scale·code + bias. CacheI16 has Width numbers of 16 bits and then
// their step in bfloat16.
type Rows struct {
	Type   CacheType
	Width  int // numbers in a row
	Of     int // numbers in the stored rows that these are the beginnings of; 0: Width
	Group  int // numbers that share a scale and a bias; divides Width; only of codes
	Stride int // bytes
	Data   []byte
}

// codeBytes is the size of the codes of a row.
func (r *Rows) codeBytes() int {
	stored := max(r.Width, r.Of)
	if r.Type == CacheQ8 {
		return roundUp(stored, 4)
	}
	return roundUp(stored, 16) / 2
}

// RowBytes is the size of a row.
func (r *Rows) RowBytes() int {
	switch r.Type {
	case CacheF32:
		return 4 * r.Width
	case CacheBF16, CacheF16:
		return 2 * r.Width
	case CacheI16:
		return 2*r.Width + 2
	}
	return r.codeBytes() + 4*(r.Width/r.Group)
}

// FloatRows sees float32 numbers as rows of width, stride numbers apart.
func FloatRows(x []float32, width, stride int) Rows {
	return Rows{Type: CacheF32, Width: width, Stride: 4 * stride, Data: unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))}
}

// Set stores row i. Codes are chosen per group as mlx does (mlx/backend/cpu/quantized.cpp, 0.32.4): the end of the range
// that is farther from zero becomes the bias, and the scale is such that zero is a code, or nearly. Unlike there, the
// codes are the nearest for the scale and the bias as they are stored, rounded. A group with a NaN or an infinity
// reads back as NaNs.
func (r *Rows) Set(i int, x []float32) {
	if len(x) != r.Width {
		panic(fmt.Sprintf("kernel: cache row of %d numbers, want %d", len(x), r.Width))
	}
	row := r.Data[i*r.Stride:][:r.RowBytes()]
	switch r.Type {
	case CacheF32:
		copy(as[float32](row), x)
	case CacheBF16:
		ToBF16(as[uint16](row), x)
	case CacheF16:
		toF16(as[uint16](row), x)
	case CacheI16:
		r.setI16(row, x)
	default:
		r.setCodes(row, x)
	}
}

// Get reads row i: what Attend sees there.
func (r *Rows) Get(dst []float32, i int) {
	row := r.Data[i*r.Stride:][:r.RowBytes()]
	switch r.Type {
	case CacheF32:
		copy(dst, as[float32](row))
	case CacheBF16:
		FromBF16(dst, as[uint16](row))
	case CacheF16:
		for k, h := range as[uint16](row) {
			dst[k] = quant.F16ToF32(h)
		}
	case CacheI16:
		numbers, step := r.i16Row(i)
		for k, n := range numbers {
			dst[k] = float32(n) * step
		}
	default:
		for g := range r.Width / r.Group {
			s, b := r.scale(row, g)
			for k := g * r.Group; k < (g+1)*r.Group; k++ {
				dst[k] = s*float32(r.code(row, k)) + b
			}
		}
	}
}

// as sees bytes as numbers.
func as[T any](b []byte) []T {
	var z T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(z)))
}

func (r *Rows) code(row []byte, k int) uint8 {
	if r.Type == CacheQ8 {
		return row[k]
	}
	return row[k/16*8+k%8] >> (k % 16 / 8 * 4) & 15
}

func (r *Rows) scale(row []byte, g int) (scale, bias float32) {
	both := get32(row[r.codeBytes()+4*g:])
	return math.Float32frombits(both << 16), math.Float32frombits(both & 0xffff0000)
}

func (r *Rows) setCodes(row []byte, x []float32) {
	top := float32(255)
	if r.Type == CacheQ4 {
		top = 15
	}
	n := r.codeBytes()
	for g := range r.Width / r.Group {
		part := x[g*r.Group:][:r.Group]
		scale, bias := affine(part, top)
		both := uint32(bf16(bias))<<16 | uint32(bf16(scale))
		put32(row[n+4*g:], both)
		scale, bias = math.Float32frombits(both<<16), math.Float32frombits(both&0xffff0000)
		if !putCodesAsm(row[:n], part, g*r.Group, r.Type, scale, bias) {
			r.putCodes(row[:n], part, g*r.Group, scale, bias, top)
		}
	}
}

// affine picks the scale and the bias of a group.
func affine(x []float32, top float32) (scale, bias float32) {
	lo, hi, finite := extremes(x)
	if !finite {
		return float32(math.NaN()), float32(math.NaN())
	}
	scale = max((hi-lo)/top, 1e-7)
	edge := lo
	if abs32(lo) <= abs32(hi) {
		scale, edge = -scale, hi
	}
	if q0 := rint(edge / scale); q0 != 0 {
		scale, bias = edge/q0, edge
	}
	return scale, bias
}

func extremes(x []float32) (lo, hi float32, finite bool) {
	if lo, hi, finite, ok := extremesAsm(x); ok {
		return lo, hi, finite
	}
	lo, hi, finite = x[0], x[0], true
	for _, v := range x {
		lo, hi, finite = min(lo, v), max(hi, v), finite && v-v == 0
	}
	return lo, hi, finite
}

func abs32(x float32) float32 { return float32(math.Abs(float64(x))) }
func rint(x float32) float32  { return float32(math.RoundToEven(float64(x))) }

// putCodes writes the codes of the numbers at [at, at+len(x)) of a row.
func (r *Rows) putCodes(codes []byte, x []float32, at int, scale, bias, top float32) {
	for i, v := range x {
		c := uint8(0)
		if f := rint((v - bias) / scale); f > 0 { // a NaN is no code
			c = uint8(min(f, top))
		}
		k := at + i
		if r.Type == CacheQ8 {
			codes[k] = c
			continue
		}
		b, shift := &codes[k/16*8+k%8], k%16/8*4
		*b = *b&^(15<<shift) | c<<shift
	}
}

// largestHalf is the largest finite float16.
const largestHalf = 65504

func toF16(dst []uint16, src []float32) {
	same(len(dst), len(src), len(src))
	if toF16Asm(dst, src) {
		return
	}
	for i, v := range src {
		dst[i] = half(v)
	}
}

func half(v float32) uint16 { return quant.F32ToF16(max(min(v, largestHalf), -largestHalf)) }
