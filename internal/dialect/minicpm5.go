package dialect

// miniCPM5 is the format of MiniCPM 5: parameters in XML, values with markup or newlines in CDATA.
//
//	<function name="f"><param name="p"><![CDATA[v]]></param></function>
var miniCPM5 = tagFamily(&Family{
	Name: "minicpm5", Names: []string{"minicpm5"}, Shared: none,
	Think: thinkTags, Resume: none, Replay: ReplayPrinted, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force:   forceNamed(`<function name="`, `">`),
		Written: xmlCalls("", "", `<function name="{{ c.name }}">`, `<param name="{{ k }}">`, "</param>", "</function>"),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: &Notation{Call: `<function name="$name">$args</function>`, Between: "$[\n$]", Args: ArgsTags,
			Param: `<param name="$key">$value</param>`, Ends: []string{"<param ", "</function>"}, CData: true},
	},
	matches: func(e Evidence) bool { return e.mentions("<function name=", "<param name=") },
}, &syntax{
	openers: []opener{{tag: "<function ", call: newXML(&xmlSyntax{
		param: "<param ", paramClose: "</param>", callClose: "</function>", open: "<function ", cdata: true})}},
	inner:   []string{"<function", "<param", "</param>"},
	closers: []string{"</function>"},
})
