package model

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	B "hearth/internal/backend"
)

// acts maps the names of activations in transformers to the kinds that backends have. Both curves called gelu have more.
var acts = map[string]B.ActKind{
	"silu": B.SiLU, "swish": B.SiLU, "gelu": B.GeluErf, "gelu_python": B.GeluErf, "gelu_new": B.GeluTanh, "gelu_fast": B.GeluTanh,
	"gelu_pytorch_tanh": B.GeluTanh, "gelu_python_tanh": B.GeluTanh, "gelu_accurate": B.GeluTanh, "quick_gelu": B.QuickGelu, "relu2": B.ReLU2,
	"sigmoid": B.SigmoidAct,
}

// act is the activation that a key of the config names, or missing where there is no such key. New refuses any other name.
func (c *config) act(key, missing string) B.ActKind {
	name := missing
	if raw := c.raw(key); raw != nil && json.Unmarshal(raw, &name) != nil {
		name = ""
	}
	if kind, ok := acts[name]; ok {
		return kind
	}
	var known []string
	for _, k := range slices.Sorted(maps.Keys(acts)) {
		known = append(known, strconv.Quote(k))
	}
	c.is(key, known...)
	return acts[missing]
}
