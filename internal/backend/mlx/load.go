package mlx

import (
	"fmt"
	"slices"

	B "hearth/internal/backend"
	"hearth/internal/quant"
)

// block is consecutive rows of a weight that are stored alike: an mlx triple, or floats [in, rows] (a transposed view) in the
// activation type. Of a stack, every array has the experts in front.
type block struct {
	scheme            // mode is empty for floats
	rows              int
	w, scales, biases handle
}

// weight is a loaded tensor. Handles are zero where it has no such thing.
type weight struct {
	out, in, count int
	partial        bool
	blocks         []block
	bias, factor   handle // [out], of a stack [count, out]
	down, up       handle // of adapters: [in, ranks] and [ranks, out]; of a stack with the experts in front
	vector         handle // of UseVector and UseConv, in float32
	typed          handle // of UseVector, in the activation type where that is another; see scale
}

func (t *weight) Out() int      { return t.out }
func (t *weight) In() int       { return t.in }
func (t *weight) Count() int    { return t.count }
func (t *weight) Partial() bool { return t.partial }

// loader makes weights. They outlive it: see Backend.Close.
type loader struct{ b *Backend }

// NewLoader decides what activations are: float32 if the model is to be exact, else what suits the device.
func (b *Backend) NewLoader(o B.Options) B.Loader {
	b.act = b.Caps().Acts[o.Precision]
	b.wide, b.table = 0, 0
	return &loader{b}
}

// Close gives back what loading took besides the weights.
func (ld *loader) Close() error {
	ld.b.later(func() { ld.b.o.Call(ld.b.o.fns[fnClearCache]) })
	return ld.b.settle()
}

// Load copies a weight to the device. Peak memory is one tensor more than the model.
func (ld *loader) Load(s B.WeightSpec) (w B.Weight, err error) {
	var stacks []*B.Stack
	for e := range max(s.Count, 1) {
		one := s
		if s.Stacked() {
			if one, err = s.Expert(e); err != nil {
				return nil, err
			}
		}
		if one, err = one.Local(ld.b.o.rank, max(ld.b.o.world, 1)); err != nil {
			return nil, err
		}
		k, err := one.Stack()
		if err != nil {
			return nil, err
		}
		stacks = append(stacks, k)
	}
	ld.b.flush()
	o := ld.b.o
	o.wait(func() {
		up := uploader{l: o.lib, t: ld.b.dtype(), stacks: stacks, stacked: s.Stacked()}
		var k *weight
		if k, err = up.load(&s); err == nil {
			k.partial = s.Shard == B.RowPar && o.world > 1
		}
		ld.b.own(k)
		w = k
	})
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", s.Name, err)
	}
	ld.b.note(&s)
	return w, nil
}

// own frees a weight's arrays with the backend.
func (b *Backend) own(w *weight) {
	if w == nil {
		return
	}
	b.owned = append(b.owned, w.bias, w.factor, w.down, w.up, w.vector)
	for _, k := range w.blocks {
		b.owned = append(b.owned, k.w, k.scales, k.biases)
	}
}

// uploader copies one weight, which is stacks[0] or a stack of all of them.
type uploader struct {
	l       *lib
	t       dtype
	stacks  []*B.Stack
	stacked bool
}

func (u *uploader) load(s *B.WeightSpec) (*weight, error) {
	k := u.stacks[0]
	w := &weight{out: k.Out, in: k.In, count: len(u.stacks)}
	if s.Use == B.UseVector || s.Use == B.UseConv {
		x := u.floats(0, k.Out, s.Plus1)
		shape := []int{k.Out}
		if s.Use == B.UseConv {
			shape = append(shape, k.In)
		}
		w.vector = u.l.retain(upload(u.l, x, f32, shape...))
		return w, u.l.takeErr()
	}
	for from := 0; from < k.Out; {
		to := from + 1
		for to < k.Out && (s.Use == B.UseHeads || alike(k, from, to)) {
			to++
		}
		same := s.Use != B.UseHeads && !s.Plus1
		for _, other := range u.stacks[1:] {
			m, _ := k.At(from)
			n, _ := other.At(from)
			same = same && sameStorage(m, n) && alike(other, from, to-1)
		}
		m, _ := k.At(from)
		if same && !m.Scheme.None() {
			w.blocks = append(w.blocks, u.quantised(m, from, to))
		} else {
			w.blocks = append(w.blocks, u.dense(from, to, s.Plus1))
		}
		from = to
	}
	w.bias = u.perRow(func(k *B.Stack) []float32 { return k.Bias() }, 0)
	if slices.ContainsFunc(w.blocks, func(b block) bool { return b.mode != "" }) {
		w.factor = u.perRow(u.factor(w), 1)
	}
	u.adapters(w)
	if err := u.l.takeErr(); err != nil {
		return nil, err
	}
	if s.Use == B.UseTable && len(w.blocks) > 1 {
		return nil, fmt.Errorf("a table of parts that are stored differently is not supported on mlx")
	}
	return w, nil
}

// factor is of the blocks that are quantised only: floats have theirs in them.
func (u *uploader) factor(w *weight) func(k *B.Stack) []float32 {
	return func(k *B.Stack) []float32 {
		f, at := k.Factor(), 0
		for _, b := range w.blocks {
			for range b.rows {
				if f != nil && b.mode == "" {
					f[at] = 1
				}
				at++
			}
		}
		return f
	}
}

