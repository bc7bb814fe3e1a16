package dialect

import "strings"

// deepseekV3 is the format of DeepSeek V3 and R1:
//
//	<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f⏎```json⏎{…}⏎```<｜tool▁call▁end｜>
//	<｜tool▁calls▁end｜>
var deepseekV3 = tagFamily(&Family{
	Name: "deepseek_v3", Names: []string{"deepseek", "deepseek_v3", "deepseek_r1"}, Shared: none,
	Think: thinkTags, Resume: none, Replay: ReplayNever, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force: forceNamed(deepseekBegin+"function"+deepseekSep, "\n```json\n"),
		Written: eachCall("<｜tool▁calls▁begin｜>", "\n", "<｜tool▁calls▁end｜>",
			"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{{ c.name }}\n```json\n{{ c.arguments | tojson }}\n```<｜tool▁call▁end｜>"),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: headNotation("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>$name\n```json\n$args\n```<｜tool▁call▁end｜>", "\n", "<｜tool▁calls▁end｜>"),
	},
	matches: func(e Evidence) bool { return e.mentions(deepseekSep, "```json") },
}, deepseekSyntax)

const (
	deepseekSep   = "<｜tool▁sep｜>"
	deepseekBegin = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>"
)

var deepseekSyntax = &syntax{
	openers:  []opener{{tag: "<｜tool▁call▁begin｜>", call: orJSON(newDeepseek)}},
	inner:    []string{deepseekSep},
	sections: []string{"<｜tool▁calls▁begin｜>"},
	closers:  []string{"```", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"},
}

func newDeepseek(ts *toolset) callReader {
	return checked(ts, &headCall{ts: ts, closers: []string{"<｜tool▁call▁end｜>"}, name: func(head string) string {
		left, right, _ := strings.Cut(head, deepseekSep)
		line, _, _ := strings.Cut(strings.TrimSpace(right), "\n")
		if line = strings.TrimSpace(line); strings.TrimSpace(left) == "function" && line != "" {
			return line
		}
		return strings.TrimSpace(left)
	}})
}
