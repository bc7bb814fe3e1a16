package parser

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
	callReader
}

func (b *bareList) started() bool { return b.callReader != nil && b.callReader.started() }

func (b *bareList) finish(out *joiner) verdict {
	if f, ok := b.callReader.(finisher); ok {
		return f.finish(out)
	}
	return refuted
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

// xlam is a list of JSON objects and nothing else, sometimes in a fence, after </think>, or after "functools".
var xlam = tagFamily("xlam", &syntax{
	open: thinkOpen, close: thinkClose,
	openers: []opener{
		{tag: "```json", lead: true, call: newBareList},
		{tag: "functools", lead: true, call: newBareList},
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

// minimax is the format of MiniMax M2, with several calls in one block.
var minimax = tagFamily("minimax", &syntax{
	open: thinkOpen, close: thinkClose,
	openers:  []opener{{tag: "<invoke", call: newXML(&xmlSyntax{param: "<parameter", paramClose: "</parameter>", callClose: "</invoke>", outerClose: "</minimax:tool_call>"})}},
	sections: []string{"<minimax:tool_call>"},
	closers:  []string{"</minimax:tool_call>", "</invoke>"},
}, func(tool string) string { return "<minimax:tool_call>\n<invoke name=\"" + suffixed(tool, "\">\n") },
	func(e Evidence) bool {
		return e.mentions("<minimax:tool_call>") || e.token("<minimax:tool_call>", "</minimax:tool_call>")
	})

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
	}}
}

// lfm2 is the format of LFM2: a Python list of calls between tokens. Models told to write JSON put that between them.
var lfm2 = tagFamily("lfm2", &syntax{
	open: thinkOpen, close: thinkClose,
	openers: []opener{{tag: "<|tool_call_start|>", call: func(ts *toolset) callReader { return &taggedCall{ts: ts} }}},
	closers: []string{"<|tool_call_end|>"},
}, func(tool string) string { return "<|tool_call_start|>[" + suffixed(tool, "(") },
	func(e Evidence) bool {
		return e.mentions("<|tool_list_start|>") || e.mentions("<|tool_call_start|>") || e.token("<|tool_call_start|>", "<|tool_call_end|>")
	})
