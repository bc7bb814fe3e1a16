package dialect

// deepseekV31 differs from deepseekV3 in where the name stands. Both are read:
//
//	<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{…}<｜tool▁call▁end｜><｜tool▁calls▁end｜>
var deepseekV31 = tagFamily(&Family{
	Name: "deepseek_v31", Names: []string{"deepseek_v31", "deepseek_v3_1"}, Shared: []string{"deepseek"},
	Think: thinkTags, Resume: none, Replay: ReplayNever, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force: forceNamed(deepseekBegin, deepseekSep),
		Written: eachCall("<｜tool▁calls▁begin｜>", "", "<｜tool▁calls▁end｜>",
			"<｜tool▁call▁begin｜>{{ c.name }}<｜tool▁sep｜>{{ c.arguments | tojson }}<｜tool▁call▁end｜>"),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: headNotation("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>$name<｜tool▁sep｜>$args<｜tool▁call▁end｜>", "", "<｜tool▁calls▁end｜>"),
	},
	matches: func(e Evidence) bool { return e.mentions(deepseekSep) || e.token(deepseekSep) },
}, deepseekSyntax)
