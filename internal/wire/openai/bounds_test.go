package openai

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/wire"
	"hearth/internal/wire/wiretest"
)

// list joins f(0) … f(n-1) with commas.
func listOf(n int, f func(i int) string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(f(i))
	}
	return b.String()
}

func same(s string) func(int) string { return func(int) string { return s } }

func talk(messages string, more ...string) string {
	return `{` + strings.Join(append(more, ""), ",") + `"messages":[` + messages + `]}`
}

const (
	word = `{"type":"text","text":"a"}`
	turn = `{"role":"user","content":"a"}`
	call = `{"type":"function","id":"a","function":{"name":"f","arguments":"{}"}}`
)

// The decoders by route.
var decoders = map[string]func(body []byte) *chat.Error{
	"chat": func(body []byte) *chat.Error { _, err := Decode(body); return err },
	"completions": func(body []byte) *chat.Error {
		v, err := wire.Parse(body)
		if err == nil {
			_, err = decodeCompletion(v)
		}
		return err
	},
	"embeddings": func(body []byte) *chat.Error {
		v, err := wire.Parse(body)
		if err == nil {
			_, err = decodeEmbedding(v)
		}
		return err
	},
	"rerank": func(body []byte) *chat.Error {
		v, err := wire.Parse(body)
		if err == nil {
			_, err = decodeRank(v)
		}
		return err
	},
}

