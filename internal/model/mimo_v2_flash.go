package model

import (
	"fmt"
	"math"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("mimo_v2_flash", newMiMoV2) }

// mimoV2Args: layers of pattern 1 have a window, and heads of their own. Layers of frequency 1 have experts.
type mimoV2Args struct {
	glm4MoEArgs
	Pattern  []int `json:"hybrid_layer_pattern"`
	Freq     []int `json:"moe_layer_freq"`
	Window   int   `json:"sliding_window_size"`
	LNEps    float `json:"layernorm_epsilon"`
	VDim     int   `json:"v_head_dim"`
	VScale   float `json:"attention_value_scale"`
	Sinks    bool  `json:"add_full_attention_sink_bias"`
	SWASinks bool  `json:"add_swa_attention_sink_bias"`
	SWAHeads int   `json:"swa_num_attention_heads"`
	SWAKV    int   `json:"swa_num_key_value_heads"`
	SWADim   int   `json:"swa_head_dim"`
	SWAVDim  int   `json:"swa_v_head_dim"`
}

var mimoV2Names = strings.NewReplacer(".attention_sink_bias", ".sinks")

// newMiMoV2: experts as in glm4_moe; values narrower than keys; sinks where the config says so.
func newMiMoV2(cfg *config, b *Build) (Generator, error) {
	a := mimoV2Args{}
	a.Groups, a.TopGroups, a.Scale = 1, 1, 1
	if err := cfg.into(&a); err != nil {
		return nil, err
	}
	swa, err := a.check()
	if err != nil {
		return nil, err
	}
	rope, err := cfg.rope(rotation{Head: a.HeadDim, Kind: full, Base: 10000, Share: 1})
	if err != nil {
		return nil, err
	}
	local, err := cfg.rope(rotation{Head: swa.HeadDim, Kind: slides, Base: 10000, BaseKey: "swa_rope_theta", Share: 1, Plain: true})
	if err != nil {
		return nil, err
	}
	router := a.router()
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		var t nn.Attention
		if a.Pattern[i] == 1 {
			t = narrow(b, swa, i, a.SWAVDim, a.Window, local, a.SWASinks)
		} else {
			t = narrow(b, &a.common, i, a.VDim, 0, rope, a.Sinks)
		}
		t.VScale = float32(a.VScale)
		l := preNorm(&a.common, b, t)
		if a.Freq[i] != 1 {
			return l
		}
		moe := nn.NewMoE(a.D, b.Local(a.ExpFFN), a.Experts, router, &B.GLU{Act: B.SiLU})
		moe.Bias = &nn.Vec{N: a.Experts}
		if a.Shared > 0 {
			shared := nn.NewGLUMLP(a.D, b.Local(a.ExpFFN*a.Shared), B.SiLU)
			moe.Shared = &shared
		}
		return l.routed(&moe)
	})
	m.family, m.extra, m.Head.Tied = mimoV2Names, "model.mtp", nn.TieNever
	return m, nil
}

// narrow declares attention whose values are of another width than its keys.
func narrow(b *Build, a *common, i, vdim, window int, rope *B.Rope, sinks bool) nn.Attention {
	h, kv, hd := b.Local(a.Heads), b.LocalKV(a.KVHeads), a.HeadDim
	t := nn.Attention{
		QKV: nn.Lin(a.D, h*hd, kv*hd, kv*vdim), O: nn.Lin(h*vdim, a.D), Rope: rope,
		Spec: B.Attn{State: b.KV(i, kv, hd, vdim, window), Heads: h, KVHeads: kv, KDim: hd, VDim: vdim,
			Scale: float32(1 / math.Sqrt(float64(hd))), Window: window},
	}
	if sinks {
		t.Sinks = &nn.Vec{N: h}
	}
	return t
}

// check gives the sizes of layers with a window beside its verdict.
func (a *mimoV2Args) check() (*common, error) {
	if a.Eps, a.Scoring = a.LNEps, "sigmoid"; a.Method == "" {
		a.Method = "noaux_tc"
	}
	if a.Scale == 0 {
		a.Scale = 1
	}
	if err := a.glm4MoEArgs.check(); err != nil {
		return nil, err
	}
	swa := a.common
	swa.Heads, swa.KVHeads, swa.HeadDim = a.SWAHeads, a.SWAKV, a.SWADim
	if err := swa.check(); err != nil {
		return nil, fmt.Errorf("layers with a window: %w", err)
	}
	switch {
	case len(a.Pattern) < a.Layers || len(a.Freq) < a.Layers:
		return nil, fmt.Errorf("hybrid_layer_pattern and moe_layer_freq have %d and %d entries for %d layers", len(a.Pattern), len(a.Freq), a.Layers)
	case a.VDim <= 0 || a.VDim > 1<<12 || a.SWAVDim <= 0 || a.SWAVDim > 1<<12:
		return nil, fmt.Errorf("v_head_dim %d or swa_v_head_dim %d is missing or out of range", a.VDim, a.SWAVDim)
	case a.Window <= 0 || a.Window > 1<<30:
		return nil, fmt.Errorf("sliding_window_size %d is missing or out of range", a.Window)
	}
	return &swa, nil
}
