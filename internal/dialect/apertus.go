package dialect

// apertus is the format of Apertus, with the name of the tool as the key of its arguments:
//
//	<|inner_prefix|>…<|inner_suffix|> text <|tools_prefix|>[{"f": {…}}, {"g": {…}}]<|tools_suffix|>
var apertus = tagFamily(&Family{
	Name: "apertus", Names: []string{"apertus"}, Shared: none,
	Think: &Think{Open: "<|inner_prefix|>", Close: "<|inner_suffix|>", Leave: "<|inner_suffix|>", at: beforeAnswer,
		ReasoningNames: []string{"apertus"}},
	Resume: none, Replay: ReplayNever, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force: func(tool string) string {
			if tool == "" {
				return `<|tools_prefix|>[{"`
			}
			return `<|tools_prefix|>[{` + JSONString(tool) + ": "
		},
		Written: eachCall("<|tools_prefix|>[", ", ", "]<|tools_suffix|>", `{{ {c.name: c.arguments} | tojson }}`),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: headNotation("<|tools_prefix|>[", "{$quoted: $args}", ", ", "]<|tools_suffix|>"),
	},
	matches: func(e Evidence) bool {
		return e.mentions("<|tools_prefix|>") || e.token("<|tools_prefix|>", "<|tools_suffix|>")
	},
}, &syntax{
	openers: []opener{{tag: "<|tools_prefix|>", call: func(ts *toolset) callReader {
		return &listCall{ts: ts, item: func() callReader { return &keyedCall{argWriter: argWriter{ts: ts}} }}
	}}},
	closers: []string{"<|tools_suffix|>"},
})
