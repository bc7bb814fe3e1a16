package dialect

// lfm2 is the format of LFM2: a Python list of calls between tokens. Models told to write JSON put that between them.
var lfm2 = tagFamily(&Family{
	Name: "lfm2", Names: []string{"lfm2", "lfm2_5", "liquid"}, Shared: []string{"pythonic"},
	Think: thinkTags, Resume: none, Replay: ReplayPrinted, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force:   forceNamed("<|tool_call_start|>[", "("),
		Written: lfm2Calls, Earlier: lfm2Calls, IDs: IDsKept, Object: noObject,
		Notation: pythonNotation("<|tool_call_start|>[", ", ", "]<|tool_call_end|>"),
	},
	matches: func(e Evidence) bool {
		return e.mentions("<|tool_list_start|>") || e.mentions("<|tool_call_start|>") || e.token("<|tool_call_start|>", "<|tool_call_end|>")
	},
}, &syntax{
	openers: []opener{{tag: "<|tool_call_start|>", call: newTaggedCall}},
	closers: []string{"<|tool_call_end|>"},
})

var lfm2Calls = eachCall("<|tool_call_start|>[", ", ", "]<|tool_call_end|>", pythonCall)
