package quant

import (
	"math"
	"sync"
)

// The small float types that codes and scales of the fp formats are. Decoding and rounding are mlx 0.32.4's.

// e2m1 are the values of 4-bit codes.
var e2m1 = [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, float32(math.Copysign(0, -1)), -0.5, -1, -1.5, -2, -3, -4, -6}

// e2m1Uniform are 2·value + 12 of 4-bit codes: whole numbers.
var e2m1Uniform = [16]uint8{12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0}

// e4m3 are the values of 8-bit codes: sign, 4 bits of exponent with bias 7, 3 of fraction; no infinities, 0x7f and
// 0xff are NaN.
var e4m3 = func() (v [256]float32) {
	for i := range v {
		e, frac := i>>3&15, float64(i&7)
		switch {
		case i&0x7f == 0x7f:
			frac = math.NaN()
		case e == 0:
			frac = math.Ldexp(frac, -9)
		default:
			frac = math.Ldexp(8+frac, e-10)
		}
		if i >= 128 {
			frac = -frac
		}
		v[i] = float32(frac)
	}
	return v
}()

// E2M1 is the value of a 4-bit code of mxfp4 and nvfp4.
func E2M1(code uint8) float32 { return e2m1[code] }

// E4M3 is the value of an 8-bit code of mxfp8.
func E4M3(code uint8) float32 { return e4m3[code] }

// e8m0 is 2^(s-127); 255 is an infinity, as in MLX (the OCP standard says NaN).
func e8m0(s uint8) float32 { return float32(math.Ldexp(1, int(s)-127)) }

// FloatScales writes the scales of row r of a matrix of small floats, In/Group of them, without the global one.
func (m *Matrix) FloatScales(dst []float32, r int) {
	n := m.In / m.Scheme.Group
	for i, s := range m.Scales[r*n:][:n] {
		if m.Scheme.Mode == NVFP4 {
			dst[i] = e4m3[s]
		} else {
			dst[i] = e8m0(s)
		}
	}
}

// toE4M3 rounds to nearest, ties to even; what is larger than 448, and a NaN, becomes ±448.
func toE4M3(x float32) uint8 {
	u := math.Float32bits(x)
	sign, u := uint8(u>>24&0x80), u&0x7fffffff
	switch {
	case u >= 543<<21: // 448
		return sign | 0x7e
	case u < 121<<23: // below 2^-6: adding 2^14 leaves the subnormal fraction, rounded, in the low bits
		return sign | uint8(math.Float32bits(math.Float32frombits(u)+0x1p14))
	}
	return sign | uint8((u-120<<23+0x7ffff+u>>20&1)>>20)
}

// toE2M1 is the nearest value, the smaller code of two at equal distance, distances rounded to t.
func toE2M1(x float32, t DType) uint8 {
	best, least := 0, round(abs(x-e2m1[0]), t)
	for i, v := range e2m1 {
		if d := round(abs(round(x-v, t)), t); d < least {
			best, least = i, d
		}
	}
	return uint8(best)
}

// e2m1Tables hold toE2M1 of every number of a type of 16 bits, by that type and the type of distances.
var e2m1Tables = map[[2]DType]func() *[1 << 16]uint8{
	{BF16, BF16}: sync.OnceValue(func() *[1 << 16]uint8 { return e2m1Table(BF16ToF32, BF16) }),
	{BF16, F32}:  sync.OnceValue(func() *[1 << 16]uint8 { return e2m1Table(BF16ToF32, F32) }),
	{F16, F16}:   sync.OnceValue(func() *[1 << 16]uint8 { return e2m1Table(F16ToF32, F16) }),
	{F16, F32}:   sync.OnceValue(func() *[1 << 16]uint8 { return e2m1Table(F16ToF32, F32) }),
}

func e2m1Table(number func(uint16) float32, t DType) *[1 << 16]uint8 {
	var codes [1 << 16]uint8
	for i := range codes {
		codes[i] = toE2M1(number(uint16(i)), t)
	}
	return &codes
}

// allE2M1 is toE2M1 of numbers that are rounded to from.
func allE2M1(codes []uint8, x []float32, from, t DType) {
	of, ok := e2m1Tables[[2]DType{from, t}]
	if !ok {
		for i, v := range x {
			codes[i] = toE2M1(v, t)
		}
		return
	}
	table := of()
	for i, v := range x {
		if from == BF16 {
			codes[i] = table[math.Float32bits(v)>>16]
		} else {
			codes[i] = table[F32ToF16(v)]
		}
	}
}

// round rounds x to the float type t.
func round(x float32, t DType) float32 {
	switch t {
	case F16:
		return F16ToF32(F32ToF16(x))
	case BF16:
		return BF16ToF32(F32ToBF16(x))
	}
	return x
}

func roundAll(x []float32, t DType) {
	if t == F32 {
		return
	}
	for i, v := range x {
		x[i] = round(v, t)
	}
}

// largest is max |w|.
func largest(w []float32) float32 {
	var m float32
	for _, x := range w {
		m = max(m, abs(x))
	}
	return m
}

// e8m0Scale picks the power of two for a group: the least that is not under max|w|/top rounded to t, 1 for a group of
// zeros. It gives the code and the power in t. A power under 2^-127, whose code MLX lets wrap, becomes 2^-127.
func e8m0Scale(w []float32, top float32, t DType) (code uint8, scale float32) {
	e := 0
	if m := round(largest(w)/top, t); m != 0 {
		var frac float64
		frac, e = math.Frexp(float64(m))
		if frac == 0.5 {
			e-- // m is a power of two itself
		}
		e = min(max(e, -127), 128)
	}
	return uint8(e + 127), round(float32(math.Ldexp(1, e)), t)
}
