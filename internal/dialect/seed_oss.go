package dialect

// seedOSS is the format of Seed-OSS: parameters in XML, values on the line of their tag.
var seedOSS = tagFamily(&Family{
	Name: "seed_oss", Names: []string{"seed_oss", "seed"}, Shared: none,
	Think: &Think{Open: "<seed:think>", Close: "</seed:think>", Leave: "\n</seed:think>\n\n", at: beforeAnswer,
		ReasoningNames: []string{"seed_oss", "seed"}},
	Resume: none, Replay: ReplayPrinted, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force: forceNamed("<seed:tool_call>\n"+functionOpen, ">\n"),
		Written: xmlCalls("", "", "<seed:tool_call>\n<function={{ c.name }}>\n",
			"<parameter={{ k }}>", "</parameter>\n", "</function>\n</seed:tool_call>"),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: trimmed(tagNotation("", "<seed:tool_call>\n<function=$name>\n$args</function>\n</seed:tool_call>", "\n", "", "<parameter=$key>$value</parameter>\n",
			"<parameter=", "</function>", "</seed:tool_call>", callClose)),
	},
	matches: func(e Evidence) bool {
		return e.mentions("<seed:tool_call>") || e.token("<seed:tool_call>", "</seed:tool_call>")
	},
}, &syntax{
	openers: []opener{{tag: functionOpen, call: newXML(&xmlSyntax{param: "<parameter=", paramClose: "</parameter>", callClose: "</function>",
		outer: []string{"</seed:tool_call>", callClose}, before: "<seed:tool_call>", open: functionOpen, lines: true, trim: true})}},
	sections: []string{"<seed:tool_call>"},
	closers:  []string{"</seed:tool_call>", "</function>"},
})
