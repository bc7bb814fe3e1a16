package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hearth/internal/quant"
)

// quantization is what the configs say about quantisation. A module that has an entry in paths is stored as the entry
// says. Any other is quantised if it has scales, and its scheme is read off the shapes: the defaults may be wrong for it.
type quantization struct {
	quant.Scheme                         // defaults; zero if the model is not quantised
	paths        map[string]quant.Scheme // zero: this one is plain floats
	foreign      *foreign                // how another tool than MLX stores modules; nil: nothing to translate
}

// quantizationKeys are where config.json says how weights are stored.
type quantizationKeys struct {
	MLX json.RawMessage `json:"quantization"`
	HF  json.RawMessage `json:"quantization_config"`
	Sub struct {
		HF json.RawMessage `json:"quantization_config"`
	} `json:"text_config"`
}

func parseQuantizationKeys(cfg []byte) (quantizationKeys, error) {
	var c quantizationKeys
	return c, inConfig(tidyJSON(json.Unmarshal(cfg, &c)))
}

// parseQuantization reads config.json's "quantization" or else "quantization_config", its own or its text_config's, or
// else hf, the contents of hf_quant_config.json if there is one. What another tool says is translated where package quant
// has its format; any other method is an error that names it.
func parseQuantization(cfg, hf []byte) (quantization, error) {
	c, err := parseQuantizationKeys(cfg)
	if err != nil {
		return quantization{}, err
	}
	if given(c.MLX) {
		return parseSchemes(c.MLX)
	}
	for _, raw := range []json.RawMessage{c.HF, c.Sub.HF} {
		if given(raw) {
			return parseMethod(raw, configFile)
		}
	}
	if given(hf) {
		return parseMethod(hf, hfQuantFile)
	}
	return quantization{}, nil
}

// saysQuantization tells whether config.json says how its weights are stored, so that no other file counts.
func saysQuantization(cfg []byte) (bool, error) {
	c, err := parseQuantizationKeys(cfg)
	return given(c.MLX) || given(c.HF) || given(c.Sub.HF), err
}

func given(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) != 0 && string(raw) != "null" && string(raw) != "false"
}

// schemeJSON is one entry. A missing mode means affine, also below a top level of another mode; a missing width or group
// is the mode's default.
type schemeJSON struct {
	Group int        `json:"group_size"`
	Bits  int        `json:"bits"`
	Mode  quant.Mode `json:"mode"`
}

func (s schemeJSON) scheme() quant.Scheme {
	if s.Mode == "" {
		s.Mode = quant.Affine
	}
	d, _ := s.Mode.Default()
	if s.Bits == 0 {
		s.Bits = d.Bits
	}
	if s.Group == 0 {
		s.Group = d.Group
	}
	return quant.Scheme{Mode: s.Mode, Bits: s.Bits, Group: s.Group}
}

// parseSchemes reads MLX's dictionary: the defaults, and one entry per module that is stored otherwise.
func parseSchemes(raw json.RawMessage) (quantization, error) {
	var q quantization
	var top schemeJSON
	if err := json.Unmarshal(raw, &top); err != nil {
		return q, fmt.Errorf("quantization: %w", tidyJSON(err))
	}
	q.Scheme = top.scheme()
	q.paths = map[string]quant.Scheme{}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return q, fmt.Errorf("quantization: %w", tidyJSON(err))
	}
	for path, v := range all {
		switch text := strings.TrimSpace(string(v)); {
		case text == "false":
			q.paths[path] = quant.Scheme{}
		case text == "true":
			q.paths[path] = q.Scheme
		case strings.HasPrefix(text, "{"):
			var s schemeJSON
			if err := json.Unmarshal(v, &s); err != nil {
				return q, fmt.Errorf("quantization: %s: %w", path, tidyJSON(err))
			}
			q.paths[path] = s.scheme()
		}
	}
	return q, q.check()
}

// check refuses what package quant cannot read before any tensor is looked at.
func (q quantization) check() error {
	if err := q.Scheme.Check(q.Group); err != nil {
		return unsupported("", err)
	}
	for _, path := range slices.Sorted(maps.Keys(q.paths)) {
		s := q.paths[path]
		if err := s.Check(s.Group); err != nil {
			return unsupported(path+": ", err)
		}
	}
	return nil
}

func unsupported(where string, err error) error {
	return &LoadError{File: configFile, Problem: where + err.Error(),
		Hint: "use an affine conversion of 2, 3, 4, 5, 6 or 8 bits, or mxfp4, mxfp8 or nvfp4"}
}

// rename applies an architecture's renames to the paths.
func (q quantization) rename(f func(string) string) quantization {
	r := q
	r.paths = map[string]quant.Scheme{}
	for p, s := range q.paths {
		r.paths[strings.TrimSuffix(f(p+".weight"), ".weight")] = s
	}
	return r
}
