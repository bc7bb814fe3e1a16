package quant

import (
	"encoding/binary"
	"math"
)

// DType is the storage type of a tensor, spelled as in safetensors headers.
type DType string

// The types weight formats use.
const (
	F32  DType = "F32"
	F16  DType = "F16"
	BF16 DType = "BF16"
	U32  DType = "U32"
	U8   DType = "U8"
)

// Float reports whether Floats can read t.
func (t DType) Float() bool { return t == F32 || t == F16 || t == BF16 }

// Size is the number of bytes per element of the types above, 0 for any other.
func (t DType) Size() int {
	switch t {
	case F32, U32:
		return 4
	case F16, BF16:
		return 2
	case U8:
		return 1
	}
	return 0
}

// Floats widens the first len(dst) elements of src, little-endian and possibly unaligned, to float32; exact.
// t must be a float type.
func Floats(dst []float32, t DType, src []byte) {
	src = src[:len(dst)*t.Size()]
	switch t {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case F16:
		for i := range dst {
			dst[i] = F16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
		}
	case BF16:
		for i := range dst {
			dst[i] = BF16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
		}
	default:
		panic("quant: " + string(t) + " is no float type")
	}
}

// PutFloats is the inverse of Floats; it rounds to nearest, ties to even.
func PutFloats(dst []byte, t DType, src []float32) {
	dst = dst[:len(src)*t.Size()]
	switch t {
	case F32:
		for i, x := range src {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
		}
	case F16:
		for i, x := range src {
			binary.LittleEndian.PutUint16(dst[2*i:], F32ToF16(x))
		}
	case BF16:
		for i, x := range src {
			binary.LittleEndian.PutUint16(dst[2*i:], F32ToBF16(x))
		}
	default:
		panic("quant: " + string(t) + " is no float type")
	}
}

// BF16ToF32 is exact.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 rounds to nearest, ties to even; a NaN stays a quiet NaN.
func F32ToBF16(x float32) uint16 {
	u := math.Float32bits(x)
	if u&0x7fffffff > 0x7f800000 {
		return uint16(u>>16) | 0x40
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// F16ToF32 is exact, subnormals included.
func F16ToF32(h uint16) float32 {
	sign, exp, frac := uint32(h&0x8000)<<16, uint32(h>>10&31), uint32(h&0x3ff)
	switch exp {
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	case 0:
		x := float32(frac) * (1.0 / (1 << 24))
		return math.Float32frombits(sign | math.Float32bits(x))
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// F32ToF16 rounds to nearest, ties to even; overflow gives an infinity, a NaN stays a quiet NaN.
func F32ToF16(x float32) uint16 {
	u := math.Float32bits(x)
	sign, u := uint16(u>>16&0x8000), u&0x7fffffff
	switch {
	case u > 0x7f800000:
		return sign | 0x7e00 | uint16(u>>13&0x3ff)
	case u >= 0x47800000: // 65536 and up
		return sign | 0x7c00
	case u < 0x38800000: // below 2^-14: adding 0.5 leaves the subnormal fraction, rounded, in the low bits
		return sign | uint16(math.Float32bits(math.Float32frombits(u)+0.5)-math.Float32bits(0.5))
	}
	// A carry out of the fraction moves to the exponent, and from the largest finite value to infinity.
	return sign | uint16((u-112<<23+0xfff+u>>13&1)>>13)
}
