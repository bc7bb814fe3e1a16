package model

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
	"hearth/internal/quant"
)

// Load fills every tagged field of m. All missing, extra and misshapen tensors are reported together, before anything
// is loaded.
//
// Tag: w:"name[+second…][,fused=name][,each=name][,both=name][,tied=Field][,shard=col|row][,glu]". Names are relative
// to the path of the enclosing field; an empty one is that path. Elements of slices append ".N". Several names are put
// side by side in their order. A nil pointer is absent by config. Bind methods run when all weights are there.
//
//	fused  the tensor that has all of the names, where the layer says so
//	each   of a stack of experts: the beginning of the names, before ".N", of one tensor per expert
//	both   of matrices of heads: a tensor that may hold them beside others
//	tied   the embedding that serves where there is no tensor of that name
//	shard  how ranks divide it: rows of the result (col) or columns of the input (row)
//	glu    the two parts are a gate and what it multiplies
//
// A file that is cut short meanwhile is an error.
func Load(m stateful, src Source, ld B.Loader, world int) error {
	p, err := find(m, src, world)
	if err != nil {
		return err
	}
	return p.load(ld)
}

// stateful is what Load needs of a model beside its tagged fields.
type stateful interface{ States() []B.StateSpec }

// find looks for all tensors of m without reading them.
func find(m stateful, src Source, world int) (*inventory, error) {
	if i, ok := m.(inspector); ok {
		i.Inspect(src.Shape)
	}
	p := &inventory{src: src, world: max(world, 1)}
	p.walk(reflect.ValueOf(m).Elem(), "")
	p.fine = p.amplifies(m)
	return p, faultError(append(p.faults, src.Unused()...))
}

// load loads what was found.
func (p *inventory) load(ld B.Loader) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		v := recover()
		if err2 := B.Unreadable(v); err2 != nil {
			err = &LoadError{Problem: "its weights", Err: err2}
		} else if v != nil {
			panic(v)
		}
	}()
	for _, j := range p.jobs {
		if p.fine {
			j.spec.Least = max(j.spec.Least, B.Exact)
		}
		var stored []B.Part
		for _, w := range j.wants {
			part := p.src.Part(w)
			part.Perm = w.Perm
			stored = append(stored, part)
			j.spec.Parts = append(j.spec.Parts, part)
		}
		w, err := j.load(ld)
		if err != nil {
			return &LoadError{Tensor: j.spec.Name, Problem: "tensor " + j.spec.Name, Err: err}
		}
		for _, part := range stored {
			p.src.Done(part)
		}
		*j.to = w
		if j.number != nil {
			j.number.V = numbers(j.spec.Parts[0].Weight)[0]
		}
	}
	for _, f := range append(p.ties, p.binds...) {
		f()
	}
	return nil
}

// amplifies reports a model in which small differences grow: a router whose last choices are near picks another
// expert, and what a recurrent state is off by all later rows see. With activations of 8 bits such models of random
// weights fail the gate that docs/formats.md has, with those of 16 they pass.
func (p *inventory) amplifies(m stateful) bool {
	return slices.ContainsFunc(p.jobs, func(j job) bool { return j.spec.Use == B.UseExperts || j.spec.Use == B.UseExpertGLU }) ||
		slices.ContainsFunc(m.States(), func(s B.StateSpec) bool { return s.Kind == B.StateRecurrent })
}

// inventory is what a walk over the model's fields finds.
type inventory struct {
	src    Source
	world  int
	jobs   []job
	ties   []func()
	binds  []func()
	faults []Fault
	fine   bool // see amplifies
}

// job is one weight to load.
type job struct {
	spec  B.WeightSpec
	wants []Want
	to    *B.Weight

	number  *nn.Scalar                   // filled as well
	prepare func(B.Part) (B.Part, error) // changes the part before it is loaded; nil: none
	fuses   bool                         // prepare adds an adapter
}

func (j *job) load(ld B.Loader) (B.Weight, error) {
	if j.prepare != nil {
		if j.spec.Parts[0].Adapter != nil && !j.fuses {
			return nil, fmt.Errorf("an adapter of it is not supported: fuse it into the model first")
		}
		part, err := j.prepare(j.spec.Parts[0])
		if err != nil {
			return nil, err
		}
		j.spec.Parts[0] = part
	}
	return ld.Load(j.spec)
}

