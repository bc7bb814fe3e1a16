package nn

import B "hearth/internal/backend"

// Attention is the grouped-query layer of most decoders.
type Attention struct {
	QKV   Linear   `w:"q_proj+k_proj+v_proj,shard=col"`
	O     Linear   `w:"o_proj,shard=row"`
	QNorm *RMSNorm `w:"q_norm"` // per head, before the rotation; nil where the architecture has none
	KNorm *RMSNorm `w:"k_norm"`

	Rope *B.Rope
	Spec B.Attn
}

// Forward is the layer without norm and residual: [rows, D] to [rows, D].
func (a *Attention) Forward(o B.Ops, x B.Array) B.Array {
	y := a.QKV.Forward(o, x)
	q, k, v := a.QKV.Part(o, y, 0), a.QKV.Part(o, y, 1), a.QKV.Part(o, y, 2)
	q, k = a.QNorm.Forward(o, q), a.KNorm.Forward(o, k)
	q, k = o.RoPE(q, a.Rope), o.RoPE(k, a.Rope)
	return a.O.Forward(o, o.Attention(q, k, v, &a.Spec))
}
