package dialect

import "strings"

// kimi is the format of Kimi K2. The number behind the name counts calls over the whole conversation.
var kimi = tagFamily("kimi", &syntax{
	open: thinkOpen, close: thinkClose,
	openers:  []opener{{tag: "<|tool_call_begin|>", call: newKimi}},
	sections: []string{"<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"},
	closers:  []string{kimiEnd, "<|tool_calls_section_end|>", "<|tool_call_section_end|>"},
}, func(tool string) string {
	return "<|tool_calls_section_begin|><|tool_call_begin|>functions." + suffixed(tool, ":0"+kimiArgs)
}, func(e Evidence) bool {
	return e.mentions("<|tool_calls_section_begin|>") || e.token("<|tool_calls_section_begin|>", "<|tool_call_begin|>")
}, kimiArgs)

const (
	kimiArgs = "<|tool_call_argument_begin|>"
	kimiEnd  = "<|tool_call_end|>"
)

func newKimi(ts *toolset) callReader {
	return &headCall{ts: ts, closers: []string{kimiEnd}, name: func(head string) string {
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
	}}
}

// kimiK3 is the format of Kimi K3: reasoning, answer and calls each between tags of three tokens.
//
//	<|open|>think<|sep|>…<|close|>think<|sep|><|open|>response<|sep|>…<|close|>response<|sep|>
//	<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|>
//	<|open|>argument key="p" type="string"<|sep|>v<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>
//
// All arguments may also stand as JSON between <|open|>json type="object"<|sep|> and its end.
var kimiK3 = guarded(tagFamily("kimi_k3", &syntax{
	open: "<|open|>think<|sep|>", close: "<|close|>think<|sep|>",
	openers:  []opener{{tag: "<|open|>call ", call: newXML(&kimiK3XML)}},
	sections: []string{"<|open|>tools<|sep|>"},
	closers:  []string{"<|close|>json<|sep|>", "<|close|>call<|sep|>", "<|close|>tools<|sep|>", "<|close|>message<|sep|>"},
	drop:     []string{"<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"},
}, func(tool string) string {
	return `<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="` + suffixed(tool, `" index="1"<|sep|>`)
}, func(e Evidence) bool {
	return e.mentions("<|open|>", "<|close|>", "<|sep|>") || e.token("<|open|>", "<|close|>", "<|sep|>")
}, "<|open|>", "<|close|>", "<|sep|>"))

var kimiK3XML = xmlSyntax{tagEnd: "<|sep|>", param: "<|open|>argument ", paramClose: "<|close|>argument<|sep|>",
	callClose: "<|close|>call<|sep|>", outerClose: "<|close|>tools<|sep|>", json: "<|open|>json "}