// tagged is a parsed tag with absolute names.
type tagged struct {
	names []string
	fused string
	each  string
	both  string
	glu   bool
	tied  string
	shard B.Axis
	perm  [][]int32 // by name
	of    []string  // the stacks that names are parts of, expert by expert
}

func parseTag(path, tag string) tagged {
	var t tagged
	opts := strings.Split(tag, ",")
	absolute := func(name string) string {
		if path == "" || name == "" {
			return path + name
		}
		return path + "." + name
	}
	for _, name := range strings.Split(opts[0], "+") {
		t.names = append(t.names, absolute(name))
	}
	for _, o := range opts[1:] {
		switch k, v, _ := strings.Cut(o, "="); k {
		case "fused":
			t.fused = absolute(v)
		case "both":
			t.both = absolute(v)
		case "each":
			t.each = absolute(v)
		case "glu":
			t.glu = true
		case "tied":
			t.tied = v
		case "shard":
			t.shard = map[string]B.Axis{"col": B.ColPar, "row": B.RowPar}[v]
		}
	}
	return t
}

func (p *inventory) walk(v reflect.Value, path string) {
	if b, ok := v.Addr().Interface().(interface{ Bind() }); ok {
		p.binds = append(p.binds, b.Bind)
	}
	for i := range v.NumField() {
		if tag, ok := v.Type().Field(i).Tag.Lookup("w"); ok {
			p.field(v.Field(i), parseTag(path, tag), v)
		}
	}
}

func (p *inventory) field(f reflect.Value, t tagged, parent reflect.Value) {
	if f.Kind() == reflect.Interface {
		if f.IsNil() {
			return
		}
		f = f.Elem()
	}
	if f.Kind() == reflect.Pointer {
		if f.IsNil() {
			return
		}
		f = f.Elem()
	}
	switch x := f.Addr().Interface().(type) {
	case *nn.Linear:
		p.linear(x, t, parent)
	case *nn.Stack:
		p.stack(x, t)
	case *nn.Heads:
		p.heads(x, t)
	case *nn.Patches:
		p.add(&x.W, B.WeightSpec{Use: B.UseLinear, Out: []int{x.Out}, In: product(x.Window)}, t, Want{Window: x.Window, Bias: x.Bias})
		p.jobs[len(p.jobs)-1].prepare = func(part B.Part) (B.Part, error) { return channelsFirst(part, x.Window), nil }
	case *nn.Embedding:
		p.add(&x.W, B.WeightSpec{Use: B.UseTable, Out: []int{x.Vocab}, In: x.Dim}, t, Want{Table: true, Planes: x.Planes, Bare: x.Planes > 0})
		if x.Planes > 0 {
			p.jobs[len(p.jobs)-1].prepare = asOneTable
		}
		if x.Rounded {
			j := &p.jobs[len(p.jobs)-1]
			j.fuses = true // an adapter is not touched
			j.prepare = func(part B.Part) (B.Part, error) { x.Scale = roundedLike(part, x.Scale); return part, nil }
		}
	case *nn.RMSNorm:
		if x.Unit {
			return
		}
		p.add(&x.W, B.WeightSpec{Use: B.UseVector, Out: []int{x.N}, In: 1, Plus1: x.Plus1}, t, Want{Vector: true, Plus1: x.Plus1, Flat: x.Flat})
		if x.Less != 0 {
			p.jobs[len(p.jobs)-1].prepare = func(part B.Part) (B.Part, error) { return raised(part, x.Less), nil }
		}
	case *nn.Row:
		p.add(&x.W, B.WeightSpec{Use: B.UseTable, Out: []int{x.N}, In: 1}, t, Want{Vector: true, Bare: true})
		j := &p.jobs[len(p.jobs)-1]
		j.spec.Out, j.spec.In, j.prepare = []int{1}, x.N, asRow
	case *nn.Scalar:
		p.add(new(B.Weight), B.WeightSpec{Use: B.UseVector, Out: []int{1}, In: 1}, t, Want{Vector: true, Bare: true})
		p.jobs[len(p.jobs)-1].number = x
	case *nn.LayerNorm:
		s := B.WeightSpec{Use: B.UseVector, Out: []int{x.N}, In: 1}
		scale := s
		if scale.Plus1 = x.Plus1; x.Apart {
			scale.Out = slices.Repeat([]int{x.Spec.Width}, x.N/x.Spec.Width)
			path := t.names[0] + ".norms."
			t.names = nil
			for i := range scale.Out {
				t.names = append(t.names, path+strconv.Itoa(i))
			}
		}
		p.add(&x.W, scale, t, Want{Vector: true, Plus1: x.Plus1, Flat: x.Flat})
		if x.NoBias {
			return
		}
		p.add(&x.Bias, s, tagged{names: []string{t.names[0] + ".bias"}}, Want{Vector: true, Bare: true})
	case *nn.Conv1d:
		outs := slices.Repeat([]int{x.C / len(t.names)}, len(t.names))
		if t.fused != "" && p.src.Has(t.fused) {
			t.names = []string{t.fused}
		}
		p.add(&x.W, B.WeightSpec{Use: B.UseConv, Out: outs, In: x.K, Shard: t.shard}, t, Want{Conv: true})
		if x.Factors != nil {
			p.jobs[len(p.jobs)-1].prepare = func(part B.Part) (B.Part, error) { return scaledTaps(part, x.Factors) }
		}
		if x.HasBias {
			p.add(&x.Bias, B.WeightSpec{Use: B.UseVector, Out: []int{x.C}, In: 1, Shard: t.shard}, tagged{names: []string{t.names[0] + ".bias"}}, Want{Vector: true, Bare: true})
		}
	case *nn.Vec:
		p.add(&x.W, B.WeightSpec{Use: B.UseVector, Out: []int{x.N}, In: 1, Shard: t.shard}, t, Want{Vector: true, Bare: true, Flat: x.Flat})
	default:
		p.nested(f, t.names[0])
	}
}

