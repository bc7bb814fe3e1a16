package nn

import B "hearth/internal/backend"

// LayerNorm takes the mean away before it scales; it has N weights and as many biases. Spec.Width normalises each head apart.
type LayerNorm struct {
	N       int
	NoBias  bool
	Plus1   bool // stored as w, used as 1+w
	Flat    bool // checkpoints have the weights in more than one dimension
	Apart   bool // checkpoints have a tensor per head, ".norms.N", and no biases
	W, Bias B.Weight
	Spec    B.Norm
}

// LN declares a norm over whole rows.
func LN(n int, eps float32) LayerNorm { return LayerNorm{N: n, Spec: B.Norm{Eps: eps}} }

// HeadLN declares a norm over every head of n columns, with weights for so many heads: each its own, or one's for all.
func HeadLN(heads, n int, eps float32) *LayerNorm {
	return &LayerNorm{N: heads * n, Spec: B.Norm{Eps: eps, Width: n}}
}

// Forward leaves x alone where the layer has no such norm.
func (n *LayerNorm) Forward(o B.Ops, x B.Array) B.Array {
	if n == nil {
		return x
	}
	return o.LayerNorm(x, n.W, n.Bias, &n.Spec)
}
