package dialect

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// param is an argument of a call, its value as encoding/json decodes it.
type param struct {
	name  string
	value any
}

type call struct {
	name   string
	params []param
}

func (c call) json() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, p := range c.params {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s: %s", asJSON(p.name), asJSON(p.value))
	}
	return b.String() + "}"
}

func asJSON(v any) string {
	if n, ok := v.(json.Number); ok {
		return string(n)
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// asPython writes a value as Python's repr would, strings in single quotes.
func asPython(v any) string {
	switch x := v.(type) {
	case nil:
		return "None"
	case bool:
		return map[bool]string{true: "True", false: "False"}[x]
	case string:
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\t", `\t`).Replace(x) + "'"
	case []any:
		var es []string
		for _, e := range x {
			es = append(es, asPython(e))
		}
		return "[" + strings.Join(es, ", ") + "]"
	case map[string]any:
		var es []string
		for _, k := range sortedKeys(x) {
			es = append(es, asPython(k)+": "+asPython(x[k]))
		}
		return "{" + strings.Join(es, ", ") + "}"
	}
	return asJSON(v)
}

// asGemma writes a value with keys without quotes and strings in a quote mark.
func asGemma(v any, quote string) string {
	switch x := v.(type) {
	case string:
		return quote + x + quote
	case []any:
		var es []string
		for _, e := range x {
			es = append(es, asGemma(e, quote))
		}
		return "[" + strings.Join(es, ",") + "]"
	case map[string]any:
		var es []string
		for _, k := range sortedKeys(x) {
			es = append(es, k+":"+asGemma(x[k], quote))
		}
		return "{" + strings.Join(es, ",") + "}"
	}
	return asJSON(v)
}

func sortedKeys(m map[string]any) []string {
	var ks []string
	for k := range m {
		ks = append(ks, k)
	}
	slices.Sort(ks)
	return ks
}

func asText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return asJSON(v)
}

// each writes calls one by one.
func each(before, between, after string, one func(i int, c call) string) func([]call) string {
	return func(cs []call) string {
		var out []string
		for i, c := range cs {
			out = append(out, one(i, c))
		}
		return before + strings.Join(out, between) + after
	}
}

func jsonForm(name, args string) func(int, call) string {
	return func(_ int, c call) string {
		return fmt.Sprintf(`{"%s": %s, "%s": %s}`, name, asJSON(c.name), args, c.json())
	}
}

func pythonForm(_ int, c call) string {
	var ps []string
	for _, p := range c.params {
		ps = append(ps, p.name+"="+asPython(p.value))
	}
	return c.name + "(" + strings.Join(ps, ", ") + ")"
}

// xmlForm writes %s of call open and close, %s of param open, close.
func xmlForm(open, end, param, paramEnd string) func(int, call) string {
	return func(_ int, c call) string {
		var b strings.Builder
		fmt.Fprintf(&b, open, c.name)
		for _, p := range c.params {
			kind := "false"
			if _, ok := p.value.(string); ok {
				kind = "true"
			}
			b.WriteString(strings.NewReplacer("NAME", p.name, "KIND", kind, "TYPE", xtmlType(p.value)).Replace(param) + asText(p.value) + paramEnd)
		}
		return b.String() + end
	}
}

// xtmlType is how Kimi K3 calls the type of a value.
func xtmlType(v any) string {
	switch x := v.(type) {
	case json.Number: // what is written as it is
		if of := map[byte]string{'t': "boolean", 'f': "boolean", '[': "array", '{': "object", 'n': "null"}[x[0]]; of != "" {
			return of
		}
	case string:
		return "string"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case nil:
		return "null"
	}
	return "number"
}

// m3Form writes lists and objects as tags.
func m3Form(_ int, c call) string {
	const ns = "]<]minimax[>["
	var element func(name string, v any) string
	element = func(name string, v any) string {
		inner := ""
		switch x := v.(type) {
		case map[string]any:
			for _, k := range sortedKeys(x) {
				inner += element(k, x[k])
			}
		case []any:
			for _, e := range x {
				inner += element("item", e)
			}
		default:
			inner = asText(v)
		}
		return ns + "<" + name + ">" + inner + ns + "</" + name + ">"
	}
	out := ns + `<invoke name="` + c.name + `">`
	for _, p := range c.params {
		out += element(p.name, p.value)
	}
	return out + ns + "</invoke>"
}

// cpmForm writes values as Python's str does, and in CDATA if they hold markup or newlines.
func cpmForm(_ int, c call) string {
	out := `<function name="` + c.name + `">`
	for _, p := range c.params {
		v, ok := p.value.(string)
		switch {
		case !ok:
			v = asPython(p.value)
		case strings.ContainsAny(v, "<&\n"):
			v = "<![CDATA[" + v + "]]>"
		}
		out += `<param name="` + p.name + `">` + v + "</param>"
	}
	return out + "</function>"
}

func gemmaForm(open, end, quote string) func(int, call) string {
	return func(_ int, c call) string {
		var ps []string
		for _, p := range c.params {
			ps = append(ps, p.name+":"+asGemma(p.value, quote))
		}
		return open + "call:" + c.name + "{" + strings.Join(ps, ",") + "}" + end
	}
}

func headForm(format string) func(int, call) string {
	return func(i int, c call) string {
		return strings.NewReplacer("$n", c.name, "$i", fmt.Sprint(i), "$a", c.json()).Replace(format)
	}
}

// written is how a family writes calls, after the description of its format.
type written struct {
	family string
	calls  func([]call) string
	alone  bool      // a call only counts where no text stands before it
	think  [2]string // around reasoning; none where the family has none
	say    [2]string // around text
	join   string    // between stretches of the reply
	again  bool      // another way of a family that stands above
	header bool      // headers around calls and text are neither
	noVoid bool      // empty lists and objects inside of others cannot be written
}

// part is a stretch of a reply: reasoning, text or calls.
type part struct {
	think, say string
	calls      []call
}

func (w written) render(parts ...part) string {
	var out []string
	for _, p := range parts {
		switch {
		case p.think != "":
			out = append(out, w.think[0]+p.think+w.think[1])
		case p.say != "":
			out = append(out, w.say[0]+p.say+w.say[1])
		default:
			out = append(out, w.calls(p.calls))
		}
	}
	return strings.Join(out, w.join)
}

var (
	inThink   = [2]string{"<think>\n", "\n</think>\n\n"}
	inTHINK   = [2]string{"[THINK]", "[/THINK]"}
	recipient = [2]string{">>>all\n", ""}
)

// writings are the families' ways to write, the first of each for the scenes.
var writings = []written{
	{family: "hermes", think: inThink, calls: each("", "\n", "", func(i int, c call) string {
		return "<tool_call>\n" + jsonForm("name", "arguments")(i, c) + "\n</tool_call>"
	})},
	{family: "hermes", again: true, think: inThink, calls: each("", "\n", "", xmlForm("<function=%s>\n", "</function>", "<parameter=NAME>\n", "\n</parameter>\n"))},
	{family: "qwen3_coder", think: inThink, calls: each("", "\n", "", xmlForm("<tool_call>\n<function=%s>\n", "</function>\n</tool_call>", "<parameter=NAME>\n", "\n</parameter>\n"))},
	{family: "seed_oss", think: [2]string{"<seed:think>", "</seed:think>"},
		calls: each("", "\n", "", xmlForm("<seed:tool_call>\n<function=%s>\n", "</function>\n</seed:tool_call>", "<parameter=NAME>", "</parameter>\n"))},
	{family: "minimax", think: inThink,
		calls: each("<minimax:tool_call>\n", "\n", "\n</minimax:tool_call>", xmlForm("<invoke name=\"%s\">\n", "</invoke>", "<parameter name=\"NAME\">", "</parameter>\n"))},
	{family: "minimax_m3", noVoid: true, think: [2]string{"<mm:think>", "</mm:think>"}, calls: each("]<]minimax[>[<tool_call>\n", "\n", "\n]<]minimax[>[</tool_call>", m3Form)},
	{family: "minicpm5", think: inThink, calls: each("", "\n", "", cpmForm)},
	{family: "deepseek_v32", think: [2]string{"<think>", "</think>"}, calls: each("<｜DSML｜function_calls>\n", "\n", "\n</｜DSML｜function_calls>",
		xmlForm("<｜DSML｜invoke name=\"%s\">\n", "</｜DSML｜invoke>", "<｜DSML｜parameter name=\"NAME\" string=\"KIND\">", "</｜DSML｜parameter>\n"))},
	{family: "kimi_k3", think: [2]string{"<|open|>think<|sep|>", "<|close|>think<|sep|>"}, say: [2]string{"<|open|>response<|sep|>", "<|close|>response<|sep|>"},
		calls: each("<|open|>tools<|sep|>", "", "<|close|>tools<|sep|>",
			xmlForm("<|open|>call tool=\"%s\" index=\"1\"<|sep|>", "<|close|>call<|sep|>", "<|open|>argument key=\"NAME\" type=\"TYPE\"<|sep|>", "<|close|>argument<|sep|>"))},
	{family: "kimi_k3", again: true, think: [2]string{"<|open|>think<|sep|>", "<|close|>think<|sep|>"}, say: [2]string{"<|open|>response<|sep|>", "<|close|>response<|sep|>"},
		calls: each("<|open|>tools<|sep|>", "", "<|close|>tools<|sep|>",
			headForm("<|open|>call tool=\"$n\" index=\"$i\"<|sep|><|open|>json type=\"object\"<|sep|>$a<|close|>json<|sep|><|close|>call<|sep|>"))},
	{family: "muse", header: true, think: [2]string{" to=self<|message|>", "<|eom|>"}, say: [2]string{" to=user<|message|>", "<|eom|>"}, join: "<|start|>assistant",
		calls: each("", "<|eom|><|start|>assistant", "<|eot|>", func(i int, c call) string {
			return " to=" + c.name + "<|message|><atem:function_calls>\n" + xmlForm("<atem:invoke name=\"%s\">\n", "</atem:invoke>\n</atem:function_calls>",
				"<atem:parameter name=\"NAME\">", "</atem:parameter>\n")(i, c)
		})},
	{family: "glm47", think: inThink, calls: each("", "", "", xmlForm("<tool_call>%s", "</tool_call>", "<arg_key>NAME</arg_key><arg_value>", "</arg_value>"))},
	{family: "glm47", again: true, think: inThink, calls: each("", "\n", "", xmlForm("<tool_call>%s\n", "</tool_call>", "<arg_key>NAME</arg_key>\n<arg_value>", "</arg_value>\n"))},
	{family: "longcat", think: [2]string{"<longcat_think>\n", "\n</longcat_think>\n"}, calls: each("", "\n", "", xmlForm("<longcat_tool_call>%s\n", "</longcat_tool_call>",
		"<longcat_arg_key>NAME</longcat_arg_key>\n<longcat_arg_value>", "</longcat_arg_value>\n"))},
	{family: "longcat", again: true, calls: each("", "\n", "", func(i int, c call) string {
		return "<longcat_tool_call>" + jsonForm("name", "arguments")(i, c) + "</longcat_tool_call>"
	})},
	{family: "hunyuan", think: [2]string{"<think:opensource>", "</think:opensource>"}, calls: each("<tool_calls:opensource>\n", "\n", "\n</tool_calls:opensource>",
		xmlForm("<tool_call:opensource>%s<tool_sep:opensource>\n", "</tool_call:opensource>",
			"<arg_key:opensource>NAME</arg_key:opensource>\n<arg_value:opensource>", "</arg_value:opensource>\n"))},
	{family: "hunyuan", again: true, calls: each("", "\n", "", headForm("<tool_call:opensource>$n<tool_sep:opensource>$a<end_of_tool_call:opensource>"))},
	{family: "mistral", think: inTHINK, calls: each("", "", "", headForm("[TOOL_CALLS]$n[ARGS]$a"))},
	{family: "mistral", again: true, think: inTHINK, calls: each("", "", "", headForm("[TOOL_CALLS]$n[CALL_ID]abcdefghi[ARGS]$a"))},
	{family: "mistral", again: true, think: inTHINK, calls: each("", "", "", headForm("[TOOL_CALLS]$n$a"))},
	{family: "mistral_v3", think: inTHINK, calls: each("[TOOL_CALLS] [", ", ", "]", jsonForm("name", "arguments"))},
	{family: "deepseek_v3", think: inThink, calls: each("<｜tool▁calls▁begin｜>", "\n", "<｜tool▁calls▁end｜>", headForm("<｜tool▁call▁begin｜>function<｜tool▁sep｜>$n\n```json\n$a\n```<｜tool▁call▁end｜>"))},
	{family: "deepseek_v31", think: inThink, calls: each("<｜tool▁calls▁begin｜>", "", "<｜tool▁calls▁end｜>", headForm("<｜tool▁call▁begin｜>$n<｜tool▁sep｜>$a<｜tool▁call▁end｜>"))},
	{family: "kimi", think: [2]string{"<think>", "</think>"},
		calls: each("<|tool_calls_section_begin|>", "", "<|tool_calls_section_end|>", headForm("<|tool_call_begin|>functions.$n:$i<|tool_call_argument_begin|>$a<|tool_call_end|>"))},
	{family: "solar", think: [2]string{"<|think|>", "<|end|>"}, say: [2]string{"<|content|>", "<|end|>"}, join: "<|begin|>assistant",
		calls: each("<|tool_calls|>", "", "<|calls|>", headForm("<|tool_call:begin|>a1b2c3d4e$i<|tool_call:name|>$n<|tool_call:args|>$a<|tool_call:end|>"))},
	{family: "apertus", think: [2]string{"<|inner_prefix|>", "<|inner_suffix|>"}, calls: each("<|tools_prefix|>[", ", ", "]<|tools_suffix|>", headForm(`{"$n": $a}`))},
	{family: "gigachat", calls: each("<|function_call|>", "<|function_call|>", "", jsonForm("name", "arguments"))},
	{family: "gigachat_v30", header: true, calls: each("", "", "", func(i int, c call) string {
		return "<|message_sep|>\n\nfunction call<|role_sep|>\n" + jsonForm("name", "arguments")(i, c)
	})},
	{family: "granite", think: inThink, calls: each("<|tool_call|>[", ", ", "]", jsonForm("name", "arguments"))},
	{family: "nemotron", think: inThink, calls: each("<TOOLCALL>[", ", ", "]</TOOLCALL>", jsonForm("name", "arguments"))},
	{family: "jamba", think: inThink, calls: each("<tool_calls>[\n  ", ",\n  ", "\n]</tool_calls>", jsonForm("name", "arguments"))},
	{family: "jamba", again: true, think: inThink, calls: each("<tool_calls>\n", "\n", "\n</tool_calls>", jsonForm("name", "arguments"))},
	{family: "command_a", think: [2]string{"<|START_THINKING|>", "<|END_THINKING|>"}, say: [2]string{"<|START_RESPONSE|>", "<|END_RESPONSE|>"},
		calls: each("<|START_ACTION|>[\n    ", ",\n    ", "\n]<|END_ACTION|>", jsonForm("tool_name", "parameters"))},
	{family: "xlam", think: inThink, calls: each("[", ", ", "]", jsonForm("name", "arguments")), alone: true},
	{family: "xlam", again: true, think: inThink, calls: each("```json\n[", ", ", "]\n```", jsonForm("name", "arguments")), alone: true},
	{family: "llama3", again: true, think: inThink, calls: each("", "; ", "", jsonForm("name", "parameters")), alone: true},
	{family: "llama3", think: inThink, calls: each("<|python_tag|>", ";", "", jsonForm("name", "parameters"))},
	{family: "pythonic", again: true, think: inThink, calls: each("[", ", ", "]", pythonForm), alone: true},
	{family: "pythonic", header: true, think: inThink, calls: each("<|python_start|>[", ", ", "]<|python_end|>", pythonForm)},
	{family: "lfm2", think: inThink, calls: each("<|tool_call_start|>[", ", ", "]<|tool_call_end|>", pythonForm)},
	{family: "gemma3", calls: each("```tool_code\n", "\n", "\n```", pythonForm)},
	{family: "gemma4", think: [2]string{"<|channel>thought\n", "\n<channel|>"}, calls: each("", "", "", gemmaForm("<|tool_call>", "<tool_call|>", `<|"|>`))},
	{family: "functiongemma", calls: each("", "", "", gemmaForm("<start_function_call>", "<end_function_call>", "<escape>"))},
	{family: "functionary", header: true, say: recipient, calls: each(">>>", ">>>", "", headForm("$n\n$a"))},
	{family: "functionary", header: true, again: true, say: [2]string{"<|recipient|>all\n<|content|>", ""}, calls: each("<|recipient|>", "<|recipient|>", "", headForm("$n\n<|content|>$a"))},
	{family: "functionary_v31", calls: each("", "", "", headForm("<function=$n>$a</function>"))},
	{family: "harmony", header: true, think: [2]string{"<|channel|>analysis<|message|>", "<|end|>"}, say: [2]string{"<|channel|>final<|message|>", "<|end|>"}, join: "<|start|>assistant",
		calls: each("", "<|start|>assistant", "", headForm("<|channel|>commentary to=functions.$n <|constrain|>json<|message|>$a<|call|>"))},
}
