package cpu

import (
	"fmt"
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
	src    *stored   // where the panels of m are made of in every product; nil: m has them
	factor []float32 // per output of this part, from global scales; nil: ones
	bias   []float32 // per output; nil: none
	next   *part     // whose product came next in the last step; nil: not known
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
			if p.src != nil {
				p.src.row(dst, r-p.from)
			} else {
				p.m.Row(dst, r-p.from)
			}
			if p.factor != nil {
				kernel.Scale(dst, dst, p.factor[r-p.from])
			}
			readLow(w.low, dst, r)
			return
		}
	}
}

// forms of activations, by precision.
var forms = [...]kernel.Precision{backend.Fast: kernel.Fast, backend.Outliers: kernel.Outliers, backend.Exact: kernel.Fine, backend.Float32: kernel.Floats}

type loader struct {
	be      *Backend
	dry     *int64    // bytes that loading would have taken; nil: it does
	fillers []*filler // one per thread
}

// DryLoader gives a loader that packs nothing, and the bytes of memory that what went through it would take. Its
// weights are good for nothing but Rehearse.
func (b *Backend) DryLoader(o backend.Options) (l backend.Loader, bytes func() int64) {
	if o.Threads <= 0 {
		o.Threads = Threads() // there may be a model that is loaded
	}
	b.opts = o
	n := new(int64)
	return &loader{be: b, dry: n}, func() int64 { return *n }
}

func (l *loader) Close() error { return nil }

