package generate

import (
	"slices"

	"hearth/internal/jinja"
	"hearth/internal/transcript"
)

// markVars puts marks around special tokens in every string of the client's variables, except the special tokens the template gets by
// name and the names of keys.
func markVars(g *transcript.Guard, vars *jinja.Dict) {
	for _, k := range vars.Keys() {
		if slices.Contains(tokenNames, k) {
			continue
		}
		v, _ := vars.Get(k)
		if w, changed := wrap(g, v); changed {
			vars.Set(k, w)
		}
	}
}

// wrap returns v with its strings wrapped; values without special tokens are shared, not copied.
func wrap(g *transcript.Guard, v jinja.Value) (jinja.Value, bool) {
	switch x := v.(type) {
	case string:
		if s, marked := g.Mark(x); marked {
			return s, true
		}
	case *jinja.List:
		var out []jinja.Value
		for i, e := range x.Items {
			if w, changed := wrap(g, e); changed {
				if out == nil {
					out = slices.Clone(x.Items)
				}
				out[i] = w
			}
		}
		if out != nil {
			return jinja.NewList(out...), true
		}
	case *jinja.Dict:
		var out *jinja.Dict
		for _, k := range x.Keys() {
			e, _ := x.Get(k)
			if w, changed := wrap(g, e); changed {
				if out == nil {
					out = x.Clone()
				}
				out.Set(k, w)
			}
		}
		if out != nil {
			return out, true
		}
	}
	return v, false
}