// TestBounds: what a request may have many of, wherever it can stand.
func TestBounds(t *testing.T) {
	if testing.Short() { // large bodies, and nothing that races
		t.Skip("long")
	}
	parts := func(role string) wiretest.Bound {
		return wiretest.Limit(chat.BoundParts, wire.MaxParts, "messages[0].content[100000]", "at most 100000",
			func(n int) string { return talk(`{"role":"` + role + `","content":[` + listOf(n, same(word)) + `]}`) })
	}
	function := func(i int) string {
		return fmt.Sprintf(`{"type":"function","function":{"name":"t%d","parameters":{}}}`, i)
	}
	ids := func(n int) string { return strings.Repeat("1,", n-1) + "1" }
	bias := func(n int) string {
		return `"logit_bias":{` + listOf(n, func(i int) string { return fmt.Sprintf(`"%d":1`, i) }) + `}`
	}
	for route, bounds := range map[string]map[string]wiretest.Bound{
		"chat": {
			"messages":                  wiretest.Limit(chat.BoundMessages, wire.MaxMessages, "messages", "at most 100000", func(n int) string { return talk(listOf(n, same(turn))) }),
			"parts of a user":           parts("user"),
			"parts of a system message": parts("system"),
			"parts of an assistant":     parts("assistant"),
			"parts of a result":         parts("tool"),
			"calls": wiretest.Limit(chat.BoundCalls, wire.MaxCalls, "messages[0].tool_calls[40000]", "at most 40000",
				func(n int) string { return talk(`{"role":"assistant","tool_calls":[` + listOf(n, same(call)) + `]}`) }),
			"old calls": wiretest.Limit(chat.BoundCalls, wire.MaxCalls, "messages[40000].function_call", "at most 40000",
				func(n int) string {
					return talk(listOf(n, same(`{"role":"assistant","function_call":{"name":"f","arguments":"{}"}}`)))
				}),
			"results": wiretest.Limit(chat.BoundCalls, wire.MaxCalls, "messages[40000]", "at most 40000",
				func(n int) string { return talk(listOf(n, same(`{"role":"tool","tool_call_id":"a","content":"b"}`))) }),
			"tools": wiretest.Limit(chat.BoundTools, wire.MaxTools, "tools", "at most 4096",
				func(n int) string { return talk(turn, `"tools":[`+listOf(n, function)+`]`) }),
			"allowed tools": wiretest.Limit(chat.BoundTools, wire.MaxTools, "tool_choice.allowed_tools.tools", "at most 4096", func(n int) string {
				return talk(turn, `"tools":[`+function(0)+`]`, `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[`+
					listOf(n, same(`{"type":"function","function":{"name":"t0"}}`))+`]}}`)
			}),
			"stop strings": wiretest.Limit(chat.BoundStops, 64, "stop", "at most 64", func(n int) string { return talk(turn, `"stop":[`+listOf(n, same(`"a"`))+`]`) }),
			"logit_bias":   wiretest.Limit(chat.BoundLogitBias, maxBias, "logit_bias", "at most 300000", func(n int) string { return talk(turn, bias(n)) }),
			"template arguments": wiretest.Limit(chat.BoundArgs, wire.MaxArgs, "chat_template_kwargs", "at most 256", func(n int) string {
				return talk(turn, `"chat_template_kwargs":{`+listOf(n, func(i int) string { return fmt.Sprintf(`"v%d":1`, i) })+`}`)
			}),
			"values of template arguments": wiretest.Limit(chat.BoundValues, wire.MaxValues, "chat_template_kwargs.a", "at most 500000",
				func(n int) string { return talk(turn, `"chat_template_kwargs":{"a":[`+ids(n)+`]}`) }),
			"values of arguments": wiretest.Limit(chat.BoundValues, wire.MaxValues-2, "messages[0].tool_calls[0].function.arguments", "at most 500000", func(n int) string {
				return talk(`{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"a\":[` + ids(n) + `]}"}}]}`)
			}),
			"values of an object of arguments": wiretest.Limit(chat.BoundValues, wire.MaxValues-2, "messages[0].tool_calls[0].function.arguments", "at most 500000", func(n int) string {
				return talk(`{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"a":[` + ids(n) + `]}}}]}`)
			}),
			"values of schemas": wiretest.Limit(chat.BoundValues, wire.MaxValues-2, "tools[0].function.parameters", "at most 500000", func(n int) string {
				return talk(turn, `"tools":[{"function":{"name":"f","parameters":{"a":[`+ids(n)+`]}}}]`)
			}),
			"values of a response's schema": wiretest.Limit(chat.BoundValues, wire.MaxValues-2, "response_format.json_schema.schema", "at most 500000", func(n int) string {
				return talk(turn, `"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"a":[`+ids(n)+`]}}}`)
			}),
		},
		"completions": {
			"prompts": wiretest.Limit(chat.BoundInputs, maxCompletions, "prompt", "at most 1024", func(n int) string { return `{"prompt":[` + listOf(n, same(`"a"`)) + `]}` }),
			"token ids": wiretest.Limit(chat.BoundTokenIDs, wire.MaxTokenIDs, "prompt[2097152]", "at most 2097152",
				func(n int) string { return `{"prompt":[` + ids(n) + `]}` }),
			"token ids of several prompts": wiretest.Limit(chat.BoundTokenIDs, wire.MaxTokenIDs, "prompt[1][2097151]", "at most 2097152",
				func(n int) string { return `{"prompt":[[1],[` + ids(n-1) + `]]}` }),
			"stop strings": wiretest.Limit(chat.BoundStops, 64, "stop", "at most 64", func(n int) string { return `{"prompt":"a","stop":[` + listOf(n, same(`"a"`)) + `]}` }),
			"logit_bias":   wiretest.Limit(chat.BoundLogitBias, maxBias, "logit_bias", "at most 300000", func(n int) string { return `{"prompt":"a",` + bias(n) + `}` }),
		},
		"embeddings": {
			"inputs":    wiretest.Limit(chat.BoundInputs, maxInputs, "input", "at most 2048", func(n int) string { return `{"input":[` + listOf(n, same(`"a"`)) + `]}` }),
			"token ids": wiretest.Limit(chat.BoundTokenIDs, wire.MaxTokenIDs, "input[2097152]", "at most 2097152", func(n int) string { return `{"input":[` + ids(n) + `]}` }),
		},
		"rerank": {
			"documents": wiretest.Limit(chat.BoundInputs, maxInputs, "documents", "at most 2048",
				func(n int) string { return `{"query":"q","documents":[` + listOf(n, same(`"a"`)) + `]}` }),
		},
	} {
		for name, b := range bounds {
			t.Run(route+"/"+name, func(t *testing.T) { b.Check(t, decoders[route]) })
		}
	}
}

