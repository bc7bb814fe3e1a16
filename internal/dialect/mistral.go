package dialect

import "strings"

// Mistral writes calls in two forms, both read here; reasoning models add [THINK]…[/THINK].
//
//	[TOOL_CALLS] [{"name": "f", "arguments": {…}, "id": "abcdefghi"}]
//	[TOOL_CALLS]f[ARGS]{…}[TOOL_CALLS]g[ARGS]{…}
//
// In the second, [CALL_ID]abcdefghi may stand before [ARGS], or [ARGS] be left out.
var (
	mistral = tagFamily("mistral", mistralSyntax, func(tool string) string {
		return toolCalls + suffixed(tool, "[ARGS]")
	}, func(e Evidence) bool {
		return e.mentions(toolCalls, "[ARGS]") || e.token(toolCalls, "[ARGS]")
	}, "[ARGS]", "[CALL_ID]")

	mistralV3 = tagFamily("mistral_v3", mistralSyntax, forceJSON(toolCalls+"[", "name", "arguments"), func(e Evidence) bool {
		return e.mentions(toolCalls) || e.token(toolCalls)
	}, "[ARGS]", "[CALL_ID]")
)

const toolCalls = "[TOOL_CALLS]"

var mistralSyntax = &syntax{
	open: "[THINK]", close: "[/THINK]",
	openers: []opener{{tag: toolCalls, call: func(ts *toolset) callReader { return &mistralCall{ts: ts} }}},
}

// mistralCall tells the two forms apart.
type mistralCall struct {
	ts *toolset
	chosen
}

func (m *mistralCall) step(c byte, out *joiner) verdict {
	if m.callReader == nil {
		switch {
		case isBlank(c):
			return more
		case c == '[' || c == '{':
			m.callReader = newListCall(m.ts)
		default:
			m.callReader = &headCall{ts: m.ts, name: func(head string) string {
				name, _, _ := strings.Cut(head, "[")
				return strings.TrimSpace(name)
			}, id: func(head string) string {
				_, id, _ := strings.Cut(head, "[CALL_ID]")
				id, _, _ = strings.Cut(id, "[")
				return id
			}}
		}
	}
	return m.callReader.step(c, out)
}
