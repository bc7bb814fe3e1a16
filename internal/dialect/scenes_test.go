package dialect

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// scene is a reply that every family must be able to give. What the family writes is in testdata/scenes, one file a
// family, with the pieces it must become.
type scene struct {
	name  string
	opts  string // of the section's name, "tools=f,get_weather" if empty
	parts []part
	alter func(w written, output string) string // of what was written; nil for nothing
	want  func(w written, output string) []Piece
	own   bool // what comes out differs by family, so only the file says it
}

const sceneTools = "tools=f,get_weather"

func one(name string, params ...param) part { return part{calls: []call{{name, params}}} }

func says(text string) part   { return part{say: text} }
func thinks(text string) part { return part{think: text} }

// scenes with one call of f with one argument.
var arguments = []struct {
	name string
	param
}{
	{"string", param{"s", "x"}},
	{"integer", param{"i", 7.0}},
	{"number", param{"f", -1.5}},
	{"boolean", param{"b", true}},
	{"null", param{"sn", nil}},
	{"list", param{"l", []any{1.0, "a", nil, true}}},
	{"object", param{"o", map[string]any{"k": map[string]any{"n": []any{1.0}}}}},
	{"deep", param{"o", map[string]any{"a": []any{map[string]any{"b": []any{[]any{1.0}, map[string]any{"c": "d"}}}}}}},
	{"undeclared_parameter", param{"other", "text"}},
	{"empty_string", param{"s", ""}},
	{"empty_list", param{"l", []any{}}},
	{"string_like_number", param{"s", "123"}},
	{"string_like_boolean", param{"s", "true"}},
	{"string_like_null", param{"s", "null"}},
	{"string_like_list", param{"s", "[1, 2]"}},
	{"string_like_object", param{"content", `{"a": 1}`}},
	{"unicode", param{"s", "日本語 é 😀"}},
	{"quotes", param{"s", `say "hi" and it's`}},
	{"backslashes", param{"s", `C:\new\dir \d+\"`}},
	{"newlines", param{"content", "line 1\n\tline 2\n\nline 4"}},
	{"xml_in_value", param{"content", `<b>x</b> &amp; <a href="u">`}},
	{"brackets_in_value", param{"s", "a)] } , {(["}},
	{"tags_in_value", param{"s", "</think> and <tool_call> and </tool_call> and [ARGS]"}},
	{"blanks_in_value", param{"s", "  two  "}},
}

