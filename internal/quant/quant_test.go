package quant

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestPackUnpack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, bits := range []int{2, 3, 4, 5, 6, 8} {
		for _, n := range []int{8, 32, 64, 96, 128} {
			codes := make([]uint8, n)
			for i := range codes {
				codes[i] = uint8(rng.UintN(1 << bits))
			}
			stream := make([]byte, n*bits/8)
			Pack(stream, codes, bits)
			// The definition: bit k of the stream is bit k%8 of byte k/8, code i starts at bit i·bits.
			for i, c := range codes {
				for k := range bits {
					at := i*bits + k
					if stream[at/8]>>(at%8)&1 != c>>k&1 {
						t.Fatalf("%d bits: bit %d of code %d is not at %d", bits, k, i, at)
					}
				}
			}
			back := make([]uint8, n)
			Unpack(back, stream, bits)
			if !slices.Equal(back, codes) {
				t.Errorf("%d bits, %d codes: unpack(pack) differs", bits, n)
			}
		}
	}
}

// TestUnalignedBytes: a file may place tensors at any byte.
func TestUnalignedBytes(t *testing.T) {
	s := Scheme{Affine, 5, 32}
	w := make([]float32, 4*96)
	for i := range w {
		w[i] = float32(math.Sin(float64(i)))
	}
	m, err := Quantize(s, w, 4, 96, BF16)
	if err != nil {
		t.Fatal(err)
	}
	want, got := make([]float32, 96), make([]float32, 96)
	for shift := 1; shift < 4; shift++ {
		odd := func(b []byte) []byte { return append(make([]byte, shift, len(b)+shift), b...)[shift:] }
		u := *m
		u.Weight, u.Scales, u.Biases = odd(m.Weight), odd(m.Scales), odd(m.Biases)
		for r := range 4 {
			m.Row(want, r)
			u.Row(got, r)
			if !slices.Equal(got, want) {
				t.Errorf("row %d differs when shifted by %d bytes", r, shift)
			}
		}
	}
}

func TestPlainRows(t *testing.T) {
	want := []float32{1, -2.5, 0, 65504, 0x1p-24, 3}
	for _, dt := range []DType{F32, F16} {
		raw := make([]byte, len(want)*dt.Size())
		PutFloats(raw, dt, want)
		m, err := NewMatrix(2, 3, Scheme{}, &Data{dt, []int{2, 3}, raw}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float32, 6)
		m.Row(got[:3], 0)
		m.Row(got[3:], 1)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", dt, got, want)
		}
	}
}

func TestNewMatrixErrors(t *testing.T) {
	s4 := Scheme{Affine, 4, 64}
	u32 := func(shape ...int) *Data { return filled(U32, shape...) }
	bf := func(shape ...int) *Data { return filled(BF16, shape...) }
	short := bf(2, 64)
	short.Bytes = short.Bytes[1:]
	for _, c := range []struct {
		name                   string
		s                      Scheme
		weight, scales, biases *Data
		want                   string
	}{
		{"good", s4, u32(2, 8), bf(2, 1), bf(2, 1), ""},
		{"good floats", Scheme{}, bf(2, 64), nil, nil, ""},
		{"stacked", s4, u32(1, 2, 8), bf(1, 2, 1), bf(1, 2, 1), ""},
		{"float of integers", Scheme{}, u32(2, 64), nil, nil, "weight is U32"},
		{"float shape", Scheme{}, bf(3, 64), nil, nil, "weight have shape [3 64], expected [2 64]"},
		{"float bytes", Scheme{}, short, nil, nil, "255 bytes, expected 256"},
		{"codes type", s4, bf(2, 8), bf(2, 1), bf(2, 1), "not U32"},
		{"codes shape", s4, u32(2, 7), bf(2, 1), bf(2, 1), "weight have shape [2 7], expected [2 8]"},
		{"no scales", s4, u32(2, 8), nil, bf(2, 1), "scales are missing"},
		{"no biases", s4, u32(2, 8), bf(2, 1), nil, "biases are missing"},
		{"scales type", s4, u32(2, 8), filled(U8, 2, 1), bf(2, 1), "scales are U8"},
		{"biases type", s4, u32(2, 8), bf(2, 1), filled(U8, 2, 1), "biases are U8"},
		{"scales shape", s4, u32(2, 8), bf(2, 2), bf(2, 1), "scales have shape [2 2], expected [2 1]"},
		{"biases shape", s4, u32(2, 8), bf(2, 1), bf(1, 1), "biases have shape [1 1], expected [2 1]"},
		{"bits", Scheme{Affine, 7, 64}, u32(2, 14), bf(2, 1), bf(2, 1), "7 bits"},
		{"group", Scheme{Affine, 4, 48}, u32(2, 8), bf(2, 1), bf(2, 1), "group 48"},
		{"columns", Scheme{Affine, 4, 128}, u32(2, 8), bf(2, 1), bf(2, 1), "64 columns do not divide into groups of 128"},
		{"mxfp4", Scheme{MXFP4, 4, 32}, u32(2, 8), filled(U8, 2, 2), nil, ""},
		{"mxfp8", Scheme{MXFP8, 8, 32}, u32(2, 16), filled(U8, 2, 2), nil, ""},
		{"nvfp4", Scheme{NVFP4, 4, 16}, u32(2, 8), filled(U8, 2, 4), nil, ""},
		{"mxfp4 with biases", Scheme{MXFP4, 4, 32}, u32(2, 8), filled(U8, 2, 2), bf(2, 2), "biases are there, which mxfp4 has not"},
		{"mxfp4 scales", Scheme{MXFP4, 4, 32}, u32(2, 8), bf(2, 2), nil, "scales are BF16, which mxfp4 has not"},
		{"mxfp8 bits", Scheme{MXFP8, 4, 32}, u32(2, 8), filled(U8, 2, 2), nil, "quantisation mxfp8 4 bits, group 32 is not supported"},
		{"nvfp4 group", Scheme{NVFP4, 4, 32}, u32(2, 8), filled(U8, 2, 2), nil, "group 32"},
		{"nvfp4 columns", Scheme{NVFP4, 4, 16}, u32(2, 8), filled(U8, 2, 5), nil, "scales have shape [2 5], expected [2 4]"},
		{"mode", Scheme{"nf4", 4, 64}, u32(2, 8), bf(2, 1), bf(2, 1), `mode "nf4" is not supported`},
	} {
		_, err := NewMatrix(2, 64, c.s, c.weight, c.scales, c.biases)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want %q in it", c.name, err, c.want)
		}
	}
}

