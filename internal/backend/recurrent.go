package backend

import "slices"

// Conv is a convolution of every column with its own Kernel taps: row t of a sequence sees rows t-Kernel+1+Ahead to t+Ahead.
// The last Kernel-1 inputs are the state; before a sequence's first row they are zeros. With NoState every span is a sequence of
// its own, which is zeros on either side; only then may rows see those ahead.
type Conv struct {
	State  StateID
	Kernel int
	Ahead  int     // of the rows that a row sees, how many follow it; 0: causal
	Act    ActKind // of the result: SiLU or ActNone
}

// Delta is the gated delta rule. Each value head has a matrix S of KDim×VDim, zero at the start, and every row of its
// sequence does, with head h of v beside head h/(VHeads/KHeads) of q and k,
//
//	k, q = k/√(Σk²+1e-6), q/√(Σq²+1e-6)/√KDim    g = exp(-exp(ALog)·ln(1+exp(a+DtBias)))
//	S = g·S    δ = σ(beta)·(v - k·S)    S = S + k⊗δ    y = q·S
//
// token by token on a backend with Caps.Invariant. ALog and DtBias have one number per value head. With PerKey every row of S has
// an a, a DtBias and a decay of its own (Kimi Delta Attention, arXiv:2510.26692): S = diag(g)·S.
type Delta struct {
	State                      StateID
	KHeads, VHeads, KDim, VDim int
	ALog, DtBias               Weight
	PerKey                     bool
}

// Decays is how many decays a row has.
func (d *Delta) Decays() int {
	if d.PerKey {
		return d.VHeads * d.KDim
	}
	return d.VHeads
}

// DeltaEps keeps the norm of an all-zero q or k finite.
const DeltaEps = 1e-6

// SSM is the recurrence of state space models: Mamba 2 (arXiv:2405.21060) or, with PerColumn, Mamba
// (arXiv:2312.00752). Every head has a matrix S of KDim×VDim, zero at the start, and every row of its sequence does,
// with head h of x beside group h/(Heads/Groups) of b and c,
//
//	dt = min(max(ln(1+exp(dt+DtBias)), Min), Max)    S = exp(-exp(ALog)·dt)·S + b⊗(dt·x)    y = c·S + D·x
//
// token by token on a backend with Caps.Invariant. dt, DtBias, ALog and D are one number per head. With PerColumn
// there is one head, and dt, DtBias and D are one number per column of x, ALog one per element of S, column by
// column: KDim of the first, then those of the next. Without dt its place is taken by 1 and exp(ALog)'s by Slopes:
// lightning attention (arXiv:2401.04658).
type SSM struct {
	State                     StateID
	Heads, Groups, KDim, VDim int
	PerColumn                 bool
	ALog                      Weight
	DtBias, D                 Weight  // nil: 0
	Min, Max                  float32 // of dt, after softplus; Max 0: none
	Slopes                    []float32
}

// Steps is how many numbers dt has per row.
func (s *SSM) Steps() int {
	if s.PerColumn {
		return s.VDim
	}
	return s.Heads
}

// Fixed reports whether any of the states is of fixed size: such a sequence can only go on where its slot is.
func Fixed(specs []StateSpec) bool {
	return slices.ContainsFunc(specs, func(s StateSpec) bool { return !s.Paged() })
}

