package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	B "hearth/internal/backend"
	"hearth/internal/regular"
)

// activations are the words of configs for what backends do.
var activations = map[string]B.ActKind{
	"silu": B.SiLU, "swish": B.SiLU,
	"gelu": B.GeluErf, "gelu_python": B.GeluErf,
	"gelu_pytorch_tanh": B.GeluTanh, "gelu_new": B.GeluTanh, "gelu_fast": B.GeluTanh, "gelu_python_tanh": B.GeluTanh, "gelu_accurate": B.GeluTanh,
	"quick_gelu": B.QuickGelu,
	"relu2":      B.ReLU2,
	"sigmoid":    B.SigmoidAct,
	"linear":     B.ActNone,
}

// act is the activation that a key names; without the key it is the architecture's own.
func (c *config) act(key string, own B.ActKind) (B.ActKind, error) {
	raw := c.raw(key)
	if raw == nil {
		return own, nil
	}
	var name string
	if err := json.Unmarshal(raw, &name); err != nil {
		return own, keyed(key, err)
	}
	if kind, ok := activations[name]; ok {
		return kind, nil
	}
	names := slices.Sorted(maps.Keys(activations))
	return own, fmt.Errorf("%s %s is not supported: %s are", key, regular.Quote(name), list(names, len(names)))
}
