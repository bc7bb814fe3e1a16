package dialect

// gigachat30 is what the first models of gigachat write, read by the same parser.
var gigachat30 = tagFamily(&Family{
	Name: "gigachat_v30", Names: none, Shared: []string{"gigachat", "gigachat3"},
	Think: noThink, Resume: none, Replay: ReplayNever, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force:   forceJSON("<|message_sep|>\n\nfunction call<|role_sep|>\n", "name", "arguments"),
		Written: eachCall("", "\n", "", "<|message_sep|>\n\nfunction call<|role_sep|>\n{{ c | tojson }}"),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: jsonNotation("<|message_sep|>\n\nfunction call<|role_sep|>\n", "$[\n$]<|message_sep|>\n\nfunction call<|role_sep|>\n", "", "name", "arguments"),
	},
	matches: func(e Evidence) bool {
		return e.mentions("<|role_sep|>", "function call") || e.token("<|role_sep|>", "<|message_sep|>")
	},
}, gigachatSyntax)
