// Package nn holds the layers architectures share, written on backend.Ops. A layer is a struct whose exported
// fields are checkpoint tensors (tag w) plus constants set by the constructor; it owns no arrays.
package nn

import B "hearth/internal/backend"

// Linear is one matrix or several that share an input, fused along the output dimension.
type Linear struct {
	In   int
	Outs []int     // per part, local to this rank; 0: part absent
	Perm [][]int32 // per part, optional output row order (checkpoints that interleave)
	W    B.Weight
}

// Lin declares a Linear; the loader checks shapes against it and derives quantisation from it.
func Lin(in int, outs ...int) Linear { return Linear{In: in, Outs: outs} }

func (l *Linear) Forward(o B.Ops, x B.Array) B.Array {
	y := o.Linear(x, l.W)
	if l.W.Partial() {
		y = o.AllSum(y)
	}
	return y
}

// Part returns the columns of part i of a fused result, or no array if the part is absent.
func (l *Linear) Part(o B.Ops, y B.Array, i int) B.Array {
	from := 0
	for _, n := range l.Outs[:i] {
		from += n
	}
	if l.Outs[i] == 0 {
		return B.Array{}
	}
	if from == 0 && l.Outs[i] == y.Cols() {
		return y
	}
	return o.Cols(y, from, from+l.Outs[i])
}

// Vec is a vector parameter kept in f32.
type Vec struct {
	N int
	W B.Weight
}

// Of returns the weight or nil, so optional vectors need no test at the call.
func (v *Vec) Of() B.Weight {
	if v == nil {
		return nil
	}
	return v.W
}

type Embedding struct {
	Vocab, Dim int
	W          B.Weight
}

// Tokens embeds the batch's tokens and then lets media features replace their rows.
func (e *Embedding) Tokens(o B.Ops, b *B.Batch, scale float32) B.Array {
	h := o.Embed(e.W, B.Index{IDs: b.Tokens, Late: b.Late})
	if scale != 0 {
		h = o.Scale(h, scale)
	}
	for _, m := range b.Media {
		h = o.Put(h, m.Features, m.From, m.Rows, false)
	}
	return h
}

// RMSNorm; Width normalises each head apart. Plus1 weights are shifted at load.
type RMSNorm struct {
	N     int
	Plus1 bool
	W     B.Weight
	Spec  B.Norm
}

func RMS(n int, eps float32) RMSNorm      { return RMSNorm{N: n, Spec: B.Norm{Eps: eps}} }
func HeadRMS(n int, eps float32) *RMSNorm { return &RMSNorm{N: n, Spec: B.Norm{Eps: eps, Width: n}} }
func (n *RMSNorm) Forward(o B.Ops, x B.Array) B.Array {
	if n == nil || x.IsZero() {
		return x
	}
	return o.RMSNorm(x, n.W, &n.Spec)
}

// Outputs narrows x to the rows the engine wants.
func Outputs(o B.Ops, b *B.Batch, x B.Array) B.Array {
	if len(b.Out) == x.Rows() {
		return x
	}
	return o.Gather(x, b.Out)
}
