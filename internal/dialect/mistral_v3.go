package dialect

// mistralV3 is what models before those of mistral write, read by the same parser.
var mistralV3 = tagFamily(&Family{
	Name: "mistral_v3", Names: []string{"mistral_v3"}, Shared: []string{"mistral"},
	Think: mistralTags, Resume: none, Replay: ReplayNever, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force:   forceJSON(toolCalls+"[", "name", "arguments"),
		Written: eachCall("[TOOL_CALLS] [", ", ", "]", "{{ c | tojson }}"),
		Earlier: hermesCalls, IDs: IDsNine, Object: noObject,
		Notation: jsonNotation("[TOOL_CALLS]$[ $][", ", ", "]", "name", "arguments"),
	},
	matches: func(e Evidence) bool { return e.mentions(toolCalls) || e.token(toolCalls) },
}, mistralSyntax)
