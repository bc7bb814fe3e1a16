package dialect

import (
	"slices"
	"strconv"
	"strings"
)

// tagFamily makes a family of a syntax. Extra markers are those that stand inside calls.
func tagFamily(name string, s *syntax, force func(tool string) string, matches func(Evidence) bool, extra ...string) *Family {
	markers := append(s.tags(), extra...)
	slices.Sort(markers)
	markers = slices.Compact(markers)
	control := slices.DeleteFunc(slices.Clone(markers), func(m string) bool {
		return m == s.open || m == s.close || m == callOpen || m == callClose
	})
	return &Family{
		Name: name, Open: s.open, Close: s.close, Markers: markers, Control: control, Force: force,
		New:     func(o Options) Parser { return newTagged(s, o) },
		matches: matches, syntax: s,
	}
}

// guarded is a family whose marks around reasoning end turns too, or begin them: no request may forge them.
func guarded(f *Family) *Family {
	f.Control = f.Markers
	return f
}

// forceJSON is the start of a call as a JSON object with the given keys.
func forceJSON(open, nameKey, argsKey string) func(string) string {
	return func(tool string) string {
		if tool == "" {
			return open + `{"` + nameKey + `": "`
		}
		return open + `{"` + nameKey + `": ` + strconv.Quote(tool) + `, "` + argsKey + `": `
	}
}

// bareCall begins a call that no tag announces: JSON or Python. Text that begins like one is held back until a tool's
// name and its arguments are there.
func bareCall(c byte, ts *toolset) callReader {
	switch c {
	case '{':
		return &listCall{ts: ts, bare: true}
	case '[':
		return &bareList{ts: ts}
	}
	return nil
}

func newBareList(ts *toolset) callReader { return &listCall{ts: ts, bare: true} }

// bareList is a list of calls whose first byte after "[" tells JSON from Python.
type bareList struct {
	ts    *toolset
	begun bool
	chosen
}

func (b *bareList) step(c byte, out *joiner) verdict {
	switch {
	case b.callReader != nil:
		return b.callReader.step(c, out)
	case !b.begun:
		b.begun = true
		return more
	case isBlank(c):
		return more
	case c == '{':
		b.callReader = newBareList(b.ts)
	default:
		b.callReader = newPyList(b.ts)
	}
	b.callReader.step('[', out)
	return b.callReader.step(c, out)
}

// jamba is a list of JSON objects in <tool_calls>, or one object a line; Jamba, MiniMax M1 and Apriel write it.
var jamba = tagFamily("jamba", &syntax{
	open: thinkOpen, close: thinkClose,
	openers: []opener{{tag: "<tool_calls>", call: newListCall}},
	closers: []string{"</tool_calls>"},
}, forceJSON("<tool_calls>[", "name", "arguments"),
	func(e Evidence) bool { return e.mentions("<tool_calls>") || e.token("<tool_calls>", "</tool_calls>") })

// nemotron is the format of Nemotron Nano 2: <TOOLCALL>[{"name": "f", "arguments": {…}}]</TOOLCALL>. Nemotron 3 writes
// what qwen3_coder does, which is read here too.
var nemotron = tagFamily("nemotron", &syntax{
	open: thinkOpen, close: thinkClose,
	openers: append([]opener{{tag: "<TOOLCALL>", call: newListCall}}, taggedOpeners...),
	closers: append([]string{"</TOOLCALL>"}, taggedClosers...),
}, forceJSON("<TOOLCALL>[", "name", "arguments"),
	func(e Evidence) bool { return e.mentions("<TOOLCALL>") || e.token("<TOOLCALL>", "</TOOLCALL>") })

// granite is the format of Granite 3: <|tool_call|>[{"name": "f", "arguments": {…}}]. Granite 4 writes what hermes does,
// which is read here too.
var granite = tagFamily("granite", &syntax{
	open: thinkOpen, close: thinkClose,
	openers: append([]opener{{tag: "<|tool_call|>", call: newListCall}}, taggedOpeners...),
	closers: append([]string{"<|/tool_call|>"}, taggedClosers...),
	drop:    []string{"<response>", "</response>"},
}, forceJSON("<|tool_call|>[", "name", "arguments"),
	func(e Evidence) bool { return e.mentions("<|tool_call|>") || e.token("<|tool_call|>") })

