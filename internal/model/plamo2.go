package model

import (
	"fmt"
	"math"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("plamo2", newPlamo2) }

// plamo2Mamba is Mamba 2 with the steps, b and c made from what was convolved. The columns of In are z and x.
type plamo2Mamba struct {
	In   nn.Linear  `w:"in_proj"`
	Conv nn.Conv1d  `w:"conv1d"`
	BCDt nn.Linear  `w:"bcdt_proj"`
	DtN  nn.RMSNorm `w:"dt_norm"`
	BN   nn.RMSNorm `w:"b_norm"`
	CN   nn.RMSNorm `w:"c_norm"`
	Dt   nn.Linear  `w:"dt_proj"`
	Bias nn.Vec     `w:"dt_bias"`
	ALog nn.Vec     `w:"A_log"`
	D    nn.Vec     `w:"D"`
	Out  nn.Linear  `w:"out_proj"`
	spec B.SSM
}

// Bind runs when the weights are loaded.
func (m *plamo2Mamba) Bind() { m.spec.ALog, m.spec.DtBias, m.spec.D = m.ALog.W, m.Bias.W, m.D.W }

// Forward implements mixer.
func (m *plamo2Mamba) Forward(o B.Ops, x B.Array) B.Array {
	y := m.In.Forward(o, x)
	z := m.In.Part(o, y, 0)
	c := m.Conv.Forward(o, m.In.Part(o, y, 1))
	p := m.BCDt.Forward(o, c)
	dt := m.Dt.Forward(o, m.DtN.Forward(o, m.BCDt.Part(o, p, 2)))
	y = o.SSM(c, m.BN.Forward(o, m.BCDt.Part(o, p, 0)), m.CN.Forward(o, m.BCDt.Part(o, p, 1)), dt, &m.spec)
	return m.Out.Forward(o, o.Gate(z, y, &B.GLU{Act: B.SiLU}))
}

type plamo2Args struct {
	common
	Width   int  `json:"hidden_size_per_head"`
	State   int  `json:"mamba_d_state"`
	Kernel  int  `json:"mamba_d_conv"`
	MHeads  int  `json:"mamba_num_heads"`
	Step    int  `json:"mamba_step"`
	Enabled bool `json:"mamba_enabled"`
}

var plamo2Names = strings.NewReplacer("model.layers.layers.", "model.layers.", ".dt_norm_weight", ".dt_norm.weight", ".B_norm_weight", ".b_norm.weight",
	".C_norm_weight", ".c_norm.weight", ".q_weight", ".q_norm.weight", ".k_weight", ".k_norm.weight", ".pre_mixer_norm", ".input_layernorm",
	".post_mixer_norm", ".post_attention_layernorm", ".pre_mlp_norm", ".pre_feedforward_layernorm", ".post_mlp_norm", ".post_feedforward_layernorm")

// newPlamo2: of Step layers one attends; norms before and after both halves of a layer are stored less numbers of their own.
func newPlamo2(cfg *config, b *Build) (Generator, error) {
	tied := true
	a := plamo2Args{Width: 128, State: 64, Kernel: 4, MHeads: 64, Step: 2, Enabled: true}
	a.Tied, a.Eps = &tied, 1e-6
	cfg.into(&a)
	if a.HeadDim = a.Width; a.Step <= 1 {
		return nil, fmt.Errorf("mamba_step %d is out of range", a.Step)
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	s := mamba2Sizes{a.MHeads, a.Width, a.State, 1, a.Kernel, false, false, false, nil}
	if err := s.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Fixed: true})
	norm := func(less float64) *nn.RMSNorm {
		n := a.norm()
		n.Less = float32(less)
		return n
	}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		mlp := nn.NewGLUMLP(a.D, b.Local(a.FFN), B.SiLU)
		mlp.GateUp.Fused = true
		l := decoderLayer{MLP: &mlp, InNorm: norm(1), AttnNorm: norm(1. / 5), PreNorm: norm(1), MLPNorm: norm(1 / math.Pow(5, 1.5))}
		if a.attends(i) {
			t := gqa(b, &a.common, i, 0, rope)
			t.QKV.Fused = true
			t.QNorm = &nn.RMSNorm{N: t.Spec.Heads * a.Width, Flat: true, Spec: B.Norm{Eps: 1e-6, Width: a.Width}}
			t.KNorm = &nn.RMSNorm{N: t.Spec.KVHeads * a.Width, Flat: true, Spec: B.Norm{Eps: 1e-6, Width: a.Width}}
			l.Mixer = &t
		} else {
			l.Mixer = a.mamba(b, i, &s)
		}
		return l
	})
	m.Norm.Less, m.family = 1, plamo2Names
	return m, nil
}

func (a *plamo2Args) attends(i int) bool {
	switch {
	case !a.Enabled:
		return true
	case a.Layers <= a.Step/2:
		return i == a.Layers-1
	}
	return i%a.Step == a.Step/2
}

func (a *plamo2Args) mamba(b *Build, i int, s *mamba2Sizes) *plamo2Mamba {
	inner, rank := s.heads*s.width, max(64, a.D/16)
	norm := func(n int) nn.RMSNorm { return nn.RMS(n, float32(a.Eps)) }
	m := &plamo2Mamba{
		In: nn.Lin(a.D, inner, inner), BCDt: nn.Lin(inner, s.state, s.state, rank), Dt: nn.Lin(rank, s.heads), Out: nn.Lin(inner, a.D),
		Conv: nn.NewConv(inner, s.kernel, B.SiLU, b.Conv(i, inner, s.kernel)),
		DtN:  norm(rank), BN: norm(s.state), CN: norm(s.state),
		Bias: nn.Vec{N: s.heads}, ALog: nn.Vec{N: s.heads}, D: nn.Vec{N: s.heads},
		spec: B.SSM{State: b.Recurrent(i, s.heads, s.state, s.width), Heads: s.heads, Groups: 1, KDim: s.state, VDim: s.width, Min: 0.001, Max: 100},
	}
	m.In.Perm = [][]int32{interleave(s.heads, s.width, s.width)}
	m.BCDt.Least, m.Dt.Least = B.Float32, B.Float32 // what a decay is off by, all later rows see
	return m
}
