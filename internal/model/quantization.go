package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hearth/internal/quant"
)

// quantization is the config's quantisation dictionary: defaults for the whole model and overrides per module path.
type quantization struct {
	quant.Scheme                         // defaults; zero if the model is not quantised
	paths        map[string]quant.Scheme // zero: this one is plain floats
}

// parseQuantization reads "quantization", or "quantization_config" where it has the same form. Other quantisation
// methods are an error.
func parseQuantization(cfg []byte) (quantization, error) {
	var c struct {
		MLX json.RawMessage `json:"quantization"`
		HF  json.RawMessage `json:"quantization_config"`
		Sub struct {
			HF json.RawMessage `json:"quantization_config"`
		} `json:"text_config"`
	}
	if err := json.Unmarshal(cfg, &c); err != nil {
		return quantization{}, tidyJSON(err)
	}
	for _, raw := range []json.RawMessage{c.MLX, c.HF, c.Sub.HF} {
		if len(raw) != 0 && string(raw) != "null" {
			return parseSchemes(raw)
		}
	}
	return quantization{}, nil
}

// schemeJSON is one entry. A missing mode means affine, also below a top level of another mode.
type schemeJSON struct {
	Group  int        `json:"group_size"`
	Bits   int        `json:"bits"`
	Mode   quant.Mode `json:"mode"`
	Method string     `json:"quant_method"`
}

func (s schemeJSON) scheme() quant.Scheme {
	if s.Mode == "" {
		s.Mode = quant.Affine
	}
	return quant.Scheme{Mode: s.Mode, Bits: s.Bits, Group: s.Group}
}

func parseSchemes(raw json.RawMessage) (quantization, error) {
	var q quantization
	var top schemeJSON
	if err := json.Unmarshal(raw, &top); err != nil {
		return q, fmt.Errorf("quantization: %w", tidyJSON(err))
	}
	if top.Bits == 0 && top.Method != "" {
		return q, &LoadError{File: configFile, Problem: fmt.Sprintf("quantisation method %q is not supported", top.Method),
			Hint: "use a conversion to MLX's own quantisation"}
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
	schemes := []quant.Scheme{q.Scheme}
	for _, path := range slices.Sorted(maps.Keys(q.paths)) {
		schemes = append(schemes, q.paths[path])
	}
	for _, s := range schemes {
		if err := s.Check(s.Group); err != nil {
			return &LoadError{File: configFile, Err: err, Hint: "use an affine conversion of 2, 3, 4, 5, 6 or 8 bits"}
		}
	}
	return nil
}

// rename applies an architecture's renames to the paths.
func (q quantization) rename(f func(string) string) quantization {
	r := quantization{Scheme: q.Scheme, paths: map[string]quant.Scheme{}}
	for p, s := range q.paths {
		r.paths[strings.TrimSuffix(f(p+".weight"), ".weight")] = s
	}
	return r
}
