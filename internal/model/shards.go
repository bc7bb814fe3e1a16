package model

import (
	"bytes"
	"fmt"
	"slices"

	B "hearth/internal/backend"
	"hearth/internal/quant"
	"hearth/internal/regular"
)

// source is the checkpoint under the names an architecture uses.
type source struct {
	c     *Checkpoint
	names map[string]string // name in tags -> name in files
	used  map[string]bool   // by name in tags
	quant quantization
	said  map[string]quant.Scheme // what config.json says of modules
}

func (c *Checkpoint) source(m stateful) (Source, error) {
	rename := renaming(m)
	if c.blank {
		return Synthetic{Type: quant.BF16, Blank: true}.formula(c.quant, rename)
	}
	s := &source{c: c, names: map[string]string{}, used: map[string]bool{}, quant: c.quant}
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
	if err := s.unreadable(); err != nil {
		return nil, err
	}
	var err error
	s.said, err = s.quant.modules(rename, func(tensor string) bool { _, ok := c.where[tensor]; return ok })
	for _, w := range s.quant.warnings {
		c.tell(w)
	}
	return s, err
}

// tell warns of something once, however often the folder is loaded.
func (c *Checkpoint) tell(text string) {
	if !slices.Contains(c.Warnings, text) {
		c.Warnings = append(c.Warnings, text)
	}
}

// tieSample is how many rows of a head are compared with the embedding's.
const tieSample = 64

// alike compares two stored tensors by some of their rows; ones that are not there are alike.
func (s *source) alike(name, other string) bool {
	a, b := s.c.Tensor(s.names[name]), s.c.Tensor(s.names[other])
	if a == nil || b == nil || len(a.Shape) != 2 || a.DType != b.DType {
		return a == nil && b == nil
	}
	rows, width := a.Shape[0], len(a.Bytes)/max(a.Shape[0], 1)
	for i := range min(tieSample, rows) {
		if at := i * rows / min(tieSample, rows) * width; !bytes.Equal(a.Bytes[at:][:width], b.Bytes[at:][:width]) {
			return false
		}
	}
	return true
}

func (s *source) tensor(name string) (*B.Tensor, string) {
	stored, ok := s.names[name]
	if !ok {
		return nil, ""
	}
	s.used[name] = true
	f := s.c.files[s.c.where[stored]]
	t, _ := f.Tensor(stored)
	view := &B.Tensor{Name: stored, DType: t.DType, Shape: t.Shape, Bytes: t.Bytes}
	if f.Mapped() {
		view.Release = f.ReleasePart
	}
	return view, f.Name
}

// Has implements Source.
func (s *source) Has(path string) bool {
	_, ok := s.names[path+".weight"]
	if f := s.quant.foreign; f != nil {
		for _, k := range f.keys {
			if _, is := s.names[path+k]; is {
				return true
			}
		}
	}
	return ok
}

// Shape implements Source.
func (s *source) Shape(name string) []int {
	stored, ok := s.names[name]
	if !ok {
		return nil
	}
	t, _ := s.c.files[s.c.where[stored]].Tensor(stored)
	return t.Shape
}

// Apart implements Source. It warns of a head that is stored like the table with other numbers: mlx-lm would not use it.
func (s *source) Apart(head, table string) bool {
	same := true
	for _, suffix := range []string{".weight", ".scales", ".biases"} {
		same = same && slices.Equal(s.Shape(head+suffix), s.Shape(table+suffix))
	}
	if !same {
		return s.Shape(head+".scales") != nil // somebody chose how to round it; floats of another shape are no head
	}
	if s.alike(head+".weight", table+".weight") && s.alike(head+".scales", table+".scales") {
		return false
	}
	s.c.warn(configFile, "tie_word_embeddings is true, but the folder has %s.weight, which is not the embedding: it is used as the head", regular.Clip(head))
	return true
}

// Ignore implements Source.
func (s *source) Ignore(path string) {
	for _, suffix := range companions {
		s.used[path+suffix] = true
	}
	if f := s.quant.foreign; f != nil {
		for _, suffix := range f.suffixes() {
			s.used[path+suffix] = true
		}
	}
}

