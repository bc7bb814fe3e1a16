package anthropic

import (
	"fmt"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/wire"
	"hearth/internal/wire/wiretest"
)

// many joins f(0) … f(n-1) with commas.
func many(n int, f func(i int) string) string {
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

func talk(messages string) string { return `{"max_tokens":1,"messages":[` + messages + `]}` }

func user(blocks string) string { return `{"role":"user","content":[` + blocks + `]}` }

const (
	word = `{"type":"text","text":"a"}`
	turn = `{"role":"user","content":"a"}`
)

// TestBounds: what a request may have many of, wherever it can stand.
func TestBounds(t *testing.T) {
	if testing.Short() { // large bodies, and nothing that races
		t.Skip("long")
	}
	half := wire.MaxParts / 2
	for name, b := range map[string]wiretest.Bound{
		"messages": wiretest.Limit(chat.BoundMessages, wire.MaxMessages, "messages", "at most 100000", func(n int) string { return talk(many(n, same(turn))) }),
		"parts": wiretest.Limit(chat.BoundParts, wire.MaxParts, "messages[0].content[100000]", "at most 100000",
			func(n int) string { return talk(user(many(n, same(word)))) }),
		"parts of several messages": wiretest.Limit(chat.BoundParts, wire.MaxParts, "messages[1].content[50000]", "at most 100000", func(n int) string {
			return talk(user(many(half, same(word))) + "," + user(many(n-half, same(word))))
		}),
		"parts of an assistant": wiretest.Limit(chat.BoundParts, wire.MaxParts, "messages[1].content[100000]", "at most 100000",
			func(n int) string {
				return talk(turn + `,{"role":"assistant","content":[` + many(n, same(word)) + `]}`)
			}),
		"parts of a late system message": wiretest.Limit(chat.BoundParts, wire.MaxParts, "messages[1].content[100000]", "at most 100000",
			func(n int) string { return talk(turn + `,{"role":"system","content":[` + many(n, same(word)) + `]}`) }),
		"parts of the system prompt": wiretest.Limit(chat.BoundParts, wire.MaxParts, "system[100000]", "at most 100000",
			func(n int) string {
				return `{"max_tokens":1,"system":[` + many(n, same(word)) + `],"messages":[` + turn + `]}`
			}),
		"parts of a result": wiretest.Limit(chat.BoundParts, wire.MaxParts-1, "messages[0].content[0].content[99999]", "at most 100000",
			func(n int) string {
				return talk(user(`{"type":"tool_result","tool_use_id":"a","content":[` + many(n, same(word)) + `]}`))
			}),
		"parts of a document": wiretest.Limit(chat.BoundParts, wire.MaxParts-1, "messages[0].content[0].source.content[99999]", "at most 100000",
			func(n int) string {
				return talk(user(`{"type":"document","source":{"type":"content","content":[` + many(n, same(word)) + `]}}`))
			}),
		"parts of a search result": wiretest.Limit(chat.BoundParts, wire.MaxParts-1, "messages[0].content[0].content[99999]", "at most 100000",
			func(n int) string {
				return talk(user(`{"type":"search_result","title":"a","source":"b","content":[` + many(n, same(word)) + `]}`))
			}),
		"calls": wiretest.Limit(chat.BoundCalls, wire.MaxCalls, "messages[1].content[40000]", "at most 40000", func(n int) string {
			return talk(turn + `,{"role":"assistant","content":[` + many(n, same(`{"type":"tool_use","id":"a","name":"f","input":{}}`)) + `]}`)
		}),
		"results": wiretest.Limit(chat.BoundCalls, wire.MaxCalls, "messages[0].content[40000]", "at most 40000",
			func(n int) string { return talk(user(many(n, same(`{"type":"tool_result","tool_use_id":"a"}`)))) }),
		"tools": wiretest.Limit(chat.BoundTools, wire.MaxTools, "tools", "at most 4096", func(n int) string {
			return `{"max_tokens":1,"tools":[` + many(n, func(i int) string { return fmt.Sprintf(`{"name":"t%d","input_schema":{}}`, i) }) + `],"messages":[` + turn + `]}`
		}),
		"server tools": wiretest.Limit(chat.BoundTools, wire.MaxTools, "tools", "at most 4096", func(n int) string {
			return `{"max_tokens":1,"tools":[` + many(n, func(i int) string { return fmt.Sprintf(`{"name":"t%d","type":"x_1"}`, i) }) + `],"messages":[` + turn + `]}`
		}),
		"stop sequences": wiretest.Limit(chat.BoundStops, 64, "stop_sequences", "at most 64", func(n int) string {
			return `{"max_tokens":1,"stop_sequences":[` + many(n, same(`"a"`)) + `],"messages":[` + turn + `]}`
		}),
		"length of a stop sequence": wiretest.Limit(chat.BoundStops, 1024, "stop_sequences[0]", "at most 1024", func(n int) string {
			return `{"max_tokens":1,"stop_sequences":["` + strings.Repeat("a", n) + `"],"messages":[` + turn + `]}`
		}),
		"values of arguments": wiretest.Limit(chat.BoundValues, wire.MaxValues-2, "messages[1].content[0].input", "at most 500000", func(n int) string {
			return talk(turn + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"a":[` + many(n, same("1")) + `]}}]}`)
		}),
		"values of schemas": wiretest.Limit(chat.BoundValues, wire.MaxValues-4, "tools[1].input_schema", "at most 500000", func(n int) string {
			schema := func(n int) string { return `{"a":[` + many(n, same("1")) + `]}` }
			return `{"max_tokens":1,"tools":[{"name":"a","input_schema":` + schema(1000) + `},{"name":"b","input_schema":` + schema(n-1000) + `}],"messages":[` + turn + `]}`
		}),
		"tools referred to": wiretest.Limit(chat.BoundReferences, maxReferences/10_000, "messages[0].content[838]", "at most 8388608", func(n int) string {
			return `{"max_tokens":1,"tools":[{"name":"a","defer_loading":true,"description":"` + strings.Repeat("x", 9_997) + `","input_schema":{}}],"messages":[` +
				user(many(n, same(`{"type":"tool_reference","tool_name":"a"}`))) + `]}`
		}),
	} {
		t.Run(name, func(t *testing.T) {
			b.Check(t, func(body []byte) *chat.Error {
				_, err := Decode(body)
				return err
			})
		})
	}
}

// TestTextPartsAreLinear: texts in many pieces, of the same kind and in turn with others, take memory by their bytes, and
// nested ones no more than flat ones.
func TestTextPartsAreLinear(t *testing.T) {
	long := `{"type":"text","text":"abcdefghijklmnopqrst"}`
	nested := func(n, levels int) string {
		inner := many(n, same(long))
		for range levels {
			inner = `{"type":"document","source":{"type":"content","content":[` + inner + `]}}`
		}
		return inner
	}
	if _, err := Decode([]byte(talk(user(nested(1, maxDepth+1))))); err == nil || err.Bound != chat.BoundDepth || !strings.Contains(err.Msg, "deeper than 4") {
		t.Errorf("too deep: %v", err)
	}
	for name, body := range map[string]string{
		"user":       talk(user(many(80_000, same(long)))),
		"assistant":  talk(turn + `,{"role":"assistant","content":[` + many(80_000, same(long)) + `]}`),
		"system":     `{"system":[` + many(80_000, same(long)) + `],"messages":[` + turn + `]}`,
		"result":     talk(user(`{"type":"tool_result","tool_use_id":"a","content":[` + many(80_000, same(long)) + `]}`)),
		"nested":     talk(user(nested(80_000, maxDepth))),
		"references": talk(user(many(80_000, same(`{"type":"tool_reference","tool_name":"aaaaaaaa"}`)))),
		"thinking":   talk(turn + `,{"role":"assistant","content":[` + many(40_000, same(long+`,{"type":"thinking","thinking":"a"}`)) + `]}`),
		"images":     talk(user(many(40_000, same(long+`,{"type":"image","source":{"type":"base64","data":"aaaa"}}`)))),
	} {
		t.Run(name, func(t *testing.T) {
			wiretest.Costs(t, []byte(body), func() {
				if _, err := Decode([]byte(body)); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// FuzzCost looks for bodies that take much more memory than they have bytes: those in which something stands many times.
func FuzzCost(f *testing.F) {
	block := func(unit string) {
		f.Add([]byte(`{"messages":[{"role":"user","content":[`), []byte(unit+`,`), []byte(unit+`]}]}`))
	}
	f.Add([]byte(`{"messages":[`), []byte(turn+`,`), []byte(turn+`]}`))
	f.Add([]byte(`{"messages":[`), []byte(`{"role":"assistant","content":[]},`), []byte(turn+`]}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","content":[`), []byte(`{"type":"tool_use","id":"a","name":"f","input":{}},`), []byte(word+`]}]}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","content":[`), []byte(`{"type":"thinking","thinking":"a"},`), []byte(word+`]}]}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"a":[`), []byte(`{},`), []byte(`[]]}}]}]}`))
	f.Add([]byte(`{"tools":[`), []byte(`{"name":"a","input_schema":{}},`), []byte(`{"name":"b"}],"messages":[`+turn+`]}`))
	f.Add([]byte(`{"tools":[{"name":"a","defer_loading":true,"description":"xxxxxxxxxxxxxxxxxxx"}],"messages":[{"role":"user","content":[`), []byte(`{"type":"tool_reference","tool_name":"a"},`), []byte(word+`]}]}`))
	f.Add([]byte(`{"system":[`), []byte(word+`,`), []byte(word+`],"messages":[`+turn+`]}`))
	f.Add([]byte(`{"stop_sequences":[`), []byte(`"\u0001",`), []byte(`""],"messages":[`+turn+`]}`))
	f.Add([]byte(`{`), []byte(`"model":"\u0061",`), []byte(`"messages":[`+turn+`]}`))
	block(word)
	block(`{"type":"tool_result","tool_use_id":"a","content":"b"}`)
	block(`{"type":"tool_result","tool_use_id":"a","content":[` + word + `]}`)
	block(`{"type":"image","source":{"type":"base64","data":""}}`)
	block(`{"type":"image","source":{"type":"base64","data":"/9j//gAC"}}`)
	block(`{"type":"image","source":{"type":"url","url":""}}`)
	block(`{"type":"document","source":{"type":"file","file_id":""}}`)
	block(`{"type":"document","source":{"type":"text","data":""}}`)
	block(`{"type":"search_result","title":"","source":"","content":[` + word + `]}`)
	f.Fuzz(func(t *testing.T, before, unit, after []byte) {
		body := wiretest.Repeated(before, unit, after)
		wiretest.Costs(t, body, func() { _, _ = Decode(body) })
	})
}
