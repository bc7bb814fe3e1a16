package dialect

// functionGemma is gemma4 with other marks, and without reasoning.
//
//	<start_function_call>call:f{p:<escape>v<escape>,n:3}<end_function_call>
var functionGemma = tagFamily(&Family{
	Name: "functiongemma", Names: []string{"functiongemma", "function_gemma"}, Shared: []string{"gemma"},
	Think: noThink, Resume: none, Replay: ReplayNever, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force:   forceNamed("<start_function_call>call:", "{"),
		Written: bareCalls("<start_function_call>", "<end_function_call>", "<escape>"),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: markedNotation("<start_function_call>", "<end_function_call>", "<escape>"),
	},
	matches: func(e Evidence) bool {
		return e.mentions("<start_function_call>") || e.token("<start_function_call>", "<end_function_call>")
	},
}, &syntax{
	openers: []opener{{tag: "<start_function_call>", call: orJSON(newBareKeys("<escape>", "<end_function_call>", "<start_function_response>"))}},
	inner:   []string{"<escape>"},
	closers: []string{"<end_function_call>", "<start_function_response>"},
})