// TestTextPartsAreLinear: texts in many pieces, of the same kind and in turn with others, take memory by their bytes.
func TestTextPartsAreLinear(t *testing.T) {
	long := `{"type":"text","text":"abcdefghijklmnopqrst"}`
	many := func(role, parts string) string { return talk(`{"role":"` + role + `","content":[` + parts + `]}`) }
	for name, body := range map[string]string{
		"user":      many("user", listOf(80_000, same(long))),
		"system":    many("system", listOf(80_000, same(long))),
		"assistant": many("assistant", listOf(80_000, same(long))),
		"result":    many("tool", listOf(80_000, same(long))),
		"images":    many("user", listOf(40_000, same(long+`,{"type":"image_url","image_url":"data:image/png;base64,aaaa"}`))),
		"format":    talk(`{"role":"system","content":[`+listOf(80_000, same(long))+`]}`, `"response_format":{"type":"json_object"}`),
	} {
		t.Run(name, func(t *testing.T) {
			wiretest.Costs(t, []byte(body), func() {
				if err := decoders["chat"]([]byte(body)); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// TestFoldIsLinear: arguments that come token by token take memory by their bytes, also where the reply ends in them.
func TestFoldIsLinear(t *testing.T) {
	const n = 20_000
	for _, whole := range []bool{true, false} {
		got := wiretest.Allocated(func() {
			f := newCollectEncoder(reply{choices: 1, newID: func(string) string { return "a" }})
			for range 2 {
				f.Event(&chat.Event{Kind: chat.EventToolStart, Call: &chat.ToolCall{Name: "f"}})
				for range n {
					f.Event(&chat.Event{Kind: chat.EventToolArgs, Text: "abcd"})
				}
				if whole {
					f.Event(&chat.Event{Kind: chat.EventToolEnd, Call: &chat.ToolCall{Name: "f", Arguments: []byte("{}")}})
				}
			}
			f.Event(&chat.Event{Kind: chat.EventFinish, Finish: chat.FinishLength})
			for _, c := range f.Body().(completion).Choices[0].Message.ToolCalls {
				if len(c.Function.Arguments) != 4*n {
					t.Errorf("%d bytes of arguments", len(c.Function.Arguments))
				}
			}
		})
		if got > 20*2*4*n {
			t.Errorf("two calls of %d bytes take %d", 4*n, got)
		}
	}
}

// FuzzCost looks for bodies that take much more memory than they have bytes, at every route: those in which something
// stands many times.
func FuzzCost(f *testing.F) {
	for _, s := range [][3]string{
		{`{"messages":[`, turn + `,`, turn + `]}`},
		{`{"messages":[{"role":"user","content":[`, word + `,`, word + `]}]}`},
		{`{"messages":[{"role":"user","content":[`, `{"type":"image_url","image_url":"data:;base64,"},`, word + `]}]}`},
		{`{"messages":[{"role":"user","content":[`, `{"type":"image_url","image_url":"http://"},`, word + `]}]}`},
		{`{"messages":[{"role":"user","content":[`, `{"type":"input_file","file_id":""},`, word + `]}]}`},
		{`{"messages":[{"role":"assistant","tool_calls":[`, call + `,`, call + `]}]}`},
		{`{"messages":[`, `{"role":"tool","tool_call_id":"a","content":"b"},`, turn + `]}`},
		{`{"messages":[`, `{"role":"assistant","function_call":{"name":"f","arguments":"x"}},`, turn + `]}`},
		{`{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"a\":[`, `{},`, `[]]}"}}]}]}`},
		{`{"messages":[` + turn + `],"tools":[`, `{"function":{"name":"a","parameters":{}}},`, call + `]}`},
		{`{"messages":[` + turn + `],"tools":[`, `{"type":"custom","custom":{"name":"a"}},`, call + `]}`},
		{`{"messages":[` + turn + `],"chat_template_kwargs":{`, `"a":[],`, `"b":{}}}`},
		{`{"messages":[` + turn + `],"logit_bias":{`, `"1":2,`, `"3":4}}`},
		{`{"messages":[` + turn + `],"stop":[`, `"\u0001",`, `"b"]}`},
		{`{"messages":[` + turn + `],"response_format":{"type":"json_schema","json_schema":{"schema":{"a":[`, `[],`, `{}]}}}}`},
		{`{"prompt":[`, `[],`, `[1]]}`},
		{`{"prompt":[`, `1,`, `2],"suffix":"a"}`},
		{`{"input":[`, `"a",`, `"b"]}`},
		{`{"query":"q","documents":[`, `{"text":"a"},`, `"b"]}`},
		{`{`, `"model":"\u0061",`, `"messages":[` + turn + `]}`},
	} {
		f.Add([]byte(s[0]), []byte(s[1]), []byte(s[2]))
	}
	f.Fuzz(func(t *testing.T, before, unit, after []byte) {
		body := wiretest.Repeated(before, unit, after)
		for _, route := range slices.Sorted(maps.Keys(decoders)) {
			wiretest.Costs(t, body, func() { _ = decoders[route](body) })
		}
	})
}
