package nn

import (
	"math"

	B "hearth/internal/backend"
)

// GLUMLP is down(act(gate)·up).
type GLUMLP struct {
	GateUp Linear `w:"gate_proj+up_proj,fused=gate_up_proj,shard=col,glu"`
	Down   Linear `w:"down_proj,shard=row"`
	Spec   B.GLU

	SubNorm *RMSNorm `w:"ffn_sub_norm"` // before Down; nil where the architecture has none
}

// NewGLUMLP declares a layer of width d with ffn hidden features on this rank.
func NewGLUMLP(d, ffn int, act B.ActKind) GLUMLP {
	return GLUMLP{GateUp: Lin(d, ffn, ffn), Down: Lin(ffn, d), Spec: B.GLU{Act: act}}
}

// Forward is the layer without norm and residual: [rows, D] to [rows, D].
func (m *GLUMLP) Forward(o B.Ops, x B.Array) B.Array {
	return m.Down.Forward(o, m.SubNorm.Forward(o, o.LinearGLU(x, m.GateUp.W, &m.Spec)))
}

// MLP is down(act(up)).
type MLP struct {
	Up   Linear `w:"up_proj,shard=col"`
	Down Linear `w:"down_proj,shard=row"`
	Act  B.Activation

	Curve *Curve `w:"act_fn"` // parameters of the activation; nil: it has none
}

// Curve are parameters of XIELU as they are learned.
type Curve struct {
	Pos  Scalar `w:"alpha_p"`
	Neg  Scalar `w:"alpha_n"`
	Beta Scalar `w:"beta"`
	Eps  Scalar `w:"eps"`
}

// Bind runs when the weights are loaded.
func (m *MLP) Bind() {
	if c := m.Curve; c != nil {
		softplus := func(x float32) float64 { return math.Log1p(math.Exp(-math.Abs(float64(x)))) + max(float64(x), 0) }
		m.Act.A, m.Act.B = float32(softplus(c.Pos.V)), float32(float64(c.Beta.V)+softplus(c.Neg.V))
		m.Act.C, m.Act.E = c.Beta.V, c.Eps.V
	}
}

// NewMLP declares a layer of width d with ffn hidden features on this rank.
func NewMLP(d, ffn int, act B.ActKind) *MLP {
	return &MLP{Up: Lin(d, ffn), Down: Lin(ffn, d), Act: B.Activation{Kind: act}}
}

// Forward is the layer without norm and residual: [rows, D] to [rows, D].
func (m *MLP) Forward(o B.Ops, x B.Array) B.Array {
	return m.Down.Forward(o, o.Act(m.Up.Forward(o, x), &m.Act))
}
