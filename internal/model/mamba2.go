package model

import (
	"encoding/json"
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
		return fmt.Errorf("mamba layers: a convolution (conv_kernel or mamba_d_conv) of %d taps is out of range", s.kernel)
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

// norm is that of every group of the result, behind its gate.
func (s *mamba2Sizes) norm(eps float32) *nn.RMSNorm {
	return &nn.RMSNorm{N: s.heads * s.width, Spec: B.Norm{Eps: eps, Width: s.heads * s.width / s.groups}}
}

// stack is a model whose layers are a norm and one of several kinds of mixers, added to the input.
type stack struct {
	declared
	free   int                                 // from this layer on none keeps a state
	family *strings.Replacer                   // as in decoder
	look   func(shape func(name string) []int) // as in inspector; nil: none
	Embed  nn.Embedding                        `w:"backbone.embeddings"`
	Layers []stackLayer                        `w:"backbone.layers"`
	Norm   nn.RMSNorm                          `w:"backbone.norm_f"`
	Head   nn.Linear                           `w:"lm_head,tied=Embed"`
}

type stackLayer struct {
	Norm  nn.RMSNorm `w:"norm"`
	Mixer mixer      `w:"mixer"`
}

// newStack declares the parts common to all. normEps is that of the layers' norms.
func newStack(a *common, b *Build, normEps float32, layer func(i int) mixer) *stack {
	m := &stack{Embed: nn.Embedding{Vocab: a.Vocab, Dim: a.D}, Norm: *a.norm(), Head: nn.Lin(a.D, a.Vocab)}
	m.Head.Tied = a.tie()
	for i := range a.Layers {
		before := len(b.states)
		m.Layers = append(m.Layers, stackLayer{nn.RMS(a.D, normEps), layer(i)})
		if len(b.states) > before {
			m.free = i + 1
		}
	}
	m.declared = b.declared(a)
	return m
}

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

// Inspect implements inspector.
func (m *stack) Inspect(shape func(name string) []int) {
	if m.look != nil {
		m.look(shape)
	}
}

// asPublished reports taps of a convolution as they were trained, [C, 1, K]; conversions to MLX turn them.
func asPublished(taps []int) bool { return len(taps) == 3 && taps[1] == 1 && taps[2] != 1 }

// autoInt is a number, or the word auto, which is 0.
type autoInt int

// UnmarshalJSON implements json.Unmarshaler.
func (n *autoInt) UnmarshalJSON(b []byte) error {
	if *n = 0; string(b) == `"auto"` {
		return nil
	}
	return json.Unmarshal(b, (*int)(n))
}

// expand checks a key that says the columns of a Mamba layer once more, as a multiple of the width d.
func (s *mamba2Sizes) expand(cfg *config, key string, d int) error {
	times, err := cfg.number(key)
	if err != nil || times == nil || int(*times*float64(d)) == s.heads*s.width {
		return err
	}
	return fmt.Errorf("%s %g times hidden_size %d is not %d heads of %d columns", key, *times, d, s.heads, s.width)
}

// Rename drops the layers that predict further tokens. transformers can save the names that it has in memory: a
// model, not a backbone.
func (m *stack) Rename(name string) string {
	if strings.HasPrefix(name, "mtp.") {
		return ""
	}
	if rest, ok := strings.CutPrefix(name, "model."); ok {
		name = "backbone." + rest
	}
	name = fusedExperts(name)
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
	}{Width: 64, State: 128, NHeads: 128, NGroups: 8, Kernel: 4, ConvBias: true, LNEps: 1e-5}
	cfg.initial()
	cfg.is("rms_norm", "true")
	cfg.harmless("time_step_rank", "norm_before_gate") // the same whatever they say
	cfg.into(&a)
	if a.SSMState == 0 {
		a.SSMState = a.State
	}
	s := mamba2Sizes{a.NHeads, a.Width, a.SSMState, a.NGroups, a.Kernel, a.Bias, a.ConvBias, a.Bias, a.Limits}
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := s.expand(cfg, "expand", a.D); err != nil {
		return nil, err
	}
	a.Heads, a.KVHeads, a.HeadDim, a.FFN, a.Eps = 1, 1, 2, 1, a.LNEps // nothing attends
	if err := checkEps("layer_norm_epsilon", a.Eps); err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	m := newStack(&a.common, b, float32(a.Eps), func(i int) mixer {
		l := s.layer(b, i, a.D)
		l.Norm = s.norm(float32(a.Eps))
		return l
	})
	m.look = func(shape func(name string) []int) {
		for i := range m.Layers {
			if !asPublished(shape(fmt.Sprintf("backbone.layers.%d.mixer.conv1d.weight", i))) {
				m.Layers[i].Mixer.(*nn.Mamba2).Norm.Spec.Width = 0 // mlx-lm, which converted it, knows no groups there
			}
		}
	}
	return m, nil
}
