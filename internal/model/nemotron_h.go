package model

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
	"hearth/internal/regular"
)

func init() { register("nemotron_h", newNemotronH) }

// nemotronHArgs: Pattern has a letter per layer, or Blocks a word.
type nemotronHArgs struct {
	common
	Pattern  json.RawMessage `json:"hybrid_override_pattern"` // one string, or a list of letters
	Blocks   []string        `json:"layers_block_type"`
	Types    []string        `json:"layer_types"`
	LNEps    float           `json:"layer_norm_epsilon"`
	AttnBias bool            `json:"attention_bias"`
	MLPBias  bool            `json:"mlp_bias"`
	act      B.ActKind
	window   int // of a layer in nemotron_h_puzzle; 0: it sees everything

	MHeads   int     `json:"mamba_num_heads"`
	MWidth   int     `json:"mamba_head_dim"`
	MBias    bool    `json:"mamba_proj_bias"`
	State    int     `json:"ssm_state_size"`
	Kernel   int     `json:"conv_kernel"`
	MGroups  int     `json:"n_groups"`
	ConvBias bool    `json:"use_conv_bias"`
	Limits   []float `json:"time_step_limit"`
	Least    float   `json:"time_step_min"`

	Experts   int   `json:"n_routed_experts"`
	Shared    int   `json:"n_shared_experts"` // however many, they are as wide as SharedFFN
	TopK      int   `json:"num_experts_per_tok"`
	ExpFFN    int   `json:"moe_intermediate_size"`
	SharedFFN int   `json:"moe_shared_expert_intermediate_size"`
	Latent    int   `json:"moe_latent_size"` // columns that experts see; 0: all
	Groups    int   `json:"n_group"`
	TopGroups int   `json:"topk_group"`
	Renorm    bool  `json:"norm_topk_prob"`
	Scale     float `json:"routed_scaling_factor"`
}

// nemotronHNames: mlx-lm has the products of its experts under numbers.
var nemotronHNames = strings.NewReplacer(".switch_mlp.fc1", ".switch_mlp.up_proj", ".switch_mlp.fc2", ".switch_mlp.down_proj")

// newNemotronH: layers are Mamba 2, attention without positions, an MLP of two products with squared relu between, or experts
// of that kind.
func newNemotronH(cfg *config, b *Build) (Generator, error) {
	for key, older := range map[string]string{"n_groups": "mamba_n_groups", "conv_kernel": "mamba_d_conv", "time_step_limit": "mamba_dt_limit",
		"use_conv_bias": "mamba_conv_bias", "n_routed_experts": "num_local_experts", "head_dim": "attention_head_dim"} {
		cfg.also(key, older)
	}
	cfg.initial()
	cfg.is("mamba_hidden_act", `"silu"`, `"swish"`)
	// Nothing rotates, there is one way of norms, caches are float32, no layer outside of block_configs has a window,
	// and the shared expert's rows may wait for no others.
	cfg.harmless("rope_theta", "rope_parameters", "rope_scaling", "partial_rotary_factor", "norm_eps", "rms_norm_eps", "mamba_ssm_cache_dtype", "moe_shared_expert_overlap",
		"time_step_rank", "mamba_dt_min", "mamba_dt_max", "mamba_dt_init_floor", "num_logits_to_keep", "use_bias", "expand", "mamba_expand", "sliding_window")
	act := cfg.act("mlp_hidden_act", "relu2")
	a := nemotronHArgs{MHeads: 128, MWidth: 64, State: 128, Kernel: 4, MGroups: 8, ConvBias: true, LNEps: 1e-5, Least: 0.001, TopK: 2, Groups: 1, TopGroups: 1,
		Renorm: true, Scale: 1, act: act}
	cfg.into(&a)
	blocks, err := a.puzzle(cfg)
	if err != nil {
		return nil, err
	}
	kinds, err := a.kinds()
	if err != nil {
		return nil, err
	}
	layers, err := a.layers(cfg, blocks, kinds)
	if err != nil {
		return nil, err
	}
	m := newStack(&a.common, b, float32(a.Eps), func(i int) mixer {
		a := layers[i]
		switch kinds[i] {
		case 'M':
			s := a.mamba()
			l := s.layer(b, i, a.D)
			l.Norm = s.norm(float32(a.Eps))
			return l
		case '*':
			t := gqa(b, &a.common, i, a.window, nil)
			t.QKV.Bias, t.O.Bias = a.AttnBias, a.AttnBias
			return &t
		case '-':
			return a.mlp(b, a.FFN)
		}
		return a.moe(b)
	})
	m.Head.Tied, m.family = nn.TieNever, nemotronHNames // whatever tie_word_embeddings says
	m.look = func(shape func(name string) []int) { m.lookNemotron(shape, float32(a.Least)) }
	if blocks != nil {
		m.family = puzzleNames
	}
	return m, nil
}