func (p *inventory) nested(f reflect.Value, path string) {
	switch f.Kind() {
	case reflect.Slice:
		for i := range f.Len() {
			p.field(f.Index(i), tagged{names: []string{path + "." + strconv.Itoa(i)}}, reflect.Value{})
		}
	case reflect.Struct:
		p.walk(f, path)
	default:
		panic(fmt.Sprintf("model: field %s has the unloadable type %s", path, f.Type()))
	}
}

func (p *inventory) linear(x *nn.Linear, t tagged, parent reflect.Value) {
	var e *nn.Embedding
	if t.tied != "" {
		e = parent.FieldByName(t.tied).Addr().Interface().(*nn.Embedding)
	}
	if e != nil && (x.Tied == nn.TieAlways && !p.apart(t.names[0], e) || x.Tied == nn.TieFile && !p.src.Has(t.names[0])) {
		p.src.Ignore(t.names[0])
		p.ties = append(p.ties, func() { x.W = e.W })
		if bias := t.names[0] + ".bias"; p.src.Shape(bias) != nil {
			x.Extra = &nn.Row{N: sum(x.Outs)}
			p.field(reflect.ValueOf(x.Extra).Elem(), tagged{names: []string{bias}}, parent)
		}
		return
	}
	use := B.UseLinear
	if t.glu {
		use = B.UseGLU
	}
	if x.Fused {
		t.names = []string{t.fused}
	}
	t.perm = x.Perm
	p.add(&x.W, B.WeightSpec{Use: use, Out: x.Outs, In: x.In, Shard: t.shard, Least: x.Least}, t, Want{Bias: x.Bias, Transposed: x.Transposed})
	if x.Transposed {
		p.jobs[len(p.jobs)-1].prepare = transposePart
	}
	if x.Square > 0 {
		p.jobs[len(p.jobs)-1].prepare = func(part B.Part) (B.Part, error) { return rowByRow(part, x.In, x.Square) }
	}
}

// apart reports a head that the config ties to the embedding and the folder has once more, in another way: what is
// stored counts, as in transformers. Somebody trained it, or chose how to round it.
func (p *inventory) apart(head string, e *nn.Embedding) bool {
	i := slices.IndexFunc(p.jobs, func(j job) bool { return j.to == &e.W })
	return i >= 0 && p.src.Apart(head, p.jobs[i].spec.Name)
}

