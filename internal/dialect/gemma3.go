package dialect

// gemma3 was never trained to call tools; it follows what prompts teach it, mostly Python in a fence or JSON.
//
//	```tool_code⏎f(p="v")⏎```
var gemma3 = tagFamily(&Family{
	Name: "gemma3", Names: []string{"gemma3"}, Shared: []string{"gemma"},
	Think: noThink, Resume: none, Replay: ReplayNever, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force:   forceNamed("```tool_code\n", "("),
		Written: eachCall("```tool_code\n", "\n", "\n```", pythonCall),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: pythonNotation("```tool_code\n", "\n", "\n```"),
	},
	matches: func(e Evidence) bool { return e.mentions("tool_code") },
}, &syntax{
	openers: []opener{
		{tag: "```tool_code", call: newPyCalls},
		{tag: "tool_code", lead: true, call: newPyCalls},
		{tag: "```json", lead: true, call: newBareList}},
	closers: []string{"```"},
	bare:    bareCall,
})
