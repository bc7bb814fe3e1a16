package dialect

// gemma4 is the format of Gemma 4: keys without quotes, strings in a quote mark of its own, which nothing escapes.
//
//	<|channel>thought⏎…<channel|> text <|tool_call>call:f{p:<|"|>v<|"|>,n:3}<tool_call|>
var gemma4 = tagFamily(&Family{
	Name: "gemma4", Names: []string{"gemma4", "gemma"}, Shared: none,
	Think: &Think{Open: "<|channel>", Close: "<channel|>", Leave: "<channel|>", at: &place{anywhere: true, label: "thought"},
		ReasoningNames: []string{"gemma4"}},
	Resume: none, Replay: ReplayPrinted, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force:   forceNamed("<|tool_call>call:", "{"),
		Written: bareCalls("<|tool_call>", "<tool_call|>", `<|"|>`),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: markedNotation("<|tool_call>", "<tool_call|>", `<|"|>`),
	},
	matches: func(e Evidence) bool { return e.mentions("<|tool_call>") || e.token("<|tool_call>", "<tool_call|>") },
}, &syntax{
	openers: []opener{{tag: "<|tool_call>", call: orJSON(newBareKeys(`<|"|>`, "<tool_call|>", "<|tool_response>"))}},
	inner:   []string{`<|"|>`},
	closers: []string{"<tool_call|>", "<|tool_response>"},
})
