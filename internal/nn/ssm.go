package nn

import B "hearth/internal/backend"

// Mamba2 is the layer of that name. The columns of In are the gate z, then x, b and c, which are convolved, and the steps.
type Mamba2 struct {
	In   Linear   `w:"in_proj"`
	Conv Conv1d   `w:"conv1d"`
	ALog Vec      `w:"A_log"`
	Dt   Vec      `w:"dt_bias"`
	D    Vec      `w:"D"`
	Norm *RMSNorm `w:"norm"` // of the result behind the gate, or before it; nil: none
	Out  Linear   `w:"out_proj"`

	NormFirst    bool
	Gated, Steps float32 // factors of z and of the steps; 0: none
	Spec         B.SSM
}

// Bind runs when the weights are loaded.
func (m *Mamba2) Bind() { m.Spec.ALog, m.Spec.DtBias, m.Spec.D = m.ALog.W, m.Dt.W, m.D.W }

// Forward is the layer without norm and residual: [rows, D] to [rows, D].
func (m *Mamba2) Forward(o B.Ops, x B.Array) B.Array {
	s := &m.Spec
	inner, keys := s.Heads*s.VDim, s.Groups*s.KDim
	y := m.In.Forward(o, x)
	z, dt := m.In.Part(o, y, 0), m.In.Part(o, y, 2)
	if m.Gated != 0 && m.Gated != 1 {
		z = o.Scale(z, m.Gated)
	}
	if m.Steps != 0 && m.Steps != 1 {
		dt = o.Scale(dt, m.Steps)
	}
	c := m.Conv.Forward(o, m.In.Part(o, y, 1))
	y = o.SSM(o.Cols(c, 0, inner), o.Cols(c, inner, inner+keys), o.Cols(c, inner+keys, inner+2*keys), dt, s)
	if m.NormFirst {
		return m.Out.Forward(o, o.Gate(z, m.Norm.Forward(o, y), &silu))
	}
	return m.Out.Forward(o, m.Norm.Forward(o, o.Gate(z, y, &silu)))
}

// Mamba is the layer of that name. The columns of In are x, which is convolved, and the gate z; those of X are what
// the steps are made of, b and c.
type Mamba struct {
	In   Linear   `w:"in_proj"`
	Conv Conv1d   `w:"conv1d"`
	X    Linear   `w:"x_proj"`
	Dt   Linear   `w:"dt_proj"`
	ALog Vec      `w:"A_log"`
	D    Vec      `w:"D"`
	Out  Linear   `w:"out_proj"`
	DtN  *RMSNorm `w:"dt_layernorm"` // of the three parts of X; nil where the architecture has none
	BN   *RMSNorm `w:"b_layernorm"`
	CN   *RMSNorm `w:"c_layernorm"`
	Spec B.SSM
}

// Bind runs when the weights are loaded.
func (m *Mamba) Bind() { m.Spec.ALog, m.Spec.D = m.ALog.W, m.D.W }

// Forward is the layer without norm and residual: [rows, D] to [rows, D].
func (m *Mamba) Forward(o B.Ops, x B.Array) B.Array {
	y := m.In.Forward(o, x)
	z := m.In.Part(o, y, 1)
	c := m.Conv.Forward(o, m.In.Part(o, y, 0))
	p := m.X.Forward(o, c)
	dt := m.Dt.Forward(o, m.DtN.Forward(o, m.X.Part(o, p, 0)))
	y = o.SSM(c, m.BN.Forward(o, m.X.Part(o, p, 1)), m.CN.Forward(o, m.X.Part(o, p, 2)), dt, &m.Spec)
	return m.Out.Forward(o, o.Gate(z, y, &silu))
}
