package backend

import "fmt"

// Adapter is a low-rank addition to a matrix, W + Up·Down, in host memory: what low-rank fine-tuning leaves.
type Adapter struct {
	Rank int
	Down []float32 // [Rank, in]; of a stack, that of every expert after one another
	Up   []float32 // [out, Rank] with the scale in it, likewise
}

func (a *Adapter) check(rows, in int) error {
	if a.Rank <= 0 || len(a.Down) != a.Rank*in || len(a.Up) != rows*a.Rank {
		return fmt.Errorf("an adapter of rank %d has %d and %d numbers for a %d×%d matrix", a.Rank, len(a.Down), len(a.Up), rows, in)
	}
	return nil
}

// expert is the share of expert e of n.
func (a *Adapter) expert(e, n int) *Adapter {
	if a == nil {
		return nil
	}
	down, up := len(a.Down)/n, len(a.Up)/n
	return &Adapter{a.Rank, a.Down[e*down:][:down], a.Up[e*up:][:up]}
}

// Placed is an adapter and the first row of the stack that it is for.
type Placed struct {
	From int
	*Adapter
}

// Adapters are those of the parts that have one, with rows in the stack's order.
func (k *Stack) Adapters() []Placed {
	var all []Placed
	for _, p := range k.parts {
		a := p.adapter
		if a == nil {
			continue
		}
		if p.perm != nil {
			up := make([]float32, 0, len(a.Up))
			for _, r := range p.perm {
				up = append(up, a.Up[int(r)*a.Rank:][:a.Rank]...)
			}
			a = &Adapter{a.Rank, a.Down, up}
		}
		all = append(all, Placed{p.from, a})
	}
	return all
}

// checkAdapters refuses adapters of vectors, convolutions and heads: they multiply no whole rows.
func (s *WeightSpec) checkAdapters() error {
	if s.Use != UseVector && s.Use != UseConv && s.Use != UseHeads {
		return nil
	}
	for _, p := range s.Parts {
		if p.Adapter != nil {
			return fmt.Errorf("an adapter of %s is not supported: it is no matrix that multiplies whole rows", s.Name)
		}
	}
	return nil
}
