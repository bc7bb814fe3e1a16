package dialect

// functionaryV31 is the format of Functionary 3.1: <function=f>{…}</function>.
var functionaryV31 = tagFamily(&Family{
	Name: "functionary_v31", Names: []string{"functionary_v31"}, Shared: []string{"functionary", "meetkai"},
	Think: noThink, Resume: none, Replay: ReplayNever, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force:   forceNamed(functionOpen, ">"),
		Written: eachCall("", "\n", "", "<function={{ c.name }}>{{ c.arguments | tojson }}</function>"),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: headNotation("", "<function=$name>$args</function>", "$[\n$]", ""),
	},
	matches: func(e Evidence) bool { return e.mentions(functionOpen) && !e.mentions(callOpen) },
}, &syntax{
	openers: []opener{{tag: functionOpen, call: newQwenXML}, {tag: "<|python_tag|>", call: newPythonTag}},
	closers: []string{"</function>"},
	drop:    []string{"<|eom_id|>"},
})
