package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
)

func init() { register("mimo_v2_flash", newMiMoV2) }

// mimoV2Args: layers with a window have heads of their own, which older folders count. Those say with numbers what
// layer_types and mlp_layer_types say with words: 1 is a window, or experts.
type mimoV2Args struct {
	glm4MoEArgs
	windows
	mlpTypes
	Pattern  []int  `json:"hybrid_layer_pattern"`
	Freq     []int  `json:"moe_layer_freq"`
	Before   int    `json:"sliding_window_size"` // positions before the row's own, in older folders
	VDim     int    `json:"v_head_dim"`
	VScale   *float `json:"attention_value_scale"`
	Sinks    bool   `json:"add_full_attention_sink_bias"`
	SWASinks bool   `json:"add_swa_attention_sink_bias"`
	SWAHeads int    `json:"swa_num_attention_heads"`
	SWAKV    int    `json:"swa_num_key_value_heads"`
	SWADim   int    `json:"swa_head_dim"`
	SWAVDim  int    `json:"swa_v_head_dim"`
}

var mimoV2Names = strings.NewReplacer(".attention_sink_bias", ".sinks")

// newMiMoV2: experts as in glm4_moe; values narrower than keys; sinks where the config says so, else in layers with a window.
func newMiMoV2(cfg *config, b *Build) (Generator, error) {
	a := mimoV2Args{SWASinks: true, VDim: 128}
	a.Groups, a.TopGroups, a.Scale, a.Renorm, a.TopK, a.HeadDim, a.Window = 1, 1, 1, true, 8, 192, 129
	a.Eps, a.Scoring, a.Method = 1e-5, "sigmoid", "noaux_tc"
	if scale := float(0.707); !cfg.null("attention_value_scale") {
		a.VScale = &scale
	}
	cfg.harmless("attention_chunk_size") // nobody reads it
	cfg.into(&a)
	if a.Pattern != nil {
		older := struct {
			Eps *float `json:"layernorm_epsilon"`
		}{&a.Eps}
		cfg.into(&older)
	}
	swa, err := a.check()
	if err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Kind: full, Base: 5e6, Share: 0.334, New: a.Pattern == nil, Fixed: true})
	local := cfg.rope(rotation{Head: swa.HeadDim, Kind: slides, Base: 10000, BaseKey: "swa_rope_theta", Share: 0.334, Plain: true, New: a.Pattern == nil, Fixed: true})
	router := a.router()
	m := newDecoder(&a.common, b, func(i int) decoderLayer {
		c, vdim, window, turn, sinks := &a.common, a.VDim, a.window(i), rope, a.Sinks
		if window > 0 {
			c, vdim, turn, sinks = swa, a.SWAVDim, local, a.SWASinks
		}
		t := gqaOf(b, c, i, vdim, window, turn)
		if sinks {
			t.Sinks = &nn.Vec{N: t.Spec.Heads}
		}
		if a.VScale != nil {
			t.VScale = float32(*a.VScale)
		}
		l := preNorm(&a.common, b, t)
		if !a.sparse(i) {
			return l
		}
		return l.routed(a.moe(b, router, &B.GLU{Act: B.SiLU}))
	})
	m.family, m.extra = mimoV2Names, "model.mtp"
	m.nested, m.drop = true, []string{"audio_encoder.", "speech_embeddings."}
	m.Head.Tied = a.ownTie()
	m.gate(cfg)
	return m, nil
}

// check gives the sizes of layers with a window beside its verdict.
func (a *mimoV2Args) check() (*common, error) {
	if err := a.glm4MoEArgs.check(); err != nil {
		return nil, err
	}
	if err := a.older(); err != nil {
		return nil, err
	}
	swa := a.common
	swa.Heads, swa.KVHeads, swa.HeadDim = cmp.Or(a.SWAHeads, a.Heads), cmp.Or(a.SWAKV, 2*a.KVHeads), cmp.Or(a.SWADim, a.HeadDim)
	a.SWAVDim = cmp.Or(a.SWAVDim, a.VDim)
	if a.VDim <= 0 || a.VDim > 1<<12 || a.SWAVDim <= 0 || a.SWAVDim > 1<<12 {
		return nil, fmt.Errorf("v_head_dim %d or swa_v_head_dim %d is missing or out of range", a.VDim, a.SWAVDim)
	}
	if a.VScale != nil && !(*a.VScale > -1e6 && *a.VScale < 1e6) {
		return nil, fmt.Errorf("attention_value_scale %g is out of range", float64(*a.VScale))
	}
	a.fill(a.Layers, func(i int) bool { return i > 0 && (i+1)%6 != 0 })
	if err := a.fillMLPs(a.Layers, func(i int) bool { return i > 0 }); err != nil {
		return nil, err
	}
	if err := a.checkWindows(a.Layers); err != nil || !slices.Contains(a.Types, slides) {
		return &swa, err
	}
	if err := swa.check(); err != nil {
		return nil, fmt.Errorf("layers with a window: %w", err)
	}
	return &swa, nil
}

// older reads what older folders say with numbers.
func (a *mimoV2Args) older() error {
	if a.Pattern != nil && len(a.Pattern) < a.Layers || a.Freq != nil && len(a.Freq) < a.Layers {
		return fmt.Errorf("hybrid_layer_pattern and moe_layer_freq have %d and %d entries for %d layers", len(a.Pattern), len(a.Freq), a.Layers)
	}
	if a.Before < 0 || a.Before > 1<<30 {
		return fmt.Errorf("sliding_window_size %d is out of range", a.Before)
	}
	if a.Before > 0 {
		a.Window = a.Before + 1
	}
	for i := range a.Layers {
		if a.Types == nil || len(a.Types) == i {
			if a.Pattern != nil {
				a.Types = append(a.Types, either(a.Pattern[i] == 1, slides, full))
			}
		}
		if a.MLPs == nil || len(a.MLPs) == i {
			if a.Freq != nil {
				a.MLPs = append(a.MLPs, either(a.Freq[i] == 1, sparse, dense))
			}
		}
	}
	return nil
}