// companions are the tensors one module may have.
var companions = []string{".weight", ".scales", ".biases", ".bias", ".global_scale"}

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
	m, translated := s.foreign(w)
	if translated {
		return append(s.checkBias(w), m.check(w)...)
	}
	p, file := s.part(w)
	if p.Weight == nil {
		return []Fault{{Kind: Missing, Tensor: w.tensor(), Text: fmt.Sprintf("expected shape %v", w.shape())}}
	}
	faults := s.checkBias(w)
	hint := ""
	bad := func(t *B.Tensor, format string, args ...any) {
		faults = append(faults, Fault{Kind: Misshapen, Tensor: t.Name, File: file, Text: fmt.Sprintf(format, args...), Hint: hint})
	}
	if p.Scheme.None() && p.Weight.DType == string(quant.U32) {
		_, scaled := s.names[w.Path+".scales"]
		s.Ignore(w.Path) // one report is enough
		if !scaled {
			return append(faults, Fault{Kind: Missing, Tensor: w.Path + ".scales", Text: "the weight is quantised"})
		}
		hint = entryHint
		bad(p.Weight, "it is quantised, config.json says that it is not")
		return faults
	}
	shape := p.Weight.Shape
	if w.Vector || p.Scheme.None() {
		ok := len(shape) == 1 && w.fits(shape[0])
		if !w.Vector {
			_, ok = w.matrix(shape, w.In)
		}
		switch {
		case !ok:
			bad(p.Weight, "expected shape %v, found %v", w.shape(), shape)
		case !quant.DType(p.Weight.DType).Float():
			bad(p.Weight, "expected a float type, found %s", p.Weight.DType)
		}
		return faults
	}
	if err := checkQuantised(p, w); err != nil {
		var is quant.Scheme
		switch said, named := s.said[w.Path]; {
		case named && p.Scales == nil && quant.DType(p.Weight.DType).Float():
			err, hint = fmt.Errorf("config.json says that it is %s, it is %s", said, p.Weight.DType), entryHint
		case named && p.Scales != nil:
			if is = s.infer(p, w); is != said && checkQuantised(B.Part{Scheme: is, Weight: p.Weight, Scales: p.Scales, Biases: p.Biases, Global: p.Global}, w) == nil {
				err, hint = fmt.Errorf("config.json says that it is %s, its tensors are %s", said, is), entryHint
			}
		}
		if bits, odd := oddBits(p, w); hint == "" && odd {
			err, hint = fmt.Errorf("%d words of codes for %d columns are codes of %d bits, which no format has", shape[len(shape)-1], w.In, bits), mlxHint
		}
		if hint == "" && p.Scales != nil && p.Biases == nil && quant.DType(p.Scales.DType).Float() {
			hint = biasesHint
		}
		bad(p.Weight, "%v", err)
	}
	return faults
}

// oddBits reports codes of a whole number of bits that no format has.
func oddBits(p B.Part, w Want) (bits int, odd bool) {
	if p.Scales == nil || p.Weight.DType != string(quant.U32) || len(p.Weight.Shape) == 0 || w.In <= 0 {
		return 0, false
	}
	words := p.Weight.Shape[len(p.Weight.Shape)-1] * 32
	return words / w.In, words%w.In == 0 && !slices.Contains([]int{2, 3, 4, 5, 6, 8}, words/w.In)
}

const (
	entryHint  = `correct the module's entry in "quantization" of config.json, or remove it: the tensors say how they are stored`
	biasesHint = "without them nobody can know which code is zero: convert the model again with mlx-lm; mxfp4, mxfp8 and nvfp4 have none"
)

// checkBias looks at the ordinary bias beside the weight.
func (s *source) checkBias(w Want) []Fault {
	b, file := s.bias(w)
	if b == nil {
		want, _ := w.biasShape(nil)
		if w.Bias {
			return []Fault{{Kind: Missing, Tensor: w.Path + ".bias", Text: fmt.Sprintf("expected shape %v", want)}}
		}
		return nil
	}
	switch want, ok := w.biasShape(b.Shape); {
	case !ok:
		return []Fault{{Kind: Misshapen, Tensor: b.Name, File: file, Text: fmt.Sprintf("expected shape %v, found %v", want, b.Shape)}}
	case !quant.DType(b.DType).Float():
		return []Fault{{Kind: Misshapen, Tensor: b.Name, File: file, Text: "expected a float type, found " + b.DType}}
	}
	return nil
}

func (s *source) bias(w Want) (*B.Tensor, string) {
	if w.Vector || w.Conv {
		return nil, ""
	}
	return s.tensor(w.Path + ".bias")
}

// checkQuantised compares a quantised part with its declaration.
func checkQuantised(p B.Part, w Want) error {
	if err := p.Scheme.Check(w.In); err != nil {
		return err
	}
	shape := p.Weight.Shape
	words := w.In * p.Scheme.Bits / 32
	rows, ok := w.matrix(shape, words)
	if !ok {
		want := w.shape()
		want[len(want)-1] = words
		return fmt.Errorf("expected shape %v for %s of %d columns, found %v", want, p.Scheme, w.In, shape)
	}
	m, err := quant.NewMatrix(rows, w.In, p.Scheme, data(p.Weight), data(p.Scales), data(p.Biases))
	if err == nil && p.Global != nil {
		err = checkGlobal(m, data(p.Global), w.Count)
	}
	return err
}

