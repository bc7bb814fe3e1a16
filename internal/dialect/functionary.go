package dialect

import "strings"

// functionary is the format of Functionary 3.0 and 3.2: every stretch of the answer names who it is for, "all" or a tool.
//
//	<|recipient|>f⏎<|content|>{…}
//	>>>f⏎{…}
//
// In the second the prompt ends with the first ">>>".
var functionary = tagFamily(&Family{
	Name: "functionary", Names: []string{"functionary", "meetkai", "functionary_v3"}, Shared: none,
	Think: noThink, Resume: none, Replay: ReplayNever, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force:   forceNamed("", "\n"),
		Written: eachCall(">>>", "\n>>>", "", "{{ c.name }}\n{{ c.arguments | tojson }}"),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: &Notation{Open: "$[>>>$]", Call: "$name\n$args", Between: "$[\n$]>>>", Args: ArgsJSON,
			Begins: &Beginnings{Anywhere: []string{"$[>>>$|<|recipient|>$]$blanks$name$blanks\n"}, Answers: []string{"$name$blanks\n"}}},
	},
	matches: func(e Evidence) bool { return e.mentions(">>>", "recipient") || e.mentions("<|recipient|>") },
}, &syntax{
	headers: true,
	openers: []opener{
		{tag: ">>>", call: newRecipient("all\n")},
		{tag: "<|recipient|>", call: newRecipient("all\n<|content|>")}},
	inner: []string{"<|content|>"},
	drop:  []string{"<|from|>assistant\n", "<|stop|>"},
	bare: func(c byte, ts *toolset) callReader {
		if c != 'a' && !ts.mayMean(string([]byte{c})) {
			return nil
		}
		return checked(ts, &recipientCall{headCall: recipientHead("all\n", ts)})
	},
})

func newRecipient(text string) func(*toolset) callReader {
	return func(ts *toolset) callReader { return checked(ts, recipientHead(text, ts)) }
}

func recipientHead(text string, ts *toolset) *headCall {
	return &headCall{ts: ts, notCall: text, name: func(head string) string {
		name, _, ok := strings.Cut(head, "\n")
		if !ok {
			return ""
		}
		return strings.TrimSpace(name)
	}}
}

// recipientCall is a headCall where the answer begins, without a mark: only the start of a known name is held back.
type recipientCall struct {
	*headCall
}

func (r *recipientCall) step(c byte, out *joiner) verdict {
	if !r.sent {
		name, _, whole := strings.Cut(string(r.head)+oneByte[c], "\n")
		_, known := r.ts.meant(name)
		if known = known || name == "all"; whole && !known || !whole && !strings.HasPrefix("all", name) && !r.ts.mayMean(name) {
			return refuted
		}
	}
	return r.headCall.step(c, out)
}
