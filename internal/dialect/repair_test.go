package dialect

import (
	"slices"
	"testing"
)

// TestRepairs: every repair is counted by its kind when the call is one, and none is made when they are off.
func TestRepairs(t *testing.T) {
	for _, c := range []struct {
		family *Family
		output string
		want   []Repair
	}{
		{hermes, `<tool_call>{"name": "f", "arguments": {"s": "\d", "b": True}}</tool_call>`, []Repair{RepairText, RepairText}},
		{hermes, `<tool_call>{"name": "f", "arguments": {"i": 5.0, "b": "false", "s": 1, "l": "[]"}}</tool_call>`,
			[]Repair{RepairNumber, RepairBoolean, RepairString, RepairEncoded}},
		{hermes, `<tool_call>{"name": "f", "arguments": "{\"i\": 5.0}"}</tool_call>`, []Repair{RepairEncoded, RepairNumber}},
		{hermes, `<tool_call>{"name": "f", "arguments": {"i": 5}`, []Repair{RepairUnclosed}},
		{hermes, `<tool_call>{"name": "f", "arguments": {"l": [{"n": 1</tool_call>`, []Repair{RepairUnclosed}},
		{hermes, `<tool_call>{"name": "f", "arguments": {"s": "x"}}}</tool_call>`, []Repair{RepairBracket}},
		{hermes, `<tool_call>{{"name": "f", "arguments": [{"s": "x"}]}}</tool_call>`, []Repair{RepairBracket, RepairBracket}},
		{hermes, `<tool_call>{"name": "f", "arguments": {"o": {"k": 1}}, "s": "x"}}</tool_call>`, []Repair{RepairBracket}},
		{hermes, `<tool_call>{"name": "f", "arguments": {"s": "x" "i": 5,}}</tool_call>`, []Repair{RepairComma, RepairComma}},
		{hermes, `<tool_call>{name: 'f', "arguments": {"s": "x" /* why */}}</tool_call>`, []Repair{RepairQuote, RepairQuote, RepairComment}},
		{hermes, `<tool_call>{"function": {"name": "f", "arguments": {}}}</tool_call>`, []Repair{RepairForm}},
		{apertus, `<|tools_prefix|>[{"f": {"s": "x"}, {"f": {"s": 'y'}}}]<|tools_suffix|>`, []Repair{RepairUnclosed, RepairQuote, RepairBracket}},
		{mistral, `[TOOL_CALLS]f[ARGS]{"s": "x"}}`, []Repair{RepairBracket}},
		{hermes, `<tool_call>{"name": "f", "arguments": {"i": 5, "s": "x"}}</tool_call>`, nil},
		{hermes, `<tool_call>{"arguments": {"b": True}, "name": "g"}</tool_call>`, nil},
		{qwen3Coder, "<function=f><parameter=i>5.0</parameter><parameter=b>True</parameter><parameter=l>['a']</parameter><parameter=o>\"{}\"</parameter><parameter=b>x</parameter></function>",
			[]Repair{RepairNumber, RepairBoolean, RepairLiteral, RepairEncoded, RepairTwice}},
		{qwen3Coder, "<function=f><parameter=s>x</parameter>", []Repair{RepairUnclosed}},
		{glm, "<tool_call>f<arg_key>s</arg_key><arg_value>x</arg_value>", []Repair{RepairUnclosed}},
		{qwen3Coder, "<function=f><parameter=s>\nx\n<parameter=i>5</param>\n</function>", []Repair{RepairTag, RepairTag}},
		{glm, "<tool_call>f<arg_key>s<arg_value>x</arg_value><arg_key>i</arg_key>5</arg_value></tool_call>", []Repair{RepairTag, RepairTag}},
		{minimaxM3, m3NS + `<invoke name="f">` + m3NS + "<s>x" + m3NS + "<i>5" + m3NS + "</invoke>", []Repair{RepairTag, RepairTag}},
		{lfm2, `<|tool_call_start|>[f(s: "x"), f({"i": 5}), f(o={a: 1}]<|tool_call_end|>`, []Repair{RepairKey, RepairKey, RepairQuote, RepairUnclosed}},
		{gemma4, `<|tool_call>call:f{s:<|"|>x<|"|>i:5,,b=true,o{a:1}}}<tool_call|>`, []Repair{RepairComma, RepairComma, RepairKey, RepairKey, RepairBracket}},
		{pythonic, `[f(i="5", i=6)]`, []Repair{RepairNumber, RepairTwice}},
		{gemma4, `<|tool_call>call:f{b:<|"|>true<|"|>}<tool_call|>`, []Repair{RepairBoolean}},
		{harmony, `<|channel|>commentary to=functions.f<|message|>{"i": "5"}<|call|>`, []Repair{RepairNumber}},
		{harmony, `<|channel|>commentary to=functions.f{"i": 5}<|call|>commentary to=f<|message|>{}<|call|>analysis<|message|>Hm.<|end|>`, []Repair{RepairHeader, RepairHeader}},
		{harmony, `<|channel|>commentary to=functions.F<|message|>{"i": "5", "l": [1<|call|><|start|>assistant to=functions f<|channel|>commentary<|message|>{}}<|call|>`,
			[]Repair{RepairNumber, RepairUnclosed, RepairName, RepairName, RepairBracket}},
		{harmony, `<|channel|>commentary to=functions.fjson<|message|><|call|><|start|>assistant to=f<|message|><|call|>`, []Repair{RepairUnclosed}},
		{hermes, `<tool_call>{"name": "F", "arguments": {"i": "5"}}</tool_call>`, []Repair{RepairNumber, RepairName}},
		{hermes, `<tool_call>{"name": "F", "arguments": {"i": "5", "other": 1}}</tool_call>`, nil},
		{hermes, `<tool_call>{"name": "F", "arguments": {"i": "5`, nil},
		{mistralV3, `[TOOL_CALLS][{"name": "f", "arguments": {}}, {"name": "F", "arguments": {"i": "5", "other": 1}}, {"name": "F", "arguments": {"b": "true"}}]`,
			[]Repair{RepairBoolean, RepairName}},
		{pythonic, `[F(i="5"), functions.f(b="true"), F(i="5", other=1)]`, []Repair{RepairNumber, RepairName, RepairBoolean, RepairName}},
		{hermes, "```json\n" + `{"name": "f", "arguments": {"i": "5"}}` + "\n```", []Repair{RepairNumber, RepairLeaked}},
		{hermes, `{"name": "F", "arguments": {}} {"name": "f", "arguments": {}}`, []Repair{RepairName, RepairLeaked, RepairLeaked}},
		{hermes, `{"name": "F", "arguments": {"i": "5"}} so`, nil},
		{harmony, `<|channel|>commentary to=functions.F<|message|>{"i": "5"}<|call|>`, []Repair{RepairNumber, RepairName}},
		{harmony, `<|channel|>commentary to=functions.F<|message|>{"i": "5", "x": 1}<|call|>`, nil},
		{harmony, `<|channel|>final<|message|>{"name": "f", "arguments": {"i": "5"}}<|return|>`, []Repair{RepairNumber, RepairLeaked}},
		{muse, " to=f<|message|><atem:invoke name=\"f\"><atem:parameter name=\"i\">5.0</atem:parameter></atem:invoke>", []Repair{RepairNumber}},
	} {
		var got []Repair
		o := Options{Tools: declared("f"), Repaired: func(kind Repair) { got = append(got, kind) }}
		for i := range len(c.output) { // every prefix, to see that nothing is counted twice
			parse(c.family.New(Options{Tools: o.Tools}), c.output[:i])
		}
		parse(c.family.New(o), c.output)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %s\ncounted %v, want %v", c.family.Name, c.output, got, c.want)
		}
		for _, kind := range got {
			if !slices.Contains(Repairs, kind) {
				t.Errorf("%s is not in the list", kind)
			}
		}
		got, o.NoRepair = nil, true
		parse(c.family.New(o), c.output)
		if len(got) > 0 {
			t.Errorf("%s: %s\nrepaired %v when off", c.family.Name, c.output, got)
		}
	}
}