var scenes = func() []scene {
	var ss []scene
	for _, a := range arguments {
		ss = append(ss, scene{name: "argument_" + a.name, parts: []part{one("f", a.param)}})
	}
	x := param{"s", "x"}
	rome := one("get_weather", param{"city", "Rome"})
	return append(ss,
		scene{name: "text", parts: []part{says("Hello, 1 < 2 and a[0] > {b}.")}},
		scene{name: "text_lines", parts: []part{says("First.\n\n- Second: \"q\" \\n\n\nThird.")}},
		scene{name: "text_unicode", parts: []part{says("日本語 é 😀 — done.")}},
		scene{name: "no_arguments", parts: []part{one("f")}},
		scene{name: "several_arguments", parts: []part{one("f", x, param{"i", 7.0}, param{"b", false}, param{"l", []any{"a"}}, param{"content", "y"})}},
		scene{name: "two_calls", parts: []part{{calls: []call{{"f", []param{x}}, {"get_weather", []param{{"city", "Rome"}}}}}}},
		scene{name: "three_calls", parts: []part{{calls: []call{{"f", []param{{"i", 1.0}}}, {"f", nil}, {"f", []param{{"i", 3.0}}}}}}},
		scene{name: "dashed_name", opts: "tools=my-tool_2", parts: []part{one("my-tool_2", x)}},
		scene{name: "text_before", parts: []part{says("I look."), one("f", x)}},
		scene{name: "text_after", parts: []part{one("f", x), says("Done.")}},
		scene{name: "text_between", parts: []part{says("One."), one("f", x), says("Two."), rome}},
		scene{name: "reasoning_text", parts: []part{thinks("Hm, 1 < 2."), says("Yes.")}},
		scene{name: "reasoning_call", parts: []part{thinks("I call."), one("f", x)}},
		scene{name: "reasoning_text_call", parts: []part{thinks("Hm."), says("I look."), one("f", x)}},
		scene{name: "reasoning_lines", parts: []part{thinks("First.\n\nThen: {\"a\": [1]}"), says("Yes.")}},
		scene{name: "reasoning_open", parts: []part{thinks("Hm, and then"), says("Yes.")}, alter: func(w written, s string) string {
			return s[:strings.Index(s, "then")+4]
		}, want: func(written, string) []Piece { return []Piece{{Kind: Reasoning, Text: "Hm, and then"}} }},
		scene{name: "reasoning_begun_by_prompt", opts: sceneTools + " reasoning", parts: []part{thinks("Hm."), says("Yes."), one("f", x)},
			alter: func(w written, s string) string { return strings.TrimPrefix(s, w.think[0]) }},
		scene{name: "call_in_open_reasoning", parts: []part{thinks("I call."), one("f", x)}, alter: func(w written, s string) string {
			return strings.Replace(s, w.think[1], "", 1)
		}},
		scene{name: "undeclared", parts: []part{one("h", x)}, want: surfaced},
		scene{name: "no_tools", opts: "-", parts: []part{says("So:"), one("f", x)}, want: surfaced},
		scene{name: "undeclared_second", parts: []part{{calls: []call{{"f", []param{x}}, {"h", []param{x}}}}}, own: true},
		scene{name: "cut_in_string", opts: sceneTools + " cut", parts: []part{one("f", param{"s", "abcdef"})}, alter: upTo("abc"),
			want: func(written, string) []Piece {
				return []Piece{{Kind: ToolStart, Text: "f"}, {Kind: ToolArgs, Text: `{"s": "abc`}}
			}},
		scene{name: "cut_in_name", opts: sceneTools + " cut", parts: []part{rome}, alter: upTo("get_wea"), want: surfaced},
		scene{name: "cut_after_first", opts: sceneTools + " cut", parts: []part{{calls: []call{{"f", []param{x}}, {"get_weather", []param{{"city", "Rome"}}}}}},
			alter: upTo("get_wea"), own: true},
		scene{name: "cut_before_end", opts: sceneTools + " cut", parts: []part{one("f", x)}, alter: withoutEnd, own: true},
		scene{name: "no_end", parts: []part{one("f", x)}, alter: withoutEnd, own: true},
		scene{name: "malformed", parts: []part{one("f", param{"s", "abc"})}, own: true, alter: func(w written, s string) string {
			return s[:strings.Index(s, "abc")] + "abc\" ::} </oops> and so on."
		}},
		scene{name: "malformed_then_call", parts: []part{one("f", param{"i", 1.0}), one("f", param{"i", 2.0})}, own: true, alter: func(w written, s string) string {
			return strings.Replace(s, "1", "1 1", 1)
		}},
		scene{name: "repair_integer", parts: []part{one("f", param{"i", json.Number("5.0")})}, want: gives(`{"i": 5}`)},
		scene{name: "repair_boolean", parts: []part{one("f", param{"b", "false"})}, want: gives(`{"b": false}`)},
		scene{name: "repair_encoded", parts: []part{one("f", param{"l", "[1, 2]"})}, want: gives(`{"l": [1, 2]}`)},
		scene{name: "repair_string", parts: []part{one("f", param{"s", 7.0})}, want: gives(`{"s": "7"}`)},
		scene{name: "repair_off", opts: sceneTools + " strict", parts: []part{one("f", param{"i", json.Number("5.0")})}, want: gives(`{"i": 5.0}`)},
		scene{name: "name_case", parts: []part{one("Get-Weather", param{"city", "Rome"})}, want: callsWeather},
		scene{name: "name_namespace", parts: []part{one("default_api.get_weather", param{"city", "Rome"})}, want: callsWeather},
		scene{name: "name_server", parts: []part{one("mcp__sky__getWeather", param{"city", "Rome"})}, want: callsWeather},
		scene{name: "name_second", parts: []part{{calls: []call{{"f", []param{x}}, {"GetWeather", []param{{"city", "Rome"}}}}}},
			want: func(w written, s string) []Piece { return append(gives(`{"s": "x"}`)(w, s), callsWeather(w, s)...) }},
		scene{name: "name_then_call", parts: []part{{calls: []call{{"GetWeather", []param{{"city", "Rome"}}}, {"f", []param{x}}}}},
			want: func(w written, s string) []Piece { return append(callsWeather(w, s), gives(`{"s": "x"}`)(w, s)...) }},
		scene{name: "name_of_two", opts: "tools=read,Read", parts: []part{one("READ", x)}, want: surfaced},
		scene{name: "name_exact_of_two", opts: "tools=f,F", parts: []part{one("f", x)}},
		scene{name: "name_unfit", parts: []part{one("F", x, param{"other", "y"})}, want: surfaced},
		scene{name: "name_unfit_type", parts: []part{one("F", param{"l", "x"})}, want: surfaced},
		scene{name: "name_lacks", opts: "tools=strict_tool", parts: []part{one("strictTool", x)}, want: surfaced},
		scene{name: "name_strict", opts: sceneTools + " strict", parts: []part{one("F", x)}, want: surfaced},
		scene{name: "name_cut", opts: sceneTools + " cut", parts: []part{one("F", param{"s", "abcdef"})}, alter: upTo("abc"), want: surfaced},
		scene{name: "json_brace_missing", parts: jsonParts, alter: inJSON(`"x"}`, `"x"`), want: gives(jsonArgs)},
		scene{name: "json_brackets_missing", parts: []part{one("f", param{"i", 7.0}, param{"o", map[string]any{"k": []any{map[string]any{"n": 1.0}}}})},
			alter: inJSON(`1}]}}`, `1`), want: gives(`{"i": 7, "o": {"k": [{"n": 1}]}}`)},
		scene{name: "json_brackets_mixed", parts: []part{one("f", param{"i", 7.0}, param{"l", []any{map[string]any{"n": 1.0}}})},
			alter: inJSON(`1}]}`, `1}}`), want: gives(`{"i": 7, "l": [{"n": 1}]}`)},
		scene{name: "json_brace_missing_then_call", parts: []part{{calls: []call{{"f", []param{{"i", 7.0}}}, {"get_weather", []param{{"city", "Rome"}}}}}},
			alter: inJSON(`7}`, `7`), want: func(w written, s string) []Piece { return append(gives(`{"i": 7}`)(w, s), callsWeather(w, s)...) }},
		scene{name: "json_brace_missing_strict", opts: sceneTools + " strict", parts: jsonParts, alter: inJSON(`"x"}`, `"x"`), own: true},
		scene{name: "json_brace_missing_cut", opts: sceneTools + " cut", parts: jsonParts, alter: func(w written, s string) string {
			whole, _, _ := strings.Cut(inJSON(`"x"}`, `"x"CUT`)(w, s), "CUT")
			return whole
		}, own: true},
		scene{name: "json_brace_in_doubt", parts: []part{one("f", param{"o", map[string]any{"b": 1.0, "i": 7.0}})}, alter: inJSON(`7}}`, `7}`), own: true},
		scene{name: "json_brace_extra", parts: jsonParts, alter: inJSON(`"x"}`, `"x"}}`), want: gives(jsonArgs)},
		scene{name: "json_brace_extra_inside", parts: jsonParts, alter: inJSON(`]},`, `]}},`), want: gives(jsonArgs)},
		scene{name: "json_brace_extra_then_call", parts: []part{{calls: []call{{"f", []param{{"i", 7.0}}}, {"get_weather", []param{{"city", "Rome"}}}}}},
			alter: inJSON(`7}`, `7}}`), want: func(w written, s string) []Piece { return append(gives(`{"i": 7}`)(w, s), callsWeather(w, s)...) }},
		scene{name: "json_brace_extra_strict", opts: sceneTools + " strict", parts: jsonParts, alter: inJSON(`"x"}`, `"x"}}`), own: true},
		scene{name: "json_braces_doubled", parts: jsonParts, alter: inJSON(jsonArgs, "{"+jsonArgs+"}"), want: gives(jsonArgs)},
		scene{name: "json_comma_trailing", parts: jsonParts, alter: inJSON(`"a"]`, "\"a\",\n]", `"x"}`, `"x", }`), want: gives(jsonArgs)},
		scene{name: "json_comma_missing", parts: jsonParts, alter: inJSON(`7, "o"`, `7 "o"`, `, "s": "x"`, "\n\"s\": \"x\""), want: gives(jsonArgs)},
		scene{name: "json_quotes_single", parts: jsonParts, alter: inJSON(jsonArgs, strings.ReplaceAll(jsonArgs, `"`, "'")), want: gives(jsonArgs)},
		scene{name: "json_quotes_in_single", parts: []part{one("f", param{"s", "q"})}, alter: inJSON(`"s": "q"`, `'s': 'it\'s "so", isn't it'`),
			want: gives(`{"s": "it's \"so\", isn't it"}`)},
		scene{name: "json_keys_bare", parts: jsonParts, alter: inJSON(`"s"`, `s`, `"o"`, `o`, `"k"`, `k`, `"i"`, `i`), want: gives(jsonArgs)},
		scene{name: "json_comments", parts: jsonParts, alter: inJSON(`{"i"`, "{ // \"s\": 1}\n\"i\"", `, "s": "x"`, `, /* s * / */ "s": "x" # last`+"\n"), want: gives(jsonArgs)},
		scene{name: "json_mended_strict", opts: sceneTools + " strict", parts: jsonParts, alter: inJSON(`"x"}`, `"x", }`), own: true},
		scene{name: "repair_yes", parts: []part{one("f", param{"b", "yes"})}, want: gives(`{"b": true}`)},
		scene{name: "repair_zero", parts: []part{one("f", param{"b", 0.0})}, want: gives(`{"b": false}`)},
		scene{name: "repair_null", parts: []part{one("f", param{"in", "null"})}, want: gives(`{"in": null}`)},
		scene{name: "repair_deep", parts: []part{one("f", param{"q", map[string]any{"limit": "5", "on": "False", "tags": []any{1.0, "a"},
			"next": map[string]any{"limit": json.Number("7.0"), "sizes": []any{"1.5", 2.0}}}})},
			want: gives(`{"q": {"limit": 5, "next": {"limit": 7, "sizes": [1.5, 2]}, "on": false, "tags": ["1", "a"]}}`)},
		scene{name: "repair_deep_encoded", parts: []part{one("f", param{"q", map[string]any{"next": `{"limit": "5", "sizes": "[1, \"2\"]"}`, "tags": `["a"]`}})},
			want: gives(`{"q": {"next": {"limit": 5, "sizes": [1, 2]}, "tags": ["a"]}}`)},
		scene{name: "repair_deep_alternative", parts: []part{one("f", param{"p", map[string]any{"k": "a", "v": "5"}})}, want: gives(`{"p": {"k": "a", "v": 5}}`)},
		scene{name: "fits_deep_alternative", parts: []part{one("f", param{"p", map[string]any{"k": "b", "v": "5"}})}},
		scene{name: "repair_deep_off", opts: sceneTools + " strict", parts: []part{one("f", param{"q", map[string]any{"limit": json.Number("5.0")}})}, want: gives(`{"q": {"limit": 5.0}}`)},
		scene{name: "fits_deep", parts: []part{one("f", param{"q", map[string]any{"limit": 5.0, "on": true, "tags": []any{"1", "true", "[1]"}, "next": map[string]any{"next": nil}}})}},
		scene{name: "leak_json", parts: []part{says(leakedF)}, want: gives(`{"s": "x"}`)},
		scene{name: "leak_fence", parts: []part{says("```json\n" + leakedF + "\n```")}, want: gives(`{"s": "x"}`)},
		scene{name: "leak_plain_fence", parts: []part{says("```\n" + leakedF + "\n```\n")}, want: gives(`{"s": "x"}`)},
		scene{name: "leak_tools", parts: []part{says("<tools>\n" + leakedF + "\n</tools>")}, want: gives(`{"s": "x"}`)},
		scene{name: "leak_tag", parts: []part{says("<function_call>" + leakedF + "</function_call>")}, want: gives(`{"s": "x"}`)},
		scene{name: "leak_tag_in_fence", parts: []part{says("```xml\n<tools>\n" + leakedF + "\n</tools>\n```")}, want: gives(`{"s": "x"}`)},
		scene{name: "leak_text_tools", parts: []part{says("I look.\n<tools>\n" + leakedF + "\n</tools>")},
			want: func(w written, s string) []Piece {
				return append([]Piece{{Kind: Text, Text: "I look."}}, gives(`{"s": "x"}`)(w, s)...)
			}},
		scene{name: "leak_reasoning", parts: []part{thinks("I call."), says("```json\n" + leakedF + "\n```")},
			want: func(w written, s string) []Piece {
				return append([]Piece{{Kind: Reasoning, Text: "I call."}}, gives(`{"s": "x"}`)(w, s)...)
			}},
		scene{name: "leak_two", parts: []part{says(leakedF + "\n" + leakedWeather)}, want: leakedTwo},
		scene{name: "leak_two_fences", parts: []part{says("```json\n" + leakedF + "\n```\n\n```json\n" + leakedWeather + "\n```")}, want: leakedTwo},
		scene{name: "leak_list", parts: []part{says("```json\n[" + leakedF + ",\n" + leakedWeather + "]\n```")}, want: leakedTwo},
		scene{name: "leak_name", parts: []part{says("```json\n" + `{"name": "functions.GetWeather", "arguments": {"city": "Rome"}}` + "\n```")}, want: callsWeather},
		scene{name: "leak_keys", parts: []part{says("```json\n" + `{"function": "f", "parameters": {"s": "x"}}` + "\n```")}, want: gives(`{"s": "x"}`)},
		scene{name: "leak_unclosed", parts: []part{says("```json\n" + leakedF)}, want: gives(`{"s": "x"}`)},
		scene{name: "leak_example", parts: []part{says("For example:\n```json\n" + leakedF + "\n```")}},
		scene{name: "leak_then_text", parts: []part{says("```json\n" + leakedF + "\n```\nThat is how.")}},
		scene{name: "leak_tools_then_text", parts: []part{says("<tools>\n" + leakedF + "\n</tools>\nThat is how.")}},
		scene{name: "leak_tools_in_line", parts: []part{says("Write <tools>" + leakedF + "</tools>")}},
		scene{name: "leak_in_line", parts: []part{says("Write " + leakedF)}},
		scene{name: "leak_tools_in_fence", parts: []part{says("So:\n```xml\n<tools>\n" + leakedF + "\n</tools>\n```")}},
		scene{name: "leak_comment", parts: []part{says("```json\n// a call\n" + leakedF + "\n```")}},
		scene{name: "leak_no_tools", opts: "-", parts: []part{says("```json\n" + leakedF + "\n```")}},
		scene{name: "leak_form", opts: sceneTools + " form", parts: []part{says("<tools>" + leakedF + "</tools>")}},
		scene{name: "leak_strict", opts: sceneTools + " strict", parts: []part{says("<tools>" + leakedF + "</tools>")}},
		scene{name: "leak_cut", opts: sceneTools + " cut", parts: []part{says("<tools>\n" + leakedF)}},
		scene{name: "leak_unfit", parts: []part{says("<tools>\n" + `{"name": "f", "arguments": {"other": 1}}` + "\n</tools>")}},
		scene{name: "leak_undeclared", parts: []part{says("<tools>\n" + `{"name": "h", "arguments": {"s": "x"}}` + "\n</tools>")}},
		scene{name: "leak_declaration", parts: []part{says("<tools>\n" + `{"name": "f", "description": "d", "parameters": {"type": "object"}}` + "\n</tools>")}},
		scene{name: "leak_of_other_keys", parts: []part{says("```json\n" + `{"title": "f", "arguments": {"s": "x"}}` + "\n```")}},
		scene{name: "line_ends_crlf", parts: []part{one("f", x, param{"i", 7.0})}, alter: replaced("\n", "\r\n")},
		scene{name: "tag_end_missing", parts: pathAndContent, alter: replaced(`aaa\s*(?:`+closingTag+`)`, "aaa")},
		scene{name: "tag_end_wrong", parts: pathAndContent, alter: replaced(`(aaa\s*)</[^>]*>`, "$1</path>")},
		scene{name: "tag_end_misspelled", parts: pathAndContent, alter: replaced(`(aaa\s*)</([^>])([^>]*>)`, "$1</$2$2$3")},
		scene{name: "tag_last_end_missing", parts: pathAndContent, alter: replaced(`bbb\s*(?:`+closingTag+`)`, "bbb")},
		scene{name: "tag_end_missing_cut", opts: sceneTools + " cut", own: true, parts: pathAndContent, alter: func(w written, s string) string {
			s = replaced(`aaa\s*(?:`+closingTag+`)`, "aaa")(w, s)
			return s[:strings.Index(s, "bbb")+2]
		}},
		scene{name: "tag_end_missing_strict", opts: sceneTools + " strict", own: true, parts: pathAndContent, alter: replaced(`aaa\s*(?:`+closingTag+`)`, "aaa")},
		scene{name: "bracket_missing", parts: pathAndContent, alter: replaced(`[)}]([^)}]*)$`, "$1")},
		scene{name: "bracket_doubled", parts: pathAndContent, alter: replaced(`([)}])([^)}]*)$`, "$1$1$2")},
		scene{name: "large", parts: []part{one("f", param{"content", strings.Repeat("0123456789 abc\n", 12) + "."})}},
	)
}()

