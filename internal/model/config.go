package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"hearth/internal/nn"
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

// ints is a number or a list of numbers.
type ints []int

// UnmarshalJSON implements json.Unmarshaler.
func (n *ints) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if b[0] == '[' {
		return json.Unmarshal(b, (*[]int)(n))
	}
	*n = make(ints, 1)
	return json.Unmarshal(b, &(*n)[0])
}

// layerSet is a list of layers, each by its number.
type layerSet map[int]bool

// UnmarshalJSON implements json.Unmarshaler.
func (s *layerSet) UnmarshalJSON(b []byte) error {
	var list []int
	if err := json.Unmarshal(b, &list); err != nil || list == nil {
		return err
	}
	*s = layerSet{}
	for _, i := range list {
		(*s)[i] = true
	}
	return nil
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

	odd bool // head_dim may be odd: no columns rotate, or not all of them
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
		if f.n == 0 {
			return fmt.Errorf("%s is missing or not positive", f.key)
		}
		if f.n < 0 || f.n > f.max {
			return fmt.Errorf("%s %d is out of range", f.key, f.n)
		}
	}
	switch {
	case c.Heads%c.KVHeads != 0:
		return fmt.Errorf("num_attention_heads %d is no multiple of num_key_value_heads %d", c.Heads, c.KVHeads)
	case c.HeadDim%2 != 0 && !c.odd:
		return fmt.Errorf("head_dim %d is odd", c.HeadDim)
	case c.MaxPos < 0:
		return fmt.Errorf("max_position_embeddings %d is negative", c.MaxPos)
	case !(c.Eps > 0 && c.Eps < 1):
		return fmt.Errorf("rms_norm_eps %g is out of range", float64(c.Eps))
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

// ownTie is tie for families in which a config without the key means a head of its own.
func (c *common) ownTie() nn.Tie {
	if c.Tied == nil {
		return nn.TieNever
	}
	return c.tie()
}
