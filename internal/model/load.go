package model

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

// Source is a checkpoint after the architecture's renames. safetensors and quant stand behind it.
type Source interface {
	Has(name string) bool
	// Part gathers a tensor with its companions; in is the declared input width, from which bits and group follow.
	Part(name string, in int) (B.Part, error)
	Scalar(name string) (float32, error)
	// Unused lists tensors nobody asked for.
	Unused() []string
}

// Load fills every tagged field of m, reporting all missing tensors at once.
//
// Tag: w:"name[|other][+second…][,opt][,tied=Field][,shard=col|row][,glu]". Names are relative to the enclosing
// field's path; a leading "/" is absolute. Slices append ".N". A nil pointer is absent by config. A struct with Bind() is
// called after its fields are filled.
func Load(m any, src Source, ld B.Loader) error {
	l := &loader{src: src, ld: ld}
	l.walk(reflect.ValueOf(m).Elem(), "")
	l.tie()
	l.bind()
	return errors.Join(l.errs...)
}

type loader struct {
	src   Source
	ld    B.Loader
	errs  []error
	ties  []func()
	binds []func()
}

type binder interface{ Bind() }

func (l *loader) tie() {
	for _, f := range l.ties {
		f()
	}
}
func (l *loader) bind() {
	for _, f := range l.binds {
		f()
	}
}

func (l *loader) walk(v reflect.Value, path string) {
	if b, ok := v.Addr().Interface().(binder); ok {
		l.binds = append(l.binds, b.Bind)
	}
	for i := range v.NumField() {
		f, sf := v.Field(i), v.Type().Field(i)
		if !sf.IsExported() && !sf.Anonymous {
			continue
		}
		tag, ok := sf.Tag.Lookup("w")
		if !ok {
			continue
		}
		l.field(f, join(path, tag), v)
	}
}

// tagged is a parsed tag with absolute names.
type tagged struct {
	parts    [][]string
	opt, glu bool
	tied     string
	shard    B.Axis
}

func join(path, tag string) tagged {
	t := tagged{}
	opts := strings.Split(tag, ",")
	for _, p := range strings.Split(opts[0], "+") {
		var alts []string
		for _, a := range strings.Split(p, "|") {
			switch {
			case strings.HasPrefix(a, "/"):
				a = a[1:]
			case a == "":
				a = path
			case path != "":
				a = path + "." + a
			}
			alts = append(alts, a)
		}
		t.parts = append(t.parts, alts)
	}
	for _, o := range opts[1:] {
		k, v, _ := strings.Cut(o, "=")
		switch k {
		case "opt":
			t.opt = true
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

func (l *loader) field(f reflect.Value, t tagged, parent reflect.Value) {
	name := t.parts[0][0]
	if f.Kind() == reflect.Pointer {
		if f.IsNil() {
			return
		}
		f = f.Elem()
	}
	switch x := f.Addr().Interface().(type) {
	case *nn.Linear:
		if t.tied != "" && !l.has(t.parts[0], "") {
			e := parent.FieldByName(t.tied).Addr().Interface().(*nn.Embedding)
			l.ties = append(l.ties, func() { x.W = e.W })
			return
		}
		use := B.UseLinear
		if t.glu {
			use = B.UseGLU
		}
		x.W = l.load(B.WeightSpec{Use: use, Out: x.Outs, In: x.In, Count: 1, Shard: t.shard}, t, x.Perm)
	case *nn.Embedding:
		x.W = l.load(B.WeightSpec{Use: B.UseTable, Out: []int{x.Vocab}, In: x.Dim, Count: 1}, t, nil)
	case *nn.Vec:
		x.W = l.vector(name, x.N, false)
	case *nn.RMSNorm:
		x.W = l.vector(name+".weight", x.N, x.Plus1)
	case *float32:
		v, err := l.src.Scalar(name)
		if err != nil {
			l.errs = append(l.errs, err)
		}
		*x = v
	default:
		l.nested(f, name)
	}
}

func (l *loader) nested(f reflect.Value, name string) {
	switch f.Kind() {
	case reflect.Slice:
		for i := range f.Len() {
			l.field(f.Index(i), join("", name+"."+strconv.Itoa(i)), reflect.Value{})
		}
	case reflect.Struct:
		l.walk(f, name)
	default:
		l.errs = append(l.errs, fmt.Errorf("load weights: field %s has no loadable type %s", name, f.Type()))
	}
}

func (l *loader) has(alts []string, suffix string) bool {
	return slices.ContainsFunc(alts, func(a string) bool {
		return l.src.Has(a+suffix) || l.src.Has(a+".weight")
	})
}

// load resolves the parts of one weight. A fused tag may be stored already fused: then the first name holds all rows.
func (l *loader) load(s B.WeightSpec, t tagged, perm [][]int32) B.Weight {
	s.Name = t.parts[0][0]
	for i, alts := range t.parts {
		if i >= len(s.Out) || s.Out[i] == 0 {
			continue
		}
		k := slices.IndexFunc(alts, func(a string) bool { return l.has([]string{a}, "") })
		if k < 0 {
			if !t.opt {
				l.errs = append(l.errs, fmt.Errorf("load weights: tensor %s is missing", alts[0]))
			}
			return nil
		}
		p, err := l.src.Part(alts[k], s.In)
		if err != nil {
			l.errs = append(l.errs, err)
			return nil
		}
		if i < len(perm) {
			p.Perm = perm[i]
		}
		s.Parts = append(s.Parts, p)
	}
	return l.done(s)
}

func (l *loader) vector(name string, n int, plus1 bool) B.Weight {
	p, err := l.src.Part(name, 1)
	if err != nil {
		l.errs = append(l.errs, err)
		return nil
	}
	return l.done(B.WeightSpec{Name: name, Use: B.UseVector, Out: []int{n}, In: 1, Count: 1, Parts: []B.Part{p}, Plus1: plus1})
}

func (l *loader) done(s B.WeightSpec) B.Weight {
	w, err := l.ld.Load(s)
	if err != nil {
		l.errs = append(l.errs, fmt.Errorf("load weights: %s: %w", s.Name, err))
		return nil
	}
	return w
}