func (p *inventory) stack(x *nn.Stack, t tagged) {
	s := B.WeightSpec{Use: B.UseExperts, Out: x.Outs, In: x.In, Shard: t.shard, Count: x.N, Picks: x.Picks}
	if t.glu {
		s.Use = B.UseExpertGLU
	}
	apart := func(name string, e int) string {
		return fmt.Sprintf("%s.%d%s", t.each, e, name[strings.LastIndexByte(name, '.'):])
	}
	if t.each == "" || p.src.Has(t.names[0]) || !p.src.Has(apart(t.names[0], 0)) {
		var perm []int32
		if t.fused != "" && p.src.Has(t.fused) {
			t.names = []string{t.fused}
			if x.Interleaved {
				perm = interleave(sum(x.Outs)/2, 1, 1)
			}
		}
		p.add(&x.W, s, t, Want{Bias: x.Bias, Count: x.N, Perm: perm, Transposed: x.Transposed})
		if x.Transposed {
			p.jobs[len(p.jobs)-1].prepare = transposePart
		}
		return
	}
	var names []string
	for _, name := range t.names {
		for e := range x.N {
			names = append(names, apart(name, e))
		}
	}
	t.names, t.of = names, t.names
	p.add(&x.W, s, t, Want{Bias: x.Bias})
}

// add checks one weight and queues it. like holds what all its parts have in common.
func (p *inventory) add(to *B.Weight, s B.WeightSpec, t tagged, like Want) {
	s.Name, s.Count = t.names[0], max(s.Count, 1)
	j := job{spec: s, to: to}
	for i, name := range t.names {
		w := like
		w.Path, w.Rows, w.In, w.Ranks = name, sum(s.Out), s.In, 1
		if n := len(t.names); n >= len(s.Out) { // else one tensor has all parts
			if w.Rows = s.Out[i*len(s.Out)/n]; w.Rows == 0 {
				continue // the layer has no such part
			}
		}
		if i < len(t.perm) {
			w.Perm = t.perm[i]
		}
		if len(t.of) > 0 {
			w.Experts = len(t.names) / len(t.of)
			w.Of, w.Expert = t.of[i/w.Experts], i%w.Experts
		}
		switch s.Shard {
		case B.ColPar:
			w.Ranks = p.world
		case B.RowPar:
			w.In *= p.world
		}
		p.faults = append(p.faults, p.src.Check(w)...)
		j.wants = append(j.wants, w)
	}
	p.jobs = append(p.jobs, j)
}

// channelsFirst gives a matrix of a kernel over patches with channels before pixels, as patches are and transformers stores it;
// MLX has them last.
func channelsFirst(p B.Part, window []int) B.Part {
	t := *p.Weight
	rows, cols, size := t.Shape[0], product(window), quant.DType(t.DType).Size()
	if !slices.Equal(t.Shape[1:], window) {
		t.Bytes, t.Release = make([]byte, len(t.Bytes)), nil
		for r := range rows {
			transposeBytes(t.Bytes[r*cols*size:][:cols*size], p.Weight.Bytes[r*cols*size:], cols/window[0], window[0], size)
		}
	}
	t.Shape = []int{rows, cols}
	p.Weight = &t
	return p
}

// asRow makes a table of one row of a vector.
func asRow(p B.Part) (B.Part, error) {
	t := *p.Weight
	t.Shape = []int{1, t.Shape[0]}
	p.Weight = &t
	return p, nil
}

// asOneTable makes one table of several.
func asOneTable(p B.Part) (B.Part, error) {
	t := *p.Weight
	t.Shape = []int{t.Shape[0] * t.Shape[1], t.Shape[2]}
	p.Weight = &t
	return p, nil
}

