package generate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"hearth/internal/chat"
	"hearth/internal/jinja"
	"hearth/internal/transcript"
)

// tools converts the declared tools to OpenAI's function objects; nil when there are none or none may be called. All have
// a description and parameters, because templates look into them.
func tools(r *chat.Request) (jinja.Value, error) {
	if len(r.Tools) == 0 || r.Choice.Kind == chat.ChoiceNone {
		return nil, nil
	}
	out := jinja.NewList()
	for i, t := range r.Tools {
		if t.Deferred { // its schema stands where the client loaded it
			continue
		}
		f := object("name", t.Name, "description", t.Description, "parameters", object("type", "object", "properties", jinja.NewDict()))
		if len(t.Parameters) > 0 {
			schema, err := jinja.FromJSON(t.Parameters)
			if err != nil {
				return nil, chat.Invalidf(fmt.Sprintf("tools[%d].parameters", i), "not JSON: %v", err)
			}
			f.Set("parameters", schema)
		}
		if t.Strict {
			f.Set("strict", true)
		}
		out.Items = append(out.Items, object("type", "function", "function", f))
	}
	if len(out.Items) == 0 {
		return nil, nil
	}
	return out, nil
}

func setArgs(vars *jinja.Dict, args map[string]json.RawMessage) error {
	for name, raw := range args {
		v, err := jinja.FromJSON(raw)
		if err != nil {
			return chat.Invalidf("chat_template_kwargs."+name, "not JSON: %v", err)
		}
		vars.Set(name, v)
	}
	return nil
}

// setLegacy gives templates that are older than the variable tools what they expect in its place: text.
func setLegacy(t *Template, vars *jinja.Dict, now func() time.Time) {
	if !t.mentions("functions") || !t.mentions("datetime") {
		return
	}
	tools, _ := vars.Get("tools")
	list := jinja.NewList()
	if l, ok := tools.(*jinja.List); ok {
		for _, item := range l.Items {
			if f, ok := item.(*jinja.Dict).Get("function"); ok {
				list.Items = append(list.Items, f)
			}
		}
	}
	text, err := asJSON.Render(context.Background(), object("v", list), jinja.Limits{})
	if err != nil {
		text = "[]"
	}
	vars.Set("functions", text)
	vars.Set("datetime", now().Format("Jan 02 2006 15:04:05"))
}

// markVars puts marks around special tokens in every string of the client's variables. The names of keys are left alone, and
// so are the special tokens that the template gets by name.
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
