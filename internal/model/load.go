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
// Tag: w:"name[+second…][,tied=Field][,shard=col|row][,glu]". Names are relative to the enclosing field's path and fused
// in order; slices append ".N". A nil pointer is absent by config. tied names the embedding that serves when there is no
// tensor of its own.
func Load(m Model, src Source, ld B.Loader, world int) error {
	p := plan{src: src, world: max(world, 1)}
	p.walk(reflect.ValueOf(m).Elem(), "")
	if err := faultError(append(p.faults, src.Unused()...)); err != nil {
		return err
	}
	for _, j := range p.jobs {
		for _, w := range j.wants {
			j.spec.Parts = append(j.spec.Parts, src.Part(w))
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
	for _, tie := range p.ties {
		tie()
	}
	return nil
}

// plan is what a walk over the model's fields finds.
type plan struct {
	src    Source
	world  int
	jobs   []job
	ties   []func()
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
	glu   bool
	tied  string
	shard B.Axis
}

func parseTag(path, tag string) tagged {
	var t tagged
	opts := strings.Split(tag, ",")
	for _, name := range strings.Split(opts[0], "+") {
		if path != "" {
			name = path + "." + name
		}
		t.names = append(t.names, name)
	}
	for _, o := range opts[1:] {
		switch k, v, _ := strings.Cut(o, "="); k {
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
	case *nn.Embedding:
		p.add(&x.W, B.WeightSpec{Use: B.UseTable, Out: []int{x.Vocab}, In: x.Dim}, t, Want{})
	case *nn.RMSNorm:
		p.add(&x.W, B.WeightSpec{Use: B.UseVector, Out: []int{x.N}, In: 1}, t, Want{Vector: true})
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
	p.add(&x.W, B.WeightSpec{Use: use, Out: x.Outs, In: x.In, Shard: t.shard}, t, Want{Bias: x.Bias})
}

// add checks one weight and queues it. like holds what all its parts have in common.
func (p *plan) add(to *B.Weight, s B.WeightSpec, t tagged, like Want) {
	s.Name, s.Count = t.names[0], 1
	j := job{spec: s, to: to}
	for i, name := range t.names {
		w := like
		w.Path, w.Rows, w.In, w.Ranks = name, s.Out[i], s.In, 1
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
