package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"hearth/internal/nn"
	"hearth/internal/regular"
)

// float is a number of config.json. Some exporters tag what JSON cannot say: {"__float__": "Infinity"}.
type float float64

// UnmarshalJSON implements json.Unmarshaler.
func (f *float) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, (*float64)(f)); err == nil {
		return nil
	}
	var tag struct {
		Float string `json:"__float__"`
	}
	if err := json.Unmarshal(b, &tag); err != nil {
		return fmt.Errorf("%s is no number", b)
	}
	switch tag.Float {
	case "Infinity":
		*f = float(math.Inf(1))
	case "-Infinity":
		*f = float(math.Inf(-1))
	case "NaN":
		*f = float(math.NaN())
	default:
		return fmt.Errorf("%s is no number", b)
	}
	return nil
}

// ropeJSON is rope_scaling (older spelling) or rope_parameters (newer, which holds the base as well).
type ropeJSON struct {
	Type      string `json:"type"`
	RopeType  string `json:"rope_type"`
	Theta     float  `json:"rope_theta"`
	Factor    float  `json:"factor"`
	Partial   float  `json:"partial_rotary_factor"`
	LowFreq   float  `json:"low_freq_factor"`
	HighFreq  float  `json:"high_freq_factor"`
	BetaFast  float  `json:"beta_fast"`
	BetaSlow  float  `json:"beta_slow"`
	MScale    *float `json:"mscale"`
	MScaleAll float  `json:"mscale_all_dim"`
	Orig      float  `json:"original_max_position_embeddings"`

	Long []float `json:"long_factor"`
	Beta float   `json:"llama_4_scaling_beta"`
}

// common are the keys nearly every decoder has.
type common struct {
	D       int   `json:"hidden_size"`
	Layers  int   `json:"num_hidden_layers"`
	FFN     int   `json:"intermediate_size"`
	Heads   int   `json:"num_attention_heads"`
	KVHeads int   `json:"num_key_value_heads"`
	HeadDim int   `json:"head_dim"`
	Eps     float `json:"rms_norm_eps"`
	Vocab   int   `json:"vocab_size"`
	MaxPos  int   `json:"max_position_embeddings"`
	Tied    *bool `json:"tie_word_embeddings"`

	Theta       float     `json:"rope_theta"`
	Partial     float     `json:"partial_rotary_factor"`
	Traditional bool      `json:"rope_traditional"`
	Scaling     *ropeJSON `json:"rope_scaling"`
	Parameters  *ropeJSON `json:"rope_parameters"`
}

// parse decodes config.json; a nested text_config wins over the flat form.
func parse[T any](cfg []byte) (T, error) {
	var t T
	return t, parseInto(cfg, &t)
}

// parseInto is parse for a value that holds the defaults.
func parseInto(cfg []byte, to any) error {
	text, err := textConfig(cfg)
	if err != nil {
		return err
	}
	return tidyJSON(json.Unmarshal(text, to))
}

// textConfig is the part of config.json that describes the language model.
func textConfig(cfg []byte) ([]byte, error) {
	var nest struct {
		Text json.RawMessage `json:"text_config"`
	}
	if err := json.Unmarshal(cfg, &nest); err != nil {
		return nil, tidyJSON(err)
	}
	if given(nest.Text) {
		return nest.Text, nil
	}
	return cfg, nil
}

// tidyJSON words the two common failures without Go's types.
func tidyJSON(err error) error {
	var s *json.SyntaxError
	var t *json.UnmarshalTypeError
	switch {
	case errors.As(err, &s):
		return fmt.Errorf("is no valid JSON at byte %d: %w", s.Offset, err)
	case errors.As(err, &t) && t.Field == "":
		return fmt.Errorf("a JSON %s is not what should be here", t.Value)
	case errors.As(err, &t):
		return fmt.Errorf("%s should not be a JSON %s", t.Field, t.Value)
	}
	return err
}

// maxSize bounds every count of a config, far above any model, so that products of two stay inside an int.
const (
	maxSize   = 1 << 24
	maxLayers = 4096
)