// Calls without marks of the family.
const (
	leakedF       = `{"name": "f", "arguments": {"s": "x"}}`
	leakedWeather = `{"name": "get_weather", "arguments": {"city": "Rome"}}`
)

func leakedTwo(w written, s string) []Piece {
	return append(gives(`{"s": "x"}`)(w, s), callsWeather(w, s)...)
}

func callsWeather(written, string) []Piece {
	return []Piece{{Kind: ToolStart, Text: "get_weather"}, {Kind: ToolArgs, Text: `{"city": "Rome"}`}, {Kind: ToolEnd}}
}

// jsonArgs are the arguments of jsonParts, where a family writes them as JSON.
const jsonArgs = `{"i": 7, "o": {"k":[1,"a"]}, "s": "x"}`

var jsonParts = []part{one("f", param{"i", 7.0}, param{"o", map[string]any{"k": []any{1.0, "a"}}}, param{"s", "x"})}

// inJSON replaces what stands in the JSON of the first call, and gives nothing for families that write none.
func inJSON(oldnew ...string) func(written, string) string {
	return func(w written, output string) string {
		if !strings.Contains(w.calls([]call{{"f", []param{{"s", "x"}}}}), `{"s": "x"}`) {
			return ""
		}
		for i := 0; i < len(oldnew); i += 2 {
			if !strings.Contains(output, oldnew[i]) {
				panic(oldnew[i] + " is not in " + output)
			}
			output = strings.Replace(output, oldnew[i], oldnew[i+1], 1)
		}
		return output
	}
}