// checkGlobal looks at the scale of a tensor, or at those of each expert of a stack.
func checkGlobal(m *quant.Matrix, g *quant.Data, experts int) error {
	if experts == 0 {
		return m.SetGlobal(g)
	}
	if !slices.Equal(g.Shape, []int{experts}) || len(g.Bytes) != 4*experts {
		return fmt.Errorf("the global scales are %s of shape %v, expected F32 of shape [%d]", g.DType, g.Shape, experts)
	}
	for e := range experts {
		if err := m.SetGlobal(&quant.Data{DType: g.DType, Bytes: g.Bytes[4*e:][:4]}); err != nil {
			return fmt.Errorf("expert %d: %w", e, err)
		}
	}
	return nil
}

func data(t *B.Tensor) *quant.Data {
	if t == nil {
		return nil
	}
	return &quant.Data{DType: quant.DType(t.DType), Shape: t.Shape, Bytes: t.Bytes}
}

// Part implements Source.
func (s *source) Part(w Want) B.Part {
	m, translated := s.foreign(w)
	if !translated {
		p, _ := s.part(w)
		return p
	}
	p := m.f.convert(m, w)
	p.Bias, _ = s.bias(w)
	return p
}

// foreign finds the module of w if another tool than MLX quantised it.
func (s *source) foreign(w Want) (module, bool) {
	if w.Vector || w.Conv {
		return module{}, false
	}
	return s.module(w.Path)
}

// Done implements Source: backends copy what they load, so the mapped pages would be in memory for nothing.
func (s *source) Done(p B.Part) {
	for _, t := range []*B.Tensor{p.Weight, p.Scales, p.Biases, p.Global, p.Bias} {
		if t != nil {
			f := s.c.files[s.c.where[t.Name]]
			stored, _ := f.Tensor(t.Name)
			f.Release(stored)
		}
	}
}

// part gathers the tensors of w and decides how they are quantised: as the config says about this path, which Check compares with
// them, or else as the shapes say. Scales without codes they fit stay unused and are reported as extra.
func (s *source) part(w Want) (p B.Part, file string) {
	p.Weight, file = s.tensor(w.tensor())
	if t := p.Weight; t != nil && w.Vector && len(t.Shape) == 0 {
		p.Weight = as(t, quant.DType(t.DType), 1)
	}
	if t := p.Weight; t != nil && w.Flat {
		p.Weight = as(t, quant.DType(t.DType), product(t.Shape))
	}
	if p.Weight == nil || w.Vector {
		return p, file
	}
	if t := p.Weight; w.Count > 0 && t.DType == string(quant.U8) && len(t.Shape) == 4 { // gpt-oss as published
		p.Weight = as(t, quant.U32, t.Shape[0], t.Shape[1], t.Shape[2]*t.Shape[3]/4)
	}
	if t := p.Weight; w.Conv { // Hugging Face and MLX put the one input of a column in other places
		if len(t.Shape) == 3 && (t.Shape[1] == 1 || t.Shape[2] == 1) {
			p.Weight = as(t, quant.DType(t.DType), t.Shape[0], t.Shape[1]*t.Shape[2])
		}
		return p, file
	}
	p.Bias, _ = s.bias(w)
	if w.Window != nil || w.Planes > 0 {
		return p, file
	}
	scheme, named := s.said[w.Path]
	_, scaled := s.names[w.Path+".scales"]
	if named && scheme.None() || !named && !scaled {
		return p, file
	}
	p.Scales, _ = s.tensor(w.Path + ".scales")
	if t := p.Scales; t != nil && (t.DType == "F8_E8M0" || t.DType == "F8_E4M3") { // bytes, called by what they mean
		p.Scales = as(t, quant.U8, t.Shape...)
	}
	p.Biases, _ = s.tensor(w.Path + ".biases")
	p.Global, _ = s.tensor(w.Path + ".global_scale")
	p.Scheme = scheme
	if !named {
		p.Scheme = s.infer(p, w)
	}
	return p, file
}

// infer reads the scheme off the shapes; where they make no sense the config's defaults give the better error.
func (s *source) infer(p B.Part, w Want) quant.Scheme {
	ws, ss := p.Weight.Shape, p.Scales.Shape
	if len(ws) > 1 && len(ws) == len(ss) {
		if q, err := quant.Infer(w.In, ws[len(ws)-1], ss[len(ss)-1], quant.DType(p.Scales.DType)); err == nil {
			return q
		}
	}
	if s.quant.None() {
		return quant.Scheme{Mode: quant.Affine, Bits: 4, Group: 64}
	}
	return s.quant.Scheme
}
