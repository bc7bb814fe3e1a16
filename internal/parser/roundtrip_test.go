package parser

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
			b.WriteString(strings.NewReplacer("NAME", p.name, "KIND", kind).Replace(param) + asText(p.value) + paramEnd)
		}
		return b.String() + end
	}
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
	alone  bool // a call only counts where no text stands before it
	say    string
}

var writings = []written{
	{family: "hermes", calls: each("", "\n", "", func(i int, c call) string {
		return "<tool_call>\n" + jsonForm("name", "arguments")(i, c) + "\n</tool_call>"
	})},
	{family: "qwen3_coder", calls: each("", "\n", "", xmlForm("<tool_call>\n<function=%s>\n", "</function>\n</tool_call>", "<parameter=NAME>\n", "\n</parameter>\n"))},
	{family: "hermes", calls: each("", "\n", "", xmlForm("<function=%s>\n", "</function>", "<parameter=NAME>\n", "\n</parameter>\n"))},
	{family: "seed_oss", calls: each("", "\n", "", xmlForm("<seed:tool_call>\n<function=%s>\n", "</function>\n</seed:tool_call>", "<parameter=NAME>", "</parameter>\n"))},
	{family: "minimax", calls: each("<minimax:tool_call>\n", "\n", "\n</minimax:tool_call>", xmlForm("<invoke name=\"%s\">\n", "</invoke>", "<parameter name=\"NAME\">", "</parameter>\n"))},
	{family: "deepseek_v32", calls: each("<｜DSML｜function_calls>\n", "\n", "\n</｜DSML｜function_calls>",
		xmlForm("<｜DSML｜invoke name=\"%s\">\n", "</｜DSML｜invoke>", "<｜DSML｜parameter name=\"NAME\" string=\"KIND\">", "</｜DSML｜parameter>\n"))},
	{family: "glm47", calls: each("", "", "", xmlForm("<tool_call>%s", "</tool_call>", "<arg_key>NAME</arg_key><arg_value>", "</arg_value>"))},
	{family: "glm47", calls: each("", "\n", "", xmlForm("<tool_call>%s\n", "</tool_call>", "<arg_key>NAME</arg_key>\n<arg_value>", "</arg_value>\n"))},
	{family: "mistral", calls: each("", "", "", headForm("[TOOL_CALLS]$n[ARGS]$a"))},
	{family: "mistral", calls: each("", "", "", headForm("[TOOL_CALLS]$n[CALL_ID]abcdefghi[ARGS]$a"))},
	{family: "mistral", calls: each("", "", "", headForm("[TOOL_CALLS]$n$a"))},
	{family: "mistral_v3", calls: each("[TOOL_CALLS] [", ", ", "]", jsonForm("name", "arguments"))},
	{family: "deepseek_v3", calls: each("<｜tool▁calls▁begin｜>", "\n", "<｜tool▁calls▁end｜>", headForm("<｜tool▁call▁begin｜>function<｜tool▁sep｜>$n\n```json\n$a\n```<｜tool▁call▁end｜>"))},
	{family: "deepseek_v31", calls: each("<｜tool▁calls▁begin｜>", "", "<｜tool▁calls▁end｜>", headForm("<｜tool▁call▁begin｜>$n<｜tool▁sep｜>$a<｜tool▁call▁end｜>"))},
	{family: "kimi", calls: each("<|tool_calls_section_begin|>", "", "<|tool_calls_section_end|>", headForm("<|tool_call_begin|>functions.$n:$i<|tool_call_argument_begin|>$a<|tool_call_end|>"))},
	{family: "granite", calls: each("<|tool_call|>[", ", ", "]", jsonForm("name", "arguments"))},
	{family: "nemotron", calls: each("<TOOLCALL>[", ", ", "]</TOOLCALL>", jsonForm("name", "arguments"))},
	{family: "jamba", calls: each("<tool_calls>[\n  ", ",\n  ", "\n]</tool_calls>", jsonForm("name", "arguments"))},
	{family: "jamba", calls: each("<tool_calls>\n", "\n", "\n</tool_calls>", jsonForm("name", "arguments"))},
	{family: "command_a", calls: each("<|START_ACTION|>[\n    ", ",\n    ", "\n]<|END_ACTION|>", jsonForm("tool_name", "parameters"))},
	{family: "xlam", calls: each("[", ", ", "]", jsonForm("name", "arguments")), alone: true},
	{family: "xlam", calls: each("```json\n[", ", ", "]\n```", jsonForm("name", "arguments")), alone: true},
	{family: "llama3", calls: each("", "; ", "", jsonForm("name", "parameters")), alone: true},
	{family: "llama3", calls: each("<|python_tag|>", ";", "", jsonForm("name", "parameters"))},
	{family: "pythonic", calls: each("[", ", ", "]", pythonForm), alone: true},
	{family: "pythonic", calls: each("<|python_start|>[", ", ", "]<|python_end|>", pythonForm)},
	{family: "lfm2", calls: each("<|tool_call_start|>[", ", ", "]<|tool_call_end|>", pythonForm)},
	{family: "gemma3", calls: each("```tool_code\n", "\n", "\n```", pythonForm)},
	{family: "gemma4", calls: each("", "", "", gemmaForm("<|tool_call>", "<tool_call|>", `<|"|>`))},
	{family: "functiongemma", calls: each("", "", "", gemmaForm("<start_function_call>", "<end_function_call>", "<escape>"))},
	{family: "functionary", calls: each(">>>", ">>>", "", headForm("$n\n$a"))},
	{family: "functionary", calls: each("<|recipient|>", "<|recipient|>", "", headForm("$n\n<|content|>$a"))},
	{family: "functionary_v31", calls: each("", "", "", headForm("<function=$n>$a</function>"))},
	{family: "harmony", say: "<|channel|>final<|message|>", calls: each("", "<|start|>assistant", "<|start|>assistant<|channel|>final<|message|>",
		headForm("<|channel|>commentary to=functions.$n <|constrain|>json<|message|>$a<|call|>"))},
}

