package dialect

import "strings"

// kimi is the format of Kimi K2. The number behind the name counts calls over the whole conversation.
var kimi = tagFamily(&Family{
	Name: "kimi", Names: []string{"kimi", "kimi_k2", "moonshot"}, Shared: none,
	Think: thinkTags, Resume: none, Replay: ReplayPrinted, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force:   forceNamed("<|tool_calls_section_begin|><|tool_call_begin|>functions.", ":0"+kimiArgs),
		Written: kimiCalls, Earlier: kimiCalls, IDs: IDsNumbered, Object: noObject,
		Notation: headNotation("<|tool_calls_section_begin|>", "<|tool_call_begin|>functions.$name:$number"+kimiArgs+"$args"+kimiEnd, "", "<|tool_calls_section_end|>"),
	},
	matches: func(e Evidence) bool {
		return e.mentions("<|tool_calls_section_begin|>") || e.token("<|tool_calls_section_begin|>", "<|tool_call_begin|>")
	},
}, &syntax{
	openers:  []opener{{tag: "<|tool_call_begin|>", call: orJSON(newKimi)}},
	inner:    []string{kimiArgs},
	sections: []string{"<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"},
	closers:  []string{kimiEnd, "<|tool_calls_section_end|>", "<|tool_call_section_end|>"},
})

var kimiCalls = eachCall("<|tool_calls_section_begin|>", "", "<|tool_calls_section_end|>",
	"<|tool_call_begin|>{{ ids[loop.index0] }}"+kimiArgs+"{{ c.arguments | tojson }}"+kimiEnd)

const (
	kimiArgs = "<|tool_call_argument_begin|>"
	kimiEnd  = "<|tool_call_end|>"
)

func newKimi(ts *toolset) callReader {
	return checked(ts, &headCall{ts: ts, closers: []string{kimiEnd}, name: func(head string) string {
		id, _, _ := strings.Cut(head, kimiArgs)
		name := strings.TrimPrefix(strings.TrimSpace(id), "functions.")
		if i := strings.LastIndexByte(name, ':'); i >= 0 && !ts.has(name) {
			name = name[:i]
		}
		return name
	}, id: func(head string) string {
		id, _, _ := strings.Cut(head, kimiArgs)
		if !strings.Contains(id, ":") { // the name alone
			return ""
		}
		return id
	}})
}
