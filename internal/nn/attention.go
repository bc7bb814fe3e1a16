package nn

import (
	"cmp"

	B "hearth/internal/backend"
)

// Attention is the grouped-query layer of most decoders. Where QKV has no third part, the values are the keys before
// norm and rotation. Where it has no second part either, the layer reads the state that another one writes.
type Attention struct {
	QKV     Linear     `w:"q_proj+k_proj+v_proj,fused=qkv_proj,shard=col"`
	O       Linear     `w:"o_proj,shard=row"`
	QNorm   *RMSNorm   `w:"q_norm"` // before the rotation, per head or over all; nil: none
	KNorm   *RMSNorm   `w:"k_norm"`
	QLayer  *LayerNorm `w:"q_norm"` // in place of QNorm and KNorm in families with LayerNorms
	KLayer  *LayerNorm `w:"k_norm"`
	VNorm   *B.Norm    // of values, per head and without weights; nil: none
	Gated   bool       // each query head is followed by as many columns; their sigmoids gate its result
	HeadG   *Linear    `w:"g_proj,shard=col"` // gate of every head's result; nil: none
	HeadAct *B.GLU     // of HeadG; nil: the sigmoid
	Gate    *Linear    `w:"gate_proj,shard=col"` // its sigmoids gate the result; nil: none
	SubNorm *RMSNorm   `w:"attn_sub_norm"`       // of the result, over all heads; nil: none
	Sinks   *Vec       `w:"sinks,shard=col"`     // one per head; nil: none
	VScale  float32    // of values; 0: none

	RotateFirst bool    // and then normalise
	Even        *B.Norm // of queries and keys after the rotation, per head and without weights; nil: none

	Rope  *B.Rope // nil: the layer knows no positions
	QRope *B.Rope // of queries, where it is not that of keys
	Spec  B.Attn
}

// Bind runs when the weights are loaded.
func (a *Attention) Bind() {
	if a.Sinks != nil {
		a.Spec.Sinks = a.Sinks.W
	}
}

// Forward is the layer without norm and residual: [rows, D] to [rows, D].
func (a *Attention) Forward(o B.Ops, x B.Array) B.Array {
	y := a.QKV.Forward(o, x)
	q, gate := a.QKV.Part(o, y, 0), B.Array{}
	if a.Gated {
		n := q.Cols() / 2
		q, gate = o.Cols(q, 0, n), o.Cols(q, n, 2*n)
	}
	q = a.place(o, q, a.QNorm, a.QLayer, cmp.Or(a.QRope, a.Rope))
	var k, v B.Array
	if a.QKV.Outs[1] > 0 {
		k, v = a.keyValue(o, y)
	}
	y = o.Attention(q, k, v, &a.Spec)
	if a.Gated {
		y = o.Gate(gate, y, &sigmoid)
	}
	if a.HeadG != nil {
		y = o.Gate(a.HeadG.Forward(o, x), y, cmp.Or(a.HeadAct, &sigmoid))
	}
	if a.VScale != 0 {
		y = o.Scale(y, a.VScale) // what is linear in values may as well be scaled afterwards
	}
	if a.Gate != nil {
		y = o.Gate(a.Gate.Forward(o, x), y, &sigmoid)
	}
	return a.O.Forward(o, a.SubNorm.Forward(o, y))
}

// place normalises and rotates queries or keys.
func (a *Attention) place(o B.Ops, x B.Array, n *RMSNorm, ln *LayerNorm, r *B.Rope) B.Array {
	if !a.RotateFirst {
		x = ln.Forward(o, n.Forward(o, x))
	}
	if r != nil {
		x = o.RoPE(x, r)
	}
	if a.RotateFirst {
		x = ln.Forward(o, n.Forward(o, x))
	}
	if a.Even != nil {
		x = o.RMSNorm(x, nil, a.Even)
	}
	return x
}

func (a *Attention) keyValue(o B.Ops, y B.Array) (k, v B.Array) {
	k, v = a.QKV.Part(o, y, 1), a.QKV.Part(o, y, 2)
	if v.IsZero() {
		v = k
	}
	k = a.place(o, k, a.KNorm, a.KLayer, a.Rope)
	if a.VNorm != nil {
		v = o.RMSNorm(v, nil, a.VNorm)
	}
	return k, v
}
