package nn

import B "hearth/internal/backend"

// Conv1d is a convolution of C columns with K taps each over the rows of a sequence.
type Conv1d struct {
	C, K    int
	HasBias bool
	Factors []float32 // of every column, before it is convolved; nil: 1
	W, Bias B.Weight
	Spec    B.Conv
}

// NewConv declares a causal convolution without bias whose last rows are kept in st.
func NewConv(c, k int, act B.ActKind, st B.StateID) Conv1d {
	return Conv1d{C: c, K: k, Spec: B.Conv{State: st, Kernel: k, Act: act}}
}

// Forward is [rows, C] to [rows, C].
func (c *Conv1d) Forward(o B.Ops, x B.Array) B.Array { return o.Conv(x, c.W, c.Bias, &c.Spec) }

// Forget makes the convolution stateless, for whole texts: causal, or else centred, with the odd row behind.
func (c *Conv1d) Forget(causal bool) {
	c.Spec.State = B.NoState
	if !causal {
		c.Spec.Ahead = (c.K - 1) / 2
	}
}

// ShortConv is the layer of LFM2: a convolution between two gates, which are products of the input as well. The columns of In are
// the gate before it, the gate behind it and what is convolved.
type ShortConv struct {
	In   Linear `w:"in_proj"`
	Conv Conv1d `w:"conv"`
	Out  Linear `w:"out_proj"`
}

// Forward is the layer without norm and residual: [rows, D] to [rows, D].
func (c *ShortConv) Forward(o B.Ops, x B.Array) B.Array {
	y := c.In.Forward(o, x)
	before, after := c.In.Part(o, y, 0), c.In.Part(o, y, 1)
	y = c.Conv.Forward(o, o.Gate(before, c.In.Part(o, y, 2), &times))
	return c.Out.Forward(o, o.Gate(after, y, &times))
}

// GatedDelta is linear attention by the gated delta rule. The columns of In are q, k, v, z, those of BA the rate and the
// decay of every value head; checkpoints that have them key head by key head are permuted when they are loaded.
type GatedDelta struct {
	In   Linear  `w:"in_proj_qkv+in_proj_z,fused=in_proj_qkvz,shard=col"`
	BA   Linear  `w:"in_proj_b+in_proj_a,fused=in_proj_ba,shard=col"`
	Conv Conv1d  `w:"conv1d,shard=col"`
	ALog Vec     `w:"A_log,shard=col"`
	Dt   Vec     `w:"dt_bias,shard=col"`
	Norm RMSNorm `w:"norm"` // of every head's result, before the gate z
	Out  Linear  `w:"out_proj,shard=row"`
	Spec B.Delta
}

var silu = B.GLU{Act: B.SiLU}

// Bind runs when the weights are loaded.
func (g *GatedDelta) Bind() { g.Spec.ALog, g.Spec.DtBias = g.ALog.W, g.Dt.W }

// Forward is the layer without norm and residual: [rows, D] to [rows, D].
func (g *GatedDelta) Forward(o B.Ops, x B.Array) B.Array {
	s := &g.Spec
	kd, vd := s.KHeads*s.KDim, s.VHeads*s.VDim
	y, ba := g.In.Forward(o, x), g.BA.Forward(o, x)
	c := g.Conv.Forward(o, o.Cols(y, 0, 2*kd+vd))
	z := o.Cols(y, 2*kd+vd, 2*kd+2*vd)
	y = o.GatedDelta(o.Cols(c, 0, kd), o.Cols(c, kd, 2*kd), o.Cols(c, 2*kd, 2*kd+vd),
		o.Cols(ba, s.VHeads, 2*s.VHeads), o.Cols(ba, 0, s.VHeads), s)
	return g.Out.Forward(o, o.Gate(z, g.Norm.Forward(o, y), &silu))
}

// KeyDelta is Kimi Delta Attention: linear attention by the gated delta rule with a decay per key. The columns of FB are what the
// decays come from and the rate of every head; GA and G make the gate of the result.
type KeyDelta struct {
	QKV  Linear  `w:"q_proj+k_proj+v_proj"`
	Conv Conv1d  `w:"q_conv.conv+k_conv.conv+v_conv.conv,fused=conv1d"`
	FB   Linear  `w:"f_a_proj+b_proj"`
	F    Linear  `w:"f_b_proj"`
	GA   Linear  `w:"g_a_proj"`
	G    Linear  `w:"g_b_proj"`
	ALog Vec     `w:"A_log"`
	Dt   Vec     `w:"dt_bias"`
	Norm RMSNorm `w:"o_norm"` // of every head's result, before the gate
	O    Linear  `w:"o_proj"`
	Spec B.Delta
}

// Bind runs when the weights are loaded.
func (d *KeyDelta) Bind() { d.Spec.ALog, d.Spec.DtBias = d.ALog.W, d.Dt.W }

// Forward is the layer without norm and residual: [rows, D] to [rows, D].
func (d *KeyDelta) Forward(o B.Ops, x B.Array) B.Array {
	c, fb := d.Conv.Forward(o, d.QKV.Forward(o, x)), d.FB.Forward(o, x)
	a, beta := d.F.Forward(o, d.FB.Part(o, fb, 0)), d.FB.Part(o, fb, 1)
	y := o.GatedDelta(d.QKV.Part(o, c, 0), d.QKV.Part(o, c, 1), d.QKV.Part(o, c, 2), a, beta, &d.Spec)
	gate := d.G.Forward(o, d.GA.Forward(o, x))
	return d.O.Forward(o, o.Gate(gate, d.Norm.Forward(o, y), &sigmoid))
}
