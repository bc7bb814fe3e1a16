package dialect

// hermes is the format of Hermes, Qwen 2.5, Qwen 3, Granite 4 and everything trained like them:
//
//	<think>…</think> text <tool_call>{"name": "f", "arguments": {…}}</tool_call> …
//
// Also read, because models write it: arguments before the name, "parameters" for "arguments", arguments encoded as a
// string, a list of calls, a missing closing tag, raw control characters and bad escapes in strings, Python's True, False
// and None, and the form of qwen3Coder, with and without the tag around it.
var hermes = jsonCalls(tagFamily("hermes", taggedSyntax, func(tool string) string {
	if tool == "" {
		return callOpen + "\n"
	}
	return forceJSON(callOpen+"\n", "name", "arguments")(tool)
}, func(e Evidence) bool {
	if e.mentions(callOpen) {
		return !e.mentions("<function=") && !e.mentions("]<]")
	}
	return e.token(callOpen, callClose)
}))

// jsonCalls is a family of taggedSyntax that was taught to write its calls as a JSON object.
func jsonCalls(f *Family) *Family {
	f.CallOpen, f.CallClose = callOpen, callClose
	return f
}

// qwen3Coder is the format of Qwen 3 Coder, Qwen 3.5, Nemotron 3 and Step 3.5, read by the parser of hermes:
//
//	<tool_call>⏎<function=f>⏎<parameter=p>⏎v⏎</parameter>⏎</function>⏎</tool_call>
var qwen3Coder = tagFamily("qwen3_coder", taggedSyntax, func(tool string) string {
	return callOpen + "\n" + functionOpen + suffixed(tool, ">\n")
}, func(e Evidence) bool { return e.mentions(callOpen, functionOpen) })

const (
	callOpen     = "<tool_call>"
	callClose    = "</tool_call>"
	functionOpen = "<function="
)

var (
	taggedOpeners = []opener{{tag: callOpen, call: newTaggedCall}, {tag: functionOpen, call: newXML(&qwenXML)}}
	taggedClosers = []string{callClose, "</function>"}
	taggedSyntax  = &syntax{open: thinkOpen, close: thinkClose, openers: taggedOpeners, closers: taggedClosers}
	qwenXML       = xmlSyntax{param: "<parameter=", paramClose: "</parameter>", callClose: "</function>", outerClose: callClose, trim: true}
)

// taggedCall looks at what follows the opening tag: a JSON object or list, XML parameters, or a Python list.
type taggedCall struct {
	ts   *toolset
	head []byte
	chosen
}

func newTaggedCall(ts *toolset) callReader { return &taggedCall{ts: ts} }

func (t *taggedCall) step(c byte, out *joiner) verdict {
	if t.callReader != nil {
		return t.callReader.step(c, out)
	}
	if len(t.head) == 0 {
		switch {
		case isBlank(c):
			return more
		case c == '{':
			t.callReader = newJSONCall(t.ts)
			return t.callReader.step(c, out)
		case c == '[':
			t.callReader = &bareList{ts: t.ts}
			return t.callReader.step(c, out)
		}
	}
	t.head = append(t.head, c)
	switch {
	case string(t.head) == functionOpen:
		t.callReader = newXML(&qwenXML)(t.ts)
	case functionOpen[:min(len(t.head), len(functionOpen))] != string(t.head):
		return refuted
	}
	return more
}
