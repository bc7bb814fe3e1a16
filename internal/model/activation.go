package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/regular"
)

// acts are the activations of transformers that backends have. It has several names for the two curves that are called gelu.
var acts = map[string]B.ActKind{
	"silu": B.SiLU, "swish": B.SiLU, "gelu": B.GeluErf, "gelu_python": B.GeluErf, "gelu_new": B.GeluTanh, "gelu_fast": B.GeluTanh,
	"gelu_pytorch_tanh": B.GeluTanh, "gelu_python_tanh": B.GeluTanh, "gelu_accurate": B.GeluTanh, "quick_gelu": B.QuickGelu, "relu2": B.ReLU2,
	"sigmoid": B.SigmoidAct,
}

// act is the activation that a key names; missing is what the type has without the key.
func (c *config) act(key, missing string) (B.ActKind, error) {
	name := missing
	if raw := c.raw(key); raw != nil {
		if err := json.Unmarshal(raw, &name); err != nil {
			return 0, keyed(c.at+key, err)
		}
	}
	kind, ok := acts[name]
	if !ok {
		return 0, fmt.Errorf("%s %s is not supported; these are: %s", c.at+key, regular.Quote(name), strings.Join(slices.Sorted(maps.Keys(acts)), ", "))
	}
	return kind, nil
}