// sameStorage reports whether rows of both can be in one array.
func sameStorage(a, b *quant.Matrix) bool {
	return a.Scheme == b.Scheme && a.Type == b.Type && a.ScaleType == b.ScaleType && a.BiasType == b.BiasType
}

func alike(k *B.Stack, from, to int) bool {
	a, _ := k.At(from)
	b, _ := k.At(to)
	return a == b || sameStorage(a, b)
}

// front puts the number of experts before a shape.
func (u *uploader) front(shape ...int) []int {
	if u.stacked {
		return append([]int{len(u.stacks)}, shape...)
	}
	return shape
}

// floats are rows [from, to) of all stacks, dequantised.
func (u *uploader) floats(from, to int, plus1 bool) []float32 {
	in := u.stacks[0].In
	x := make([]float32, 0, len(u.stacks)*(to-from)*in)
	for _, k := range u.stacks {
		for r := from; r < to; r++ {
			m, at := k.At(r)
			x = x[:len(x)+in]
			m.Row(x[len(x)-in:], at)
		}
	}
	if plus1 {
		for i := range x {
			x[i]++
		}
	}
	return x
}

// stored keeps an array in the activation type, computed, so that nothing of the upload stays.
func (u *uploader) stored(h handle, t dtype) handle {
	if t != f32 {
		h = u.l.cast(h, t)
	}
	u.l.eval(false, h)
	return u.l.retain(h)
}

func (u *uploader) dense(from, to int, plus1 bool) block {
	in := u.stacks[0].In
	h := u.stored(upload(u.l, u.floats(from, to, plus1), f32, u.front(to-from, in)...), u.t)
	b := block{rows: to - from, w: h}
	if u.stacked {
		b.w = u.l.retain(u.l.transpose(h, 0, 2, 1))
	} else {
		b.w = u.l.retain(u.l.transpose(h, 1, 0))
	}
	u.l.free(h)
	return b
}

func (u *uploader) quantised(m *quant.Matrix, from, to int) block {
	in, s := m.In, m.Scheme
	groups := in / s.Group
	b := block{scheme: scheme{string(s.Mode), s.Bits, s.Group}, rows: to - from}
	n := len(u.stacks) * (to - from)
	words := make([]byte, 0, n*s.RowBytes(in))
	var codes []byte
	var scales, biases []float32
	if m.ScaleType != quant.U8 {
		scales, biases = make([]float32, 0, n*groups), make([]float32, 0, n*groups)
	}
	more := func(x []float32, t quant.DType, all []byte, r int) []float32 {
		x = x[:len(x)+groups]
		quant.Floats(x[len(x)-groups:], t, all[r*groups*t.Size():])
		return x
	}
	for _, k := range u.stacks {
		for r := from; r < to; r++ {
			m, at := k.At(r)
			words = append(words, m.RowBytes(at)...)
			if m.ScaleType == quant.U8 {
				codes = append(codes, m.Scales[at*groups:][:groups]...)
				continue
			}
			scales = more(scales, m.ScaleType, m.Scales, at)
			biases = more(biases, m.BiasType, m.Biases, at)
		}
	}
	b.w = u.stored(upload(u.l, words, u32, u.front(to-from, s.RowBytes(in)/4)...), f32)
	if codes != nil {
		b.scales = u.stored(upload(u.l, codes, u8, u.front(to-from, groups)...), f32)
		return b
	}
	b.scales = u.stored(upload(u.l, scales, f32, u.front(to-from, groups)...), u.t)
	b.biases = u.stored(upload(u.l, biases, f32, u.front(to-from, groups)...), u.t)
	return b
}

// perRow uploads a number per row, or nothing if no stack has any.
func (u *uploader) perRow(of func(*B.Stack) []float32, none float32) handle {
	var all []float32
	some := false
	for _, k := range u.stacks {
		x := of(k)
		if some = some || x != nil; x == nil {
			x = slices.Repeat([]float32{none}, k.Out)
		}
		all = append(all, x...)
	}
	if !some {
		return 0
	}
	return u.l.retain(upload(u.l, all, f32, u.front(u.stacks[0].Out)...))
}

// adapters puts those of all parts side by side, with zeros for the rows that a part's does not reach.
func (u *uploader) adapters(w *weight) {
	most := 0
	for _, k := range u.stacks {
		n := 0
		for _, a := range k.Adapters() {
			n += a.Rank
		}
		most = max(most, n)
	}
	if most == 0 {
		return
	}
	down := make([]float32, len(u.stacks)*w.in*most)
	up := make([]float32, len(u.stacks)*most*w.out)
	for e, k := range u.stacks {
		d, p, at := down[e*w.in*most:], up[e*most*w.out:], 0
		for _, a := range k.Adapters() {
			for i, v := range a.Down {
				d[i%w.in*most+at+i/w.in] = v
			}
			for i, v := range a.Up {
				p[(at+i%a.Rank)*w.out+a.From+i/a.Rank] = v
			}
			at += a.Rank
		}
	}
	w.down = u.stored(upload(u.l, down, f32, u.front(w.in, most)...), u.t)
	w.up = u.stored(upload(u.l, up, f32, u.front(most, w.out)...), u.t)
}