// Conv checks the op of that name.
func (c Check) Conv(x Array, w, bias Weight, s *Conv) {
	if x.Rows() != c.Batch.Rows() {
		fail("Conv: %d rows, want all %d of the batch", x.Rows(), c.Batch.Rows())
	}
	if s.Kernel < 2 || w.In() != s.Kernel || w.Out() != x.Cols() || bias != nil && bias.Out() != x.Cols() {
		fail("Conv: x has %d columns, the weight %d of %d taps, the spec %d", x.Cols(), w.Out(), w.In(), s.Kernel)
	}
	if s.Ahead < 0 || s.Ahead >= s.Kernel || s.Ahead > 0 && s.State != NoState {
		fail("Conv: %d rows ahead of %d taps, state %d; rows are seen ahead without a state only", s.Ahead, s.Kernel, s.State)
	}
	if s.State == NoState {
		return
	}
	d := c.fixed("Conv", s.State)
	if d.Kind != StateConv || d.KDim != x.Cols() || d.VDim != s.Kernel-1 {
		fail("Conv: state %s is declared as kind %d of %d columns and %d rows; used with %d and %d", d.Name, d.Kind, d.KDim, d.VDim, x.Cols(), s.Kernel-1)
	}
}

// GatedDelta checks the op of that name.
func (c Check) GatedDelta(q, k, v, a, beta Array, s *Delta) {
	if s.KHeads <= 0 || s.VHeads%s.KHeads != 0 {
		fail("GatedDelta: %d value heads for %d of keys", s.VHeads, s.KHeads)
	}
	c.all("GatedDelta", "q", q, s.KHeads*s.KDim)
	c.all("GatedDelta", "k", k, s.KHeads*s.KDim)
	c.all("GatedDelta", "v", v, s.VHeads*s.VDim)
	c.all("GatedDelta", "a", a, s.Decays())
	c.all("GatedDelta", "beta", beta, s.VHeads)
	if s.ALog.Out() != s.VHeads || s.DtBias.Out() != s.Decays() {
		fail("GatedDelta: %d decays and %d biases for %d heads and %d decays of a row", s.ALog.Out(), s.DtBias.Out(), s.VHeads, s.Decays())
	}
	c.recurrent("GatedDelta", s.State, s.VHeads, s.KDim, s.VDim)
}

// SSM checks the op of that name.
func (c Check) SSM(x, b, cc, dt Array, s *SSM) {
	if s.Groups <= 0 || s.Heads%s.Groups != 0 || s.PerColumn && s.Heads != 1 {
		fail("SSM: %d heads, %d groups, steps per column is %t", s.Heads, s.Groups, s.PerColumn)
	}
	c.all("SSM", "x", x, s.Heads*s.VDim)
	c.all("SSM", "b", b, s.Groups*s.KDim)
	c.all("SSM", "c", cc, s.Groups*s.KDim)
	steps, decays := s.Steps(), s.Heads
	if s.PerColumn {
		decays = s.KDim * s.VDim
	}
	if dt.IsZero() {
		if len(s.Slopes) != s.Heads || s.PerColumn {
			fail("SSM: no steps and %d slopes for %d heads, steps per column is %t", len(s.Slopes), s.Heads, s.PerColumn)
		}
	} else {
		c.all("SSM", "dt", dt, steps)
		if s.ALog.Out() != decays || s.DtBias != nil && s.DtBias.Out() != steps {
			fail("SSM: %d decays, want %d; or not %d biases of steps", s.ALog.Out(), decays, steps)
		}
	}
	if s.D != nil && s.D.Out() != steps {
		fail("SSM: D has %d numbers, want %d", s.D.Out(), steps)
	}
	c.recurrent("SSM", s.State, s.Heads, s.KDim, s.VDim)
}

func (c Check) recurrent(op string, id StateID, heads, kdim, vdim int) {
	d := c.fixed(op, id)
	if d.Kind != StateRecurrent || d.Heads != heads || d.KDim != kdim || d.VDim != vdim {
		fail("%s: state %s is declared as kind %d, %d heads of %d×%d; used with %d of %d×%d",
			op, d.Name, d.Kind, d.Heads, d.KDim, d.VDim, heads, kdim, vdim)
	}
}

func (c Check) fixed(op string, id StateID) *StateSpec {
	if id < 0 || int(id) >= len(c.States) {
		fail("%s: state %d of %d is not declared", op, id, len(c.States))
	}
	return &c.States[id]
}
