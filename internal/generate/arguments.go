package generate

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
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

// writerOf is how a family writes calls, for templates that have no place for them but know tools.
func writerOf(f *dialect.Family) func([]*call) string {
	switch f.Name {
	case "granite", "lfm2", "kimi":
		return toldWriter(f)
	}
	return writer(hermesCalls)
}

// toldWriter is how a family writes calls, as its parser reads them.
func toldWriter(f *dialect.Family) func([]*call) string {
	return writer(cmp.Or(writers[f.Name], hermesCalls))
}

func writer(src string) func([]*call) string {
	w := mustParse(src) // a test parses them all
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
	asJSON      = mustParse("{{ v | tojson }}")
	hermesCalls = each("", "\n", "", "<tool_call>\n{{ c | tojson }}\n</tool_call>")

	// writers are the families that write calls otherwise than hermes does.
	writers = map[string]string{
		"apertus":         each("<|tools_prefix|>[", ", ", "]<|tools_suffix|>", `{{ {c.name: c.arguments} | tojson }}`),
		"command_a":       each("<|START_ACTION|>[\n    ", ",\n    ", "\n]<|END_ACTION|>", `{{ {"tool_name": c.name, "parameters": c.arguments} | tojson }}`),
		"deepseek_v3":     each("<｜tool▁calls▁begin｜>", "\n", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{{ c.name }}\n```json\n{{ c.arguments | tojson }}\n```<｜tool▁call▁end｜>"),
		"deepseek_v31":    each("<｜tool▁calls▁begin｜>", "", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>{{ c.name }}<｜tool▁sep｜>{{ c.arguments | tojson }}<｜tool▁call▁end｜>"),
		"functionary":     each(">>>", "\n>>>", "", "{{ c.name }}\n{{ c.arguments | tojson }}"),
		"functionary_v31": each("", "\n", "", "<function={{ c.name }}>{{ c.arguments | tojson }}</function>"),
		"functiongemma":   bareCalls("<start_function_call>", "<end_function_call>", "<escape>"),
		"gemma3":          each("```tool_code\n", "\n", "\n```", pythonCall),
		"gemma4":          bareCalls("<|tool_call>", "<tool_call|>", `<|"|>`),
		"gigachat":        each("", "\n", "", "<|function_call|>{{ c | tojson }}"),
		"gigachat_v30":    each("", "\n", "", "<|message_sep|>\n\nfunction call<|role_sep|>\n{{ c | tojson }}"),
		"glm47":           xmlCalls("", "", "<tool_call>{{ c.name }}", "<arg_key>{{ k }}</arg_key><arg_value>", "</arg_value>", "</tool_call>"),
		"granite":         "<|tool_call|>{{ calls | tojson }}",
		"harmony":         each("", "<|start|>assistant", "", "<|channel|>commentary to=functions.{{ c.name }} <|constrain|>json<|message|>{{ c.arguments | tojson }}<|call|>"),
		"hunyuan": xmlCalls("<tool_calls:opensource>\n", "\n</tool_calls:opensource>", "<tool_call:opensource>{{ c.name }}<tool_sep:opensource>\n",
			"<arg_key:opensource>{{ k }}</arg_key:opensource>\n<arg_value:opensource>", "</arg_value:opensource>\n", "</tool_call:opensource>"),
		"jamba": each("<tool_calls>[\n  ", ",\n  ", "\n]</tool_calls>", "{{ c | tojson }}"),
		"kimi": each("<|tool_calls_section_begin|>", "", "<|tool_calls_section_end|>",
			"<|tool_call_begin|>{{ ids[loop.index0] }}<|tool_call_argument_begin|>{{ c.arguments | tojson }}<|tool_call_end|>"),
		"kimi_k3": each("<|open|>tools<|sep|>", "", "<|close|>tools<|sep|>", `<|open|>call tool="{{ c.name }}" index="{{ loop.index }}"<|sep|>`+
			`<|open|>json type="object"<|sep|>{{ c.arguments | tojson }}<|close|>json<|sep|><|close|>call<|sep|>`),
		"lfm2":   each("<|tool_call_start|>[", ", ", "]<|tool_call_end|>", pythonCall),
		"llama3": each("", "; ", "", `{{ {"name": c.name, "parameters": c.arguments} | tojson }}`),
		"longcat": xmlCalls("", "", "<longcat_tool_call>{{ c.name }}\n", "<longcat_arg_key>{{ k }}</longcat_arg_key>\n<longcat_arg_value>", "</longcat_arg_value>\n",
			"</longcat_tool_call>"),
		"minicpm5":   xmlCalls("", "", `<function name="{{ c.name }}">`, `<param name="{{ k }}">`, "</param>", "</function>"),
		"minimax":    xmlCalls("<minimax:tool_call>\n", "\n</minimax:tool_call>", `<invoke name="{{ c.name }}">`+"\n", `<parameter name="{{ k }}">`, "</parameter>\n", "</invoke>"),
		"mistral":    each("", "", "", "[TOOL_CALLS]{{ c.name }}[ARGS]{{ c.arguments | tojson }}"),
		"mistral_v3": each("[TOOL_CALLS] [", ", ", "]", "{{ c | tojson }}"),
		"muse": each("", "<|eom|><|start|>assistant", "<|eot|>", " to={{ c.name }}<|message|><atem:function_calls>\n"+
			`<atem:invoke name="{{ c.name }}">`+"\n"+`{% for k, v in c.arguments.items() %}<atem:parameter name="{{ k }}">{{ v if v is string else v | tojson }}</atem:parameter>{{ "\n" }}{% endfor %}`+
			"</atem:invoke>\n</atem:function_calls>"),
		"nemotron":    each("<TOOLCALL>[", ", ", "]</TOOLCALL>", "{{ c | tojson }}"),
		"pythonic":    each("[", ", ", "]", pythonCall),
		"qwen3_coder": xmlCalls("", "", "<tool_call>\n<function={{ c.name }}>\n", "<parameter={{ k }}>\n", "\n</parameter>\n", "</function>\n</tool_call>"),
		"seed_oss":    xmlCalls("", "", "<seed:tool_call>\n<function={{ c.name }}>\n", "<parameter={{ k }}>", "</parameter>\n", "</function>\n</seed:tool_call>"),
		"solar": each("<|tool_calls|>", "", "<|calls|>",
			"<|tool_call:begin|>a1b2c3d4e{{ loop.index }}<|tool_call:name|>{{ c.name }}<|tool_call:args|>{{ c.arguments | tojson }}<|tool_call:end|>"),
		"xlam": each("[", ", ", "]", "{{ c | tojson }}"),

		"deepseek_v32": xmlCalls("<｜DSML｜function_calls>\n", "\n</｜DSML｜function_calls>", `<｜DSML｜invoke name="{{ c.name }}">`+"\n",
			`<｜DSML｜parameter name="{{ k }}" string="{{ "true" if v is string else "false" }}">`, "</｜DSML｜parameter>\n", "</｜DSML｜invoke>"),
		"minimax_m3": `{% macro m(k, v) %}]<]minimax[>[<{{ k }}>{% if v is mapping %}{% for n, x in v.items() %}{{ m(n, x) }}{% endfor %}` +
			`{% elif v is string or v is not iterable %}{{ v if v is string else v | tojson }}{% else %}{% for x in v %}{{ m("item", x) }}{% endfor %}{% endif %}]<]minimax[>[</{{ k }}>{% endmacro %}` +
			each("]<]minimax[>[<tool_call>\n", "\n", "\n]<]minimax[>[</tool_call>",
				`]<]minimax[>[<invoke name="{{ c.name }}">{% for k, v in c.arguments.items() %}{{ m(k, v) }}{% endfor %}]<]minimax[>[</invoke>`),
	}
)

// pythonCall is a call in Python.
const pythonCall = `{{ c.name }}({% for k, v in c.arguments.items() %}{{ "" if loop.first else ", " }}{{ k }}={{ v | tojson if v is string else v }}{% endfor %})`

// each is a template of calls, what one of them looks like between what stands around and between them.
func each(before, between, after, one string) string {
	return quoted(before) + "{% for c in calls %}{% if not loop.first %}" + quoted(between) + "{% endif %}" + one + "{% endfor %}" + quoted(after)
}

// xmlCalls is of calls with their parameters one by one, texts as they are and other values as JSON.
func xmlCalls(before, after, open, param, paramClose, end string) string {
	return each(before, "\n", after, open+"{% for k, v in c.arguments.items() %}"+param+"{{ v if v is string else v | tojson }}"+quoted(paramClose)+"{% endfor %}"+end)
}

// bareCalls is of calls with keys without quotes and texts in a mark of their own.
func bareCalls(open, end, mark string) string {
	return `{% macro m(v) %}{% if v is string %}` + mark + `{{ v }}` + mark + `{% elif v is mapping %}{{ "{" }}{% for k, x in v.items() %}{{ "" if loop.first else "," }}{{ k }}:{{ m(x) }}{% endfor %}{{ "}" }}` +
		`{% elif v is iterable %}[{% for x in v %}{{ "" if loop.first else "," }}{{ m(x) }}{% endfor %}]{% else %}{{ v | tojson }}{% endif %}{% endmacro %}` +
		each("", "", "", open+"call:{{ c.name }}{{ m(c.arguments) }}"+end)
}

// quoted prints a text whose newlines at its ends the template would take with its blocks.
func quoted(text string) string { return "{{ " + strconv.Quote(text) + " }}" }

func mustParse(src string) *jinja.Template {
	t, err := jinja.Parse("calls", src)
	if err != nil {
		panic(err)
	}
	return t
}
