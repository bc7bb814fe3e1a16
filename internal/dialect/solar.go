package dialect

import "strings"

// solar is the format of Solar Open. The prompt ends before the mark that tells reasoning, text and calls apart.
//
//	<|think|>…<|end|><|begin|>assistant<|content|>…<|end|>
//	<|tool_calls|><|tool_call:begin|>ID<|tool_call:name|>f<|tool_call:args|>{…}<|tool_call:end|><|calls|>
var solar = guarded(tagFamily(&Family{
	Name: "solar", Names: []string{"solar", "solar_open"}, Shared: none,
	Think:  &Think{Open: "<|think|>", Close: "<|end|>", Leave: "<|end|>", at: beforeAnswer, ReasoningNames: none},
	Resume: []string{"<|begin|>assistant", "<|content|>"}, Replay: ReplayPrinted, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force: forceNamed("<|tool_calls|><|tool_call:begin|>a1b2c3d4e5"+solarName, solarArgs),
		Written: eachCall("<|tool_calls|>", "", "<|calls|>", "<|tool_call:begin|>a1b2c3d4e{{ loop.index }}"+solarName+
			"{{ c.name }}"+solarArgs+"{{ c.arguments | tojson }}"+solarEnd),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: headNotation("<|tool_calls|>", "<|tool_call:begin|>$id"+solarName+"$name"+solarArgs+"$args"+solarEnd, "", "<|calls|>"),
	},
	matches: func(e Evidence) bool {
		return e.mentions("<|tool_call:begin|>") || e.token("<|tool_call:begin|>", solarName)
	},
}, &syntax{
	openers:  []opener{{tag: "<|tool_call:begin|>", call: orJSON(newSolar)}},
	inner:    []string{"<|begin|>", solarName, solarArgs},
	sections: []string{"<|tool_calls|>"},
	closers:  []string{solarEnd, "<|calls|>"},
	drop:     []string{"<|begin|>assistant", "<|content|>", "<|end|>"},
}))

const (
	solarName = "<|tool_call:name|>"
	solarArgs = "<|tool_call:args|>"
	solarEnd  = "<|tool_call:end|>"
)

func newSolar(ts *toolset) callReader {
	return checked(ts, &headCall{ts: ts, closers: []string{solarEnd}, name: func(head string) string {
		_, name, _ := strings.Cut(head, solarName)
		name, _, _ = strings.Cut(name, solarArgs)
		return strings.TrimSpace(name)
	}, id: func(head string) string {
		id, _, _ := strings.Cut(head, solarName)
		return id
	}})
}
