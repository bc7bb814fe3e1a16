package dialect

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// TestChoiceByTemplate: every stand-in chooses its own family, and every family has a stand-in.
func TestChoiceByTemplate(t *testing.T) {
	ar, err := txtar.ParseFile("testdata/templates/choice.txtar")
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, f := range append(slices.Clone(families), plain) {
		missing[f.Name] = true
	}
	for _, file := range ar.Files {
		want, _, _ := strings.Cut(file.Name, ".")
		if got := Choose(Evidence{Template: string(file.Data)}); got.Name != want {
			t.Errorf("%s chose %s", file.Name, got.Name)
		}
		delete(missing, want)
	}
	if len(missing) > 0 {
		t.Errorf("no stand-in for %v", missing)
	}
}

func TestChoiceByVocabulary(t *testing.T) {
	for want, tokens := range map[string][]string{
		"hermes": {"<tool_call>", "</tool_call>"}, "mistral": {"[TOOL_CALLS]", "[ARGS]"}, "mistral_v3": {"[TOOL_CALLS]"},
		"lfm2": {"<|tool_call_start|>", "<|tool_call_end|>"}, "gemma4": {"<|tool_call>", "<tool_call|>"},
		"harmony": {"<|channel|>", "<|message|>", "<|constrain|>"}, "kimi": {"<|tool_calls_section_begin|>", "<|tool_call_begin|>"},
		"glm47": {"<arg_key>", "</arg_key>", "<tool_call>", "</tool_call>"}, "deepseek_v31": {"<｜tool▁sep｜>"}, "think": {"<think>", "</think>"},
	} {
		if got := Choose(Evidence{Template: "{{ messages }}", HasToken: func(s string) bool { return slices.Contains(tokens, s) }}); got.Name != want {
			t.Errorf("%v chose %s, want %s", tokens, got.Name, want)
		}
	}
	list := func(s string) bool { return s == "<|tool_call_start|>" || s == "<|tool_call_end|>" }
	if got := Choose(Evidence{"{{ tools }} {{ '</think>' }}", list}); got.Name != "lfm2" {
		t.Errorf("a template that shows tools but no call chose %s", got.Name)
	}
}

// TestMarkersOfOpenings: whatever is a token in the opening of a forced call is a marker of the family, so that it is
// decoded when the model writes it, and no request can forge it.
func TestMarkersOfOpenings(t *testing.T) {
	tokens := regexp.MustCompile(`<[|｜][^<>]*[|｜]>|\[[A-Z_]+\]|</?[a-z]+[:_][a-z_:]+>|<tool_call>|<TOOLCALL>`)
	for _, f := range families {
		if f.Force == nil {
			continue
		}
		opening := f.Force("f")
		if !strings.Contains(opening, "f") || !strings.HasPrefix(opening, f.Force("")) && f.Name != "apertus" {
			t.Errorf("%s opens a call with %q, of f with %q", f.Name, f.Force(""), opening)
		}
		for _, token := range tokens.FindAllString(opening, -1) {
			if !slices.Contains(f.Markers, token) && token != "<|close|>response<|sep|>" {
				t.Errorf("%s: %s is no marker", f.Name, token)
			}
		}
	}
}

func TestOverride(t *testing.T) {
	for _, c := range []struct {
		chosen          *Family
		tool, reasoning string
		want, open      string
		warnings        int
	}{
		{hermes, "", "", "hermes", "<think>", 0},
		{hermes, "auto", "auto", "hermes", "<think>", 0},
		{qwen3Coder, "hermes", "qwen3", "qwen3_coder", "<think>", 0},
		{hermes, "qwen3-coder", "", "qwen3_coder", "<think>", 1},
		{plain, "llama", "", "llama3", "<think>", 0},
		{mistralV3, "Mistral", "deepseek_r1", "mistral_v3", "<think>", 1},
		{deepseekV31, "deepseek", "", "deepseek_v31", "<think>", 0},
		{hermes, "none", "none", "hermes", "", 0},
		{harmony, "gpt-oss", "gpt_oss", "harmony", harmony.Open, 0},
		{harmony, "", "none", "harmony", harmony.Open, 1},
		{thinkOnly, "functionary", "", "functionary", "<think>", 0},
		{plain, "", "seed", "plain", "<seed:think>", 0},
	} {
		f, warnings, err := Override(c.chosen, c.tool, c.reasoning)
		if err != nil || f.Name != c.want || f.Open != c.open || len(warnings) != c.warnings {
			t.Errorf("%s with %q and %q: %s, reasoning in %q, warnings %q, %v", c.chosen.Name, c.tool, c.reasoning, f.Name, f.Open, warnings, err)
		}
	}
	f, _, err := Override(hermes, "none", "none")
	if err != nil {
		t.Fatal(err)
	}
	output := `<think>a</think><tool_call>{"name": "f"}</tool_call>`
	if diff := cmp.Diff([]Piece{{Kind: Text, Text: output}}, parse(f.New(Options{Tools: declared("f")}), output)); diff != "" {
		t.Error(diff)
	}
	for _, names := range [][2]string{{"kimmi", ""}, {"", "kimmi"}} {
		if _, _, err := Override(hermes, names[0], names[1]); err == nil || !strings.Contains(err.Error(), "kimi") || !strings.Contains(err.Error(), "auto") {
			t.Errorf("%v: %v", names, err)
		}
	}
}

