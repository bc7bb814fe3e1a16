package dialect

// hermes is the format of Hermes, Qwen 2.5, Qwen 3, Granite 4 and everything trained like them:
//
//	<think>…</think> text <tool_call>{"name": "f", "arguments": {…}}</tool_call> …
//
// Also read, because models write it: arguments before the name, "parameters" for "arguments", arguments encoded as a
// string, a list of calls, a missing closing tag, raw control characters and bad escapes in strings, Python's True, False
// and None, and the form of qwen3Coder, with and without the tag around it.
var hermes = tagFamily(&Family{
	Name: "hermes", Names: []string{"hermes", "nous", "qwen", "qwen3", "qwen25", "smollm3", "granite4"}, Shared: []string{"granite"},
	Think: thinkTags, Resume: none, Replay: ReplayPrinted, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force: func(tool string) string {
			if tool == "" {
				return callOpen + "\n"
			}
			return forceJSON(callOpen+"\n", "name", "arguments")(tool)
		},
		Written: hermesCalls, Earlier: hermesCalls, IDs: IDsKept, Object: &Object{callOpen, callClose},
		Notation: jsonNotation("<tool_call>\n", "\n</tool_call>\n<tool_call>\n", "\n</tool_call>", "name", "arguments"),
	},
	matches: func(e Evidence) bool {
		if e.mentions(callOpen) {
			return !e.mentions(functionOpen) && !e.mentions("]<]")
		}
		return e.token(callOpen, callClose)
	},
}, taggedSyntax)
