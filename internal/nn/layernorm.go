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

// Forward normalises every row.
func (n *LayerNorm) Forward(o B.Ops, x B.Array) B.Array { return o.LayerNorm(x, n.W, n.Bias, &n.Spec) }
