package dialect

import "strings"

// functionary is the format of Functionary 3.0 and 3.2: every stretch of the answer names who it is for, "all" or a tool.
//
//	<|recipient|>f⏎<|content|>{…}
//	>>>f⏎{…}
//
// In the second the prompt ends with the first ">>>".
var functionary = tagFamily("functionary", &syntax{
	headers: true,
	openers: []opener{
		{tag: ">>>", call: newRecipient("all\n")},
		{tag: "<|recipient|>", call: newRecipient("all\n<|content|>")}},
	drop: []string{"<|from|>assistant\n", "<|stop|>"},
	bare: func(c byte, ts *toolset) callReader {
		if c != 'a' && !ts.begins(string([]byte{c})) {
			return nil
		}
		return &recipientCall{headCall: newRecipient("all\n")(ts).(*headCall)}
	},
}, func(tool string) string { return suffixed(tool, "\n") },
	func(e Evidence) bool { return e.mentions(">>>", "recipient") || e.mentions("<|recipient|>") }, "<|content|>")

// functionaryV31 is the format of Functionary 3.1: <function=f>{…}</function>.
var functionaryV31 = tagFamily("functionary_v31", &syntax{
	openers: []opener{{tag: functionOpen, call: newXML(&qwenXML)}, {tag: "<|python_tag|>", call: newPythonTag}},
	closers: []string{"</function>"},
	drop:    []string{"<|eom_id|>"},
}, func(tool string) string { return functionOpen + suffixed(tool, ">") },
	func(e Evidence) bool { return e.mentions(functionOpen) && !e.mentions(callOpen) })

func newRecipient(text string) func(*toolset) callReader {
	return func(ts *toolset) callReader {
		return &headCall{ts: ts, none: text, name: func(head string) string {
			name, _, ok := strings.Cut(head, "\n")
			if !ok {
				return ""
			}
			return strings.TrimSpace(name)
		}}
	}
}

// recipientCall is a headCall where the answer begins, without a mark: only the start of a known name is held back.
type recipientCall struct {
	*headCall
}

func (r *recipientCall) step(c byte, out *joiner) verdict {
	if !r.sent {
		name, _, whole := strings.Cut(string(r.head)+oneByte[c], "\n")
		if known := r.ts.has(name) || name == "all"; whole && !known || !whole && !strings.HasPrefix("all", name) && !r.ts.begins(name) {
			return refuted
		}
	}
	return r.headCall.step(c, out)
}