// check fills what may be left out and refuses sizes no model has.
func (c *common) check() error {
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.HeadDim == 0 && c.Heads > 0 {
		c.HeadDim = c.D / c.Heads
	}
	for _, f := range []struct {
		key string
		n   int
		max int
	}{
		{"hidden_size", c.D, maxSize}, {"num_hidden_layers", c.Layers, maxLayers}, {"intermediate_size", c.FFN, maxSize},
		{"num_attention_heads", c.Heads, 1 << 12}, {"num_key_value_heads", c.KVHeads, 1 << 12}, {"head_dim", c.HeadDim, 1 << 12}, {"vocab_size", c.Vocab, maxSize},
	} {
		if f.n <= 0 {
			return fmt.Errorf("%s is missing or not positive", f.key)
		}
		if f.n > f.max {
			return fmt.Errorf("%s %d is out of range", f.key, f.n)
		}
	}
	switch {
	case c.Heads%c.KVHeads != 0:
		return fmt.Errorf("num_attention_heads %d is no multiple of num_key_value_heads %d", c.Heads, c.KVHeads)
	case c.HeadDim%2 != 0:
		return fmt.Errorf("head_dim %d is odd", c.HeadDim)
	case c.MaxPos < 0:
		return fmt.Errorf("max_position_embeddings %d is negative", c.MaxPos)
	case !(c.Eps > 0 && c.Eps < 1):
		return fmt.Errorf("rms_norm_eps %g is out of range", float64(c.Eps))
	}
	return c.checkRopes()
}

// checkRopes compares the two spellings where a config has both.
func (c *common) checkRopes() error {
	a, b := c.Scaling, c.Parameters
	if a == nil || b == nil {
		return nil
	}
	if x, y := cmp.Or(a.Type, a.RopeType), cmp.Or(b.Type, b.RopeType); x != "" && y != "" && x != y {
		return fmt.Errorf("rope_scaling says %s, rope_parameters says %s", regular.Quote(x), regular.Quote(y))
	}
	if a.Factor != 0 && b.Factor != 0 && a.Factor != b.Factor {
		return fmt.Errorf("rope_scaling has the factor %g, rope_parameters has %g", float64(a.Factor), float64(b.Factor))
	}
	return nil
}

// tie is what tie_word_embeddings says; without the key the checkpoint decides.
func (c *common) tie() nn.Tie {
	switch {
	case c.Tied == nil:
		return nn.TieFile
	case *c.Tied:
		return nn.TieAlways
	}
	return nn.TieNever
}

// rope merges both spellings over mlx-lm's defaults; theta is the architecture's default base.
func (c *common) rope(theta float64) nn.RopeArgs {
	a := nn.RopeArgs{Theta: theta, Partial: 1, Traditional: c.Traditional, BetaFast: 32, BetaSlow: 1, MScale: 1, LowFreq: 1, HighFreq: 4,
		Max: float64(c.MaxPos)}
	set := func(to *float64, from float) {
		if from != 0 {
			*to = float64(from)
		}
	}
	r := c.Scaling
	if r == nil {
		r = c.Parameters
	}
	if c.Parameters != nil {
		set(&a.Theta, c.Parameters.Theta)
	}
	set(&a.Theta, c.Theta)
	set(&a.Partial, c.Partial)
	if r == nil {
		return a
	}
	a.Type = r.Type
	if a.Type == "" {
		a.Type = r.RopeType
	}
	a.Orig = 4096
	if a.Type == "llama3" {
		a.Orig = 8192
	}
	set(&a.Partial, r.Partial)
	set(&a.Factor, r.Factor)
	set(&a.Orig, r.Orig)
	set(&a.LowFreq, r.LowFreq)
	set(&a.HighFreq, r.HighFreq)
	set(&a.BetaFast, r.BetaFast)
	set(&a.BetaSlow, r.BetaSlow)
	if r.MScale != nil {
		a.MScale = float64(*r.MScale)
	}
	a.MScaleAllDim = float64(r.MScaleAll)
	for _, f := range r.Long {
		a.Long = append(a.Long, float64(f))
	}
	return a
}
