package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"hearth/internal/chat"
	"hearth/internal/regular"
)

// Generation is what the folder says about generating: which tokens end a reply and the sampling its authors
// recommend. Nil fields are not given.
type Generation struct {
	EOS []int32 // generation_config.json's list replaces config.json's
	chat.Sampling
	Loop Loop
}

// Loop is repetition_detection, as vLLM's requests have it: a reply that ends in MinCount times the same run of MinSize
// to MaxSize tokens goes round in circles. Zeros: nothing is looked for.
type Loop struct {
	MinSize, MaxSize, MinCount int
}

// maxEOS bounds the tokens that end a reply, which are gone through at every token; models have up to seven.
const maxEOS = 256

// eosKey names the tokens that end a reply, in both configs.
const eosKey = "eos_token_id"

// values are the keys of an optional file. A value that cannot be used is a warning, and the others count.
type values struct {
	c    *Checkpoint
	file string
	of   map[string]json.RawMessage
}

// get is the value of a key, nil if there is none.
func (v values) get(key string) json.RawMessage {
	if raw := bytes.TrimSpace(v.of[key]); string(raw) != "null" {
		return raw
	}
	return nil
}

// leave tells that the value of a key is not used.
func (v values) leave(key string, why any) {
	v.c.warn(v.file, "%s: %v; the key is left out", key, why)
}

// number is the value of a key between two bounds, nil where there is none.
func (v values) number(key string, least, most float64) *float64 {
	raw := v.get(key)
	if raw == nil {
		return nil
	}
	x, repaired, err := readNumber(raw)
	switch {
	case err != nil:
		v.leave(key, err)
		return nil
	case !(x >= least && x <= most):
		v.leave(key, fmt.Sprintf("%g is outside [%g, %g]", x, least, most))
		return nil
	case repaired:
		v.c.warn(v.file, "%s: %s is a text; it is read as %g", key, regular.Clip(string(raw)), x)
	}
	return &x
}

// tokens is the value of a key that is a token id, a list of them or null.
func (v values) tokens(key string) []int32 {
	raw := v.get(key)
	if raw == nil {
		return nil
	}
	list := []json.RawMessage{raw}
	if raw[0] == '[' && json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	if len(list) > maxEOS {
		v.leave(key, fmt.Sprintf("has %d tokens, more than %d", len(list), maxEOS))
		return nil
	}
	var ids []int32
	var bad, texts []json.RawMessage
	for _, one := range list {
		x, repaired, err := readNumber(one)
		id, ok := whole(x, math.MinInt32, math.MaxInt32)
		if err != nil || !ok {
			bad = append(bad, one)
			continue
		}
		if repaired {
			texts = append(texts, one)
		}
		ids = append(ids, int32(id))
	}
	if len(texts) > 0 {
		v.c.warn(v.file, "%s: %s is a text; it is read as the token id", key, regular.Clip(string(texts[0])))
	}
	if len(bad) > 0 {
		v.c.warn(v.file, "%s: %s is neither a token id nor a list of them; it is left out", key, regular.Clip(string(bad[0])))
	}
	return ids
}

func (c *Checkpoint) readGeneration() error {
	cfg, err := openConfig(c.Type, c.Config)
	if err != nil {
		return inConfig(err)
	}
	for _, keys := range []map[string]json.RawMessage{cfg.top, cfg.text} {
		if c.Generation.EOS = (values{c: c, file: configFile, of: keys}).tokens(eosKey); len(c.Generation.EOS) > 0 {
			break
		}
	}
	v := values{c: c, file: generationFile}
	found, err := c.readOptional(generationFile, maxConfigBytes, &v.of, "it recommends no sampling and names no token that ends a reply")
	if found {
		c.Generation.merge(v)
	}
	return err
}

func (g *Generation) merge(v values) {
	if ids := v.tokens(eosKey); len(ids) > 0 {
		g.EOS = slices.Clone(ids)
	}
	for _, p := range chat.WholeLastParameters {
		if p.Recommended == 0 {
			continue
		}
		x := v.number(p.Name, p.Least, p.Recommended)
		if p.Whole && x != nil {
			if *x != math.Trunc(*x) {
				v.leave(p.Name, fmt.Sprintf("%g is no whole number", *x))
				continue
			}
			*x = max(*x, 0) // -1 and 0 both mean all tokens; some exporters write 50.0
		}
		*p.Field(&g.Sampling) = x
	}
	if raw := v.get("do_sample"); raw != nil {
		sample, repaired, err := readBool(raw)
		switch {
		case err != nil:
			v.leave("do_sample", err)
		case repaired:
			v.c.warn(v.file, "do_sample: %s is a text; it is read as %t", regular.Clip(string(raw)), sample)
		}
		if err == nil && !sample && g.Temperature == nil {
			g.Temperature = new(float64) // greedy
		}
	}
	g.Loop = v.loop("repetition_detection")
}

// loop is the value of a key that is a Loop.
func (v values) loop(key string) Loop {
	raw := v.get(key)
	if raw == nil {
		return Loop{}
	}
	var j struct {
		MinSize  int `json:"min_pattern_size"`
		MaxSize  int `json:"max_pattern_size"`
		MinCount int `json:"min_count"`
	}
	if err := json.Unmarshal(raw, &j); err != nil {
		v.leave(key, tidyJSON(err))
		return Loop{}
	}
	l := Loop(j)
	if l != (Loop{}) && (l.MinSize < 0 || l.MaxSize < max(l.MinSize, 1) || l.MaxSize > maxSize || l.MinCount < 2 || l.MinCount > maxSize) {
		v.leave(key, fmt.Sprintf("%+v makes no sense", l))
		return Loop{}
	}
	return l
}
