package backend

import (
	"fmt"
	"slices"

	"hearth/internal/quant"
)

// Stack reads the parts of one WeightSpec as one matrix of Out rows: fused parts on top of each other, permuted rows in
// the order the layer wants. Backends pack from it; it reads the mapped file and copies nothing.
type Stack struct {
	Out, In int
	parts   []stackPart
}

type stackPart struct {
	from    int // first row
	m       *quant.Matrix
	perm    []int32
	adapter *Adapter  // rows in stored order; nil: none
	bias    []float32 // in stored order; nil: none
	release func(part []byte)
}

// Stack checks the parts against the spec. Errors name the tensor and what does not fit. A part may cover several
// consecutive outputs (a checkpoint that stores q, k and v as one tensor).
func (s *WeightSpec) Stack() (*Stack, error) {
	if err := s.checkAdapters(); err != nil {
		return nil, err
	}
	k := &Stack{In: s.In}
	want := 0
	for _, n := range s.Out {
		want += n
	}
	if s.Count > 1 {
		return nil, fmt.Errorf("a stack of %d is not one matrix", s.Count)
	}
	for i := range s.Parts {
		p, err := s.Parts[i].read(s.In)
		if err != nil {
			return nil, err
		}
		p.from = k.Out
		k.Out += p.m.Rows
		k.parts = append(k.parts, p)
	}
	if k.Out != want {
		return nil, fmt.Errorf("parts have %d rows, want %d %v", k.Out, want, s.Out)
	}
	return k, nil
}

func (p *Part) read(in int) (stackPart, error) {
	var s stackPart
	if p.Weight == nil {
		return s, fmt.Errorf("a part has no weight tensor")
	}
	rows := 1
	shape := p.Weight.Shape
	if in > 1 && len(shape) > 0 {
		shape = shape[:len(shape)-1]
	}
	for _, n := range shape {
		rows *= n
	}
	weight := p.Weight.data()
	if in == 1 {
		weight.Shape = []int{rows, 1}
	}
	m, err := quant.NewMatrix(rows, in, p.Scheme, weight, p.Scales.data(), p.Biases.data())
	if err != nil {
		return s, fmt.Errorf("tensor %s: %w", p.Weight.Name, err)
	}
	if p.Global != nil {
		if err := m.SetGlobal(p.Global.data()); err != nil {
			return s, fmt.Errorf("tensor %s: %w", p.Weight.Name, err)
		}
	}
	s.m, s.perm, s.release = m, p.Perm, p.Weight.Release
	if err := p.CheckPerm(rows); err != nil {
		return s, fmt.Errorf("tensor %s: %w", p.Weight.Name, err)
	}
	if s.adapter = p.Adapter; s.adapter != nil {
		if err := s.adapter.check(rows, in); err != nil {
			return s, fmt.Errorf("tensor %s: %w", p.Weight.Name, err)
		}
	}
	if p.Bias != nil {
		b, err := quant.NewMatrix(1, rows, quant.Scheme{}, p.Bias.data(), nil, nil)
		if err != nil {
			return s, fmt.Errorf("tensor %s: %w", p.Bias.Name, err)
		}
		s.bias = make([]float32, rows)
		b.Row(s.bias, 0)
	}
	return s, nil
}

func (t *Tensor) data() *quant.Data {
	if t == nil {
		return nil
	}
	return &quant.Data{DType: quant.DType(t.DType), Shape: t.Shape, Bytes: t.Bytes}
}

// CheckPerm says whether the part's permutation, if it has one, names each of its rows once.
func (p *Part) CheckPerm(rows int) error {
	if p.Perm == nil {
		return nil
	}
	if len(p.Perm) != rows {
		return fmt.Errorf("permutation of %d rows for %d", len(p.Perm), rows)
	}
	seen := make([]bool, rows)
	for _, r := range p.Perm {
		if r < 0 || int(r) >= rows || seen[r] {
			return fmt.Errorf("permutation names row %d twice or outside %d rows", r, rows)
		}
		seen[r] = true
	}
	return nil
}

func (k *Stack) find(r int) (*stackPart, int) {
	i := len(k.parts) - 1
	for k.parts[i].from > r {
		i--
	}
	p := &k.parts[i]
	r -= p.from
	if p.perm != nil {
		r = int(p.perm[r])
	}
	return p, r
}

// At says which stored matrix, and which row of it, is row r.
func (k *Stack) At(r int) (m *quant.Matrix, row int) {
	p, r := k.find(r)
	return p.m, r
}

// Mapped reports whether all rows lie in mapped files, where they can be read at any time until the checkpoint is closed.
func (k *Stack) Mapped() bool {
	return !slices.ContainsFunc(k.parts, func(p stackPart) bool { return p.release == nil })
}

// Release says that rows [from, to) have been read, so that the memory of the files under them can be used for
// something else. Rows that are not in the order of their file stay.
func (k *Stack) Release(from, to int) {
	for _, p := range k.parts {
		lo, hi := max(from-p.from, 0), min(to-p.from, p.m.Rows)
		if p.release == nil || p.perm != nil || lo >= hi {
			continue
		}
		for _, b := range [][]byte{p.m.Weight, p.m.Scales, p.m.Biases} {
			n := len(b) / p.m.Rows
			p.release(b[lo*n : hi*n])
		}
	}
}

// Scheme is the storage all parts share, or ok false if they differ.
func (k *Stack) Scheme() (s quant.Scheme, t quant.DType, ok bool) {
	for i, p := range k.parts {
		if i > 0 && (p.m.Scheme != s || p.m.Type != t) {
			return s, t, false
		}
		s, t = p.m.Scheme, p.m.Type
	}
	return s, t, len(k.parts) > 0
}

// Factor multiplies every row: the global scale of its part, 1 without one; nil if no part has one.
func (k *Stack) Factor() []float32 {
	var f []float32
	for r := range k.Out {
		if p, _ := k.find(r); p.m.Global != nil {
			if f == nil {
				f = slices.Repeat([]float32{1}, k.Out)
			}
			f[r] = p.m.Factor()
		}
	}
	return f
}

// Bias is the bias of every row, 0 where its part has none; nil if no part has one.
func (k *Stack) Bias() []float32 {
	var b []float32
	for r := range k.Out {
		if p, row := k.find(r); p.bias != nil {
			if b == nil {
				b = make([]float32, k.Out)
			}
			b[r] = p.bias[row]
		}
	}
	return b
}
