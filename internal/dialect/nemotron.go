package dialect

// nemotron is the format of Nemotron Nano 2. Nemotron 3 writes what qwen3_coder does, which is read here too.
//
//	<TOOLCALL>[{"name": "f", "arguments": {…}}]</TOOLCALL>
var nemotron = tagFamily(&Family{
	Name: "nemotron", Names: []string{"nemotron"}, Shared: none,
	Think: thinkTags, Resume: none, Replay: ReplayNever, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force:   forceJSON("<TOOLCALL>[", "name", "arguments"),
		Written: eachCall("<TOOLCALL>[", ", ", "]</TOOLCALL>", "{{ c | tojson }}"),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: jsonNotation("<TOOLCALL>[", ", ", "]</TOOLCALL>", "name", "arguments"),
	},
	matches: func(e Evidence) bool { return e.mentions("<TOOLCALL>") || e.token("<TOOLCALL>", "</TOOLCALL>") },
}, &syntax{
	openers: append([]opener{{tag: "<TOOLCALL>", call: newListCall}}, taggedOpeners...),
	closers: append([]string{"</TOOLCALL>"}, taggedClosers...),
})
