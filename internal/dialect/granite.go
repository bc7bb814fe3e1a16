package dialect

// granite is the format of Granite 3. Granite 4 writes what hermes does, which is read here too.
//
//	<|tool_call|>[{"name": "f", "arguments": {…}}]
var granite = tagFamily(&Family{
	Name: "granite", Names: []string{"granite", "granite3"}, Shared: none,
	Think: thinkTags, Resume: none, Replay: ReplayNever, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force:   forceJSON("<|tool_call|>[", "name", "arguments"),
		Written: graniteCalls, Earlier: graniteCalls, IDs: IDsKept, Object: noObject,
		Notation: jsonNotation("<|tool_call|>[", ", ", "]", "name", "arguments"),
	},
	matches: func(e Evidence) bool { return e.mentions("<|tool_call|>") || e.token("<|tool_call|>") },
}, &syntax{
	openers: append([]opener{{tag: "<|tool_call|>", call: newListCall}}, taggedOpeners...),
	closers: append([]string{"<|/tool_call|>"}, taggedClosers...),
	drop:    []string{"<response>", "</response>"},
})

const graniteCalls = "<|tool_call|>{{ calls | tojson }}"
