package nn

import (
	"cmp"

	B "hearth/internal/backend"
)

// Attention is the grouped-query layer of most decoders.
type Attention struct {
	QKV   Linear   `w:"q_proj+k_proj+v_proj,fused=qkv_proj,shard=col"`
	O     Linear   `w:"o_proj,shard=row"`
	QNorm *RMSNorm `w:"q_norm"` // before the rotation, per head or over all of them; nil where the architecture has none
	KNorm *RMSNorm `w:"k_norm"`
	Sinks *Vec     `w:"sinks,shard=col"` // one per head; nil where the architecture has none

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
	q, k, v := a.QKV.Part(o, y, 0), a.QKV.Part(o, y, 1), a.QKV.Part(o, y, 2)
	q, k = a.QNorm.Forward(o, q), a.KNorm.Forward(o, k)
	if a.Rope != nil {
		q, k = o.RoPE(q, cmp.Or(a.QRope, a.Rope)), o.RoPE(k, a.Rope)
	}
	return a.O.Forward(o, o.Attention(q, k, v, &a.Spec))
}
