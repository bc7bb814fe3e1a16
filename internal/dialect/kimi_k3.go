package dialect

import "strings"

// kimiK3 is the format of Kimi K3: reasoning, answer and calls each between tags of three tokens.
//
//	<|open|>think<|sep|>…<|close|>think<|sep|><|open|>response<|sep|>…<|close|>response<|sep|>
//	<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|>
//	<|open|>argument key="p" type="string"<|sep|>v<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>
//
// All arguments may also stand as JSON between <|open|>json type="object"<|sep|> and its end.
var kimiK3 = guarded(tagFamily(&Family{
	Name: "kimi_k3", Names: []string{"kimi_k3"}, Shared: []string{"kimi", "moonshot"},
	Think: &Think{Open: "<|open|>think<|sep|>", Close: "<|close|>think<|sep|>", Leave: "<|close|>think<|sep|>", at: beforeAnswer,
		ReasoningNames: []string{"kimi_k3"}},
	Resume: []string{"<|open|>response<|sep|>"}, Replay: ReplayPrinted, // what opens calls also closes the answer
	Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force: forceNamed(`<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="`, `" index="1"<|sep|>`),
		Written: eachCall("<|open|>tools<|sep|>", "", "<|close|>tools<|sep|>", `<|open|>call tool="{{ c.name }}" index="{{ loop.index }}"<|sep|>`+
			`<|open|>json type="object"<|sep|>{{ c.arguments | tojson }}<|close|>json<|sep|><|close|>call<|sep|>`),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: &Notation{Open: "$[<|close|>response<|sep|>$]<|open|>tools<|sep|>", Call: `<|open|>call tool="$name" index="$number"<|sep|>$args<|close|>call<|sep|>`,
			Close: "<|close|>tools<|sep|>", Args: ArgsTags, Param: `<|open|>argument key="$key" type="$kind"<|sep|>$value<|close|>argument<|sep|>`,
			Ends: []string{"<|open|>argument ", "<|close|>call<|sep|>", "<|close|>tools<|sep|>"}, Kind: func(of string) string { return strings.Replace(of, "integer", "number", 1) }},
	},
	matches: func(e Evidence) bool {
		return e.mentions("<|open|>", "<|close|>", "<|sep|>") || e.token("<|open|>", "<|close|>", "<|sep|>")
	},
}, &syntax{
	openers: []opener{{tag: "<|open|>call ", call: newXML(&xmlSyntax{
		tagEnd: "<|sep|>", param: "<|open|>argument ", paramClose: "<|close|>argument<|sep|>",
		callClose: "<|close|>call<|sep|>", outer: []string{"<|close|>tools<|sep|>"}, open: "<|open|>call ", tokens: true, json: "<|open|>json "})}},
	inner:    []string{"<|open|>", "<|close|>", "<|sep|>"},
	sections: []string{"<|open|>tools<|sep|>"},
	closers:  []string{"<|close|>json<|sep|>", "<|close|>call<|sep|>", "<|close|>tools<|sep|>", "<|close|>message<|sep|>"},
	drop:     []string{"<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"},
}))
