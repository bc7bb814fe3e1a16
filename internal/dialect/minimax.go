package dialect

// minimax is the format of MiniMax M2, with several calls in one block.
var minimax = tagFamily(&Family{
	Name: "minimax", Names: []string{"minimax", "minimax_m2"}, Shared: none,
	Think: thinkTags, Resume: none, Replay: ReplayPrinted, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force: forceNamed("<minimax:tool_call>\n<invoke name=\"", "\">\n"),
		Written: xmlCalls("<minimax:tool_call>\n", "\n</minimax:tool_call>", `<invoke name="{{ c.name }}">`+"\n",
			`<parameter name="{{ k }}">`, "</parameter>\n", "</invoke>"),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: tagNotation("<minimax:tool_call>\n", "<invoke name=\"$name\">\n$args</invoke>", "\n", "\n</minimax:tool_call>",
			"<parameter name=\"$key\">$value</parameter>\n", "<parameter", "</invoke>", "</minimax:tool_call>"),
	},
	matches: func(e Evidence) bool {
		return e.mentions("<minimax:tool_call>") || e.token("<minimax:tool_call>", "</minimax:tool_call>")
	},
}, &syntax{
	openers: []opener{{tag: "<invoke", call: newXML(&xmlSyntax{
		param: "<parameter", paramClose: "</parameter>", callClose: "</invoke>",
		outer: []string{"</minimax:tool_call>"}, before: "<minimax:tool_call>", open: "<invoke", lines: true})}},
	sections: []string{"<minimax:tool_call>"},
	closers:  []string{"</minimax:tool_call>", "</invoke>"},
})
