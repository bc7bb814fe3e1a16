package cpu

import (
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/kernel"
	"hearth/internal/quant"
)

// bytesOf is what a loaded weight holds.
func bytesOf(w backend.Weight) (n int64) {
	if e, ok := w.(*experts); ok {
		for _, one := range e.each {
			n += bytesOf(one)
		}
		return n
	}
	k := w.(*weight)
	n = 4 * int64(len(k.vec))
	for _, parts := range [][]part{k.parts, k.up} {
		for _, p := range parts {
			n += int64(p.m.Bytes())
		}
	}
	return n
}

// TestDryLoader: a dry loader knows the bytes that loading takes. What a step takes: see TestForecast.
func TestDryLoader(t *testing.T) {
	floats := func(shape ...int) *backend.Tensor {
		n := 2
		for _, d := range shape {
			n *= d
		}
		return &backend.Tensor{Name: "w", DType: "BF16", Shape: shape, Bytes: make([]byte, n)}
	}
	x := make([]float32, 40*128)
	for i := range x {
		x[i] = float32(i % 17)
	}
	s := quant.Scheme{Mode: quant.Affine, Bits: 4, Group: 64}
	q, err := quant.Quantize(s, x, 40, 128, quant.BF16)
	if err != nil {
		t.Fatal(err)
	}
	codes := backend.Part{Scheme: s, Weight: &backend.Tensor{Name: "q", DType: "U32", Shape: []int{40, 16}, Bytes: q.Weight},
		Scales: &backend.Tensor{Name: "q.scales", DType: "BF16", Shape: []int{40, 2}, Bytes: q.Scales},
		Biases: &backend.Tensor{Name: "q.biases", DType: "BF16", Shape: []int{40, 2}, Bytes: q.Biases}}
	dense := backend.Part{Weight: floats(24, 128)}
	all := []backend.WeightSpec{
		{Name: "mixed", Use: backend.UseLinear, Out: []int{40, 24}, In: 128, Count: 1, Parts: []backend.Part{codes, dense}},
		{Name: "glu", Use: backend.UseGLU, Out: []int{40, 40}, In: 128, Count: 1, Parts: []backend.Part{codes, codes}},
		{Name: "table", Use: backend.UseTable, Out: []int{40}, In: 128, Count: 1, Parts: []backend.Part{codes}},
		{Name: "norm", Use: backend.UseVector, Out: []int{24}, In: 1, Count: 1, Parts: []backend.Part{{Weight: floats(24)}}},
		{Name: "conv", Use: backend.UseConv, Out: []int{24}, In: 4, Count: 1, Parts: []backend.Part{{Weight: floats(24, 4)}}},
		{Name: "experts", Use: backend.UseExperts, Out: []int{8}, In: 128, Count: 3, Picks: 2, Parts: []backend.Part{{Weight: floats(3, 8, 128)}}},
	}
	be, real := New(), New()
	defer be.Close()
	defer real.Close()
	plan, bytes := be.DryLoader(backend.Options{})
	ld, want := real.NewLoader(backend.Options{Threads: 1}), int64(0)
	for _, spec := range all {
		if _, err := plan.Load(spec); err != nil {
			t.Fatal(err)
		}
		w, err := ld.Load(spec)
		if err != nil {
			t.Fatal(err)
		}
		if want += bytesOf(w); bytes() != want {
			t.Errorf("with %s: %d bytes planned, %d loaded", spec.Name, bytes(), want)
		}
	}
}

// TestSmallFloatsInMemory: mxfp8 and nvfp4 take 8.5 and 5 bits a weight where kernels have routines for them, else
// those of bfloat16.
func TestSmallFloatsInMemory(t *testing.T) {
	const out, in = 32, 128
	own, bfloat16 := map[quant.Mode]float64{quant.MXFP8: 8.5, quant.NVFP4: 5}, map[quant.Mode]float64{quant.MXFP8: 16, quant.NVFP4: 16}
	t.Cleanup(func() { _ = kernel.Use("") })
	for _, name := range kernel.Implementations() {
		if err := kernel.Use(name); err != nil {
			t.Fatal(err)
		}
		bits := bfloat16
		if strings.HasPrefix(name, "avx") {
			bits = own
		}
		for mode, want := range bits {
			s, _ := mode.Default()
			q, err := quant.Quantize(s, make([]float32, out*in), out, in, quant.BF16)
			if err != nil {
				t.Fatal(err)
			}
			be := New()
			w, err := be.NewLoader(backend.Options{}).Load(backend.WeightSpec{Name: "w", Use: backend.UseLinear, Out: []int{out}, In: in, Count: 1,
				Parts: []backend.Part{{Scheme: s, Weight: &backend.Tensor{Name: "w", DType: "U32", Shape: []int{out, in * s.Bits / 32}, Bytes: q.Weight},
					Scales: &backend.Tensor{Name: "w.scales", DType: "U8", Shape: []int{out, in / s.Group}, Bytes: q.Scales}}}})
			if err != nil {
				t.Fatal(err)
			}
			if got := float64(8*bytesOf(w)) / (out * in); got != want {
				t.Errorf("%s: %s takes %g bits a weight, want %g", name, mode, got, want)
			}
			if err := be.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