func filled(dt DType, shape ...int) *Data {
	n := dt.Size()
	for _, k := range shape {
		n *= k
	}
	return &Data{dt, shape, make([]byte, n)}
}

func TestInfer(t *testing.T) {
	for _, c := range []struct {
		in, words, groups int
		t                 DType
		want              Scheme
		bad               string
	}{
		{1024, 128, 16, BF16, Scheme{Affine, 4, 64}, ""},
		{1024, 96, 32, F16, Scheme{Affine, 3, 32}, ""},
		{1024, 256, 8, F32, Scheme{Affine, 8, 128}, ""},
		{1024, 128, 32, U8, Scheme{MXFP4, 4, 32}, ""},
		{1024, 256, 32, U8, Scheme{MXFP8, 8, 32}, ""},
		{1024, 128, 64, U8, Scheme{NVFP4, 4, 16}, ""},
		{1024, 128, 16, U8, Scheme{}, "U8 scales"},
		{1024, 224, 16, BF16, Scheme{}, "7 bits"},
		{1000, 128, 16, BF16, Scheme{}, "fit no quantisation"},
		{1024, 128, 0, BF16, Scheme{}, "fit no quantisation"},
		{0, 0, 0, BF16, Scheme{}, "fit no quantisation"},
	} {
		got, err := Infer(c.in, c.words, c.groups, c.t)
		if got != c.want || (err != nil) != (c.bad != "") || err != nil && !strings.Contains(err.Error(), c.bad) {
			t.Errorf("Infer(%d, %d, %d, %s) = %v, %v; want %v, %q", c.in, c.words, c.groups, c.t, got, err, c.want, c.bad)
		}
	}
}

func TestQuantizeErrors(t *testing.T) {
	w := make([]float32, 64)
	for _, c := range []struct {
		s        Scheme
		rows, in int
	}{{Scheme{Affine, 4, 64}, 2, 64}, {Scheme{}, 1, 64}, {Scheme{Affine, 4, 128}, 1, 64}, {Scheme{Affine, 1, 64}, 1, 64}} {
		if _, err := Quantize(c.s, w, c.rows, c.in, BF16); err == nil {
			t.Errorf("Quantize(%v, %d×%d) gave no error", c.s, c.rows, c.in)
		}
	}
	for _, global := range []float32{0, -1, float32(math.NaN()), float32(math.Inf(1))} {
		if _, err := QuantizeGlobal(w, 1, 64, BF16, global); err == nil {
			t.Errorf("QuantizeGlobal with %g gave no error", global)
		}
	}
}

