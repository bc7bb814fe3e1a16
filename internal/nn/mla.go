package nn

import B "hearth/internal/backend"

// Heads is one matrix [Out, In] per head.
type Heads struct {
	N, Out, In int
	W          B.Weight

	// Where one tensor has two kinds of matrices, each head has Of rows there. This one begins at row From; transposed, its
	// columns do.
	From, Of   int
	Transposed bool
	Together   bool // all checkpoints have one tensor; else they may
	Again      bool // once apart, they are quantised again, as in the reference
}

// MLA is multi-head latent attention: see B.MLA. Checkpoints have the two matrices of every head apart (embed_q, which is
// [N, latent, nope], and unembed_out) or together and as they expand a latent (kv_b_proj); the loader takes either.
type MLA struct {
	Q     *Linear  `w:"q_proj,shard=col"` // or, by way of a smaller vector, the next three
	QA    *Linear  `w:"q_a_proj"`
	QNorm *RMSNorm `w:"q_a_layernorm"`
	QB    *Linear  `w:"q_b_proj,shard=col"`

	KVA    Linear  `w:"kv_a_proj_with_mqa"`
	KVNorm RMSNorm `w:"kv_a_layernorm"`
	KUp    Heads   `w:"embed_q,both=kv_b_proj"`
	VUp    Heads   `w:"unembed_out,both=kv_b_proj"`
	O      Linear  `w:"o_proj,shard=row"`

	QRope, KRope *B.Rope // of a head of queries, and of the key alone; nil: the layer knows no positions
	Spec         B.MLA
}

// At is the rotation of the columns from offset on of wider heads.
func At(r *B.Rope, head, offset int) *B.Rope {
	to := *r
	to.Head, to.Offset = head, offset
	return &to
}

// Bind runs when the weights are loaded.
func (m *MLA) Bind() { m.Spec.KUp, m.Spec.VUp = m.KUp.W, m.VUp.W }

// Forward is the layer without norm and residual: [rows, D] to [rows, D].
func (m *MLA) Forward(o B.Ops, x B.Array) B.Array {
	var q B.Array
	if m.Q != nil {
		q = m.Q.Forward(o, x)
	} else {
		q = m.QB.Forward(o, m.QNorm.Forward(o, m.QA.Forward(o, x)))
	}
	y := m.KVA.Forward(o, x)
	latent, rot := m.KVNorm.Forward(o, m.KVA.Part(o, y, 0)), m.KVA.Part(o, y, 1)
	if m.QRope != nil {
		q, rot = o.RoPE(q, m.QRope), o.RoPE(rot, m.KRope)
	}
	return m.O.Forward(o, o.MLA(q, latent, rot, &m.Spec))
}