// Load packs the parts into panels. Memory beyond the packed form is a few rows per thread, and as much of the mapped file as
// they go through at once.
func (l *loader) Load(s backend.WeightSpec) (backend.Weight, error) {
	if s.Stacked() {
		return l.loadExperts(s)
	}
	k, err := s.Stack()
	if err != nil {
		return nil, err
	}
	w := &weight{use: s.Use, out: k.Out, in: k.In, prec: forms[max(l.be.opts.Precision, s.Least)]}
	if l.dry != nil && (s.Use == backend.UseVector || s.Use == backend.UseConv) {
		*l.dry += 4 * int64(k.Out) * int64(k.In)
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
// floats of mxfp8 and nvfp4 fit no codes with one scale and bias per group. They stay as they are where there are routines for
// them; else bfloat16 holds their products with their scales, two bytes a weight, as long as these are normal numbers. A global
// scale is applied to the result.
func layout(m *quant.Matrix) kernel.Spec {
	s := kernel.Spec{Cols: m.In}
	u, uniform := m.Uniform()
	switch {
	case uniform:
		s.Format, s.Group, s.Scales = kernel.FormatFor(u.Bits), m.Scheme.Group, kernel.ScaleF32
		if m.Scheme.Mode == quant.MXFP4 {
			s.Format = kernel.FormatForE2M1()
		}
		if u.BF16 {
			s.Scales = kernel.ScaleBF16
		}
	case !m.Scheme.None():
		s.Format = kernel.FormatForSmall(m.Scheme.Bits)
	case m.Type != quant.BF16: // float16, float32
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
		switch {
		case l.be.opts.Mapped && k.Mapped():
			p.m, p.src = kernel.Over(spec, nil), &stored{k: k, from: r, w: &l.be.win}
		case l.dry != nil:
			*l.dry += int64(spec.Bytes())
			p.m = kernel.Over(spec, nil)
		default:
			p.m = l.be.mem.NewMatrix(spec)
			l.fill(p.m, k, r)
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

// fillBytes of panels are packed at a time by one thread, then their part of the mapped file is let go: threads times as much
// of the file is in memory at once.
const fillBytes = 4 << 20

// fill packs on all processors: rows [from, from+m.Rows()) of k.
func (l *loader) fill(m *kernel.Matrix, k *backend.Stack, from int) {
	threads := Threads()
	each := min(max(fillBytes/m.PanelBytes(), 1), (m.Panels()+threads-1)/threads)
	var next atomic.Int64
	var done backend.Readers
	for i := range min(threads, (m.Panels()+each-1)/each) {
		if i == len(l.fillers) {
			l.fillers = append(l.fillers, &filler{})
		}
		f := l.fillers[i]
		f.m, f.packs = m, nil
		done.Go(func() {
			for {
				p0 := int(next.Add(int64(each))) - each
				p1 := min(p0+each, m.Panels())
				if p0 >= p1 {
					return
				}
				for p := p0; p < p1; p++ {
					f.panel(p, k, from+p*kernel.PanelRows)
				}
				k.Release(from+p0*kernel.PanelRows, from+min(p1*kernel.PanelRows, m.Rows()))
			}
		})
	}
	done.Wait()
}

// filler moves rows from stored to packed form.
type filler struct {
	m      *kernel.Matrix
	packer kernel.Packer
	packs  *quant.Matrix // packer is set to the form of this one; nil: to none

	src                     [kernel.PanelRows]*quant.Matrix
	at                      [kernel.PanelRows]int // row of src
	weights, scales, biases [kernel.PanelRows][]byte
	small                   [kernel.PanelRows][]float32 // scales of small floats
	codes                   []uint8
	floats                  [2][]float32
}

// panel packs panel p from the rows of k that begin with row from.
func (f *filler) panel(p int, k *backend.Stack, from int) {
	rows, same := min(f.m.Rows()-p*kernel.PanelRows, kernel.PanelRows), true
	for r := range rows {
		f.src[r], f.at[r] = k.At(from + r)
		same = same && alike(f.src[r], f.src[0])
	}
	if same {
		f.rows(p, rows)
		return
	}
	for r := range rows {
		f.row(p*kernel.PanelRows+r, f.src[r], f.at[r])
	}
}

// alike reports matrices whose rows can be packed together.
func alike(a, b *quant.Matrix) bool {
	return a == b || a.Scheme == b.Scheme && a.Type == b.Type && a.ScaleType == b.ScaleType && a.BiasType == b.BiasType
}

// formOf is how the rows of m are stored.
func formOf(m *quant.Matrix) kernel.Form {
	switch m.Scheme.Mode {
	case quant.Affine:
		return kernel.FormCodes
	case quant.MXFP4:
		return kernel.FormE2M1Codes
	case quant.MXFP8:
		return kernel.FormE4M3
	case quant.NVFP4:
		return kernel.FormE2M1
	}
	switch m.Type {
	case quant.BF16:
		return kernel.FormBF16
	case quant.F16:
		return kernel.FormF16
	}
	return kernel.FormF32
}

// rows packs a panel whose rows are all stored in one form.
func (f *filler) rows(p, rows int) {
	first := f.src[0]
	if f.packs == nil || !alike(f.packs, first) {
		f.packer.Reset(f.m, formOf(first), first.Scheme.Bits)
		f.packs = first
	}
	codes := !f.m.Dense() && !f.m.Small()
	raw := codes && first.Scheme.Mode == quant.Affine && first.ScaleType == quant.BF16 && first.BiasType == quant.BF16
	clear(f.weights[rows:])
	for r := range rows {
		src, at := f.src[r], f.at[r]
		f.weights[r] = src.RowBytes(at)
		switch {
		case raw:
			n := 2 * (src.In / src.Scheme.Group)
			f.scales[r], f.biases[r] = src.Scales[at*n:][:n], src.Biases[at*n:][:n]
		case codes:
			f.readScales(src, at)
			f.m.SetScales(p*kernel.PanelRows+r, f.floats[0], f.floats[1])
		case !src.Scheme.None():
			f.small[r] = grow(f.small[r], src.In/src.Scheme.Group)
			src.FloatScales(f.small[r], at)
		}
	}
	f.packer.Pack(p, &f.weights, &f.small)
	if raw {
		clear(f.scales[rows:])
		clear(f.biases[rows:])
		f.packer.Scales(p, &f.scales, &f.biases)
	}
}

// row packs row r by itself: its panel has rows of several forms.
func (f *filler) row(r int, src *quant.Matrix, at int) {
	if f.m.Small() {
		f.floats[0] = grow(f.floats[0], src.In/src.Scheme.Group)
		src.FloatScales(f.floats[0], at)
		f.m.SetSmall(r, src.RowBytes(at), f.floats[0])
		return
	}
	if f.m.Dense() {
		f.floats[0] = grow(f.floats[0], src.In)
		src.UnscaledRow(f.floats[0], at)
		f.m.SetFloats(r, f.floats[0])
		return
	}
	f.readScales(src, at)
	f.codes = grow(f.codes, src.In)
	src.Codes(f.codes, at)
	f.m.SetRow(r, f.codes, f.floats[0], f.floats[1])
}

// readScales leaves the scales and biases of a row of codes in f.floats.
func (f *filler) readScales(src *quant.Matrix, at int) {
	for i := range f.floats {
		f.floats[i] = grow(f.floats[i], src.In/src.Scheme.Group)
	}
	src.ScalesBiases(f.floats[0], f.floats[1], at)
}
