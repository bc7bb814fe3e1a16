package model

import (
	"fmt"
	"slices"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("ernie4_5_moe", newErnieMoE) }

type ernieMoEArgs struct {
	ernieArgs
	Experts  int    `json:"moe_num_experts"`
	TopK     int    `json:"moe_k"`
	ExpFFN   int    `json:"moe_intermediate_size"`
	Shared   int    `json:"moe_num_shared_experts"`
	Interval int    `json:"moe_layer_interval"`
	First    ints   `json:"moe_layer_start_index"`
	Last     ints   `json:"moe_layer_end_index"`
	Gate     string `json:"moe_gate_act"`
	Floor    float  `json:"moe_norm_min"` // of the sum of the picked weights
}

// newErnieMoE is ernie4_5 with experts in some of its layers.
func newErnieMoE(cfg *config, b *Build) (Generator, error) {
	a := ernieMoEArgs{TopK: 6, Interval: 1, Gate: "softmax"}
	cfg.into(&a)
	cfg.is("moe_gate_act", `"softmax"`, `"sigmoid"`)
	// How many rows an expert took in training, and the losses there; whether a bias corrects the choice, the folder says.
	cfg.harmless("moe_capacity", "moe_use_aux_free", "moe_aux_loss_lambda", "moe_orthogonal_loss_lambda", "moe_z_loss_lambda", "moe_group_orthogonal_loss", "global_aux_loss")
	if err := a.check(); err != nil {
		return nil, err
	}
	layer := a.layers(cfg, b)
	router := B.Router{Score: B.Softmax, K: a.TopK, Renorm: true}
	if a.Gate == "sigmoid" {
		router.Score = B.Sigmoid
	}
	silu := &B.GLU{Act: B.SiLU}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		l := layer(i)
		if (i+1)%a.Interval != 0 || i < a.First[0] || i > a.Last[0] {
			return l
		}
		moe := nn.NewMoE(a.D, b.Local(a.ExpFFN), a.Experts, router, silu)
		moe.Up.Bias, moe.Down.Bias = a.Bias, a.Bias
		if a.Shared > 0 {
			shared := nn.NewGLUMLP(a.D, b.Local(a.ExpFFN*a.Shared), B.SiLU)
			shared.GateUp.Bias, shared.Down.Bias = a.Bias, a.Bias
			moe.Shared = &shared
		}
		return l.routed(&moe)
	})
	// Conversions to MLX leave out the bias that balanced the experts in training, which corrects their choice. Only they have
	// biases in experts.
	m.look = func(shape func(name string) []int) {
		for i := range m.Layers {
			moe, path := m.Layers[i].MoE, fmt.Sprintf("model.layers.%d.mlp.", i)
			if moe == nil {
				continue
			}
			if shape(path+"gate.e_score_correction_bias") != nil {
				moe.Bias = &nn.Vec{N: a.Experts, Flat: true}
			}
			if shape(path+"experts.0.down_proj.weight") != nil || shape(path+"switch_mlp.down_proj.weight") != nil {
				moe.Up.Bias, moe.Down.Bias = false, false
			}
		}
	}
	m.family = ernieMoENames
	m.drop = []string{"mtp_block.", "mtp_linear_proj.", "mtp_hidden_norm.", "mtp_emb_norm."} // layers that predict further tokens
	m.gate(cfg)
	return m, nil
}

var ernieMoENames = strings.NewReplacer(".gate.moe_statics.", ".gate.", ".moe_statics.", ".gate.")

func (a *ernieMoEArgs) check() error {
	if err := checkExperts("moe_num_experts", a.Experts, "moe_k", a.TopK); err != nil {
		return err
	}
	if a.ExpFFN == 0 {
		a.ExpFFN = a.FFN
	}
	if len(a.First) == 0 {
		a.First = ints{1}
	}
	if len(a.Last) == 0 || len(a.Last) == 1 && a.Last[0] == -1 {
		a.Last = ints{a.Layers - 1}
	}
	a.First[0], a.Last[0] = slices.Min(a.First), slices.Max(a.Last)
	switch {
	case a.ExpFFN <= 0 || a.ExpFFN > maxSize || a.Shared < 0 || a.Shared > 64:
		return fmt.Errorf("moe_intermediate_size %d or moe_num_shared_experts %d is missing or out of range", a.ExpFFN, a.Shared)
	case a.Interval <= 0:
		return fmt.Errorf("moe_layer_interval %d is out of range", a.Interval)
	case !(a.Floor <= 1e-3):
		return fmt.Errorf("moe_norm_min %g is not supported: only a floor far below what picked weights add up to changes nothing", float64(a.Floor))
	}
	return a.common.check()
}
