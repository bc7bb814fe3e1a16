package dialect

// glm is the format of GLM 4.5 to 4.7, Laguna, Ling 3 and others that took it over:
//
//	<tool_call>f⏎<arg_key>p</arg_key>⏎<arg_value>v</arg_value>⏎</tool_call>
//
// 4.7 writes no newlines. Values that are not strings are JSON.
var glm = tagFamily(&Family{
	Name: "glm47", Names: []string{"glm", "glm4", "glm45", "glm46", "glm47", "laguna", "poolside_v1"}, Shared: none,
	Think: thinkTags, Resume: none, Replay: ReplayPrinted, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force:   forceNamed(callOpen, ""),
		Written: xmlCalls("", "", "<tool_call>{{ c.name }}", "<arg_key>{{ k }}</arg_key><arg_value>", "</arg_value>", "</tool_call>"),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: glmMarks.notation("", "", ""),
	},
	matches: func(e Evidence) bool { return e.mentions("<arg_key>") || e.token("<arg_key>", "</arg_key>") },
}, &syntax{
	openers: []opener{{tag: callOpen, call: orJSON(newPairs(glmMarks))}},
	inner:   glmMarks.all(),
	closers: []string{callClose},
	drop:    []string{"<|begin_of_box|>", "<|end_of_box|>"},
})

var glmMarks = pairMarksIn("", "", "")
