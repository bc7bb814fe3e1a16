package nn

import B "hearth/internal/backend"

// GLUMLP is down(act(gate)·up).
type GLUMLP struct {
	GateUp Linear `w:"gate_proj+up_proj,fused=gate_up_proj,shard=col,glu"`
	Down   Linear `w:"down_proj,shard=row"`
	Spec   B.GLU
}

// NewGLUMLP declares a layer of width d with ffn hidden features on this rank.
func NewGLUMLP(d, ffn int, act B.ActKind) GLUMLP {
	return GLUMLP{GateUp: Lin(d, ffn, ffn), Down: Lin(ffn, d), Spec: B.GLU{Act: act}}
}

// Forward is the layer without norm and residual: [rows, D] to [rows, D].
func (m *GLUMLP) Forward(o B.Ops, x B.Array) B.Array {
	return m.Down.Forward(o, o.LinearGLU(x, m.GateUp.W, &m.Spec))
}
