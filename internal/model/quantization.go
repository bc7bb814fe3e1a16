package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hearth/internal/quant"
	"hearth/internal/regular"
)

// quantization is what the configs say about quantisation. How a module is stored follows from the shapes of its
// tensors and its number of columns; what the configs say is checked against that, as in mlx-lm's loader.
type quantization struct {
	quant.Scheme                            // defaults; zero if the model is not quantised
	entries      map[string]json.RawMessage // what is said of single modules, by the names that config.json has for them
	foreign      *foreign                   // how another tool than MLX stores modules; nil: nothing to translate
	warnings     []string
}

// parseQuantization reads config.json's "quantization" or else "quantization_config", its own or its text_config's, or
// else hf, the contents of hf_quant_config.json if there is one. What another tool says is translated where package quant
// has its format; any other method is an error that names it.
func parseQuantization(cfg, hf []byte) (quantization, error) {
	var c quantizationJSON
	if err := json.Unmarshal(cfg, &c); err != nil {
		return quantization{}, tidyJSON(err)
	}
	q, err := c.read(hf)
	if c.Activations && err == nil {
		q.warnings = append(q.warnings, "quantize_activations in "+configFile+" is not followed: activations are not rounded to the type of the weights, "+
			"so results are nearer to the unquantised model's than mlx-lm's")
	}
	return q, err
}

// quantizationJSON are the keys of config.json that may say it.
type quantizationJSON struct {
	MLX json.RawMessage `json:"quantization"`
	HF  json.RawMessage `json:"quantization_config"`
	Sub struct {
		HF json.RawMessage `json:"quantization_config"`
	} `json:"text_config"`
	Activations bool `json:"quantize_activations"`
}

func (c *quantizationJSON) read(hf []byte) (quantization, error) {
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
	return quantization{foreign: &floatFP8}, nil
}

// saysQuantization tells whether config.json says how its weights are stored, so that no other file counts.
func saysQuantization(cfg []byte) (bool, error) {
	var c quantizationJSON
	err := inConfig(tidyJSON(json.Unmarshal(cfg, &c)))
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

// parseSchemes reads MLX's dictionary: the defaults, and what is said of single modules. A module that is not there may have
// any entry: those of towers that are not run are none of ours.
func parseSchemes(raw json.RawMessage) (quantization, error) {
	q := quantization{entries: map[string]json.RawMessage{}, foreign: &floatFP8}
	var top schemeJSON
	if err := json.Unmarshal(raw, &top); err != nil {
		return q, fmt.Errorf("quantization: %w", tidyJSON(err))
	}
	q.Scheme = top.scheme()
	if err := q.Check(q.Group); err != nil && !slices.ContainsFunc([]int{16, 32, 64, 128}, func(group int) bool {
		return quant.Scheme{Mode: q.Mode, Bits: q.Bits, Group: group}.Check(group) == nil // modules may all have other groups
	}) {
		return q, unsupported("", err)
	}
	if err := json.Unmarshal(raw, &q.entries); err != nil {
		return q, fmt.Errorf("quantization: %w", tidyJSON(err))
	}
	for _, k := range slices.Sorted(maps.Keys(q.entries)) {
		if c := q.entries[k][0]; !slices.Contains(topKeys, k) && !strings.Contains(k, ".") && (c == '"' || c == '-' || '0' <= c && c <= '9') {
			q.warn(k, string(q.entries[k]), "")
		}
	}
	for _, k := range topKeys {
		delete(q.entries, k)
	}
	return q, nil
}

// topKeys are those beside the entries of modules: the defaults, and what tools note of themselves.
var topKeys = []string{"group_size", "bits", "mode", "quant_method", "version", "linear_class", "bits_per_weight", "recipe"}

// entryKeys are those of a module's entry.
var entryKeys = []string{"group_size", "bits", "mode", "global_scale", "quantize_input"}

// warn notes a key that is not understood, in the entry of a module or beside them.
func (q *quantization) warn(key, value, module string) {
	if len(q.warnings) == maxFaults {
		return
	}
	where := "quantization"
	if module != "" {
		where += ": " + regular.Clip(module)
	}
	q.warnings = append(q.warnings, fmt.Sprintf("%s in %s: %s %s is not understood: if it changes what the codes mean, answers are wrong",
		where, configFile, regular.Quote(key), regular.Clip(value)))
}

// entry reads what is said of a module of that name in config.json; none is a plain float one.
func (q *quantization) entry(name string) (s quant.Scheme, err error) {
	raw := q.entries[name]
	bad := func(why string) error {
		return &LoadError{File: configFile, Problem: "quantization: " + regular.Clip(name) + ": " + why,
			Hint: `write false, or a dictionary such as {"group_size": 64, "bits": 4, "mode": "affine"}`}
	}
	switch text := strings.TrimSpace(string(raw)); {
	case slices.Contains([]string{"false", "null", "0", `""`, "[]"}, text): // as Python takes them
		return quant.Scheme{}, nil
	case text == "true":
		if err := q.Check(q.Group); err != nil {
			return s, unsupported(regular.Clip(name)+": ", err)
		}
		return q.Scheme, nil
	case !strings.HasPrefix(text, "{"):
		return s, bad(regular.Clip(text) + " does not say how it is stored")
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return s, bad(tidyJSON(err).Error())
	}
	if len(keys) == 0 {
		return quant.Scheme{}, nil
	}
	var e schemeJSON
	if err := json.Unmarshal(raw, &e); err != nil {
		return s, bad(tidyJSON(err).Error())
	}
	s = e.scheme()
	if err := s.Check(s.Group); err != nil {
		return s, unsupported(regular.Clip(name)+": ", err)
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if v := string(keys[k]); !slices.Contains(entryKeys, k) || k == "quantize_input" && v == "true" {
			q.warn(k, v, name)
		}
	}
	return s, nil
}

const mlxHint = "use an affine conversion of 2, 3, 4, 5, 6 or 8 bits, or mxfp4, mxfp8 or nvfp4"

func unsupported(where string, err error) error {
	return &LoadError{File: configFile, Problem: where + err.Error(), Hint: mlxHint}
}

// modules gives the entries of modules that are stored, by the names that the architecture has for them. rename gives
// the architecture's name of a tensor; there reports a tensor that is stored under the name of the entry.
func (q *quantization) modules(rename func(string) string, there func(tensor string) bool) (map[string]quant.Scheme, error) {
	m := map[string]quant.Scheme{}
	for _, name := range slices.Sorted(maps.Keys(q.entries)) {
		path, ok := strings.CutSuffix(rename(name+".weight"), ".weight")
		if !ok || !there(name+".weight") {
			continue
		}
		s, err := q.entry(name)
		if err != nil {
			return nil, err
		}
		var more struct {
			Global bool `json:"global_scale"`
		}
		if json.Unmarshal(q.entries[name], &more) == nil && more.Global && !there(name+".global_scale") {
			return nil, &LoadError{Tensor: name + ".global_scale", Problem: "tensor " + regular.Clip(name) + ".global_scale is missing, which config.json says is there",
				Hint: hints[Missing]}
		}
		m[path] = s
	}
	return m, nil
}
