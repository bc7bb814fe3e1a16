package dialect

// hunyuan is the format of Hunyuan 3: that of glm in marks of its own, with one behind the name; JSON may stand there.
//
//	<tool_calls:opensource>⏎<tool_call:opensource>f<tool_sep:opensource>⏎<arg_key:opensource>p</arg_key:opensource>⏎…
var hunyuan = tagFamily(&Family{
	Name: "hunyuan", Names: []string{"hunyuan", "hy_v3"}, Shared: none,
	Think: &Think{Open: "<think:opensource>", Close: "</think:opensource>", Leave: "\n</think:opensource>\n\n", at: beforeAnswer,
		ReasoningNames: []string{"hunyuan", "hy_v3"}},
	Resume: none, Replay: ReplayPrinted, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force: forceNamed("<tool_calls:opensource>\n<tool_call:opensource>", hunyuanMarks.sep+"\n"),
		Written: xmlCalls("<tool_calls:opensource>\n", "\n</tool_calls:opensource>",
			"<tool_call:opensource>{{ c.name }}<tool_sep:opensource>\n",
			"<arg_key:opensource>{{ k }}</arg_key:opensource>\n<arg_value:opensource>", "</arg_value:opensource>\n", "</tool_call:opensource>"),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: hunyuanMarks.notation("<tool_calls:opensource>\n", "\n", "\n</tool_calls:opensource>"),
	},
	matches: func(e Evidence) bool {
		return e.mentions("<tool_sep{}>") || e.mentions(hunyuanMarks.sep) || e.token(hunyuanMarks.sep)
	},
}, &syntax{
	openers:  []opener{{tag: "<tool_call:opensource>", call: orJSON(newPairs(hunyuanMarks))}},
	inner:    hunyuanMarks.all(),
	sections: []string{"<tool_calls:opensource>"},
	closers:  []string{hunyuanMarks.close, "<end_of_tool_call:opensource>", "</tool_calls:opensource>"},
})

var hunyuanMarks = func() pairMarks {
	marks := pairMarksIn("", ":opensource", "<tool_sep:opensource>")
	marks.outer = []string{"</tool_calls:opensource>", "<end_of_tool_call:opensource>"}
	return marks
}()
