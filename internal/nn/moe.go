package nn

import B "hearth/internal/backend"

// Stack is one matrix, or several that share an input, per expert.
type Stack struct {
	N, In int
	Outs  []int // per part, local to this rank
	Bias  bool  // as Linear
	Picks int   // experts a row uses
	// Interleaved: where the checkpoint has two parts in one tensor, their rows alternate.
	Interleaved bool
	// Transposed: the checkpoint has every expert's matrix as [In, Out].
	Transposed bool
	W          B.Weight
}

// MoE routes every row to some of many MLPs and sums what they give. A shared one, where there is one, sees every row.
type MoE struct {
	Gate Linear `w:"gate"`
	Bias *Vec   `w:"gate.e_score_correction_bias"` // nil where the architecture has none
	Up   Stack  `w:"switch_mlp.gate_proj+switch_mlp.up_proj,fused=switch_mlp.gate_up_proj,each=experts,shard=col,glu"`
	Down Stack  `w:"switch_mlp.down_proj,each=experts,shard=row"`

	Shared     *GLUMLP `w:"shared_experts"`
	SharedGate *Linear `w:"shared_expert_gate"` // one number per row, through a sigmoid; nil: 1

	Router B.Router
	Cap    *B.Activation // of the scores; nil: none
	Weigh  *B.Router     // of one expert, whose weight multiplies the experts' input; nil: none
	Spec   B.Experts
}

var (
	sigmoid = B.GLU{Act: B.SigmoidAct}
	times   = B.GLU{Act: B.ActNone}
)

// NewMoE declares n experts with ffn hidden features on this rank.
func NewMoE(d, ffn, n int, r B.Router, act *B.GLU) MoE {
	m := MoE{
		Gate: Lin(d, n), Up: Stack{N: n, In: d, Outs: []int{ffn, ffn}, Picks: r.K}, Down: Stack{N: n, In: ffn, Outs: []int{d}, Picks: r.K},
		Router: r, Spec: B.Experts{GLU: act},
	}
	m.Gate.Least = B.Float32
	return m
}

// Bind runs when the weights are loaded.
func (m *MoE) Bind() {
	m.Spec.Up, m.Spec.Down = m.Up.W, m.Down.W
	if m.Bias != nil {
		m.Router.Bias = m.Bias.W
	}
}

// Forward is the layer without norm and residual: [rows, D] to [rows, D].
func (m *MoE) Forward(o B.Ops, x B.Array) B.Array {
	scores, in := m.Gate.Forward(o, x), x
	if m.Cap != nil {
		scores = o.Act(scores, m.Cap)
	}
	if m.Weigh != nil {
		in = o.Gate(o.Route(scores, m.Weigh).Weights, x, &times)
	}
	y := o.MoE(in, o.Route(scores, &m.Router), &m.Spec)
	if m.Shared != nil { // added before AllSum, which then does for both
		s := o.Linear(o.LinearGLU(x, m.Shared.GateUp.W, &m.Shared.Spec), m.Shared.Down.W)
		if m.SharedGate != nil {
			s = o.Gate(m.SharedGate.Forward(o, x), s, &sigmoid)
		}
		y = o.Add(y, s)
	}
	if m.Down.W.Partial() {
		y = o.AllSum(y)
	}
	return y
}

// PlainMoE is MoE with experts of two products and an activation between, which may see rows through a narrower matrix.
type PlainMoE struct {
	Gate Linear  `w:"gate"`
	Bias Vec     `w:"gate.e_score_correction_bias"`
	To   *Linear `w:"fc1_latent_proj"` // nil: experts see whole rows
	Up   Stack   `w:"switch_mlp.up_proj,each=experts,shard=col"`
	Down Stack   `w:"switch_mlp.down_proj,each=experts,shard=row"`
	From *Linear `w:"fc2_latent_proj"`

	Shared *MLP `w:"shared_experts"` // nil where the architecture has none

	Router B.Router
	Spec   B.Experts
}

// NewPlainMoE declares n experts of width in with ffn hidden features on this rank.
func NewPlainMoE(d, in, ffn, n int, act *B.Activation, r B.Router) *PlainMoE {
	m := &PlainMoE{
		Gate: Lin(d, n), Bias: Vec{N: n}, Router: r, Spec: B.Experts{Act: act},
		Up: Stack{N: n, In: in, Outs: []int{ffn}, Picks: r.K}, Down: Stack{N: n, In: ffn, Outs: []int{in}, Picks: r.K},
	}
	m.Gate.Least = B.Float32
	return m
}

// Bind runs when the weights are loaded.
func (m *PlainMoE) Bind() { m.Spec.Up, m.Spec.Down, m.Router.Bias = m.Up.W, m.Down.W, m.Bias.W }

// Forward is the layer without norm and residual: [rows, D] to [rows, D].
func (m *PlainMoE) Forward(o B.Ops, x B.Array) B.Array {
	in := x
	if m.To != nil {
		in = m.To.Forward(o, x)
	}
	y := o.MoE(in, o.Route(m.Gate.Forward(o, x), &m.Router), &m.Spec)
	if m.Down.W.Partial() {
		y = o.AllSum(y)
	}
	if m.From != nil {
		y = m.From.Forward(o, y)
	}
	if m.Shared != nil {
		y = o.Add(y, m.Shared.Forward(o, x))
	}
	return y
}
