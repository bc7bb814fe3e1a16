package model

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

// Load fills every tagged field of m. All missing, extra and misshapen tensors are reported together, before anything
// is loaded.
//
// Tag: w:"name[+second…][,fused=name][,each=name][,tied=Field][,shard=col|row][,glu]". Names are relative to the enclosing field's path
// and fused in order, unless the layer says that the checkpoint has them as the one tensor that fused names, or a
// stack of experts is stored as a tensor per expert N under the name of each, then ".N"; slices append ".N" too. A nil pointer is absent by config. tied names the embedding that serves when there is no tensor of its own. A Bind
// method runs when all weights are there.
func Load(m Model, src Source, ld B.Loader, world int) error {
	p := plan{src: src, world: max(world, 1)}
	p.walk(reflect.ValueOf(m).Elem(), "")
	if err := faultError(append(p.faults, src.Unused()...)); err != nil {
		return err
	}
	for _, j := range p.jobs {
		for _, w := range j.wants {
			part := src.Part(w)
			part.Perm = w.Perm
			j.spec.Parts = append(j.spec.Parts, part)
		}
		w, err := ld.Load(j.spec)
		if err != nil {
			return &LoadError{Tensor: j.spec.Name, Problem: "tensor " + j.spec.Name, Err: err}
		}
		for _, part := range j.spec.Parts {
			src.Done(part)
		}
		*j.to = w
	}
	for _, f := range append(p.ties, p.binds...) {
		f()
	}
	return nil
}

// plan is what a walk over the model's fields finds.
type plan struct {
	src    Source
	world  int
	jobs   []job
	ties   []func()
	binds  []func()
	faults []Fault
}

// job is one weight to load.
type job struct {
	spec  B.WeightSpec
	wants []Want
	to    *B.Weight
}

// tagged is a parsed tag with absolute names.
type tagged struct {
	names []string
	fused string
	each  string
	glu   bool
	tied  string
	shard B.Axis
}

func parseTag(path, tag string) tagged {
	var t tagged
	opts := strings.Split(tag, ",")
	absolute := func(name string) string {
		if path != "" {
			return path + "." + name
		}
		return name
	}
	for _, name := range strings.Split(opts[0], "+") {
		t.names = append(t.names, absolute(name))
	}
	for _, o := range opts[1:] {
		switch k, v, _ := strings.Cut(o, "="); k {
		case "fused":
			t.fused = absolute(v)
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

func (p *plan) walk(v reflect.Value, path string) {
	if b, ok := v.Addr().Interface().(interface{ Bind() }); ok {
		p.binds = append(p.binds, b.Bind)
	}
	for i := range v.NumField() {
		if tag, ok := v.Type().Field(i).Tag.Lookup("w"); ok {
			p.field(v.Field(i), parseTag(path, tag), v)
		}
	}
}

func (p *plan) field(f reflect.Value, t tagged, parent reflect.Value) {
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
	case *nn.Embedding:
		p.add(&x.W, B.WeightSpec{Use: B.UseTable, Out: []int{x.Vocab}, In: x.Dim}, t, Want{})
	case *nn.RMSNorm:
		p.add(&x.W, B.WeightSpec{Use: B.UseVector, Out: []int{x.N}, In: 1, Plus1: x.Plus1}, t, Want{Vector: true, Plus1: x.Plus1})
	case *nn.Vec:
		p.add(&x.W, B.WeightSpec{Use: B.UseVector, Out: []int{x.N}, In: 1, Shard: t.shard}, t, Want{Vector: true, Bare: true})
	default:
		p.nested(f, t.names[0])
	}
}

func (p *plan) nested(f reflect.Value, path string) {
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

func (p *plan) linear(x *nn.Linear, t tagged, parent reflect.Value) {
	if t.tied != "" && (x.Tied == nn.TieAlways || x.Tied == nn.TieFile && !p.src.Has(t.names[0])) {
		p.src.Ignore(t.names[0])
		e := parent.FieldByName(t.tied).Addr().Interface().(*nn.Embedding)
		p.ties = append(p.ties, func() { x.W = e.W })
		return
	}
	use := B.UseLinear
	if t.glu {
		use = B.UseGLU
	}
	if x.Fused {
		t.names = []string{t.fused}
	}
	p.add(&x.W, B.WeightSpec{Use: use, Out: x.Outs, In: x.In, Shard: t.shard, Exact: x.Exact}, t, Want{Bias: x.Bias})
}

func (p *plan) stack(x *nn.Stack, t tagged) {
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
				perm = alternate(sum(x.Outs))
			}
		}
		p.add(&x.W, s, t, Want{Bias: x.Bias, Count: x.N, Perm: perm})
		return
	}
	var names []string
	for _, name := range t.names {
		for e := range x.N {
			names = append(names, apart(name, e))
		}
	}
	t.names = names
	p.add(&x.W, s, t, Want{Bias: x.Bias})
}

// add checks one weight and queues it. like holds what all its parts have in common.
func (p *plan) add(to *B.Weight, s B.WeightSpec, t tagged, like Want) {
	s.Name, s.Count = t.names[0], max(s.Count, 1)
	j := job{spec: s, to: to}
	for i, name := range t.names {
		w := like
		w.Path, w.Rows, w.In, w.Ranks = name, sum(s.Out), s.In, 1
		if n := len(t.names); n >= len(s.Out) { // else one tensor has all parts
			w.Rows = s.Out[i*len(s.Out)/n]
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

// alternate reads the even of n rows, then the odd ones.
func alternate(n int) []int32 {
	perm := make([]int32, n)
	for i := range perm {
		perm[i] = int32(2 * i % n)
		if 2*i >= n {
			perm[i]++
		}
	}
	return perm
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