// xlam is a list of JSON objects and nothing else, sometimes in a fence or after </think>. FireFunction writes
// "functools" before it, and text before that.
var xlam = tagFamily("xlam", &syntax{
	open: thinkOpen, close: thinkClose,
	openers: []opener{
		{tag: "```json", lead: true, call: newBareList},
		{tag: "functools[", call: func(ts *toolset) callReader { return &listCall{ts: ts, bare: true, array: true} }},
		{tag: "[TOOL_CALLS]", call: newListCall},
		{tag: callOpen, call: newTaggedCall}},
	closers: []string{"```", callClose},
	bare:    bareCall,
}, forceJSON("[", "name", "arguments"),
	func(e Evidence) bool { return e.mentions("functools[") })

// commandA is the format of Cohere's Command A, R7B and North; Command R writes the list after "Action:".
//
//	<|START_THINKING|>…<|END_THINKING|><|START_ACTION|>[{"tool_call_id": "0", "tool_name": "f", "parameters": {…}}]<|END_ACTION|>
var commandA = tagFamily("command_a", &syntax{
	open: "<|START_THINKING|>", close: "<|END_THINKING|>",
	openers: []opener{
		{tag: "<|START_ACTION|>", call: newListCall},
		{tag: "Action: ```json", call: newListCall},
		{tag: "Action:\n```json", call: newListCall},
		{tag: "Action:```json", call: newListCall}},
	closers: []string{"<|END_ACTION|>", "```"},
	drop:    []string{"<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"},
}, func(tool string) string {
	return forceJSON("<|START_ACTION|>[\n    ", "tool_name", "parameters")(tool)
}, func(e Evidence) bool {
	return e.mentions("<|START_ACTION|>") || e.mentions("Action:", "```json") || e.token("<|START_ACTION|>", "<|END_ACTION|>")
})

// seedOSS is the format of Seed-OSS: parameters in XML, values on the line of their tag.
var seedOSS = tagFamily("seed_oss", &syntax{
	open: "<seed:think>", close: "</seed:think>",
	openers:  []opener{{tag: functionOpen, call: newXML(&qwenXML)}},
	sections: []string{"<seed:tool_call>"},
	closers:  []string{"</seed:tool_call>", "</function>"},
}, func(tool string) string { return "<seed:tool_call>\n" + functionOpen + suffixed(tool, ">\n") },
	func(e Evidence) bool {
		return e.mentions("<seed:tool_call>") || e.token("<seed:tool_call>", "</seed:tool_call>")
	})

// lfm2 is the format of LFM2: a Python list of calls between tokens. Models told to write JSON put that between them.
var lfm2 = tagFamily("lfm2", &syntax{
	open: thinkOpen, close: thinkClose,
	openers: []opener{{tag: "<|tool_call_start|>", call: func(ts *toolset) callReader { return &taggedCall{ts: ts} }}},
	closers: []string{"<|tool_call_end|>"},
}, func(tool string) string { return "<|tool_call_start|>[" + suffixed(tool, "(") },
	func(e Evidence) bool {
		return e.mentions("<|tool_list_start|>") || e.mentions("<|tool_call_start|>") || e.token("<|tool_call_start|>", "<|tool_call_end|>")
	})

// apertus is the format of Apertus, with the name of the tool as the key of its arguments:
//
//	<|inner_prefix|>…<|inner_suffix|> text <|tools_prefix|>[{"f": {…}}, {"g": {…}}]<|tools_suffix|>
var apertus = tagFamily("apertus", &syntax{
	open: "<|inner_prefix|>", close: "<|inner_suffix|>",
	openers: []opener{{tag: "<|tools_prefix|>", call: func(ts *toolset) callReader {
		return &listCall{ts: ts, item: func() callReader { return &keyedCall{argWriter: argWriter{ts: ts}} }}
	}}},
	closers: []string{"<|tools_suffix|>"},
}, func(tool string) string {
	if tool == "" {
		return `<|tools_prefix|>[{"`
	}
	return `<|tools_prefix|>[{` + strconv.Quote(tool) + ": "
}, func(e Evidence) bool {
	return e.mentions("<|tools_prefix|>") || e.token("<|tools_prefix|>", "<|tools_suffix|>")
})