// conversations are what every family must be able to say.
var conversations = []struct {
	name  string
	calls []call
}{
	{"no arguments", []call{{"f", nil}}},
	{"string", []call{{"get_weather", []param{{"city", "Paris"}}}}},
	{"empty string", []call{{"f", []param{{"s", ""}}}}},
	{"every type", []call{{"f", []param{{"s", "x"}, {"i", 7.0}, {"f", -1.5}, {"b", true}, {"l", []any{1.0, "a", nil}}, {"o", map[string]any{"k": map[string]any{}}}, {"sn", nil}}}}},
	{"strings that look like other types", []call{{"f", []param{{"s", "123"}}}, {"f", []param{{"s", "null"}}}, {"f", []param{{"s", "True"}}}, {"f", []param{{"s", "[1]"}}}}},
	{"unicode", []call{{"f", []param{{"s", "日本語 é 😀"}, {"o", map[string]any{"日": "本"}}}}}},
	{"quotes and backslashes", []call{{"f", []param{{"s", `say "hi", it's C:\new\x and \d+`}}}}},
	{"lines", []call{{"f", []param{{"content", "func main() {\n\tif a < b && c > d {\n\t}\n}"}}}}},
	{"brackets in strings", []call{{"f", []param{{"s", "a)] } , {("}, {"l", []any{"]", "}", ")"}}}}}},
	{"markup in strings", []call{{"f", []param{{"content", "<b>x</b> <tool_use> &amp; <!-- </p> -->"}}}}},
	{"nested", []call{{"f", []param{{"o", map[string]any{"a": []any{map[string]any{"b": []any{[]any{}, false}}}}}}}}},
	{"two", []call{{"f", []param{{"i", 1.0}}}, {"get_weather", []param{{"city", "Rome"}}}}},
	{"three of one", []call{{"f", []param{{"i", 1.0}}}, {"f", nil}, {"f", []param{{"i", 3.0}}}}},
	{"large", []call{{"f", []param{{"content", strings.Repeat("0123456789 abc\n", 50) + "."}}}}},
}

// TestRoundTrip writes calls as each family does and reads them back, alone and with reasoning and text around them.
func TestRoundTrip(t *testing.T) {
	for wi, w := range writings {
		f := familyByName(t, w.family)
		for _, c := range conversations {
			for _, around := range []string{"", "text", "reasoning"} {
				if around == "text" && w.alone || around == "reasoning" && f.Open == "" {
					continue
				}
				t.Run(fmt.Sprintf("%s %d/%s %s", w.family, wi, c.name, around), func(t *testing.T) {
					roundTrip(t, f, w, c.calls, around)
				})
			}
		}
	}
}

