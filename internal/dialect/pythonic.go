package dialect

// pythonic is the format of Llama 4 and of small Llamas told so: [f(p="v"), g()]. What llama3 reads is read too.
var pythonic = tagFamily(&Family{
	Name: "pythonic", Names: []string{"pythonic", "llama4_json", "llama4_pythonic", "llama4"}, Shared: []string{"llama"},
	Think: thinkTags, Resume: none, Replay: ReplayNever, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force:   forceNamed("[", "("),
		Written: eachCall("[", ", ", "]", pythonCall),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: pythonNotation("$[<|python_start|>$][", ", ", "]$[<|python_end|>$]"),
	},
	matches: func(e Evidence) bool {
		return e.mentions("<|python_start|>") || e.token("<|python_start|>", "<|python_end|>")
	},
}, llamaSyntax)
