package dialect

// qwen3Coder is the format of Qwen 3 Coder, Qwen 3.5, Nemotron 3 and Step 3.5, read by the parser of hermes:
//
//	<tool_call>⏎<function=f>⏎<parameter=p>⏎v⏎</parameter>⏎</function>⏎</tool_call>
var qwen3Coder = tagFamily(&Family{
	Name:   "qwen3_coder",
	Names:  []string{"qwen3_coder", "qwen3_xml", "qwen3_coder_xml", "qwen35", "qwen3_5", "nemotron3", "step3p5", "step"},
	Shared: []string{"hermes", "nous", "qwen", "qwen3", "nemotron"},
	Think:  thinkTags, Resume: none, Replay: ReplayPrinted, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force: forceNamed(callOpen+"\n"+functionOpen, ">\n"),
		Written: xmlCalls("", "", "<tool_call>\n<function={{ c.name }}>\n", "<parameter={{ k }}>\n", "\n</parameter>\n",
			"</function>\n</tool_call>"),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: trimmed(tagNotation("", "<tool_call>\n<function=$name>\n$args</function>\n</tool_call>", "\n", "", "<parameter=$key>\n$value\n</parameter>\n",
			"<parameter=", "</function>", callClose)),
	},
	matches: func(e Evidence) bool { return e.mentions(callOpen, functionOpen) },
}, taggedSyntax)
