package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("mamba", newMamba) }

// mambaSizes are those of a Mamba layer; families have different keys for them.
type mambaSizes struct {
	inner, state, kernel, rank int
	bias, convBias             bool
}

// stepRank reads how many columns the steps are made of; "auto", or nothing, is a share of the width.
func stepRank(raw json.RawMessage, d int) (n int, err error) {
	if bytes.Equal(raw, []byte(`"auto"`)) || !given(raw) {
		return (d + 15) / 16, nil
	}
	if err := json.Unmarshal(raw, &n); err != nil {
		return 0, fmt.Errorf("the rank of steps is neither a number nor auto")
	}
	return n, nil
}

func (s *mambaSizes) check() error {
	for _, f := range []struct {
		key string
		n   int
		max int
	}{
		{"columns", s.inner, maxSize}, {"columns of a state", s.state, 1 << 12}, {"rank of steps", s.rank, maxSize},
	} {
		if f.n <= 0 || f.n > f.max {
			return fmt.Errorf("mamba layers: %s %d is missing or out of range", f.key, f.n)
		}
	}
	if s.kernel < 2 || s.kernel > 64 {
		return fmt.Errorf("mamba layers: a convolution (conv_kernel or mamba_d_conv) of %d taps is out of range", s.kernel)
	}
	return nil
}

// layer declares layer i of width d. It is the same on every rank.
func (s *mambaSizes) layer(b *Build, i, d int) *nn.Mamba {
	m := &nn.Mamba{
		In: nn.Lin(d, s.inner, s.inner), X: nn.Lin(s.inner, s.rank, s.state, s.state), Dt: nn.Lin(s.rank, s.inner), Out: nn.Lin(s.inner, d),
		Conv: nn.NewConv(s.inner, s.kernel, B.SiLU, b.Conv(i, s.inner, s.kernel)),
		ALog: nn.Vec{N: s.inner * s.state, Flat: true}, D: nn.Vec{N: s.inner},
		Spec: B.SSM{State: b.Driven(i, 1, s.state, s.inner, s.inner), Heads: 1, Groups: 1, KDim: s.state, VDim: s.inner, PerColumn: true},
	}
	m.In.Bias, m.Out.Bias, m.Conv.HasBias, m.Dt.Bias = s.bias, s.bias, s.convBias, true
	m.X.Least, m.Dt.Least = B.Float32, B.Float32 // what a decay is off by, all later rows see
	return m
}

// checkEps refuses an epsilon that is out of range; key is its name in the config.
func checkEps(key string, eps float) error {
	if !(eps > 0 && eps < 1) {
		return fmt.Errorf("%s %g is out of range", key, float64(eps))
	}
	return nil
}

// initial marks the keys that say how steps began in training as harmless: the weights hold what became of them.
func (c *config) initial() {
	c.harmless("time_step_min", "time_step_max", "time_step_scale")
}

// newMamba: nothing but Mamba layers. Those of falcon_mamba normalise what steps, b and c come from, without weights.
func newMamba(cfg *config, b *Build) (Generator, error) {
	tied := true
	a := struct {
		common
		Type     string          `json:"model_type"`
		State    int             `json:"state_size"`
		Kernel   int             `json:"conv_kernel"`
		Bias     bool            `json:"use_bias"`
		ConvBias bool            `json:"use_conv_bias"`
		Rank     json.RawMessage `json:"time_step_rank"`
		Norms    bool            `json:"use_bcdt_rms"`
		NormEps  float           `json:"mixer_rms_eps"`
		LNEps    float           `json:"layer_norm_epsilon"`
		Expand   float           `json:"expand"`
	}{NormEps: 1e-6, LNEps: 1e-5, State: 16, Kernel: 4, ConvBias: true, Expand: 2}
	a.Tied = &tied
	cfg.initial()
	for key, other := range map[string]string{"hidden_size": "d_model", "intermediate_size": "d_inner", "num_hidden_layers": "n_layer", "state_size": "d_state",
		"conv_kernel": "d_conv", "use_bias": "bias", "use_conv_bias": "conv_bias"} {
		cfg.also(key, other)
	}
	cfg.is("rms_norm", "true")
	cfg.is("ssm_cfg", "{}")
	cfg.harmless("fused_add_norm", "pad_vocab_size_multiple", "use_falcon_mambapy") // change no number
	cfg.into(&a)
	rank, err := stepRank(a.Rank, a.D)
	if err != nil {
		return nil, err
	}
	if a.FFN == 0 {
		a.FFN = int(float64(a.Expand) * float64(a.D))
	}
	s := mambaSizes{a.FFN, a.State, a.Kernel, rank, a.Bias, a.ConvBias}
	a.Heads, a.KVHeads, a.HeadDim, a.Eps = 1, 1, 2, a.LNEps // nothing attends
	if err := cmp.Or(checkEps("layer_norm_epsilon", a.Eps), checkEps("mixer_rms_eps", a.NormEps)); err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	norm := func(n int) *nn.RMSNorm {
		return &nn.RMSNorm{N: n, Unit: true, Spec: B.Norm{Eps: float32(a.NormEps)}}
	}
	return newStack(&a.common, b, float32(a.Eps), func(i int) mixer {
		l := s.layer(b, i, a.D)
		if a.Norms || a.Type == "falcon_mamba" {
			l.DtN, l.BN, l.CN = norm(s.rank), norm(s.state), norm(s.state)
		}
		return l
	}), nil
}
