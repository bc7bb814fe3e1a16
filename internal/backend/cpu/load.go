package cpu

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"hearth/internal/backend"
	"hearth/internal/kernel"
	"hearth/internal/quant"
)

// weight is one or several packed matrices whose outputs stand side by side. There is one unless the parts differ in
// format; a UseGLU weight always has its gate and its up matrices apart, panel by panel of the same outputs.
type weight struct {
	use     backend.Use
	out, in int
	parts   []part // Linear, Embed
	up      []part // UseGLU: parts is the gate
	low     []low  // additions to all outputs; UseGLU: to the gate's
	lowUp   []low  // UseGLU
	vec     []float32
	prec    kernel.Precision // for matrices with codes
}

// part is the outputs [from, from+m.Rows()).
type part struct {
	from   int
	m      *kernel.Matrix
	factor []float32 // per output of this part, from global scales; nil: ones
	bias   []float32 // per output; nil: none
}

var _ backend.Weight = (*weight)(nil)

func (w *weight) Out() int      { return w.out }
func (w *weight) In() int       { return w.in }
func (w *weight) Count() int    { return 1 }
func (w *weight) Partial() bool { return false }

// row reads one row of a table.
func (w *weight) row(dst []float32, r int) {
	for i := len(w.parts) - 1; i >= 0; i-- {
		if p := &w.parts[i]; r >= p.from {
			p.m.Row(dst, r-p.from)
			if p.factor != nil {
				kernel.Scale(dst, dst, p.factor[r-p.from])
			}
			readLow(w.low, dst, r)
			return
		}
	}
}

type loader struct {
	be   *Backend
	plan *int64 // bytes that loading would have taken; nil: it does
}

// Plan gives a loader that packs nothing, and the bytes of memory that what went through it would take. Its weights are good for
// nothing, but Scratch knows them.
func (b *Backend) Plan(o backend.Options) (l backend.Loader, bytes func() int64) {
	b.opts = o
	n := new(int64)
	return &loader{be: b, plan: n}, func() int64 { return *n }
}

func (l *loader) Close() error { return nil }

// Load packs the parts into panels. Memory beyond the packed form is one row per thread.
func (l *loader) Load(s backend.WeightSpec) (backend.Weight, error) {
	if s.Stacked() {
		return l.loadExperts(s)
	}
	k, err := s.Stack()
	if err != nil {
		return nil, err
	}
	if s.Shard != backend.Whole && l.be.Caps().World > 1 {
		return nil, fmt.Errorf("the cpu backend does not shard")
	}
	w := &weight{use: s.Use, out: k.Out, in: k.In, prec: kernel.Fast}
	if l.be.opts.Exact || s.Exact {
		w.prec = kernel.Exact
	}
	if l.plan != nil && (s.Use == backend.UseVector || s.Use == backend.UseConv) {
		*l.plan += 4 * int64(k.Out) * int64(k.In)
		return w, nil
	}
	if s.Use == backend.UseVector {
		return w, w.vector(k, s.Plus1)
	}
	if s.Use == backend.UseConv {
		w.loadConv(k)
		return w, nil
	}
	if s.Use == backend.UseGLU {
		w.low, w.lowUp = lows(k, 0, k.Out/2), lows(k, k.Out/2, k.Out)
	} else {
		w.low = lows(k, 0, k.Out)
	}
	if s.Plus1 {
		return nil, fmt.Errorf("weights stored as w and used as 1+w must be vectors")
	}
	if s.Use == backend.UseGLU {
		if k.Out%2 != 0 {
			return nil, fmt.Errorf("gate and up have %d rows together", k.Out)
		}
		w.parts = l.pack(k, 0, k.Out/2)
		w.up = l.pack(k, k.Out/2, k.Out)
	} else {
		w.parts = l.pack(k, 0, k.Out)
	}
	l.be.sizes.in = max(l.be.sizes.in, w.in)
	if s.Use == backend.UseTable {
		l.be.sizes.table = max(l.be.sizes.table, w.out)
	} else {
		l.be.sizes.out = max(l.be.sizes.out, w.out)
	}
	return w, nil
}

