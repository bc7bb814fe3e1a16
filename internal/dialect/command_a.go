package dialect

// commandA is the format of Cohere's Command A, R7B and North; Command R writes the list after "Action:".
//
//	<|START_THINKING|>…<|END_THINKING|>
//	<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "f", "parameters": {…}}]<|END_ACTION|>
var commandA = tagFamily(&Family{
	Name: "command_a", Names: []string{"command_a", "cohere", "command_r"}, Shared: none,
	Think: &Think{Open: "<|START_THINKING|>", Close: "<|END_THINKING|>", Leave: "<|END_THINKING|>", at: beforeAnswer,
		ReasoningNames: []string{"command_a", "cohere", "cohere2", "north"}},
	Resume: none, Replay: ReplayPrinted, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force:   forceJSON("<|START_ACTION|>[\n    ", "tool_name", "parameters"),
		Written: eachCall("<|START_ACTION|>[\n    ", ",\n    ", "\n]<|END_ACTION|>", `{{ {"tool_name": c.name, "parameters": c.arguments} | tojson }}`),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: jsonNotation("<|START_ACTION|>[\n    ", ",\n    ", "\n]<|END_ACTION|>", "tool_name", "parameters"),
	},
	matches: func(e Evidence) bool {
		return e.mentions("<|START_ACTION|>") || e.mentions("Action:", "```json") || e.token("<|START_ACTION|>", "<|END_ACTION|>")
	},
}, &syntax{
	openers: []opener{
		{tag: "<|START_ACTION|>", call: newListCall},
		{tag: "Action: ```json", call: newListCall},
		{tag: "Action:\n```json", call: newListCall},
		{tag: "Action:```json", call: newListCall}},
	closers: []string{"<|END_ACTION|>", "```"},
	drop:    []string{"<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"},
})
