package model

import (
	"fmt"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("mamba2", newMamba2) }

// mamba2Sizes are those of a Mamba 2 layer; families have different keys for them.
type mamba2Sizes struct {
	heads, width, state, groups, kernel int
	inBias, convBias, outBias           bool
	limits                              []float // of steps, low and high; the latter may be infinite
}

func (s *mamba2Sizes) check() error {
	for _, f := range []struct {
		key string
		n   int
		max int
	}{
		{"heads", s.heads, 1 << 12}, {"columns of a head", s.width, 1 << 12}, {"columns of a state", s.state, 1 << 12}, {"groups", s.groups, 1 << 12},
	} {
		if f.n <= 0 || f.n > f.max {
			return fmt.Errorf("mamba layers: %s %d is missing or out of range", f.key, f.n)
		}
	}
	switch {
	case s.heads%s.groups != 0:
		return fmt.Errorf("mamba layers: %d heads are no multiple of %d groups", s.heads, s.groups)
	case s.kernel < 2 || s.kernel > 64:
		return fmt.Errorf("mamba layers: a convolution of %d taps is out of range", s.kernel)
	case len(s.limits) != 0 && (len(s.limits) != 2 || !(s.limits[0] >= 0 && s.limits[1] > s.limits[0])):
		return fmt.Errorf("time_step_limit %v is not two numbers, the lower first", s.limits)
	}
	return nil
}

// layer declares layer i of width d. It is the same on every rank.
func (s *mamba2Sizes) layer(b *Build, i, d int) *nn.Mamba2 {
	inner, keys := s.heads*s.width, s.groups*s.state
	conv := inner + 2*keys
	m := &nn.Mamba2{
		In: nn.Lin(d, inner, conv, s.heads), Out: nn.Lin(inner, d),
		Conv: nn.NewConv(conv, s.kernel, B.SiLU, b.Conv(i, conv, s.kernel)),
		ALog: nn.Vec{N: s.heads}, Dt: nn.Vec{N: s.heads}, D: nn.Vec{N: s.heads},
		Spec: B.SSM{State: b.Recurrent(i, s.heads, s.state, s.width), Heads: s.heads, Groups: s.groups, KDim: s.state, VDim: s.width},
	}
	m.In.Bias, m.Conv.HasBias, m.Out.Bias = s.inBias, s.convBias, s.outBias
	if len(s.limits) == 2 {
		m.Spec.Min, m.Spec.Max = float32(s.limits[0]), float32(s.limits[1])
	}
	return m
}

// stack is a model whose layers are a norm and one of several kinds of mixers, added to the input.
type stack struct {
	states         []B.StateSpec
	vocab, context int
	free           int               // from this layer on none keeps a state
	family         *strings.Replacer // as in decoder
	Embed          nn.Embedding      `w:"backbone.embeddings"`
	Layers         []stackLayer      `w:"backbone.layers"`
	Norm           nn.RMSNorm        `w:"backbone.norm_f"`
	Head           nn.Linear         `w:"lm_head,tied=Embed"`
}

type stackLayer struct {
	Norm  nn.RMSNorm `w:"norm"`
	Mixer mixer      `w:"mixer"`
}

// newStack declares the parts common to all. normEps is that of the layers' norms.
func newStack(a *common, b *Build, normEps float32, layer func(i int) mixer) *stack {
	m := &stack{vocab: a.Vocab, context: a.MaxPos, Embed: nn.Embedding{Vocab: a.Vocab, Dim: a.D}, Norm: *a.norm(), Head: nn.Lin(a.D, a.Vocab)}
	m.Head.Tied = a.tie()
	for i := range a.Layers {
		before := len(b.states)
		m.Layers = append(m.Layers, stackLayer{nn.RMS(a.D, normEps), layer(i)})
		if len(b.states) > before {
			m.free = i + 1
		}
	}
	m.states = b.states
	return m
}

// Sizes implements Generator.
func (m *stack) Sizes() (vocab, context int) { return m.vocab, m.context }

// States implements Model.
func (m *stack) States() []B.StateSpec { return m.states }

// Forward implements Model.
func (m *stack) Forward(o B.Ops, b *B.Batch) B.Array {
	h := m.Embed.Tokens(o, b)
	for i := range m.Layers {
		if i == m.free {
			h = nn.Outputs(o, b, h) // the last layers only run for wanted rows
		}
		l := &m.Layers[i]
		h = o.Add(h, l.Mixer.Forward(o, l.Norm.Forward(o, h)))
		o.Sweep(h)
	}
	if m.free == len(m.Layers) {
		h = nn.Outputs(o, b, h)
	}
	return m.Norm.Forward(o, h)
}

// Logits implements Generator.
func (m *stack) Logits(o B.Ops, h B.Array) B.Array { return m.Head.Forward(o, h) }

// Rename drops the layers that predict further tokens.
func (m *stack) Rename(name string) string {
	if strings.HasPrefix(name, "mtp.") {
		return ""
	}
	if m.family != nil {
		name = m.family.Replace(name)
	}
	return name
}

// newMamba2: nothing but Mamba 2 layers.
func newMamba2(cfg *config, b *Build) (Generator, error) {
	a := struct {
		common
		Width    int     `json:"head_dim"`
		State    int     `json:"state_size"`
		SSMState int     `json:"ssm_state_size"`
		NHeads   int     `json:"num_heads"`
		NGroups  int     `json:"n_groups"`
		Kernel   int     `json:"conv_kernel"`
		Bias     bool    `json:"use_bias"`
		ConvBias bool    `json:"use_conv_bias"`
		LNEps    float   `json:"layer_norm_epsilon"`
		Limits   []float `json:"time_step_limit"`
	}{}
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	if a.SSMState == 0 {
		a.SSMState = a.State
	}
	s := mamba2Sizes{a.NHeads, a.Width, a.SSMState, a.NGroups, a.Kernel, a.Bias, a.ConvBias, a.Bias, a.Limits}
	if err := s.check(); err != nil {
		return nil, err
	}
	a.Heads, a.KVHeads, a.HeadDim, a.FFN, a.Eps = 1, 1, 2, 1, a.LNEps // nothing attends
	if err := a.check(); err != nil {
		return nil, err
	}
	m := newStack(&a.common, b, 1e-5, func(i int) mixer {
		l := s.layer(b, i, a.D)
		n := nn.RMS(s.heads*s.width, float32(a.Eps))
		l.Norm = &n
		return l
	})
	return m, nil
}