var pathAndContent = []part{one("f", param{"path", "aaa"}, param{"content", "bbb"})}

// closingTag is the end of a value in families that have a tag for it.
const closingTag = `</[^>]*>|]<]minimax\[>\[</[^>]*>|<\|close\|>argument<\|sep\|>`

// replaced writes something else where a pattern first matches. Where it does not, the form has no such place.
func replaced(pattern, with string) func(written, string) string {
	re := regexp.MustCompile(pattern)
	return func(_ written, output string) string {
		if pattern == "\n" {
			return re.ReplaceAllString(output, with)
		}
		at := re.FindStringSubmatchIndex(output)
		if at == nil {
			return output
		}
		return output[:at[0]] + string(re.ExpandString(nil, with, output, at)) + output[at[1]:]
	}
}

func gives(args string) func(written, string) []Piece {
	return func(written, string) []Piece {
		return []Piece{{Kind: ToolStart, Text: "f"}, {Kind: ToolArgs, Text: args}, {Kind: ToolEnd, Text: ""}}
	}
}

// surfaced is what a family writes, as text.
func surfaced(w written, output string) []Piece {
	return []Piece{{Kind: Text, Text: strings.NewReplacer(w.say[0], "", w.say[1], "", w.join, "").Replace(output)}}
}

func upTo(s string) func(written, string) string {
	return func(_ written, output string) string { return output[:strings.LastIndex(output, s)+len(s)] }
}

