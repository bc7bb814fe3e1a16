package dialect

// gigachat is the format of GigaChat 3: a call is a turn of its own role, or in 3.1 follows a token.
//
//	text<|message_sep|>⏎⏎function call<|role_sep|>⏎{"name": "f", "arguments": {…}}
//	text<|function_call|>{"name": "f", "arguments": {…}}
var gigachat = tagFamily(&Family{
	Name: "gigachat", Names: []string{"gigachat", "gigachat3"}, Shared: none,
	Think: noThink, Resume: none, Replay: ReplayNever, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force:   forceJSON("<|function_call|>", "name", "arguments"),
		Written: eachCall("", "\n", "", "<|function_call|>{{ c | tojson }}"),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: jsonNotation("<|function_call|>", "$[\n$]<|function_call|>", "", "name", "arguments"),
	},
	matches: func(e Evidence) bool {
		return e.mentions("<|role_sep|>", "<|function_call|>") || e.token("<|role_sep|>", "<|function_call|>")
	},
}, gigachatSyntax)

var gigachatSyntax = &syntax{
	openers: []opener{{tag: "function call<|role_sep|>\n", call: newListCall}, {tag: "<|function_call|>", call: newListCall}},
	inner:   []string{"<|role_sep|>"},
	closers: []string{"<|message_sep|>"},
	drop:    []string{"<|message_sep|>"},
	again:   []string{"{"},
}
