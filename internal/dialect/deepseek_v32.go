package dialect

import "strconv"

// dsml is the format of DeepSeek 3.2 and 4: XML with a token of its own in every tag. An attribute of a parameter says
// whether its text is a string or JSON. 3.2 calls the block function_calls, 4 tool_calls.
var dsml = tagFamily(&Family{
	Name: "deepseek_v32", Names: []string{"deepseek_v32", "deepseek_v3_2", "deepseek_v4", "dsml"}, Shared: []string{"deepseek"},
	Think: thinkTags, Resume: none, Replay: ReplayPrinted, Ends: none,
	Builtin: &Builtin{Name: "deepseek_v32", About: "DeepSeek V3.2, with tools and thinking", ModelTypes: []string{"deepseek_v32"}},
	Calls: &Calls{
		Force: forceNamed("<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"", "\">\n"),
		Written: xmlCalls("<｜DSML｜function_calls>\n", "\n</｜DSML｜function_calls>", `<｜DSML｜invoke name="{{ c.name }}">`+"\n",
			`<｜DSML｜parameter name="{{ k }}" string="{{ "true" if v is string else "false" }}">`, "</｜DSML｜parameter>\n", "</｜DSML｜invoke>"),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: &Notation{Open: "$[<｜DSML｜tool_calls>$|<｜DSML｜function_calls>$]\n", Call: "<｜DSML｜invoke name=\"$name\">\n$args</｜DSML｜invoke>", Between: "\n",
			Close: "\n$[</｜DSML｜tool_calls>$|</｜DSML｜function_calls>$]", Args: ArgsTags, Param: "<｜DSML｜parameter name=\"$key\" string=\"$kind\">$value</｜DSML｜parameter>\n",
			Ends: []string{"<｜DSML｜parameter", "</｜DSML｜invoke>", "</｜DSML｜tool_calls>", "</｜DSML｜function_calls>"},
			Kind: func(of string) string { return strconv.FormatBool(of == "string") }},
	},
	matches: func(e Evidence) bool { return e.mentions("DSML") || e.token("｜DSML｜") },
}, &syntax{
	openers: []opener{{tag: "<｜DSML｜invoke", call: newXML(&xmlSyntax{param: "<｜DSML｜parameter", paramClose: "</｜DSML｜parameter>",
		callClose: "</｜DSML｜invoke>", outer: []string{"</｜DSML｜tool_calls>", "</｜DSML｜function_calls>"}, open: "<｜DSML｜invoke", tokens: true})}},
	inner:    []string{"｜DSML｜"},
	sections: []string{"<｜DSML｜tool_calls>", "<｜DSML｜function_calls>"},
	closers:  []string{"</｜DSML｜invoke>", "</｜DSML｜tool_calls>", "</｜DSML｜function_calls>", "｜DSML｜tool_calls>"},
})
