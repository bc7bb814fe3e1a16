package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"hearth/internal/quant"
)

// TestCacheRows: what comes out of a row is what went in, within half a step of its codes or its rounding, and every
// implementation stores the same bytes.
func TestCacheRows(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 1))
	for _, typ := range append(cacheTypes, CacheI16) {
		for _, width := range []int{1, 8, 16, 24, 40, 64, 96, 128, 192} {
			if typ == CacheI16 && !i16Width(width) {
				continue
			}
			c := Rows{Type: typ, Width: width, Group: cacheGroup(width)}
			c.Stride = c.RowBytes()
			x := randomFloats(r, width)
			x[width/2] *= 9
			var first []byte
			eachImplementation(t, func(t *testing.T) {
				c.Data = make([]byte, c.Stride)
				c.Set(0, x)
				if first == nil {
					first = c.Data
				}
				if string(c.Data) != string(first) {
					t.Fatalf("%v of %d: other bytes than the generic implementation stores", typ, width)
				}
			})
			got := make([]float32, width)
			c.Get(got, 0)
			for i, v := range got {
				if bound := c.error(x, i); !(math.Abs(float64(v-x[i])) <= bound) {
					t.Fatalf("%v of %d: number %d is %g, was %g, want within %g", typ, width, i, v, x[i], bound)
				}
			}
		}
	}
}

// error bounds how far number i of a row may come back from x[i].
func (r *Rows) error(x []float32, i int) float64 {
	if r.Type == CacheI16 {
		top := 0.0
		for _, v := range x {
			top = max(top, math.Abs(float64(v)))
		}
		return 0.51 * (1 + 0x1p-7) * top / i16Reach // steps are rounded up
	}
	if !r.Type.Quantised() {
		ulp := map[CacheType]float64{CacheF32: 0, CacheBF16: 0x1p-8, CacheF16: 0x1p-11}
		return ulp[r.Type] * math.Abs(float64(x[i]))
	}
	part := x[i/r.Group*r.Group:][:r.Group]
	lo, hi := part[0], part[0]
	for _, v := range part {
		lo, hi = min(lo, v), max(hi, v)
	}
	codes := 255.0
	if r.Type == CacheQ4 {
		codes = 15
	}
	edge := max(math.Abs(float64(lo)), math.Abs(float64(hi)))
	// MLX moves the step so that zero is a code, which may cut off up to a step at the far end; and the ends of the range
	// move with the rounding of scale and bias.
	step := edge / max(math.Round(edge/(float64(hi-lo)/codes)), 1)
	return 1.01*step + 0x1p-8*edge + 0x1p-9*step*codes
}

// TestCacheCodes holds the choice of scales to package quant, which is held to mlx.
func TestCacheCodes(t *testing.T) {
	r := rand.New(rand.NewPCG(52, 1))
	for _, bits := range []int{8, 4} {
		typ := map[int]CacheType{8: CacheQ8, 4: CacheQ4}[bits]
		x := randomFloats(r, 64*50)
		for i := range 64 {
			x[i], x[64+i] = 0, -2.5
			x[128+i] = float32(math.Abs(float64(x[128+i])))
		}
		want, err := quant.Quantize(quant.Scheme{Mode: quant.Affine, Bits: bits, Group: 64}, x, 50, 64, quant.F32)
		if err != nil {
			t.Fatal(err)
		}
		c := Rows{Type: typ, Width: 64, Group: 64}
		c.Stride = c.RowBytes()
		c.Data = make([]byte, c.Stride)
		var scale, bias [1]float32
		codes := make([]uint8, 64)
		moved := 0
		for i := range 50 {
			c.Set(0, x[64*i:][:64])
			s, b := c.scale(c.Data, 0)
			want.ScalesBiases(scale[:], bias[:], i)
			if s != quant.BF16ToF32(quant.F32ToBF16(scale[0])) || b != quant.BF16ToF32(quant.F32ToBF16(bias[0])) {
				t.Fatalf("%d bits: scale %g and bias %g, mlx has %g and %g", bits, s, b, scale[0], bias[0])
			}
			want.Codes(codes, i)
			for k, code := range codes {
				if d := int(code) - int(c.code(c.Data, k)); d != 0 {
					moved += d * d
				}
			}
		}
		if moved > 64*50 {
			t.Errorf("%d bits: codes are %g from those of mlx on average", bits, math.Sqrt(float64(moved)/(64*50)))
		}
	}
}

// TestCacheEdges: what no code can hold must not look like a number.
func TestCacheEdges(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	eachImplementation(t, func(t *testing.T) {
		for _, typ := range append(cacheTypes, CacheI16) {
			for _, bad := range []float32{nan, inf, -inf} {
				c := Rows{Type: typ, Width: 64, Group: 64}
				c.Stride = c.RowBytes()
				c.Data = make([]byte, c.Stride)
				x, got := make([]float32, 64), make([]float32, 64)
				x[7] = bad
				c.Set(0, x)
				c.Get(got, 0)
				switch {
				case typ == CacheF16 && bad == bad:
					if math.Abs(float64(got[7])) != largestHalf {
						t.Errorf("f16: %g became %g", bad, got[7])
					}
				case !typ.Quantised() && typ != CacheI16:
					if !sameBits(got[7], bad) && got[7] == got[7] {
						t.Errorf("%v: %g became %g", typ, bad, got[7])
					}
				case got[7] == got[7] || got[8] == got[8]:
					t.Errorf("%v: %g became %g beside %g", typ, bad, got[7], got[8])
				}
			}
		}
	})
}
