package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
	"hearth/internal/regular"
)

func init() { register("granitemoehybrid", newGraniteHybrid) }

type graniteHybridArgs struct {
	graniteArgs
	Kinds     []string `json:"layer_types"`
	Position  string   `json:"position_embedding_type"`
	Experts   int      `json:"num_local_experts"`
	TopK      int      `json:"num_experts_per_tok"`
	SharedFFN int      `json:"shared_intermediate_size"`

	MHeads   int     `json:"mamba_n_heads"`
	MWidth   autoInt `json:"mamba_d_head"`
	Expand   int     `json:"mamba_expand"`
	MBias    bool    `json:"mamba_proj_bias"`
	State    int     `json:"mamba_d_state"`
	Kernel   int     `json:"mamba_d_conv"`
	MGroups  int     `json:"mamba_n_groups"`
	ConvBias bool    `json:"mamba_conv_bias"`
	Limits   []float `json:"time_step_limit"`
}

// newGraniteHybrid is granite with Mamba 2 layers among those that attend, and where there are experts one that sees every row.
func newGraniteHybrid(cfg *config, b *Build) (Generator, error) {
	cfg.also("num_local_experts", "num_experts")
	cfg.also("layer_types", "layers_block_type")
	a := graniteHybridArgs{TopK: 2, MHeads: 128, State: 256, Kernel: 4, Expand: 2, MGroups: 1, ConvBias: true}
	cfg.into(&a)
	if err := a.check(); err != nil {
		return nil, err
	}
	if a.MWidth == 0 && a.MHeads > 0 {
		a.MWidth = autoInt(a.Expand * a.D / a.MHeads)
	}
	s := mamba2Sizes{a.MHeads, int(a.MWidth), a.State, a.MGroups, a.Kernel, a.MBias, a.ConvBias, a.MBias, a.Limits}
	if slices.Contains(a.Kinds, "mamba") {
		if err := s.expand(cfg, "mamba_expand", a.D); err != nil {
			return nil, err
		}
	}
	var rope *B.Rope
	if a.Position == "rope" {
		rope = cfg.rope(rotation{Head: a.HeadDim, Base: 10000, Fixed: true})
	} else {
		cfg.harmless("rope_parameters", "rope_theta", "rope_scaling") // no layer knows positions
	}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		var l decoderLayer
		switch a.Kinds[i] {
		case "attention":
			l = a.layer(b, i, rope)
			l.Attn.Spec.Scale = float32(a.Attention)
		default:
			if err := s.check(); err != nil {
				cfg.fail(err)
				return l
			}
			l = preNorm(&a.common, b, nn.Attention{})
			l.MLP.GateUp.Bias, l.MLP.Down.Bias = a.MLPBias, a.MLPBias
			x := s.layer(b, i, a.D)
			x.Norm, l.Attn, l.Mixer = s.norm(float32(a.Eps)), nil, x
		}
		if a.Experts == 0 {
			return l
		}
		moe := nn.NewMoE(a.D, b.Local(a.FFN), a.Experts, B.Router{Score: B.SoftmaxSelected, K: a.TopK}, &B.GLU{Act: B.SiLU})
		shared := nn.NewGLUMLP(a.D, b.Local(a.SharedFFN), B.SiLU)
		shared.GateUp.Fused, moe.Shared = true, &shared
		return l.routed(&moe)
	})
	m.family, m.look = graniteHybridNames[a.Experts > 0], m.lookGranite
	a.multiply(m)
	return m, nil
}

// graniteHybridNames are those with experts and without. In the latter Hugging Face has gate and up in one tensor.
var graniteHybridNames = map[bool]*strings.Replacer{
	true: strings.NewReplacer(".block_sparse_moe.router.layer", ".mlp.gate", ".block_sparse_moe.input_linear", ".mlp.switch_mlp.gate_up_proj",
		".block_sparse_moe.output_linear", ".mlp.switch_mlp.down_proj", ".block_sparse_moe.", ".mlp.",
		".shared_mlp.input_linear", ".mlp.shared_experts.gate_up_proj", ".shared_mlp.output_linear", ".mlp.shared_experts.down_proj", ".mamba.", ".mixer."),
	false: strings.NewReplacer(".shared_mlp.input_linear", ".mlp.gate_up_proj", ".shared_mlp.output_linear", ".mlp.down_proj", ".mamba.", ".mixer."),
}

func (m *decoder) lookGranite(shape func(name string) []int) {
	for i := range m.Layers {
		if l := &m.Layers[i]; l.MLP != nil {
			l.MLP.GateUp.Fused = shape(fmt.Sprintf("model.layers.%d.mlp.gate_up_proj.weight", i)) != nil
		}
	}
}

func (a *graniteHybridArgs) check() error {
	a.HeadDim, a.odd = 0, a.Position != "rope" // always a share of the width
	if err := a.graniteArgs.check(); err != nil {
		return err
	}
	if a.Kinds == nil {
		a.Kinds = slices.Repeat([]string{"mamba"}, a.Layers)
	}
	if len(a.Kinds) != a.Layers {
		return fmt.Errorf("layer_types has %d entries for %d layers", len(a.Kinds), a.Layers)
	}
	for i, k := range a.Kinds {
		switch k {
		case full:
			a.Kinds[i] = "attention"
		case linear:
			a.Kinds[i] = "mamba"
		case "attention", "mamba":
		default:
			return fmt.Errorf("layer_types[%d] is %s; full_attention, or attention, and linear_attention, or mamba, are known", i, regular.Quote(k))
		}
	}
	if a.Experts == 0 {
		a.FFN = cmp.Or(a.SharedFFN, a.FFN) // the one MLP is the shared one
		return a.common.check()
	}
	if a.SharedFFN <= 0 || a.SharedFFN > maxSize {
		return fmt.Errorf("shared_intermediate_size %d is missing or out of range", a.SharedFFN)
	}
	return checkExperts("num_local_experts", a.Experts, "num_experts_per_tok", a.TopK)
}
