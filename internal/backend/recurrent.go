package backend

// Conv is a causal convolution of every column with its own Kernel taps: row t of a sequence sees rows t-Kernel+1 to t.
// The last Kernel-1 inputs are the state; before a sequence's first row they are zeros.
type Conv struct {
	State  StateID
	Kernel int
	Act    ActKind // of the result: SiLU or ActNone
}

// Delta is the gated delta rule. Each value head has a matrix S of KDim×VDim, zero at the start, and every row of its
// sequence does, with head h of v beside head h/(VHeads/KHeads) of q and k,
//
//	k, q = k/√(Σk²+1e-6), q/√(Σq²+1e-6)/√KDim    g = exp(-exp(ALog)·ln(1+exp(a+DtBias)))
//	S = g·S    δ = σ(beta)·(v - k·S)    S = S + k⊗δ    y = q·S
//
// token by token on a backend with Caps.Invariant. ALog and DtBias have one number per value head.
type Delta struct {
	State                      StateID
	KHeads, VHeads, KDim, VDim int
	ALog, DtBias               Weight
}

// DeltaEps keeps the norm of an all-zero q or k finite.
const DeltaEps = 1e-6

// Fixed reports whether any of the states is of fixed size: such a sequence can only go on where its slot is.
func Fixed(specs []StateSpec) bool {
	for _, s := range specs {
		if !s.Paged() {
			return true
		}
	}
	return false
}

// Conv checks the op of that name.
func (c Check) Conv(x Array, w, bias Weight, s *Conv) {
	if x.Rows() != c.Batch.Rows() {
		fail("Conv: %d rows, want all %d of the batch", x.Rows(), c.Batch.Rows())
	}
	if s.Kernel < 2 || w.In() != s.Kernel || w.Out() != x.Cols() || bias != nil && bias.Out() != x.Cols() {
		fail("Conv: x has %d columns, the weight %d of %d taps, the spec %d", x.Cols(), w.Out(), w.In(), s.Kernel)
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
	c.all("GatedDelta", "a", a, s.VHeads)
	c.all("GatedDelta", "beta", beta, s.VHeads)
	if s.ALog.Out() != s.VHeads || s.DtBias.Out() != s.VHeads {
		fail("GatedDelta: %d decays and %d biases for %d heads", s.ALog.Out(), s.DtBias.Out(), s.VHeads)
	}
	d := c.fixed("GatedDelta", s.State)
	if d.Kind != StateRecurrent || d.Heads != s.VHeads || d.KDim != s.KDim || d.VDim != s.VDim {
		fail("GatedDelta: state %s is declared as kind %d, %d heads of %d×%d; used with %d of %d×%d",
			d.Name, d.Kind, d.Heads, d.KDim, d.VDim, s.VHeads, s.KDim, s.VDim)
	}
}

func (c Check) fixed(op string, id StateID) *StateSpec {
	if id < 0 || int(id) >= len(c.States) {
		fail("%s: state %d of %d is not declared", op, id, len(c.States))
	}
	return &c.States[id]
}
