package generate

import (
	"context"
	"encoding/json"
	"strings"

	"hearth/internal/jinja"
	"hearth/internal/parser"
)

// arguments of a call are an object in the order of its keys, or its text in the spacing of Python's json.dumps.
func (f form) arguments(raw json.RawMessage) jinja.Value {
	v := argumentsObject(raw)
	if !f.text {
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

// writerOf is how a family writes calls, for templates that have no place for them.
func writerOf(f *parser.Family) func([]*call) string {
	w := asTagged
	switch f.Name {
	case "granite":
		w = asGranite
	case "lfm2":
		w = asPython
	case "kimi":
		w = asKimi
	}
	return func(calls []*call) string {
		list, ids := jinja.NewList(), jinja.NewList()
		for _, c := range calls {
			list.Items = append(list.Items, object("name", c.name, "arguments", argumentsObject(c.args)))
			ids.Items = append(ids.Items, idsNumbered.of(c))
		}
		text, err := w.Render(context.Background(), object("calls", list, "ids", ids), jinja.Limits{})
		if err != nil {
			return ""
		}
		return text
	}
}

var (
	asJSON    = mustParse("{{ v | tojson }}")
	asTagged  = mustParse(`{% for c in calls %}{{ "" if loop.first else "\n" }}<tool_call>{{ "\n" }}{{ c | tojson }}{{ "\n" }}</tool_call>{% endfor %}`)
	asGranite = mustParse("<|tool_call|>{{ calls | tojson }}")
	asKimi    = mustParse("<|tool_calls_section_begin|>{% for c in calls %}<|tool_call_begin|>{{ ids[loop.index0] }}" +
		"<|tool_call_argument_begin|>{{ c.arguments | tojson }}<|tool_call_end|>{% endfor %}<|tool_calls_section_end|>")
	asPython = mustParse(`<|tool_call_start|>[{% for c in calls %}{{ "" if loop.first else ", " }}{{ c.name }}(` +
		`{% for k, v in c.arguments.items() %}{{ "" if loop.first else ", " }}{{ k }}={{ v | tojson if v is string else v }}{% endfor %})` +
		`{% endfor %}]<|tool_call_end|>`)
)

func mustParse(src string) *jinja.Template {
	t, err := jinja.Parse("calls", src)
	if err != nil {
		panic(err)
	}
	return t
}
