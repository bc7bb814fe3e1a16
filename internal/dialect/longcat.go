package dialect

// longcat is glm with marks of its own; JSON between the outer ones is read too.
var longcat = tagFamily(&Family{
	Name: "longcat", Names: []string{"longcat"}, Shared: none,
	Think: &Think{Open: "<longcat_think>", Close: "</longcat_think>", Leave: "\n</longcat_think>\n\n", at: beforeAnswer,
		ReasoningNames: []string{"longcat"}},
	Resume: none, Replay: ReplayPrinted, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force: forceNamed("<longcat_tool_call>", ""),
		Written: xmlCalls("", "", "<longcat_tool_call>{{ c.name }}\n",
			"<longcat_arg_key>{{ k }}</longcat_arg_key>\n<longcat_arg_value>", "</longcat_arg_value>\n", "</longcat_tool_call>"),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: longcatMarks.notation("", "\n", ""),
	},
	matches: func(e Evidence) bool {
		return e.mentions("<longcat_tool_call>") || e.token("<longcat_tool_call>", "</longcat_tool_call>")
	},
}, &syntax{
	openers: []opener{{tag: "<longcat_tool_call>", call: newByFirst(func(c byte, ts *toolset) callReader {
		if c == '{' {
			return newJSONCall(ts)
		}
		return newPairs(longcatMarks)(ts)
	})}},
	inner:   longcatMarks.all(),
	closers: []string{longcatMarks.close},
})

var longcatMarks = pairMarksIn("longcat_", "", "")
