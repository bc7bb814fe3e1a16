package generate

import (
	"context"
	"encoding/json"
	"strings"

	"hearth/internal/dialect"
	"hearth/internal/jinja"
)

// arguments of a call are an object in the order of its keys, or its text in the spacing of Python's json.dumps.
func (f form) arguments(raw json.RawMessage) jinja.Value {
	v := argumentsObject(raw)
	if !f.has(argumentsAreText) {
		return v
	}
	if text, err := asJSON.Render(context.Background(), object("v", v), jinja.Limits{}); err == nil {
		return text
	}
	return string(raw) // larger than a render may be: as it came
}

// argumentsObject makes an object of what is none: a call that went wrong once must not end the conversation.
func argumentsObject(raw json.RawMessage) *jinja.Dict {
	v, err := jinja.FromJSON(raw)
	if d, ok := v.(*jinja.Dict); ok && err == nil {
		return d
	}
	if s := strings.TrimSpace(string(raw)); s != "" && s != "null" {
		return object("raw_arguments", s)
	}
	return jinja.NewDict()
}

var asJSON = mustParse("{{ v | tojson }}")

// idIn is the id of a call in the prompt.
func (c *call) idIn(ids dialect.IDs) string { return ids.Write(c.said, c.id, c.name, c.number) }

// writer renders calls by what dialect has of their template.
func writer(src string) func([]*call) string {
	w := mustParse(src) // a test parses them all
	return func(calls []*call) string {
		list, ids := jinja.NewList(), jinja.NewList()
		for _, c := range calls {
			list.Items = append(list.Items, object("name", c.name, "arguments", argumentsObject(c.args)))
			ids.Items = append(ids.Items, c.idIn(dialect.IDsNumbered))
		}
		text, err := w.Render(context.Background(), object("calls", list, "ids", ids), jinja.Limits{})
		if err != nil {
			return ""
		}
		return text
	}
}

func mustParse(src string) *jinja.Template {
	t, err := jinja.Parse("calls", src)
	if err != nil {
		panic(err)
	}
	return t
}