// TestReasoningByTemplate: the form of reasoning follows the template where it differs from the family's own.
func TestReasoningByTemplate(t *testing.T) {
	for template, open := range map[string]string{
		"[TOOL_CALLS] [THINK] [/THINK]": "[THINK]", "[TOOL_CALLS] </think>": "<think>",
		"<tool_call> </seed:think>": "<seed:think>", "<tool_call>": "<think>",
	} {
		f := Choose(Evidence{Template: template})
		if f.Open != open || f != Choose(Evidence{Template: template}) {
			t.Errorf("%s: reasoning in %q", template, f.Open)
		}
	}
}

func TestTyped(t *testing.T) {
	for _, c := range []struct {
		text string
		ts   types
		want string
	}{
		{"123", typeString, `"123"`}, {"null", typeString, `"null"`}, {"5.0", typeInteger, "5"}, {"1e3", typeInteger, "1000"},
		{"5.5", typeInteger, `"5.5"`}, {" 7 ", typeInteger, "7"}, {"01", typeNumber, `"01"`}, {"False", typeBoolean, "false"},
		{"Yes", typeBoolean, "true"}, {"0", typeBoolean, "false"}, {"yes", typeBoolean | typeNull, `"yes"`}, {"on", typeBoolean, `"on"`}, {"None", typeNull | typeInteger, "null"}, {"null", typeString | typeNull, "null"},
		{"3", typeString | typeInteger, "3"}, {"x", typeString | typeInteger, `"x"`}, {"[1, 'a']", typeArray, `[1, "a"]`},
		{`{a: 1, /* of */ 'b': ["x",], }`, typeObject, `{"a": 1,  "b": ["x"] }`}, {`{a: 1}`, typeObject | typeString, `"{a: 1}"`}, {`{a: 1`, typeObject, `"{a: 1"`},
		{`"[1]"`, typeArray, "[1]"}, {`{"a": 1}`, typeString, `"{\"a\": 1}"`}, {`{"a": 1}`, 0, `{"a": 1}`}, {"7", 0, `"7"`}, {"", typeObject, `""`},
	} {
		if got := (&toolset{}).typed(c.text, c.ts, nil); got != c.want {
			t.Errorf("%q as %b: %s, want %s", c.text, c.ts, got, c.want)
		}
	}
}

// TestForeignNames: the names of another server's parsers are known.
func TestForeignNames(t *testing.T) {
	for _, name := range strings.Fields(`auto generic deepseek deepseek_v3 deepseek_r1 functionary meetkai gemma4 glm47 glm4 granite granite3 harmony gpt-oss hermes nous kimi kimi_k2
		moonshot llama llama3 llama4 minimax minimax_m2 mistral nemotron nemotron3 poolside_v1 qwen3_xml qwen3.5 qwen3_coder qwen qwen3 step3p5 step xlam`) {
		if _, _, err := Override(plain, name, ""); err != nil {
			t.Error(err)
		}
	}
	for _, name := range strings.Fields("qwen3 deepseek_r1 gpt_oss harmony gemma4 glm4 mistral poolside_v1 step3p5") {
		if _, _, err := Override(plain, "", name); err != nil {
			t.Error(err)
		}
	}
	if f, warnings, err := Override(hermes, "generic", ""); f != hermes || warnings != nil || err != nil {
		t.Errorf("generic: %v, %v, %v", f, warnings, err)
	}
}