// gigachat is the format of GigaChat 3: a call is a turn of its own role, or in 3.1 follows a token.
//
//	text<|message_sep|>⏎⏎function call<|role_sep|>⏎{"name": "f", "arguments": {…}}
//	text<|function_call|>{"name": "f", "arguments": {…}}
var gigachat = tagFamily("gigachat", &syntax{
	openers: []opener{{tag: "function call<|role_sep|>\n", call: newListCall}, {tag: "<|function_call|>", call: newListCall}},
	closers: []string{"<|message_sep|>"},
	drop:    []string{"<|message_sep|>"},
}, forceJSON("<|function_call|>", "name", "arguments"),
	func(e Evidence) bool {
		return e.mentions("<|role_sep|>", "<|function_call|>") || e.token("<|role_sep|>", "<|function_call|>")
	},
	"<|role_sep|>")

// gigachat30 is what the first of them writes.
var gigachat30 = tagFamily("gigachat_v30", gigachat.syntax, forceJSON("<|message_sep|>\n\nfunction call<|role_sep|>\n", "name", "arguments"),
	func(e Evidence) bool {
		return e.mentions("<|role_sep|>", "function call") || e.token("<|role_sep|>", "<|message_sep|>")
	},
	"<|role_sep|>")

// solar is the format of Solar Open. The prompt ends before the mark that tells reasoning, text and calls apart.
//
//	<|think|>…<|end|><|begin|>assistant<|content|>…<|end|>
//	<|tool_calls|><|tool_call:begin|>ID<|tool_call:name|>f<|tool_call:args|>{…}<|tool_call:end|><|calls|>
var solar = guarded(tagFamily("solar", &syntax{
	open: "<|think|>", close: "<|end|>",
	openers:  []opener{{tag: "<|tool_call:begin|>", call: newSolar}},
	sections: []string{"<|tool_calls|>"},
	closers:  []string{solarEnd, "<|calls|>"},
	drop:     []string{"<|begin|>assistant", "<|content|>", "<|end|>"},
}, func(tool string) string {
	return "<|tool_calls|><|tool_call:begin|>a1b2c3d4e5" + solarName + suffixed(tool, solarArgs)
}, func(e Evidence) bool {
	return e.mentions("<|tool_call:begin|>") || e.token("<|tool_call:begin|>", solarName)
},
	"<|begin|>", solarName, solarArgs))

const (
	solarName = "<|tool_call:name|>"
	solarArgs = "<|tool_call:args|>"
	solarEnd  = "<|tool_call:end|>"
)

func newSolar(ts *toolset) callReader {
	return &headCall{ts: ts, closers: []string{solarEnd}, name: func(head string) string {
		_, name, _ := strings.Cut(head, solarName)
		name, _, _ = strings.Cut(name, solarArgs)
		return strings.TrimSpace(name)
	}, id: func(head string) string {
		id, _, _ := strings.Cut(head, solarName)
		return id
	}}
}

// miniCPM5 is the format of MiniCPM 5: parameters in XML, values with markup or newlines in CDATA.
//
//	<function name="f"><param name="p"><![CDATA[v]]></param></function>
var miniCPM5 = tagFamily("minicpm5", &syntax{
	open: thinkOpen, close: thinkClose,
	openers: []opener{{tag: "<function ", call: newXML(&xmlSyntax{param: "<param ", paramClose: "</param>", callClose: "</function>", cdata: true})}},
	closers: []string{"</function>"},
}, func(tool string) string { return `<function name="` + suffixed(tool, `">`) },
	func(e Evidence) bool { return e.mentions("<function name=", "<param name=") }, "<function", "<param", "</param>")
