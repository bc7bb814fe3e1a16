package model

import (
	"fmt"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("qwen3_moe", newQwen3MoE) }

// qwen3MoEArgs: a layer is dense if it is listed, or not the last of Step.
type qwen3MoEArgs struct {
	common
	Experts     int      `json:"num_experts"`
	TopK        int      `json:"num_experts_per_tok"`
	Step        int      `json:"decoder_sparse_step"`
	Dense       layerSet `json:"mlp_only_layers"`
	ExpFFN      int      `json:"moe_intermediate_size"`
	Renorm      bool     `json:"norm_topk_prob"`
	everyWindow int      // of all layers; 0: none
}

// newQwen3MoE is qwen3 with routed experts.
func newQwen3MoE(cfg *config, b *Build) (Generator, error) {
	cfg.harmless("max_window_layers") // the window is every layer's
	slides := struct {
		Use    bool `json:"use_sliding_window"`
		Window int  `json:"sliding_window"` // of all layers
	}{false, 4096}
	cfg.into(&slides)
	a := qwen3MoEArgs{Step: 1}
	if slides.Use && !cfg.null("sliding_window") {
		a.everyWindow = slides.Window
	}
	if a.everyWindow < 0 || a.everyWindow > 1<<30 {
		return nil, fmt.Errorf("sliding_window %d is out of range", a.everyWindow)
	}
	return qwen3MoE(cfg, b, a, rotation{Base: 10000, Fixed: true})
}

// qwen3MoE reads the rest over a.
func qwen3MoE(cfg *config, b *Build, a qwen3MoEArgs, r rotation) (Generator, error) {
	cfg.also("num_experts", "num_local_experts")
	cfg.is("use_qk_norm", "true")
	cfg.is("shared_expert_intermediate_size", "0")
	cfg.into(&a)
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(r.of(a.HeadDim))
	silu := &B.GLU{Act: B.SiLU}
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		t := gqa(b, &a.common, i, a.everyWindow, rope)
		t.QNorm, t.KNorm = nn.HeadRMS(a.HeadDim, float32(a.Eps)), nn.HeadRMS(a.HeadDim, float32(a.Eps))
		l := preNorm(&a.common, b, t)
		if !a.Dense[i] && (i+1)%a.Step == 0 {
			moe := nn.NewMoE(a.D, b.Local(a.ExpFFN), a.Experts, B.Router{Score: B.Softmax, K: a.TopK, Renorm: a.Renorm}, silu)
			return l.routed(&moe)
		}
		return l
	})
	m.gate(cfg)
	return m, nil
}

func (a *qwen3MoEArgs) check() error {
	switch {
	case a.Step <= 0:
		return fmt.Errorf("decoder_sparse_step %d is not positive", a.Step)
	case a.ExpFFN <= 0 || a.ExpFFN > maxSize:
		return fmt.Errorf("moe_intermediate_size %d is missing or out of range", a.ExpFFN)
	}
	if err := checkExperts("num_experts", a.Experts, "num_experts_per_tok", a.TopK); err != nil {
		return err
	}
	return a.common.check()
}