// rowByRow gives a matrix over n rows side by side, whose stored columns are for one number of all rows after the other. Groups
// of quantised columns do not survive that, so it has numbers.
func rowByRow(p B.Part, cols, n int) (B.Part, error) {
	t := *p.Weight
	rows := t.Shape[0]
	if !p.Scheme.None() {
		k, err := (&B.WeightSpec{Name: t.Name, Use: B.UseLinear, Out: []int{rows}, In: cols, Count: 1, Parts: []B.Part{p}}).Stack()
		if err != nil {
			return p, err
		}
		t.DType, t.Bytes = string(quant.F32), make([]byte, 0, 4*rows*cols)
		row := make([]float32, cols)
		for r := range rows {
			m, at := k.At(r)
			m.Row(row, at)
			for _, v := range row {
				t.Bytes = binary.LittleEndian.AppendUint32(t.Bytes, math.Float32bits(v))
			}
		}
		p = B.Part{Bias: p.Bias}
	}
	size := quant.DType(t.DType).Size()
	stored := t.Bytes
	t.Bytes, t.Release, t.Shape = make([]byte, rows*cols*size), nil, []int{rows, cols}
	for r := range rows {
		transposeBytes(t.Bytes[r*cols*size:][:cols*size], stored[r*cols*size:][:cols*size], cols/n, n, size)
	}
	p.Weight = &t
	return p, nil
}

// transposePart gives the transpose of a float matrix, or of each of a stack.
func transposePart(p B.Part) (B.Part, error) {
	t := *p.Weight
	n := len(t.Shape)
	rows, cols, size := t.Shape[n-2], t.Shape[n-1], quant.DType(t.DType).Size()
	t.Shape = append(slices.Clone(t.Shape[:n-2]), cols, rows)
	t.Bytes, t.Release = make([]byte, len(t.Bytes)), nil
	each := rows * cols * size
	eachHead(len(t.Bytes)/max(each, 1), func(i int) {
		transposeBytes(t.Bytes[i*each:][:each], p.Weight.Bytes[i*each:][:each], rows, cols, size)
	})
	p.Weight = &t
	return p, nil
}

// roundedLike is f in the type that a part's numbers are stored in, or its scales.
func roundedLike(p B.Part, f float32) float32 {
	of := p.Weight
	if !p.Scheme.None() {
		of = p.Scales
	}
	switch quant.DType(of.DType) {
	case quant.F32:
		return f
	case quant.F16:
		return quant.F16ToF32(quant.F32ToF16(f))
	}
	return quant.BF16ToF32(quant.F32ToBF16(f))
}

// transposeBytes writes the transpose of a matrix of numbers of so many bytes, in tiles that fit a cache.
func transposeBytes(to, from []byte, rows, cols, size int) {
	const tile = 32
	for r0 := 0; r0 < rows; r0 += tile {
		for c0 := 0; c0 < cols; c0 += tile {
			for r := r0; r < min(r0+tile, rows); r++ {
				for c := c0; c < min(c0+tile, cols); c++ {
					copy(to[(c*rows+r)*size:][:size], from[(r*cols+c)*size:])
				}
			}
		}
	}
}

// raised adds a number to a vector of floats, in float32.
func raised(p B.Part, by float32) B.Part {
	x := numbers(p.Weight)
	for i := range x {
		x[i] += by
	}
	p.Weight = floats(p.Weight.Name, quant.F32, x, len(x))
	return p
}

func sum(n []int) (s int) {
	for _, k := range n {
		s += k
	}
	return s
}

// renamer is an architecture whose checkpoints spell names in more than one way. Rename gives the name the tags use, or
// "" to drop the tensor.
type renamer interface{ Rename(name string) string }

// renaming is how m spells the names of stored tensors.
func renaming(m stateful) func(string) string {
	if r, ok := m.(renamer); ok {
		return r.Rename
	}
	return func(name string) string { return name }
}

// inspector is an architecture whose checkpoints are written in more than one way, which shows in the shapes of tensors.
// Inspect runs before anything is looked for; shape is nil for a tensor that is not there.
type inspector interface {
	Inspect(shape func(name string) []int)
}

// sortFaults orders extras for people: by name, with layer 2 before layer 10.
func sortFaults(f []Fault) {
	slices.SortFunc(f, func(a, b Fault) int { return naturalCompare(a.Tensor, b.Tensor) })
}

func naturalCompare(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	return slices.CompareFunc(x, y, func(s, t string) int {
		m, err1 := strconv.Atoi(s)
		n, err2 := strconv.Atoi(t)
		if err1 == nil && err2 == nil {
			return m - n
		}
		return strings.Compare(s, t)
	})
}
