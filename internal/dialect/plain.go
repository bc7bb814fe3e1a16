package dialect

// plain is output without markup.
var plain = tagFamily(&Family{
	Name: "plain", Names: none, Shared: none,
	Think: noThink, Resume: none, Replay: ReplayNever, Ends: none, Builtin: noBuiltin,
	Calls:   noCalls,
	matches: func(Evidence) bool { return false }, // it is what is left
}, &syntax{})
