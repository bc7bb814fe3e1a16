package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"hearth/internal/regular"
)

// Generation is what the folder says about generating: which tokens end a reply and the sampling its authors
// recommend. Nil fields are not given.
type Generation struct {
	EOS               []int32 // generation_config.json's list replaces config.json's
	Temperature       *float64
	TopP              *float64
	TopK              *int
	MinP              *float64
	RepetitionPenalty *float64
	Loop              Loop
}

// Loop is repetition_detection, as vLLM's requests have it: a reply that ends in MinCount times the same run of MinSize
// to MaxSize tokens goes round in circles. Zeros: nothing is looked for.
type Loop struct {
	MinSize, MaxSize, MinCount int
}

// maxEOS bounds the tokens that end a reply, which are gone through at every token; models have up to seven.
const maxEOS = 256

// ids is a token id, a list of them or null.
type ids []int32

// UnmarshalJSON implements json.Unmarshaler.
func (l *ids) UnmarshalJSON(b []byte) error {
	var one *int32
	if err := json.Unmarshal(b, &one); err == nil {
		if one != nil {
			*l = ids{*one}
		}
		return nil
	}
	if err := json.Unmarshal(b, (*[]int32)(l)); err != nil {
		return fmt.Errorf("eos_token_id is neither a token id nor a list of them")
	}
	if len(*l) > maxEOS {
		return fmt.Errorf("eos_token_id has %d tokens, more than %d", len(*l), maxEOS)
	}
	return nil
}

type generationJSON struct {
	EOS         ids    `json:"eos_token_id"`
	Temperature *float `json:"temperature"`
	TopP        *float `json:"top_p"`
	TopK        *float `json:"top_k"` // some exporters write 50.0
	MinP        *float `json:"min_p"`
	Repetition  *float `json:"repetition_penalty"`
	Sample      *bool  `json:"do_sample"`
	Loop        struct {
		MinSize  int `json:"min_pattern_size"`
		MaxSize  int `json:"max_pattern_size"`
		MinCount int `json:"min_count"`
	} `json:"repetition_detection"`
}

func (c *Checkpoint) readGeneration() error {
	cfg, err := openConfig(c.Type, c.Config)
	if err != nil {
		return inConfig(err)
	}
	var top, text struct {
		EOS ids `json:"eos_token_id"`
	}
	if err := errors.Join(cfg.beside(&top), cfg.into(&text)); err != nil {
		return inConfig(err)
	}
	c.Generation.EOS = top.EOS
	if len(top.EOS) == 0 {
		c.Generation.EOS = text.EOS
	}
	b, err := regular.ReadFS(c.fsys, generationFile, maxConfigBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var g generationJSON
	if err == nil {
		err = tidyJSON(json.Unmarshal(b, &g))
	}
	if err == nil {
		err = c.Generation.merge(g)
	}
	if err != nil {
		return &LoadError{File: generationFile, Err: err}
	}
	return nil
}

func (g *Generation) merge(j generationJSON) error {
	if len(j.EOS) > 0 {
		g.EOS = slices.Clone(j.EOS)
	}
	for _, f := range []struct {
		key      string
		to       **float64
		from     *float
		min, max float64
	}{
		{"temperature", &g.Temperature, j.Temperature, 0, 100}, {"top_p", &g.TopP, j.TopP, 0, 1}, {"min_p", &g.MinP, j.MinP, 0, 1},
		{"repetition_penalty", &g.RepetitionPenalty, j.Repetition, 0, 100},
	} {
		if f.from == nil {
			continue
		}
		x := float64(*f.from)
		if !(x >= f.min && x <= f.max) {
			return fmt.Errorf("%s %g is outside [%g, %g]", f.key, x, f.min, f.max)
		}
		*f.to = &x
	}
	if l := Loop(j.Loop); l != (Loop{}) {
		if l.MinSize < 0 || l.MaxSize < max(l.MinSize, 1) || l.MaxSize > maxSize || l.MinCount < 2 || l.MinCount > maxSize {
			return fmt.Errorf("repetition_detection %+v makes no sense", l)
		}
		g.Loop = l
	}
	if j.Sample != nil && !*j.Sample && g.Temperature == nil {
		g.Temperature = new(float64) // greedy
	}
	if j.TopK != nil {
		if !(*j.TopK >= -1 && *j.TopK <= maxSize) {
			return fmt.Errorf("top_k %g is out of range", float64(*j.TopK))
		}
		k := max(int(*j.TopK), 0) // -1 and 0 both mean all tokens
		g.TopK = &k
	}
	return nil
}