// withoutEnd takes the last mark off.
func withoutEnd(_ written, output string) string {
	return output[:strings.LastIndexAny(output, "<[]})")]
}

// pieces is what the parts of a scene must become.
func pieces(parts []part) []Piece {
	var ps []Piece
	for _, p := range parts {
		switch {
		case p.think != "":
			ps = append(ps, Piece{Kind: Reasoning, Text: p.think})
		case p.say != "":
			ps = append(ps, Piece{Kind: Text, Text: p.say})
		}
		for _, c := range p.calls {
			ps = append(ps, Piece{Kind: ToolStart, Text: c.name}, Piece{Kind: ToolArgs, Text: c.json()}, Piece{Kind: ToolEnd, Text: ""})
		}
	}
	return ps
}

// TestScenes holds testdata/scenes to the scenes: what a family writes for each of them, and that it becomes what was
// meant. Differences have a reason in differs. TestCases parses the files.
func TestScenes(t *testing.T) {
	used := map[string]bool{}
	for _, w := range writings {
		if w.again {
			continue
		}
		t.Run(w.family, func(t *testing.T) {
			file := filepath.Join("testdata", "scenes", w.family+".txtar")
			fresh := &txtar.Archive{}
			for _, s := range scenes {
				writeScene(t, fresh, w, s, used)
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(fresh), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(txtar.Format(fresh)), string(got)); diff != "" {
				t.Errorf("%s is not what the scenes give; look at the change, then run with -update (-scenes +file):\n%s", file, diff)
			}
		})
	}
	for name := range differs {
		if !used[name] {
			t.Errorf("%s does not differ any more", name)
		}
	}
}

