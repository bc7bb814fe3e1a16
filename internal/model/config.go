package model

import (
	"encoding/json"

	"hearth/internal/nn"
)

// ropeJSON accepts rope_scaling (old) and rope_parameters (new).
type ropeJSON struct {
	Type        string    `json:"rope_type"`
	OldType     string    `json:"type"`
	Theta       float64   `json:"rope_theta"`
	Factor      float64   `json:"factor"`
	Partial     float64   `json:"partial_rotary_factor"`
	LowFreq     float64   `json:"low_freq_factor"`
	HighFreq    float64   `json:"high_freq_factor"`
	BetaFast    float64   `json:"beta_fast"`
	BetaSlow    float64   `json:"beta_slow"`
	MScale      float64   `json:"mscale"`
	MScaleAll   float64   `json:"mscale_all_dim"`
	Orig        int       `json:"original_max_position_embeddings"`
	LongFactor  []float64 `json:"long_factor"`
	Section     []int     `json:"mrope_section"`
	Interleaved bool      `json:"mrope_interleaved"`
}

func (r *ropeJSON) args(theta, partial float64, maxPos int) nn.RopeArgs {
	a := nn.RopeArgs{Theta: theta, Partial: partial, Max: maxPos, BetaFast: 32, BetaSlow: 1, Orig: 4096, MScale: 1}
	if r == nil {
		return a
	}
	a.Type, a.Factor, a.LowFreq, a.HighFreq = r.Type, r.Factor, r.LowFreq, r.HighFreq
	a.MScaleAllDim, a.LongFactor, a.Section, a.Interleaved = r.MScaleAll, r.LongFactor, r.Section, r.Interleaved
	if a.Type == "" {
		a.Type = r.OldType
	}
	for _, p := range []struct {
		to   *float64
		from float64
	}{{&a.Theta, r.Theta}, {&a.Partial, r.Partial}, {&a.BetaFast, r.BetaFast}, {&a.BetaSlow, r.BetaSlow}, {&a.MScale, r.MScale}} {
		if p.from != 0 {
			*p.to = p.from
		}
	}
	if r.Orig != 0 {
		a.Orig = r.Orig
	}
	return a
}

// common are the keys nearly every decoder has.
type common struct {
	D       int     `json:"hidden_size"`
	Layers  int     `json:"num_hidden_layers"`
	FFN     int     `json:"intermediate_size"`
	Heads   int     `json:"num_attention_heads"`
	KVHeads int     `json:"num_key_value_heads"`
	HeadDim int     `json:"head_dim"`
	Eps     float32 `json:"rms_norm_eps"`
	Vocab   int     `json:"vocab_size"`
	Theta   float64 `json:"rope_theta"`
	MaxPos  int     `json:"max_position_embeddings"`
	Partial float64 `json:"partial_rotary_factor"`
	Window  int     `json:"sliding_window"`

	Types []string  `json:"layer_types"`
	Rope  *ropeJSON `json:"rope_scaling"`
}

func (c *common) sliding(i int) bool { return i < len(c.Types) && c.Types[i] == "sliding_attention" }

func (c *common) window(i int) int {
	if c.sliding(i) {
		return c.Window
	}
	return 0
}

func (c *common) rope() nn.RopeArgs { return c.Rope.args(c.Theta, c.Partial, c.MaxPos) }

// parse decodes config.json; a nested text_config wins over the flat form.
func parse[T any](cfg []byte, fill func(*T)) (T, error) {
	var t T
	var nest struct {
		Text json.RawMessage `json:"text_config"`
	}
	if err := json.Unmarshal(cfg, &nest); err != nil {
		return t, err
	}
	if nest.Text != nil {
		cfg = nest.Text
	}
	err := json.Unmarshal(cfg, &t)
	if fill != nil {
		fill(&t)
	}
	return t, err
}

func (c *common) defaults() {
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.HeadDim == 0 && c.Heads > 0 {
		c.HeadDim = c.D / c.Heads
	}
}
