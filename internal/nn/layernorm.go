package nn

import B "hearth/internal/backend"

// LayerNorm takes the mean away before it scales; it has N weights and as many biases, or Each times as many.
type LayerNorm struct {
	N       int
	W, Bias B.Weight
	Spec    B.Norm
	NoBias  bool
	Plus1   bool // stored as w, used as 1+w
	Each    int  // how many heads have weights of their own, stored apart; 0: all have the same
}

// LN declares a norm over whole rows.
func LN(n int, eps float32) LayerNorm { return LayerNorm{N: n, Spec: B.Norm{Eps: eps}} }

// HeadLN declares a norm over each of heads of a width.
func HeadLN(width int, eps float32) *LayerNorm {
	return &LayerNorm{N: width, Spec: B.Norm{Eps: eps, Width: width}}
}

// Forward normalises every row; a nil norm leaves it as it is.
func (n *LayerNorm) Forward(o B.Ops, x B.Array) B.Array {
	if n == nil {
		return x
	}
	return o.LayerNorm(x, n.W, n.Bias, &n.Spec)
}