func roundTrip(t *testing.T, f *Family, w written, calls []call, around string) {
	var want []Piece
	output := ""
	switch around {
	case "text":
		output = w.say + "I look."
		if w.say != "" {
			output += harmonyEnd + harmonyStart + "assistant"
		}
		want = append(want, Piece{Text, "I look."})
	case "reasoning":
		output, want = f.Open+"Let me see."+f.Close, append(want, Piece{Reasoning, "Let me see."})
		if w.family == "harmony" {
			output += harmonyStart + "assistant"
		}
	}
	output += w.calls(calls)
	for _, c := range calls {
		want = append(want, Piece{ToolStart, c.name}, Piece{ToolArgs, c.json()}, Piece{ToolEnd, ""})
	}
	o := Options{Tools: declared("f", "get_weather")}
	got := parse(f.New(o), output)
	for _, ps := range [][]Piece{got, want} {
		for i := range ps {
			if ps[i].Kind == ToolArgs {
				ps[i].Text = canonical(t, ps[i].Text)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s\n(-want +got):\n%s", output, diff)
	}
	whole := parse(f.New(o), output)
	stride := 1
	if around != "" {
		stride = 11
	}
	for at := 1; at < min(len(output), 300); at += stride {
		if cut := parse(f.New(o), output[:at], output[at:]); !slices.Equal(whole, cut) {
			t.Fatalf("cut at byte %d (-whole +cut):\n%s", at, cmp.Diff(whole, cut))
		}
	}
}

// canonical is JSON with sorted keys.
func canonical(t *testing.T, s string) string {
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return asJSON(v)
}

// TestUndeclared: without tools, or for other tools, calls are text and none is invented.
func TestUndeclared(t *testing.T) {
	for wi, w := range writings {
		f := familyByName(t, w.family)
		output := w.calls([]call{{"f", []param{{"s", "x"}}}})
		for name, tools := range map[string][]Tool{"none": nil, "others": declared("g")} {
			t.Run(fmt.Sprintf("%s %d/%s", w.family, wi, name), func(t *testing.T) {
				text := ""
				for _, p := range parse(f.New(Options{Tools: tools}), output) {
					if p.Kind != Text {
						t.Fatalf("%v", p)
					}
					text += p.Text
				}
				if w.family != "harmony" && w.family != "functionary" && text != output {
					t.Errorf("%q came out as %q", output, text)
				}
				if !strings.Contains(text, "x") {
					t.Errorf("what the model said is lost: %q", text)
				}
			})
		}
	}
}

// TestTruncated: a call that is cut short never ends, and what came before its start is text.
func TestTruncated(t *testing.T) {
	for wi, w := range writings {
		f := familyByName(t, w.family)
		output := w.calls([]call{{"f", []param{{"s", "xyz"}}}})
		cut := strings.Index(output, "xyz") + 2
		t.Run(fmt.Sprintf("%s %d", w.family, wi), func(t *testing.T) {
			for at := range cut {
				for _, p := range parse(f.New(Options{Tools: declared("f")}), output[:at]) {
					if p.Kind == ToolEnd {
						t.Fatalf("%q ended a call", output[:at])
					}
				}
			}
		})
	}
}

// TestForcedOpenings: what a model adds to a forced opening is read as a call.
func TestForcedOpenings(t *testing.T) {
	for wi, w := range writings {
		f := familyByName(t, w.family)
		c := call{"f", []param{{"s", "xyz"}}}
		output := w.calls([]call{c})
		for _, tool := range []string{"", "f"} {
			opening := f.Force(tool)
			_, rest, ok := strings.Cut(strings.ReplaceAll(output, " ", ""), strings.ReplaceAll(opening, " ", ""))
			if !ok { // one of the other ways in which the family writes
				continue
			}
			t.Run(fmt.Sprintf("%s %d/%q", w.family, wi, tool), func(t *testing.T) {
				got := parse(f.New(Options{Tools: declared("f")}), opening, rest)
				if len(got) < 3 || got[0] != (Piece{ToolStart, "f"}) || canonical(t, got[1].Text) != canonical(t, c.json()) || got[2].Kind != ToolEnd {
					t.Errorf("%q and %q: %v", opening, rest, got)
				}
			})
		}
	}
}
