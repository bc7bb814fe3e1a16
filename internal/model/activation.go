package model

import (
	"encoding/json"
	"maps"
	"slices"

	B "hearth/internal/backend"
)

// activations are those that backends have, by their names in configs.
var activations = map[string]B.ActKind{
	"silu": B.SiLU, "swish": B.SiLU, "gelu": B.GeluErf, "gelu_python": B.GeluErf, "gelu_new": B.GeluTanh, "gelu_pytorch_tanh": B.GeluTanh,
	"gelu_fast": B.GeluTanh, "gelu_accurate": B.GeluTanh, "quick_gelu": B.QuickGelu, "relu2": B.ReLU2, "sigmoid": B.SigmoidAct,
}

// act is the activation that a key names, or standard where the config has none. New refuses others by name.
func (c *config) act(key, standard string) B.ActKind {
	name := standard
	if raw := c.raw(key); raw != nil && json.Unmarshal(raw, &name) != nil {
		name = ""
	}
	kind, ok := activations[name]
	if !ok {
		var known []string
		for _, k := range slices.Sorted(maps.Keys(activations)) {
			known = append(known, `"`+k+`"`)
		}
		c.is(key, known...)
		return activations[standard]
	}
	return kind
}
