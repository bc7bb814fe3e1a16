package model

import (
	"fmt"
	"runtime"
	"sync/atomic"

	B "hearth/internal/backend"
	"hearth/internal/nn"
	"hearth/internal/quant"
)

// heads declares a matrix per head, stored so or inside a tensor that has two kinds of them.
func (p *inventory) heads(x *nn.Heads, t tagged) {
	s := B.WeightSpec{Name: t.names[0], Use: B.UseHeads, Out: []int{x.Out}, In: x.In, Count: x.N}
	if p.src.Has(t.names[0]) || !x.Together && !p.src.Has(t.both) {
		p.add(&x.W, s, t, Want{Count: x.N})
		return
	}
	w := Want{Path: t.both, Rows: x.N * x.Of, In: x.In, Ranks: p.world}
	if x.Transposed {
		w.In = x.Out
	}
	if x.From == 0 { // of the two that share the tensor one reports what is wrong with it
		p.faults = append(p.faults, p.src.Check(w)...)
	}
	p.jobs = append(p.jobs, job{spec: s, wants: []Want{w}, to: &x.W, fuses: true, prepare: func(part B.Part) (B.Part, error) { return half(x, part, w.In) }})
}

// half takes the matrices of x out of a part that has two kinds of them. What is transposed, or quantised again
// because the reference does, is computed; the rest keeps its codes.
func half(x *nn.Heads, p B.Part, in int) (B.Part, error) {
	m, err := quant.NewMatrix(p.Weight.Shape[0], in, p.Scheme, data(p.Weight), data(p.Scales), data(p.Biases))
	if err == nil && p.Global != nil {
		err = m.SetGlobal(data(p.Global))
	}
	if err != nil {
		return p, fmt.Errorf("tensor %s: %w", p.Weight.Name, err)
	}
	if p.Adapter != nil {
		p = fused(p, m)
		m = &quant.Matrix{Rows: m.Rows, In: in, Weight: p.Weight.Bytes, Type: quant.F32}
	}
	again := x.Again && p.Scheme.Mode == quant.Affine && x.In%p.Scheme.Group == 0
	if !x.Transposed && !again {
		for _, t := range []**B.Tensor{&p.Weight, &p.Scales, &p.Biases} {
			*t = headRows(x, *t, m.Rows)
		}
		return p, nil
	}
	dt := quant.F32 // a type that rounds would be seen in the choice of experts
	switch {
	case p.Scheme.None():
		dt = quant.DType(p.Weight.DType)
	case again:
		dt = quant.DType(p.Scales.DType)
	}
	size := x.Out * x.In
	all := make([]float32, x.N*size)
	eachHead(x.N, func(h int) { headFloats(all[h*size:][:size], x, m, dt, h) })
	if !again {
		return B.Part{Weight: floats(p.Weight.Name, dt, all, x.N, x.Out, x.In)}, nil
	}
	return requantised(x, p, all, dt), nil
}

// fused is p, whose matrix is m, with its adapter added: heads are no matrix that multiplies whole rows, which is what an adapter
// could be kept beside.
func fused(p B.Part, m *quant.Matrix) B.Part {
	all, a := make([]float32, m.Rows*m.In), p.Adapter
	eachHead(m.Rows, func(r int) {
		row := all[r*m.In:][:m.In]
		m.Row(row, r)
		for k := range a.Rank {
			up := a.Up[r*a.Rank+k]
			for c, v := range a.Down[k*m.In:][:m.In] {
				row[c] += up * v
			}
		}
	})
	return B.Part{Weight: floats(p.Weight.Name, quant.F32, all, m.Rows, m.In)}
}

// headRows gathers the rows of every head from a stored tensor.
func headRows(x *nn.Heads, t *B.Tensor, rows int) *B.Tensor {
	if t == nil {
		return nil
	}
	width := len(t.Bytes) / rows
	to := &B.Tensor{Name: t.Name, DType: t.DType, Shape: append([]int{x.N, x.Out}, t.Shape[1:]...)}
	for h := range x.N {
		to.Bytes = append(to.Bytes, t.Bytes[(h*x.Of+x.From)*width:][:x.Out*width]...)
	}
	return to
}

// headFloats fills the [Out, In] matrix of one head.
func headFloats(to []float32, x *nn.Heads, m *quant.Matrix, dt quant.DType, h int) {
	at := h*x.Of + x.From
	if !x.Transposed {
		for r := range x.Out {
			m.RowAs(to[r*x.In:][:x.In], dt, at+r)
		}
		return
	}
	row := make([]float32, x.Out)
	for c := range x.In {
		m.RowAs(row, dt, at+c)
		for r, v := range row {
			to[r*x.In+c] = v
		}
	}
}

// requantised stores the floats of all heads in the scheme that they came from.
func requantised(x *nn.Heads, p B.Part, all []float32, dt quant.DType) B.Part {
	size := x.Out * x.In
	each := make([]*quant.Matrix, x.N)
	eachHead(x.N, func(h int) {
		k, err := quant.Quantize(p.Scheme, all[h*size:][:size], x.Out, x.In, dt)
		if err != nil {
			panic("model: " + err.Error()) // the scheme has been checked against this width
		}
		each[h] = k
	})
	groups := x.In / p.Scheme.Group
	to := B.Part{Scheme: p.Scheme,
		Weight: &B.Tensor{Name: p.Weight.Name, DType: string(quant.U32), Shape: []int{x.N, x.Out, x.In * p.Scheme.Bits / 32}},
		Scales: &B.Tensor{Name: p.Scales.Name, DType: string(dt), Shape: []int{x.N, x.Out, groups}},
		Biases: &B.Tensor{Name: p.Biases.Name, DType: string(dt), Shape: []int{x.N, x.Out, groups}}}
	for _, k := range each {
		to.Weight.Bytes = append(to.Weight.Bytes, k.Weight...)
		to.Scales.Bytes = append(to.Scales.Bytes, k.Scales...)
		to.Biases.Bytes = append(to.Biases.Bytes, k.Biases...)
	}
	return to
}

// eachHead runs f for every head, or row, on all processors.
func eachHead(n int, f func(h int)) {
	var next atomic.Int64
	var done B.Readers
	for range min(runtime.GOMAXPROCS(0), n) {
		done.Go(func() {
			for h := int(next.Add(1)) - 1; h < n; h = int(next.Add(1)) - 1 {
				f(h)
			}
		})
	}
	done.Wait()
}
