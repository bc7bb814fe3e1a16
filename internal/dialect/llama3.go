package dialect

// llama3 is the format of Llama 3.1 to 3.3: an answer that is one JSON object is a call.
//
//	{"name": "f", "parameters": {…}}
//
// Also read: <|python_tag|> before it, calls of built-in tools written f.call(p="v") behind that tag if a tool has that
// name, further calls separated by semicolons, and Python lists of calls.
var llama3 = tagFamily(&Family{
	Name: "llama3", Names: []string{"llama", "llama3", "llama3_json"}, Shared: []string{"llama4_json"},
	Think: thinkTags, Resume: none, Replay: ReplayNever, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force:   forceJSON("", "name", "parameters"),
		Written: eachCall("", "; ", "", `{{ {"name": c.name, "parameters": c.arguments} | tojson }}`),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: jsonNotation("$[<|python_tag|>$]", ";$[ $]", "", "name", "parameters"),
	},
	matches: func(e Evidence) bool { return e.mentions("<|python_tag|>") || e.mentions(`"parameters":`, "ipython") },
}, llamaSyntax)

var llamaSyntax = &syntax{
	openers: []opener{
		{tag: "<|python_tag|>", call: newPythonTag},
		{tag: "<|python_start|>", drop: true, call: newPythonTag}}, // Llama 4's template puts text behind it, too
	leads:   []string{"<|python_end|>"},
	closers: []string{"<|python_end|>"},
	drop:    []string{"<|eom_id|>", "<|python_start|>"},
	between: ";",
	bare:    bareCall,
}
