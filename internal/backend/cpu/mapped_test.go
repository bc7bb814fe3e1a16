package cpu_test

import (
	"fmt"
	"slices"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/backendtest"
	"hearth/internal/backend/cpu"
	"hearth/internal/kernel"
	"hearth/internal/quant"
)

// inFiles is a backend that believes that all weights come from mapped files, and leaves them there.
type inFiles struct{ *cpu.Backend }

func (b inFiles) NewLoader(o backend.Options) backend.Loader {
	o.Mapped = true
	return fromFiles{b.Backend.NewLoader(o)}
}

type fromFiles struct{ backend.Loader }

func (l fromFiles) Load(s backend.WeightSpec) (backend.Weight, error) {
	s.Parts = slices.Clone(s.Parts)
	for i := range s.Parts {
		t := *s.Parts[i].Weight
		t.Release = func([]byte) {}
		s.Parts[i].Weight = &t
	}
	return l.Loader.Load(s)
}

// TestMapped runs everything on weights that are not packed.
func TestMapped(t *testing.T) {
	if testing.Short() {
		t.Skip("the bits are those of packed weights: see TestMappedEqualsPacked")
	}
	backendtest.Run(t, backendtest.Config{
		Open:      func() backend.Backend { return inFiles{cpu.New()} },
		Eps:       1.0 / (1 << 24),
		Int8:      true,
		Int8Small: kernel.FormatForSmall(4) == kernel.FloatE2M1,
		Half:      kernel.DenseBF16.Form(kernel.Fast) == kernel.Half,
		Threads:   []int{1, 2},
	})
}

// TestMappedEqualsPacked: not one bit depends on where weights are.
func TestMappedEqualsPacked(t *testing.T) {
	const out, in = 70, 256
	x := make([]float32, out*in)
	for i := range x {
		x[i] = float32((i*7919+i/61*31)%2003-1001) / 1001
	}
	all := map[string]backend.Part{}
	for _, s := range []quant.Scheme{{Mode: quant.Affine, Bits: 2, Group: 32}, {Mode: quant.Affine, Bits: 3, Group: 64}, {Mode: quant.Affine, Bits: 4, Group: 64},
		{Mode: quant.Affine, Bits: 5, Group: 128}, {Mode: quant.Affine, Bits: 6, Group: 64}, {Mode: quant.Affine, Bits: 8, Group: 64},
		{Mode: quant.MXFP4, Bits: 4, Group: 32}, {Mode: quant.MXFP8, Bits: 8, Group: 32}, {Mode: quant.NVFP4, Bits: 4, Group: 16}} {
		m, err := quant.Quantize(s, x, out, in, quant.BF16)
		if err != nil {
			t.Fatal(err)
		}
		p := backend.Part{Scheme: s, Weight: &backend.Tensor{Name: "w", DType: "U32", Shape: []int{out, in * s.Bits / 32}, Bytes: m.Weight},
			Scales: &backend.Tensor{Name: "s", DType: string(m.ScaleType), Shape: []int{out, in / s.Group}, Bytes: m.Scales}}
		if m.Biases != nil {
			p.Biases = &backend.Tensor{Name: "b", DType: string(m.BiasType), Shape: []int{out, in / s.Group}, Bytes: m.Biases}
		}
		all[s.String()] = p
	}
	for _, d := range []quant.DType{quant.F32, quant.F16, quant.BF16} {
		b := make([]byte, len(x)*d.Size())
		quant.PutFloats(b, d, x)
		all[string(d)] = backend.Part{Weight: &backend.Tensor{Name: "w", DType: string(d), Shape: []int{out, in}, Bytes: b}}
	}
	for name, p := range all {
		for _, use := range []backend.Use{backend.UseLinear, backend.UseTable} {
			for _, rows := range []int{1, 5, 40} {
				packed := product(t, cpu.New(), p, use, out, in, x[:rows*in])
				mapped := product(t, inFiles{cpu.New()}, p, use, out, in, x[:rows*in])
				if !slices.Equal(packed, mapped) {
					t.Errorf("%s, use %d, %d rows: bits differ", name, use, rows)
				}
			}
		}
	}
}

// product is x times the weight, and of tables what the rows of a few ids are.
func product(t *testing.T, be backend.Backend, p backend.Part, use backend.Use, out, in int, x []float32) []float32 {
	t.Helper()
	defer be.Close()
	w, err := be.NewLoader(backend.Options{Threads: 2}).Load(backend.WeightSpec{Name: "w", Use: use, Out: []int{out}, In: in, Count: 1, Parts: []backend.Part{p}})
	if err != nil {
		t.Fatal(err)
	}
	rows := len(x) / in
	b := backend.Batch{Tokens: make([]int32, rows), Spans: []backend.Span{{Len: rows}}}
	b.Pos[0] = make([]int32, rows)
	o := be.Begin(nil, &b)
	defer o.End()
	y, err := o.Floats(o.Linear(o.Upload(x, len(x)/in, in), w))
	if err != nil {
		t.Fatal(fmt.Errorf("product: %w", err))
	}
	all := slices.Clone(y)
	if use == backend.UseTable {
		e, err := o.Floats(o.Embed(w, backend.Index{IDs: []int32{0, 17, int32(out - 1)}, PerRow: 1}))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e...)
	}
	return all
}
