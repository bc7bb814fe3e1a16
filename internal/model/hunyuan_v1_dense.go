package model

import (
	"fmt"
	"math"
	"strings"

	"hearth/internal/nn"
)

func init() { register("hunyuan_v1_dense", newHunyuan) }

// newHunyuan is llama whose queries and keys are normalised per head after the rotation, which a factor stretches.
func newHunyuan(cfg *config, b *Build) (Generator, error) {
	var a struct {
		llamaArgs
		Norm bool `json:"use_qk_norm"`
	}
	a.Norm = true
	cfg.into(&a)
	cfg.is("norm_type", `"rms"`)
	cfg.is("add_classification_head", "false")
	cfg.harmless("cla_share_factor", "attention_head_dim", "class_num", "dense_list", "pool_type", "org_vocab_size",
		"skip_cls_token") // of layers that share keys and values, and of heads that classify
	a.Types = nil // the family has no windows
	if err := a.check(); err != nil {
		return nil, err
	}
	ra, err := cfg.ropeArgs(rotation{Head: a.HeadDim, Base: 10000, Fixed: true})
	if err != nil {
		return nil, err
	}
	if ra.Alpha != 0 {
		if !(ra.Alpha > 0 && ra.Alpha < 1e6) || a.HeadDim <= 2 {
			return nil, fmt.Errorf("rope_parameters.alpha %g with heads of %d is out of range", ra.Alpha, a.HeadDim)
		}
		ra.Theta *= math.Pow(ra.Alpha, float64(a.HeadDim)/float64(a.HeadDim-2))
	}
	rope, err := nn.NewRope(a.HeadDim, ra)
	if err != nil {
		return nil, err
	}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		l := preNorm(&a.common, b, gqa(b, &a.common, i, 0, rope))
		l.Attn.QKV.Bias, l.Attn.O.Bias = a.AttnBias, a.AttnBias
		l.Attn.RotateFirst = true
		return l
	})
	m.family = layerNormNames
	m.look = func(shape func(name string) []int) {
		if !a.Norm && shape("model.layers.0.self_attn.q_norm.weight") == nil {
			return // a folder that has norms has them whatever the config says
		}
		for i := range m.Layers {
			t := m.Layers[i].Attn
			t.QNorm, t.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
		}
	}
	return m, nil
}

// layerNormNames: norms of queries and keys that are spelled out.
var layerNormNames = strings.NewReplacer(".query_layernorm", ".q_norm", ".key_layernorm", ".k_norm")