func (w *weight) vector(k *backend.Stack, plus1 bool) error {
	if k.In != 1 {
		return fmt.Errorf("a vector has %d columns", k.In)
	}
	w.vec = make([]float32, k.Out)
	for r := range w.vec {
		m, row := k.At(r)
		m.Row(w.vec[r:r+1], row)
		if plus1 {
			w.vec[r]++
		}
	}
	return nil
}

// layout chooses how rows like those of m are packed without rounding anything. What is uniform stays codes. The small
// floats of mxfp8 and nvfp4 fit no codes with one scale and bias per group, but bfloat16 holds their products with their
// scales, two bytes a weight, as long as these are normal numbers; a global scale is applied to the result.
func layout(m *quant.Matrix) kernel.Spec {
	s := kernel.Spec{Cols: m.In}
	u, uniform := m.Uniform()
	switch {
	case uniform:
		s.Format, s.Group, s.Scales = kernel.FormatFor(u.Bits), m.Scheme.Group, kernel.ScaleF32
		if u.BF16 {
			s.Scales = kernel.ScaleBF16
		}
	case m.Scheme.None() && m.Type != quant.BF16: // float16, float32
		s.Format = kernel.DenseF32
	default:
		s.Format = kernel.DenseBF16
	}
	return s
}

// pack turns rows [from, to) of the stack into as few matrices as their formats allow, in order.
func (l *loader) pack(k *backend.Stack, from, to int) []part {
	var parts []part
	factor, bias := k.Factor(), k.Bias()
	for r := from; r < to; {
		first, _ := k.At(r)
		spec, end := layout(first), r+1
		for end < to {
			if m, _ := k.At(end); m != first && layout(m) != spec {
				break
			}
			end++
		}
		spec.Rows = end - r
		p := part{from: r - from}
		if l.plan != nil {
			*l.plan += int64(spec.Bytes())
		} else {
			p.m = l.be.mem.NewMatrix(spec)
			fill(p.m, k, r)
		}
		if factor != nil {
			p.factor = factor[r:end:end]
		}
		if bias != nil {
			p.bias = bias[r:end:end]
		}
		parts = append(parts, p)
		r = end
	}
	return parts
}

// fill packs on all processors: loading is bound by unpacking codes.
func fill(m *kernel.Matrix, k *backend.Stack, from int) {
	const rows = 64 // whole panels, so that no two threads write one cache line
	var next atomic.Int64
	var done sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (m.Rows()+rows-1)/rows) {
		done.Go(func() {
			f := newFiller(m)
			for {
				at := int(next.Add(rows)) - rows
				if at >= m.Rows() {
					return
				}
				for r := at; r < min(at+rows, m.Rows()); r++ {
					src, row := k.At(from + r)
					f.row(r, src, row)
				}
			}
		})
	}
	done.Wait()
}

// filler moves rows from stored to packed form.
type filler struct {
	m              *kernel.Matrix
	codes          []uint8
	scales, biases []float32
	floats         []float32
	halves         []uint16
}

func newFiller(m *kernel.Matrix) *filler {
	f := &filler{m: m}
	if m.Dense() {
		f.halves, f.floats = make([]uint16, m.Cols()), make([]float32, m.Cols())
		return f
	}
	n := m.Cols() / m.Group()
	f.codes, f.scales, f.biases = make([]uint8, m.Cols()), make([]float32, n), make([]float32, n)
	return f
}

func (f *filler) row(r int, src *quant.Matrix, row int) {
	switch {
	case f.codes != nil:
		src.ScalesBiases(f.scales, f.biases, row)
		if k := src.Scheme; k.Mode == quant.Affine && (k.Bits == 4 || k.Bits == 8) {
			f.m.SetStream(r, src.RowBytes(row), f.scales, f.biases)
			return
		}
		src.Codes(f.codes, row)
		f.m.SetRow(r, f.codes, f.scales, f.biases)
	case src.Type == quant.BF16:
		b := src.RowBytes(row)
		for i := range f.halves {
			f.halves[i] = binary.LittleEndian.Uint16(b[2*i:])
		}
		f.m.SetBF16(r, f.halves)
	default:
		src.UnscaledRow(f.floats, row)
		f.m.SetFloats(r, f.floats)
	}
}
