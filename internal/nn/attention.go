package nn

import B "hearth/internal/backend"

// Attention is the GQA layer of most decoders. Fused columns: q, [output gate,] k, v.
type Attention struct {
	QKV   Linear   `w:"q_proj+k_proj+v_proj,shard=col"`
	O     Linear   `w:"o_proj,shard=row"`
	QNorm *RMSNorm `w:"q_norm|q_layernorm"`
	KNorm *RMSNorm `w:"k_norm|k_layernorm"`
	Sinks *Vec     `w:"sinks"`

	VNorm  *B.Norm // weightless norm on values (gemma4)
	KeyIsV bool    // values are the raw keys (gemma4 full layers)
	Gated  bool    // q_proj also yields a gate: o(attn · σ(gate))
	Rope   *B.Rope // nil: no positions
	Spec   B.Attn
}

// Bind runs once after loading.
func (a *Attention) Bind() { a.Spec.Sinks = a.Sinks.Of() }

var sigmoid = B.GLU{Act: B.SigmoidAct}

func (a *Attention) Forward(o B.Ops, x B.Array) B.Array {
	y := a.QKV.Forward(o, x)
	q, k, v := a.QKV.Part(o, y, 0), a.QKV.Part(o, y, 1), a.QKV.Part(o, y, 2)
	var gate B.Array
	if a.Gated {
		n := q.Cols() / 2
		q, gate = o.Cols(q, 0, n), o.Cols(q, n, 2*n)
	}
	if a.KeyIsV {
		v = k
	}
	q, k = a.QNorm.Forward(o, q), a.KNorm.Forward(o, k)
	if a.VNorm != nil && !v.IsZero() {
		v = o.RMSNorm(v, nil, a.VNorm)
	}
	if a.Rope != nil {
		q = o.RoPE(q, a.Rope)
		if !k.IsZero() {
			k = o.RoPE(k, a.Rope)
		}
	}
	y = o.Attention(q, k, v, &a.Spec)
	if a.Gated {
		y = o.Gate(gate, y, &sigmoid)
	}
	return a.O.Forward(o, y)
}
