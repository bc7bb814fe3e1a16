package model

import (
	"fmt"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("gpt_oss", newGptOss) }

type gptOssArgs struct {
	common
	windows
	Experts int   `json:"num_local_experts"`
	TopK    int   `json:"num_experts_per_tok"`
	Limit   float `json:"swiglu_limit"`
	Alpha   float `json:"swiglu_alpha"` // of the sigmoid's argument
	Bias    bool  `json:"attention_bias"`
}

// gptOssNames are what the family calls its router and experts, and what the folders that OpenAI published call the parts of
// quantised experts.
var gptOssNames = strings.NewReplacer(
	".mlp.router.", ".mlp.gate.", ".mlp.experts.", ".mlp.switch_mlp.",
	"_proj_blocks", "_proj.weight", "_proj_scales", "_proj.scales", "_proj_bias", "_proj.bias")

// newGptOss: every second layer has a window, every head a sink, every projection a bias, every MLP experts.
func newGptOss(cfg *config, b *Build) (Generator, error) {
	cfg.also("num_local_experts", "num_experts")
	cfg.also("num_experts_per_tok", "experts_per_token")
	a := gptOssArgs{common: common{HeadDim: 64, Eps: 1e-5}, Limit: 7, TopK: 4, Bias: true}
	a.Window = 128
	cfg.into(&a)
	cfg.harmless("initial_context_length") // the rotation's original_max_position_embeddings counts
	cfg.is("swiglu_alpha", "1.702", "1.0", "1")
	cfg.harmless("hidden_act") // experts have their own, whatever it says
	cfg.ropeless(`{"rope_type": "yarn", "factor": 32, "beta_fast": 32, "beta_slow": 1, "truncate": false, "original_max_position_embeddings": 4096}`)
	if a.Types == nil {
		for i := range min(max(a.Layers, 0), maxLayers) {
			a.Types = append(a.Types, []string{slides, full}[i%2])
		}
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 150000, Fixed: true})
	glu := &B.GLU{Act: B.QuickGelu, Limit: float32(a.Limit), UpPlus1: true}
	if a.Alpha == 1 {
		glu.Act = B.SiLU
	}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		t := gqa(b, &a.common, i, a.window(i), rope)
		t.QKV.Bias, t.O.Bias = a.Bias, a.Bias
		t.Sinks = &nn.Vec{N: t.Spec.Heads}
		moe := nn.NewMoE(a.D, b.Local(a.FFN), a.Experts, B.Router{Score: B.SoftmaxSelected, K: a.TopK}, glu)
		moe.Gate.Bias, moe.Up.Bias, moe.Down.Bias, moe.Up.Interleaved = true, true, true, true
		return preNorm(&a.common, b, t).routed(&moe)
	})
	m.family = gptOssNames
	m.Head.Tied = a.ownTie()
	return m, nil
}

func (a *gptOssArgs) check() error {
	if err := checkExperts("num_local_experts", a.Experts, "num_experts_per_tok", a.TopK); err != nil {
		return err
	}
	if !(a.Limit > 0 && a.Limit < 1e6) {
		return fmt.Errorf("swiglu_limit %g is out of range", float64(a.Limit))
	}
	if err := a.checkWindows(a.Layers); err != nil {
		return err
	}
	return a.common.check()
}