// lookNemotron: Hugging Face's attention has no biases, whatever attention_bias says, its other layers have them by
// use_bias, and its steps are at least time_step_min, whatever time_step_limit says. Conversions are as the config
// says.
func (m *stack) lookNemotron(shape func(name string) []int, least float32) {
	for i := range m.Layers {
		path := fmt.Sprintf("backbone.layers.%d.mixer.", i)
		switch x := m.Layers[i].Mixer.(type) {
		case *nn.Attention:
			if shape(path+"q_proj.weight") != nil && shape(path+"q_proj.bias") == nil {
				x.QKV.Bias, x.O.Bias = false, false
			}
		case *nn.Mamba2:
			if asPublished(shape(path + "conv1d.weight")) {
				x.Spec.Min, x.Spec.Max = least, float32(math.Inf(1))
				x.In.Bias, x.Out.Bias = shape(path+"in_proj.bias") != nil, shape(path+"out_proj.bias") != nil
			}
		}
	}
}

func (a *nemotronHArgs) mamba() *mamba2Sizes {
	return &mamba2Sizes{a.MHeads, a.MWidth, a.State, a.MGroups, a.Kernel, a.MBias, a.ConvBias, a.MBias, a.Limits}
}

func (a *nemotronHArgs) mlp(b *Build, ffn int) *nn.MLP {
	m := nn.NewMLP(a.D, b.Local(ffn), a.act)
	m.Up.Bias, m.Down.Bias = a.MLPBias, a.MLPBias
	return m
}

func (a *nemotronHArgs) moe(b *Build) *nn.PlainMoE {
	in := a.D
	if a.Latent != 0 {
		in = a.Latent
	}
	m := nn.NewPlainMoE(a.D, in, b.Local(a.ExpFFN), a.Experts, &B.Activation{Kind: a.act},
		B.Router{Score: B.Sigmoid, K: a.TopK, Groups: a.Groups, TopGroups: a.TopGroups, Renorm: a.Renorm, Scale: float32(a.Scale)})
	if a.Latent != 0 {
		to, from := nn.Lin(a.D, in), nn.Lin(in, a.D)
		to.Bias, from.Bias = a.MLPBias, a.MLPBias
		m.To, m.From = &to, &from
	}
	if a.SharedFFN > 0 {
		m.Shared = a.mlp(b, a.SharedFFN)
	}
	return m
}

// kinds has a letter per layer: M, *, - or E.
func (a *nemotronHArgs) kinds() (string, error) {
	var kinds string
	var list []string
	if a.Blocks == nil && given(a.Pattern) && json.Unmarshal(a.Pattern, &kinds) != nil {
		if err := json.Unmarshal(a.Pattern, &list); err != nil {
			return "", fmt.Errorf("hybrid_override_pattern is neither a string nor a list of them")
		}
		kinds = strings.Join(list, "")
	}
	if kinds == "" {
		var letters strings.Builder
		words := map[string]string{"full_attention": "*", "attention": "*", "linear_attention": "M", "mamba": "M", "conv": "M", "moe": "E", "mlp": "-"}
		if list = a.Blocks; list == nil {
			list = a.Types
		}
		for i, t := range list {
			if words[t] == "" {
				return "", fmt.Errorf("layer %d is of the unknown type %s", i, regular.Quote(t))
			}
			letters.WriteString(words[t])
		}
		kinds = letters.String()
	}
	if at := strings.IndexFunc(kinds, func(r rune) bool { return !strings.ContainsRune("M*-E", r) }); at >= 0 || kinds == "" {
		return "", fmt.Errorf("hybrid_override_pattern %s has to be letters M, *, - and E", regular.Quote(kinds))
	}
	a.Layers = len(kinds)
	return kinds, nil
}

func (a *nemotronHArgs) check(kinds string) error {
	a.Eps = a.LNEps
	if err := checkEps("layer_norm_epsilon", a.Eps); err != nil {
		return err
	}
	if a.FFN == 0 && !strings.Contains(kinds, "-") {
		a.FFN = 1 // no layer has it
	}
	if !strings.Contains(kinds, "E") {
		return a.common.check()
	}
	if err := checkExperts("n_routed_experts", a.Experts, "num_experts_per_tok", a.TopK); err != nil {
		return err
	}
	switch {
	case a.ExpFFN <= 0 || a.ExpFFN > maxSize || a.Latent < 0 || a.Latent > maxSize:
		return fmt.Errorf("moe_intermediate_size %d or moe_latent_size %d is missing or out of range", a.ExpFFN, a.Latent)
	case a.Shared > 0 && (a.SharedFFN <= 0 || a.SharedFFN > maxSize):
		return fmt.Errorf("moe_shared_expert_intermediate_size %d is missing or out of range", a.SharedFFN)
	case !(a.Scale > 0 && a.Scale < 1e6):
		return fmt.Errorf("routed_scaling_factor %g is out of range", float64(a.Scale))
	case !groupsFit(a.Groups, a.TopGroups, a.Experts):
		return fmt.Errorf("n_group %d and topk_group %d do not fit %d experts", a.Groups, a.TopGroups, a.Experts)
	case a.Experts/a.Groups*a.TopGroups < a.TopK:
		return fmt.Errorf("topk_group %d of n_group %d leaves %d experts, num_experts_per_tok is %d", a.TopGroups, a.Groups, a.Experts/a.Groups*a.TopGroups, a.TopK)
	}
	return a.common.check()
}
