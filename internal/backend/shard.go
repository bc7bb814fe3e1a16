package backend

import (
	"fmt"
	"slices"
)

// Local is what rank r of n holds of a weight: rows of every part where the spec says ColPar, columns where it says RowPar.
// Sizes in the spec are those of a rank, tensors those of the file. Where a tensor has fewer rows than all ranks together,
// ranks share copies: see Build.LocalKV in package model.
func (s WeightSpec) Local(r, n int) (WeightSpec, error) {
	if s.Shard == Whole || n <= 1 {
		return s, nil
	}
	s.Parts = slices.Clone(s.Parts)
	there := slices.DeleteFunc(slices.Clone(s.Out), func(n int) bool { return n == 0 })
	if len(s.Parts) > 1 && len(s.Parts) != len(there) {
		return s, fmt.Errorf("split %s: %d tensors for %d parts", s.Name, len(s.Parts), len(there))
	}
	for i := range s.Parts {
		p, outs := &s.Parts[i], there
		if p.Weight == nil {
			continue
		}
		if len(s.Parts) > 1 {
			outs = there[i : i+1]
		}
		if p.Perm != nil || p.Adapter != nil {
			return s, fmt.Errorf("split %s: rows in another order and adapters are not supported across ranks", s.Name)
		}
		var err error
		if s.Shard == ColPar {
			err = p.rows(outs, r, n)
		} else {
			err = p.columns(s.In, r, n)
		}
		if err != nil {
			return s, fmt.Errorf("split %s: %w", s.Name, err)
		}
	}
	return s, nil
}

// rows keeps this rank's rows of every output that the tensors cover, one after another.
func (p *Part) rows(outs []int, r, n int) error {
	local := 0
	for _, out := range outs {
		local += out
	}
	stored := p.Weight.Shape[0]
	if local == 0 || stored%local != 0 || stored > n*local || len(outs) > 1 && stored != n*local {
		return fmt.Errorf("%d stored rows for %d on each of %d ranks", stored, local, n)
	}
	var ranges [][2]int
	at := 0
	for _, out := range outs {
		first := at + r*(stored/local)/n*out
		ranges = append(ranges, [2]int{first, first + out})
		at += out * (stored / local)
	}
	for _, t := range []**Tensor{&p.Weight, &p.Scales, &p.Biases, &p.Bias} {
		if *t != nil {
			*t = (*t).pick(ranges, local)
		}
	}
	return nil
}

// pick copies ranges of rows, or of the numbers of a vector.
func (t *Tensor) pick(ranges [][2]int, rows int) *Tensor {
	k := &Tensor{Name: t.Name, DType: t.DType, Shape: slices.Clone(t.Shape)}
	each := len(t.Bytes) / t.Shape[0]
	for _, r := range ranges {
		k.Bytes = append(k.Bytes, t.Bytes[r[0]*each:r[1]*each]...)
	}
	k.Shape[0] = rows
	return k
}

// columns keeps this rank's columns, of in that every rank has. The bias is added by rank 0 alone.
func (p *Part) columns(in, r, n int) error {
	if g := p.Scheme.Group; g > 0 && in%g != 0 {
		return fmt.Errorf("%d columns on each of %d ranks do not divide into groups of %d", in, n, g)
	}
	if r > 0 {
		p.Bias = nil
	}
	for _, t := range []**Tensor{&p.Weight, &p.Scales, &p.Biases} {
		if *t == nil {
			continue
		}
		k := &Tensor{Name: (*t).Name, DType: (*t).DType, Shape: slices.Clone((*t).Shape)}
		last := len(k.Shape) - 1
		if last < 1 || k.Shape[last]%n != 0 {
			return fmt.Errorf("tensor %s of shape %v does not divide among %d ranks", k.Name, k.Shape, n)
		}
		rows := 1
		for _, d := range k.Shape[:last] {
			rows *= d
		}
		each := len((*t).Bytes) / rows
		for row := range rows {
			from := row*each + r*each/n
			k.Bytes = append(k.Bytes, (*t).Bytes[from:from+each/n]...)
		}
		k.Shape[last] /= n
		*t = k
	}
	return nil
}