func TestSetGlobal(t *testing.T) {
	f32 := func(x ...float32) *Data {
		d := filled(F32, len(x))
		PutFloats(d.Bytes, F32, x)
		return d
	}
	w := make([]float32, 64)
	for _, c := range []struct {
		mode Mode
		d    *Data
		want string
	}{
		{NVFP4, f32(2.5), ""},
		{NVFP4, f32(1, 2), "the global scale is F32 of shape [2], expected one F32"},
		{NVFP4, filled(BF16, 1), "expected one F32"},
		{NVFP4, f32(float32(math.Inf(1))), "the global scale is +Inf"},
		{NVFP4, f32(-1), "the global scale is -1"},
		{MXFP4, f32(1), "which mxfp4 4 bits, group 32 has not"},
	} {
		s, _ := c.mode.Default()
		m, err := Quantize(s, w, 1, 64, F32)
		if err != nil {
			t.Fatal(err)
		}
		err = m.SetGlobal(c.d)
		if c.want == "" && (err != nil || *m.Global != 2.5) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", c.mode, err, c.want)
		}
	}
}

// TestModes: every mode has a default that its format supports.
func TestModes(t *testing.T) {
	for _, m := range Modes() {
		s, ok := m.Default()
		if !ok || s.Mode != m || s.Check(128) != nil {
			t.Errorf("default of %s is %v, %v", m, s, ok)
		}
	}
	if len(formats) != len(Modes()) {
		t.Errorf("%d formats, %d modes", len(formats), len(Modes()))
	}
	if _, ok := Mode("nf4").Default(); ok {
		t.Error("an unknown mode has a default")
	}
}

// TestE4M3Rounding: nearest by search over all codes, ties to even.
func TestE4M3Rounding(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20000 {
		x := float32(math.Ldexp(rng.Float64(), rng.IntN(22)-12))
		if rng.IntN(4) == 0 {
			c := rng.IntN(126)
			x = (e4m3[c] + e4m3[c+1]) / 2 // a tie
		}
		want := uint8(0)
		for c := 1; c < 127; c++ {
			d, least := math.Abs(float64(x)-float64(e4m3[c])), math.Abs(float64(x)-float64(e4m3[want]))
			if d < least || d == least && c&1 == 0 {
				want = uint8(c)
			}
		}
		if got := toE4M3(x); got != want {
			t.Fatalf("%g: code %#x, want %#x", x, got, want)
		}
		if got := toE4M3(-x); got != want|0x80 {
			t.Fatalf("%g: code %#x, want %#x", -x, got, want|0x80)
		}
	}
	if toE4M3(float32(math.NaN())) != 0x7e || toE4M3(float32(math.Inf(-1))) != 0xfe {
		t.Error("NaN and infinities do not become ±448")
	}
}

// TestHalfExhaustive: every 16-bit pattern survives the way to float32 and back, and widens to the value its fields say.
func TestHalfExhaustive(t *testing.T) {
	for h := range 1 << 16 {
		u := uint16(h)
		if f := F16ToF32(u); f == f {
			if back := F32ToF16(f); back != u {
				t.Fatalf("f16 %#04x -> %g -> %#04x", u, f, back)
			}
			if e := u >> 10 & 31; e != 31 {
				want := math.Ldexp(float64(u&0x3ff), -24)
				if e > 0 {
					want = math.Ldexp(1024+float64(u&0x3ff), int(e)-25)
				}
				if math.Abs(float64(f)) != want {
					t.Fatalf("f16 %#04x is %g, want %g", u, f, want)
				}
			}
		} else if n := F32ToF16(f); n&0x7c00 != 0x7c00 || n&0x3ff == 0 {
			t.Fatalf("f16 NaN %#04x became %#04x", u, n)
		}
		if f := BF16ToF32(u); f == f {
			if back := F32ToBF16(f); back != u {
				t.Fatalf("bf16 %#04x -> %g -> %#04x", u, f, back)
			}
		} else if n := F32ToBF16(f); n&0x7f80 != 0x7f80 || n&0x7f == 0 {
			t.Fatalf("bf16 NaN %#04x became %#04x", u, n)
		}
	}
}

// nearest16 rounds by searching the two neighbours among all finite values: slow and obviously right.
func nearest16(x float32, widen func(uint16) float32, inf uint16) uint16 {
	lo, hi := uint16(0), inf // lo <= |x| < hi as patterns
	a := float64(x)
	if a < 0 {
		a = -a
	}
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; float64(widen(mid)) <= a {
			lo = mid
		} else {
			hi = mid
		}
	}
	up := float64(widen(hi))
	if hi == inf {
		up = 2*float64(widen(lo)) - float64(widen(lo-1))
	}
	d := func(y float64) *big.Float {
		return new(big.Float).Abs(new(big.Float).Sub(big.NewFloat(a), big.NewFloat(y)))
	}
	r := lo
	if c := d(float64(widen(lo))).Cmp(d(up)); c > 0 || c == 0 && lo&1 == 1 {
		r = hi
	}
	return r | uint16(math.Float32bits(x)>>16&0x8000)
}