func writeScene(t *testing.T, ar *txtar.Archive, w written, s scene, used map[string]bool) {
	for _, p := range s.parts {
		if p.think != "" && w.think[0] == "" {
			return
		}
	}
	opts := s.opts
	switch opts {
	case "":
		opts = sceneTools
	case "-":
		opts = ""
	}
	output := w.render(s.parts...)
	if s.alter != nil {
		if output = s.alter(w, output); output == "" {
			return
		}
	}
	name, o := caseOptions(strings.TrimSpace(s.name + " " + opts))
	got := parseWith(familyByName(t, w.family), o, output)
	if !s.own {
		want := pieces(s.parts)
		if s.want != nil {
			want = s.want(w, output)
		}
		key := w.family + " " + s.name
		switch diff := cmp.Diff(plainArgs(want), plainArgs(got)); {
		case diff != "" && differs[key] == "":
			t.Errorf("%s: %q\n(-want +got):\n%s", s.name, output, diff)
		case diff != "":
			used[key] = true
		}
	}
	ar.Files = append(ar.Files,
		txtar.File{Name: strings.TrimSpace(s.name + " " + opts), Data: []byte(strings.NewReplacer("\n", "⏎\n", "\r", "␍").Replace(output) + "\n")},
		txtar.File{Name: name + "/pieces", Data: []byte(format(got))})
}

