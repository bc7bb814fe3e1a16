package nn

import B "hearth/internal/backend"

// GLUMLP: down(act(gate)·up).
type GLUMLP struct {
	GateUp Linear `w:"gate_proj|w1+up_proj|w3,shard=col,glu"`
	Down   Linear `w:"down_proj|w2,shard=row"`
	Spec   B.GLU
}

func NewGLUMLP(d, ffn int, act B.ActKind) GLUMLP {
	return GLUMLP{GateUp: Lin(d, ffn, ffn), Down: Lin(ffn, d), Spec: B.GLU{Act: act}}
}
func (m *GLUMLP) Forward(o B.Ops, x B.Array) B.Array {
	return m.Down.Forward(o, o.LinearGLU(x, m.GateUp.W, &m.Spec))
}
