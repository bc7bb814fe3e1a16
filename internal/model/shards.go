package model

import (
	"fmt"

	B "hearth/internal/backend"
	"hearth/internal/quant"
)

// source is the checkpoint under the names an architecture uses.
type source struct {
	c     *Checkpoint
	names map[string]string // name in tags -> name in files
	used  map[string]bool   // by name in tags
	quant quantization
}

func (c *Checkpoint) source(m Model) (*source, error) {
	rename := func(name string) string { return name }
	if r, ok := m.(renamer); ok {
		rename = r.Rename
	}
	s := &source{c: c, names: map[string]string{}, used: map[string]bool{}, quant: c.quant.rename(rename)}
	for name := range c.where {
		to := rename(name)
		if to == "" {
			continue
		}
		if other, ok := s.names[to]; ok {
			return nil, &LoadError{Tensor: to, Problem: fmt.Sprintf("tensors %s and %s are two spellings of one", min(name, other), max(name, other))}
		}
		s.names[to] = name
	}
	return s, nil
}

func (s *source) tensor(name string) (*B.Tensor, string) {
	stored, ok := s.names[name]
	if !ok {
		return nil, ""
	}
	s.used[name] = true
	f := s.c.files[s.c.where[stored]]
	t, _ := f.Tensor(stored)
	return &B.Tensor{Name: stored, DType: t.DType, Shape: t.Shape, Bytes: t.Bytes}, f.Name
}

// Has implements Source.
func (s *source) Has(path string) bool {
	_, ok := s.names[path+".weight"]
	return ok
}

// Ignore implements Source.
func (s *source) Ignore(path string) {
	for _, suffix := range companions {
		s.used[path+suffix] = true
	}
}

// companions are the tensors one module may have.
var companions = []string{".weight", ".scales", ".biases", ".bias"}

// Unused implements Source.
func (s *source) Unused() []Fault {
	var f []Fault
	for name, stored := range s.names {
		if !s.used[name] {
			f = append(f, Fault{Kind: Extra, Tensor: stored, File: s.c.files[s.c.where[stored]].Name})
		}
	}
	sortFaults(f)
	return f
}

// Check implements Source.
func (s *source) Check(w Want) []Fault {
	p, file := s.part(w)
	if p.Weight == nil {
		return []Fault{{Kind: Missing, Tensor: w.Path + ".weight", Text: fmt.Sprintf("expected shape %v", w.shape())}}
	}
	var faults []Fault
	bad := func(t *B.Tensor, format string, args ...any) {
		faults = append(faults, Fault{Kind: Misshapen, Tensor: t.Name, File: file, Text: fmt.Sprintf(format, args...)})
	}
	if w.Bias && p.Bias == nil {
		faults = append(faults, Fault{Kind: Missing, Tensor: w.Path + ".bias", Text: fmt.Sprintf("expected shape [%d]", w.Rows*w.Ranks)})
	}
	if p.Bias != nil && (len(p.Bias.Shape) != 1 || !w.fits(p.Bias.Shape[0])) {
		bad(p.Bias, "expected shape [%d], found %v", w.Rows*w.Ranks, p.Bias.Shape)
	} else if p.Bias != nil && !quant.DType(p.Bias.DType).Float() {
		bad(p.Bias, "expected a float type, found %s", p.Bias.DType)
	}
	if p.Scheme.None() && p.Weight.DType == string(quant.U32) {
		_, scaled := s.names[w.Path+".scales"]
		s.Ignore(w.Path) // one report is enough
		if !scaled {
			return append(faults, Fault{Kind: Missing, Tensor: w.Path + ".scales", Text: "the weight is quantised"})
		}
		bad(p.Weight, "it is quantised, config.json says that it is not")
		return faults
	}
	shape := p.Weight.Shape
	want := w.shape()
	if w.Vector || p.Scheme.None() {
		ok := len(shape) == len(want) && w.fits(shape[0]) && (w.Vector || shape[1] == w.In)
		switch {
		case !ok:
			bad(p.Weight, "expected shape %v, found %v", want, shape)
		case !quant.DType(p.Weight.DType).Float():
			bad(p.Weight, "expected a float type, found %s", p.Weight.DType)
		}
		return faults
	}
	if err := checkQuantised(p, w); err != nil {
		bad(p.Weight, "%v", err)
	}
	return faults
}

// checkQuantised compares a quantised part with its declaration.
func checkQuantised(p B.Part, w Want) error {
	if err := p.Scheme.Check(w.In); err != nil {
		return err
	}
	shape := p.Weight.Shape
	words := w.In * p.Scheme.Bits / 32
	if len(shape) != 2 || !w.fits(shape[0]) || shape[1] != words {
		return fmt.Errorf("expected shape [%d %d] for %s of %d columns, found %v", w.Rows*w.Ranks, words, p.Scheme, w.In, shape)
	}
	_, err := quant.NewMatrix(shape[0], w.In, p.Scheme, data(p.Weight), data(p.Scales), data(p.Biases))
	return err
}

func data(t *B.Tensor) *quant.Data {
	if t == nil {
		return nil
	}
	return &quant.Data{DType: quant.DType(t.DType), Shape: t.Shape, Bytes: t.Bytes}
}

// Part implements Source.
func (s *source) Part(w Want) (B.Part, error) {
	p, _ := s.part(w)
	return p, nil
}

// Done implements Source: backends copy what they load, so the mapped pages would be in memory for nothing.
func (s *source) Done(p B.Part) {
	for _, t := range []*B.Tensor{p.Weight, p.Scales, p.Biases, p.Bias} {
		if t != nil {
			f := s.c.files[s.c.where[t.Name]]
			stored, _ := f.Tensor(t.Name)
			f.Release(stored)
		}
	}
}

// part gathers the tensors of w and decides how they are quantised: what the config says about this path, or else what
// the shapes say. Scales without codes they fit stay unused and are reported as extra.
func (s *source) part(w Want) (p B.Part, file string) {
	p.Weight, file = s.tensor(w.Path + ".weight")
	if p.Weight == nil || w.Vector {
		return p, file
	}
	p.Bias, _ = s.tensor(w.Path + ".bias")
	scheme, named := s.quant.paths[w.Path]
	_, scaled := s.names[w.Path+".scales"]
	if named && scheme.None() || !named && !scaled {
		return p, file
	}
	p.Scales, _ = s.tensor(w.Path + ".scales")
	p.Biases, _ = s.tensor(w.Path + ".biases")
	p.Scheme = scheme
	if !named {
		p.Scheme = s.infer(p, w)
	}
	return p, file
}

// infer reads the scheme off the shapes; where they make no sense the config's defaults give the better error.
func (s *source) infer(p B.Part, w Want) quant.Scheme {
	ws, ss := p.Weight.Shape, p.Scales.Shape
	if len(ws) == 2 && len(ss) == 2 {
		if q, err := quant.Infer(w.In, ws[1], ss[1], quant.DType(p.Scales.DType)); err == nil {
			return q
		}
	}
	if s.quant.None() {
		return quant.Scheme{Mode: quant.Affine, Bits: 4, Group: 64}
	}
	return s.quant.Scheme
}
