package dialect

import "strings"

// mistral is the format of Mistral's models since 2025; mistralV3 is an earlier one. Both are read:
//
//	[TOOL_CALLS]f[ARGS]{…}[TOOL_CALLS]g[ARGS]{…}
//	[TOOL_CALLS] [{"name": "f", "arguments": {…}, "id": "abcdefghi"}]
//
// In the first, [CALL_ID]abcdefghi may stand before [ARGS], or [ARGS] be left out. Reasoning models add [THINK]…[/THINK].
var mistral = tagFamily(&Family{
	Name: "mistral", Names: []string{"mistral", "devstral", "ministral"}, Shared: none,
	Think: mistralTags, Resume: none, Replay: ReplayPrinted, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force:   forceNamed(toolCalls, "[ARGS]"),
		Written: eachCall("", "", "", "[TOOL_CALLS]{{ c.name }}[ARGS]{{ c.arguments | tojson }}"),
		Earlier: hermesCalls, IDs: IDsNine, Object: noObject,
		Notation: headNotation("", "[TOOL_CALLS]$name[ARGS]$args", "", ""),
	},
	matches: func(e Evidence) bool { return e.mentions(toolCalls, "[ARGS]") || e.token(toolCalls, "[ARGS]") },
}, mistralSyntax)

const toolCalls = "[TOOL_CALLS]"

var mistralTags = &Think{Open: "[THINK]", Close: "[/THINK]", Leave: "[/THINK]", at: beforeAnswer,
	ReasoningNames: []string{"mistral", "magistral", "ministral"}}

var mistralSyntax = &syntax{
	openers: []opener{{tag: toolCalls, call: newByFirst(mistralCall)}},
	inner:   []string{"[ARGS]", "[CALL_ID]"},
}

// mistralCall tells the two forms apart.
func mistralCall(c byte, ts *toolset) callReader {
	if c == '[' || c == '{' {
		return newListCall(ts)
	}
	return checked(ts, &headCall{ts: ts, name: func(head string) string {
		name, _, _ := strings.Cut(head, "[")
		return strings.TrimSpace(name)
	}, id: func(head string) string {
		_, id, _ := strings.Cut(head, "[CALL_ID]")
		id, _, _ = strings.Cut(id, "[")
		return id
	}})
}