func TestHalfRounding(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	xs := []float32{0, 1, 65504, 65519.996, 65520, 65536, 1e30, 0x1p-24, 0x1p-25, 0x1.8p-25, 0x1p-26, 0x1.ffcp-15, 0x1.ffep-15, 0x1p-149, math.MaxFloat32}
	for range 20000 {
		xs = append(xs, math.Float32frombits(rng.Uint32()))
		xs = append(xs, float32(math.Ldexp(rng.Float64(), rng.IntN(40)-28)))
		xs = append(xs, F16ToF32(uint16(rng.UintN(0x7bff)))+F16ToF32(uint16(rng.UintN(0x7bff)))/2048)
	}
	for _, x := range xs {
		if x != x || math.IsInf(float64(x), 0) {
			continue
		}
		for _, x := range []float32{x, -x} {
			if got, want := F32ToF16(x), nearest16(x, F16ToF32, 0x7c00); got != want {
				t.Fatalf("f16 of %x (%g): %#04x, want %#04x", math.Float32bits(x), x, got, want)
			}
			if got, want := F32ToBF16(x), nearest16(x, BF16ToF32, 0x7f80); got != want {
				t.Fatalf("bf16 of %x (%g): %#04x, want %#04x", math.Float32bits(x), x, got, want)
			}
		}
	}
}

// FuzzMatrix: whatever shapes and schemes a file claims, NewMatrix refuses them or every row can be read.
func FuzzMatrix(f *testing.F) {
	f.Add(uint8(0), 2, 64, 4, 64, []byte{2, 8, 2, 1, 2, 1}, uint16(64))
	f.Add(uint8(0), 2, 64, 3, 32, []byte{2, 6, 2, 2, 2, 2}, uint16(48))
	f.Add(uint8(1), 2, 64, 4, 32, []byte{2, 8, 2, 2, 0, 0}, uint16(64))
	f.Add(uint8(2), 2, 64, 8, 32, []byte{2, 16, 2, 2, 0, 0}, uint16(128))
	f.Add(uint8(3), 2, 64, 4, 16, []byte{2, 8, 2, 4, 0, 0}, uint16(64))
	f.Fuzz(func(t *testing.T, mode uint8, rows, in, bits, group int, shapes []byte, size uint16) {
		if len(shapes) < 6 || in > 1<<12 || rows > 1<<8 || rows < 0 || in < 0 {
			return
		}
		data := func(dt DType, i int) *Data {
			r, c := int(shapes[i]), int(shapes[i+1])
			n := r * c * dt.Size()
			if i == 0 {
				n = int(size)
			}
			d := &Data{dt, []int{r, c}, make([]byte, n)}
			for k := range d.Bytes {
				d.Bytes[k] = shapes[k%len(shapes)]
			}
			return d
		}
		s := Scheme{Modes()[int(mode)%len(Modes())], bits, group}
		scales, biases := data(BF16, 2), data(F16, 4)
		if s.Mode != Affine {
			scales, biases = data(U8, 2), nil
		}
		m, err := NewMatrix(rows, in, s, data(U32, 0), scales, biases)
		if err != nil {
			return
		}
		dst, codes := make([]float32, in), make([]uint8, in)
		_, uniform := m.Uniform()
		for r := range rows {
			for _, dt := range []DType{F32, F16, BF16} {
				m.RowAs(dst, dt, r)
			}
			if uniform {
				m.Codes(codes, r)
				m.ScalesBiases(make([]float32, in/group), make([]float32, in/group), r)
			}
		}
	})
}

func BenchmarkRow(b *testing.B) {
	const in = 4096
	w := make([]float32, in)
	for i := range w {
		w[i] = math.Float32frombits(binary.LittleEndian.Uint32([]byte{byte(i), byte(i * 7), 0x80, 0x3d}))
	}
	m, err := Quantize(Scheme{Affine, 4, 64}, w, 1, in, BF16)
	if err != nil {
		b.Fatal(err)
	}
	dst := make([]float32, in)
	b.SetBytes(int64(m.Scheme.RowBytes(in)))
	for b.Loop() {
		m.Row(dst, 0)
	}
}