// plainArgs writes arguments that are complete without what does not count in JSON, and leaves out ids, which scenes do not
// have.
func plainArgs(ps []Piece) []Piece {
	ps = slices.Clone(ps)
	for i, p := range ps {
		ps[i].ID = ""
		var v any
		if p.Kind == ToolArgs && json.Unmarshal([]byte(p.Text), &v) == nil {
			d := json.NewDecoder(strings.NewReader(p.Text))
			d.UseNumber()
			if d.Decode(&v) == nil {
				ps[i].Text = asJSON(v)
			}
		}
	}
	return ps
}

// TestCaseCount: every family that calls tools has its forty cases.
func TestCaseCount(t *testing.T) {
	n := map[string]int{}
	for _, file := range caseFiles(t) {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n[strings.TrimSuffix(filepath.Base(file), ".txtar")] += len(ar.Files) / 2
	}
	for _, f := range families {
		if f.Force != nil && n[f.Name] < 40 {
			t.Errorf("%s has %d cases", f.Name, n[f.Name])
		}
	}
	t.Log(fmt.Sprint(n))
}

// differs says why a scene becomes something else in a family.
var differs = map[string]string{
	"mistral json_brackets_missing":      "where no mark ends a call, the value it is in may have been meant to go on",
	"mistral_v3 json_brackets_missing":   "where no mark ends a call, the value it is in may have been meant to go on",
	"gigachat json_brackets_missing":     "where no mark ends a call, the value it is in may have been meant to go on",
	"gigachat_v30 json_brackets_missing": "where no mark ends a call, the value it is in may have been meant to go on",
	"granite json_brackets_missing":      "where no mark ends a call, the value it is in may have been meant to go on",
	"xlam json_brackets_missing":         "where no mark ends a call, the value it is in may have been meant to go on",
	"llama3 json_brackets_missing":       "where no mark ends a call, the value it is in may have been meant to go on",
	"functionary json_brackets_missing":  "where no mark ends a call, the value it is in may have been meant to go on",

	"muse undeclared":                "headers are never text",
	"muse no_tools":                  "headers are never text",
	"muse cut_in_name":               "headers are never text",
	"gigachat_v30 undeclared":        "the mark that ends a turn is never text",
	"gigachat_v30 line_ends_crlf":    "the line end belongs to the mark that opens calls",
	"gigachat_v30 no_tools":          "the mark that ends a turn is never text",
	"gigachat_v30 cut_in_name":       "the mark that ends a turn is never text",
	"harmony undeclared":             "headers are never text; what is sent to a tool that does not exist is",
	"harmony no_tools":               "headers are never text; what is sent to a tool that does not exist is",
	"harmony cut_in_name":            "headers are never text",
	"pythonic undeclared":            "the tags stand around text too",
	"pythonic no_tools":              "the tags stand around text too",
	"pythonic cut_in_name":           "the tags stand around text too",
	"muse name_of_two":               "headers are never text",
	"muse name_unfit":                "headers are never text",
	"muse name_unfit_type":           "headers are never text",
	"muse name_lacks":                "headers are never text",
	"muse name_strict":               "headers are never text",
	"muse name_cut":                  "headers are never text",
	"gigachat_v30 name_of_two":       "the mark that ends a turn is never text",
	"gigachat_v30 name_unfit":        "the mark that ends a turn is never text",
	"gigachat_v30 name_unfit_type":   "the mark that ends a turn is never text",
	"gigachat_v30 name_lacks":        "the mark that ends a turn is never text",
	"gigachat_v30 name_strict":       "the mark that ends a turn is never text",
	"gigachat_v30 name_cut":          "the mark that ends a turn is never text",
	"harmony name_of_two":            "headers are never text",
	"harmony name_unfit":             "headers are never text",
	"harmony name_unfit_type":        "headers are never text",
	"harmony name_lacks":             "headers are never text",
	"harmony name_strict":            "headers are never text",
	"harmony name_cut":               "headers are never text",
	"pythonic name_of_two":           "the tags stand around text too",
	"pythonic name_unfit":            "the tags stand around text too",
	"pythonic name_unfit_type":       "the tags stand around text too",
	"pythonic name_lacks":            "the tags stand around text too",
	"pythonic name_strict":           "the tags stand around text too",
	"pythonic name_cut":              "the tags stand around text too",
	"minicpm5 repair_deep_off":       "an object in Python's spelling is text without repairs",
	"gemma3 leak_two_fences":         "a fence is the family's own form, once",
	"xlam leak_two_fences":           "a fence is the family's own form, once",
	"gemma3 leak_then_text":          "a fence is the family's own form",
	"xlam leak_then_text":            "a fence is the family's own form",
	"xlam text_before":               "a list without a tag is a call only where the answer begins",
	"xlam text_between":              "a list without a tag is a call only where the answer begins",
	"xlam reasoning_text_call":       "a list without a tag is a call only where the answer begins",
	"xlam reasoning_begun_by_prompt": "a list without a tag is a call only where the answer begins",
	"xlam call_in_open_reasoning":    "a list without a tag is a call only where the answer begins",
}
