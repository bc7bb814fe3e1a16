package dialect

// xlam is a list of JSON objects and nothing else, sometimes in a fence or after </think>. FireFunction writes
// "functools" before it, and text before that.
var xlam = tagFamily(&Family{
	Name: "xlam", Names: []string{"xlam", "firefunction"}, Shared: none,
	Think: thinkTags, Resume: none, Replay: ReplayNever, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force:   forceJSON("[", "name", "arguments"),
		Written: eachCall("[", ", ", "]", "{{ c | tojson }}"),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: jsonNotation("[", ", ", "]", "name", "arguments"),
	},
	matches: func(e Evidence) bool { return e.mentions("functools[") },
}, &syntax{
	openers: []opener{
		{tag: "```json", lead: true, call: newBareList},
		{tag: "functools[", call: func(ts *toolset) callReader { return &listCall{ts: ts, bare: true, array: true} }},
		{tag: "[TOOL_CALLS]", call: newListCall},
		{tag: callOpen, call: newTaggedCall}},
	closers: []string{"```", callClose},
	bare:    bareCall,
})
