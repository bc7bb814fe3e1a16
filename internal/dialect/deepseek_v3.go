package dialect

import "strings"

// deepseekV3 and deepseekV31 differ in where the name stands, both are read:
//
//	<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f⏎```json⏎{…}⏎```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
//	<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{…}<｜tool▁call▁end｜><｜tool▁calls▁end｜>
var (
	deepseekV3 = tagFamily("deepseek_v3", deepseekSyntax, func(tool string) string {
		return deepseekBegin + "function" + deepseekSep + suffixed(tool, "\n```json\n")
	}, func(e Evidence) bool { return e.mentions(deepseekSep, "```json") }, deepseekSep)

	deepseekV31 = tagFamily("deepseek_v31", deepseekSyntax, func(tool string) string {
		return deepseekBegin + suffixed(tool, deepseekSep)
	}, func(e Evidence) bool { return e.mentions(deepseekSep) || e.token(deepseekSep) }, deepseekSep)
)

const (
	deepseekSep   = "<｜tool▁sep｜>"
	deepseekBegin = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>"
)

var deepseekSyntax = &syntax{
	open: thinkOpen, close: thinkClose,
	openers:  []opener{{tag: "<｜tool▁call▁begin｜>", call: newDeepseek}},
	sections: []string{"<｜tool▁calls▁begin｜>"},
	closers:  []string{"```", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"},
}

func newDeepseek(ts *toolset) callReader {
	return &headCall{ts: ts, closers: []string{"<｜tool▁call▁end｜>"}, name: func(head string) string {
		left, right, _ := strings.Cut(head, deepseekSep)
		line, _, _ := strings.Cut(strings.TrimSpace(right), "\n")
		if line = strings.TrimSpace(line); strings.TrimSpace(left) == "function" && line != "" {
			return line
		}
		return strings.TrimSpace(left)
	}}
}

// dsml is the format of DeepSeek 3.2 and 4: XML with a token of its own in every tag. An attribute of a parameter says
// whether its text is a string or JSON. 3.2 calls the block function_calls, 4 tool_calls.
var dsml = tagFamily("deepseek_v32", &syntax{
	open: thinkOpen, close: thinkClose,
	openers:  []opener{{tag: "<｜DSML｜invoke", call: newXML(&dsmlXML)}},
	sections: []string{"<｜DSML｜tool_calls>", "<｜DSML｜function_calls>"},
	closers:  []string{"</｜DSML｜invoke>", "</｜DSML｜tool_calls>", "</｜DSML｜function_calls>", "｜DSML｜tool_calls>"},
}, func(tool string) string {
	return "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"" + suffixed(tool, "\">\n")
},
	func(e Evidence) bool { return e.mentions("DSML") || e.token("｜DSML｜") }, "｜DSML｜")

var dsmlXML = xmlSyntax{param: "<｜DSML｜parameter", paramClose: "</｜DSML｜parameter>", callClose: "</｜DSML｜invoke>",
	outerClose: "</｜DSML｜tool_calls>"}
