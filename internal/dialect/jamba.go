package dialect

// jamba is a list of JSON objects in <tool_calls>, or one object a line; Jamba, MiniMax M1 and Apriel write it.
var jamba = tagFamily(&Family{
	Name: "jamba", Names: []string{"jamba", "apriel"}, Shared: none,
	Think: thinkTags, Resume: none, Replay: ReplayNever, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force:   forceJSON("<tool_calls>[", "name", "arguments"),
		Written: eachCall("<tool_calls>[\n  ", ",\n  ", "\n]</tool_calls>", "{{ c | tojson }}"),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: jsonNotation("<tool_calls>[$[\n  $]", ",\n  ", "\n]</tool_calls>", "name", "arguments"),
	},
	matches: func(e Evidence) bool { return e.mentions("<tool_calls>") || e.token("<tool_calls>", "</tool_calls>") },
}, &syntax{
	openers: []opener{{tag: "<tool_calls>", call: newListCall}},
	closers: []string{"</tool_calls>"},
})
