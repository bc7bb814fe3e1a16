package nn

import B "hearth/internal/backend"

// LayerNorm takes the mean away before it scales; it has N weights and as many biases.
type LayerNorm struct {
	N       int
	W, Bias B.Weight
	Spec    B.Norm
	NoBias  bool
	Plus1   bool // stored as w, used as 1+w
}

// LN declares a norm over whole rows.
func LN(n int, eps float32) LayerNorm { return LayerNorm{N: n, Spec: B.Norm{Eps: eps}} }

// HeadLayerNorm declares a norm over each of heads of a width, with the same weights for all.
func HeadLayerNorm(width int, eps float32) *LayerNorm {
	return &LayerNorm{N: width, Spec: B.Norm{Eps: eps, Width: width}}
}

// Forward normalises every row; a nil norm leaves it as it is.
func (n *LayerNorm) Forward(o B.Ops, x B.Array) B.Array {
	if n == nil {
		return x
	}
	return o.LayerNorm(x, n.W, n.Bias, &n.Spec)
}
