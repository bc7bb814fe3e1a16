//go:build linux

package hostile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// rows are all inputs of TestRequests.
func rows(t *testing.T) []row {
	return slices.Concat(forms(t), guided(), checks(t), counts(), texts(), packed(), extras(), pictures(t), completions(), encoders(t), templates(t), connections())
}

// each makes a row for both protocols.
func each(name string, n int, f func(a api, n int) request, more ...func(*row)) (list []row) {
	for _, a := range both {
		r := row{name: a.name + " " + name, n: n, send: one(func(n int) request { return f(a, n) })}
		for _, m := range more {
			m(&r)
		}
		list = append(list, r)
	}
	return list
}

func bounded(r *row) { r.bounded = true }
func refused(r *row) { r.refused = true }

// runs is for prompts that fit: they take what is kept of them, and a step of so many tokens.
func runs(r *row) { r.memory, r.step = cacheBytes+floorPeak, promptStep }

const promptStep = 600 * time.Millisecond

// repeat is n copies of an item with commas between them; %d in it is its number.
func repeat(n int, item string) string {
	var b strings.Builder
	b.Grow(n * (len(item) + 3))
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		if strings.Contains(item, "%d") {
			b.WriteString(strings.ReplaceAll(item, "%d", fmt.Sprint(i)))
		} else {
			b.WriteString(item)
		}
	}
	return b.String()
}

func list(n int, item string) string { return "[" + repeat(n, item) + "]" }

// Schemas of tools.

// recursive has k alternatives that are all the value itself: it has no finite value.
func recursive(k int) string {
	return `{"type": "object", "properties": {"x": {"anyOf": ` + list(k, `{"$ref": "#/properties/x"}`) + `}}, "required": ["x"]}`
}

// ending is recursive with one alternative that ends.
func ending(k int) string {
	return `{"type": "object", "properties": {"x": {"anyOf": [` + repeat(k, `{"$ref": "#/properties/x"}`) + `, {"type": "integer"}]}}, "required": ["x"]}`
}

// diamonds has so many definitions, each of which is one of two that are both the next: 2 to the power of n ways to one leaf.
func diamonds(n int, leaf string) string {
	var defs strings.Builder
	for i := range n {
		fmt.Fprintf(&defs, `"d%d": {"anyOf": [{"$ref": "#/$defs/d%d"}, {"$ref": "#/$defs/d%d"}]}, `, i, i+1, i+1)
	}
	return fmt.Sprintf(`{"$defs": {%s"d%d": %s}, "type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "required": ["x"]}`, defs.String(), n, leaf)
}

// unions are nested so deep, each with something of its own.
func unions(n int) string {
	return `{"type": "object", "properties": {"x": ` + strings.Repeat(`{"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "string"}}, `, n) +
		`{"type": "integer"}` + strings.Repeat(`]}`, n) + `}, "required": ["x"]}`
}

// circle is so many definitions that each need the next one, and the last one the first.
func circle(n int) string {
	var defs strings.Builder
	for i := range n {
		fmt.Fprintf(&defs, `"d%d": {"type": "object", "properties": {"x": {"$ref": "#/$defs/d%d"}}, "required": ["x"]}, `, i, (i+1)%n)
	}
	return `{"$defs": {` + defs.String() + `"z": {}}, "type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "required": ["x"]}`
}

const selfish = `{"type": "object", "properties": {"x": {"$ref": "#"}}, "required": ["x"]}`

func property(schema string) string {
	return `{"type": "object", "properties": {"x": ` + schema + `}, "required": ["x"]}`
}

// special is the id of a token of the demo model.
func special(t *testing.T, content string) int {
	raw, err := os.ReadFile(filepath.Join(demoFolder, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Added []struct {
			ID      int
			Content string
		} `json:"added_tokens"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		t.Fatal(err)
	}
	for _, a := range f.Added {
		if a.Content == content {
			return a.ID
		}
	}
	t.Fatalf("the demo model has no token %s", content)
	return 0
}

const demoFolder = "../../internal/demo/model"

// forms are tools whose schemas calls are kept to while they are written.
func forms(t *testing.T) []row {
	forced := func(schema func(n int) string) func(a api, n int) request {
		return func(a api, n int) request { return a.say("Hello", a.forced(schema(n))) }
	}
	fixed := func(s string) func(int) string { return func(int) string { return s } }
	// The bias opens a call, which no prompt would have the demo model do for sure.
	opens := fmt.Sprintf(`, "logit_bias": {"%d": 100}`, special(t, "<tool_call>"))
	offered := func(schema func(n int) string) func(n int) request {
		return func(n int) request { return openai.say("Hello", openai.tools(schema(n))+opens) }
	}
	many := func(a api, what, schema string) row {
		return row{name: a.name + " forced calls at once, " + what, n: 8, memory: cacheBytes + floorPeak, send: func(n int) (q []request) {
			for range n {
				q = append(q, a.say("Hello", a.forced(schema)))
			}
			return q
		}}
	}
	out := slices.Concat(
		each("forced tool, alternatives that are the value itself", 6, forced(recursive), refused),
		each("forced tool, 30 alternatives that are the value itself", 30, forced(recursive), refused),
		each("forced tool, alternatives that are the value itself, and one that ends", 30, forced(ending)),
		each("forced tool, diamonds of 17 definitions", 17, forced(func(n int) string { return diamonds(n, `{"type": "string", "pattern": "^(a+)+$"}`) })),
		each("forced tool, diamonds of 17 definitions of an enum", 17, forced(func(n int) string { return diamonds(n, `{"enum": ["a", "b", 3]}`) })),
		each("forced tool, nested unions", 30, forced(unions)),
		each("forced tool, unions nested beyond any use", 2000, forced(unions)),
		each("forced tool that needs itself", 1, forced(fixed(selfish)), refused),
		each("forced tool, a circle of definitions", 14, forced(circle), refused),
		each("forced tool, a circle longer than schemas are read", 500, forced(circle)), // what is beyond may be anything, so there is a value
		each("forced tool, enum of 100,000", 100_000, forced(func(n int) string { return property(`{"enum": ` + list(n, `"value-%d"`) + `}`) })),
		each("forced tool, enum with long common beginnings", 2000, forced(func(n int) string {
			return property(`{"enum": ` + list(n, `"`+strings.Repeat("a", 500)+`%d"`) + `}`)
		})),
		each("forced tool, 50,000 properties", 50_000, forced(func(n int) string {
			return `{"type": "object", "properties": {` + repeat(n, `"p%d": {"type": "string"}`) + `}}`
		})),
		each("forced tool, 50,000 required properties", 50_000, forced(func(n int) string {
			return `{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ` + list(n, `"p%d"`) + `}`
		})),
		each("forced tool, arrays in arrays", 5000, forced(func(n int) string {
			return property(strings.Repeat(`{"type": "array", "items": `, n) + `{}` + strings.Repeat(`}`, n))
		})),
		each("forced tool, 20,000 references in a row", 20_000, forced(func(n int) string {
			var defs strings.Builder
			for i := range n {
				fmt.Fprintf(&defs, `"d%d": {"$ref": "#/$defs/d%d"}, `, i, i+1)
			}
			return fmt.Sprintf(`{"$defs": {%s"d%d": {"type": "integer"}}, "type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "required": ["x"]}`, defs.String(), n)
		})),
		each("forced tool, pattern", 500, forced(func(n int) string {
			return property(`{"type": "string", "pattern": "` + strings.Repeat(`(a{1,100}|b{1,100})`, n) + `"}`)
		})),
		each("strict tool, diamonds of 17 definitions", 17, func(a api, n int) request {
			more := a.forced(diamonds(n, `{"type": "string"}`))
			return a.say("Hello", strings.Replace(more, `"name": "f"`, `"name": "f", "strict": true`, 1))
		}),
		each("offered tools that need themselves", 500, func(a api, n int) request {
			return a.say("Hello", a.tools(slices.Repeat([]string{selfish}, n)...))
		}, runs),
		[]row{many(openai, "recursive", ending(30)), many(anthropic, "recursive", ending(30)), many(anthropic, "diamonds", diamonds(17, `{"type": "string"}`))},
	)
	for name, schema := range map[string]func(int) string{
		"alternatives that are the value itself": recursive, "and one that ends": ending, "a circle of definitions": circle,
		"diamonds": func(n int) string { return diamonds(n, `{}`) }, "nested unions": unions,
	} {
		out = append(out, row{name: openai.name + " offered tool, call begun, " + name, n: 17, send: one(offered(schema))})
	}
	slices.SortStableFunc(out[len(out)-5:], func(a, b row) int { return strings.Compare(a.name, b.name) })
	return append(out, row{name: "messages forced recursive tool, model in a process of its own", n: 30, server: []string{"--model-process", "always"},
		send: one(func(n int) request { return anthropic.say("Hello", anthropic.forced(recursive(n))) }), refused: true})
}

// guided are forms of texts that other servers' fields ask for.
func guided() (out []row) {
	add := func(name string, n int, field func(n int) string) {
		out = append(out, row{name: "chat " + name, n: n, send: one(func(n int) request { return openai.say("Hello", ", "+field(n)) })})
	}
	add("guided_choice of 15,000 texts", 15_000, func(n int) string { return `"guided_choice": ` + list(n, `"value-%d"`) })
	add("guided_choice, texts with long common beginnings", 200, func(n int) string {
		return `"guided_choice": ` + list(n, `"`+strings.Repeat("a", 500)+`%d"`)
	})
	add("guided_regex that unfolds", 10, func(n int) string { return `"guided_regex": "` + strings.Repeat(`((a|b){0,30}){0,30}`, n) + `c"` })
	add("guided_regex of large classes", 1000, func(n int) string { return `"guided_regex": "` + strings.Repeat(`[^\\w]{1,9}`, n) + `"` })
	add("guided_regex that looks ahead", 200, func(n int) string { return `"guided_regex": "` + strings.Repeat(`(?=.*a{1,30}b)`, n) + `.*"` })
	add("grammar, diamonds of 17 rules", 17, func(n int) string {
		var rules strings.Builder
		for i := range n {
			fmt.Fprintf(&rules, `r%d ::= r%d | r%d \n`, i, i+1, i+1)
		}
		return fmt.Sprintf(`"grammar": "root ::= r0 \n%sr%d ::= \"a\" root | \"b\""`, rules.String(), n)
	})
	add("grammar, each text in many ways", 30, func(n int) string {
		return `"grammar": "root ::= root root | ` + strings.ReplaceAll(repeat(n, `\"a\"* \"b%d\"?`), ",", " | ") + `"`
	})
	add("grammar of 6,000 rules", 6000, func(n int) string {
		rules := func(rule, between string) string { return strings.ReplaceAll(repeat(n, rule), ",", between) }
		return `"grammar": "root ::= ` + rules(`r%d`, " | ") + `\n` + rules(`r%d ::= [a-z] root?`, `\n`) + `"`
	})
	add("guided_grammar in Lark of 300 terminals", 300, func(n int) string {
		return `"guided_grammar": "start: (` + strings.ReplaceAll(repeat(n, `T%d`), ",", " | ") + `)+ \n` + strings.ReplaceAll(repeat(n, `T%d: /[a-z]+\\d*x/`), ",", `\n`) + `\n%ignore \" \""`
	})
	add("guided_json, diamonds of 17 definitions", 17, func(n int) string { return `"guided_json": ` + diamonds(n, leaf) })
	return append(out, row{name: "chat guided_json at once, nested unions", n: 8, memory: cacheBytes + floorPeak, send: func(n int) (q []request) {
		for range n {
			q = append(q, openai.say("Hello", `, "guided_json": `+unions(20)))
		}
		return q
	}})
}

// scripted writes a script whose answer is raw, and gives the arguments that serve it.
func scripted(t *testing.T, raw string, more ...string) []string {
	t.Helper()
	return append(script(t, map[string]any{"raw": raw}), more...)
}

// script is scripted for a whole line.
func script(t *testing.T, answer map[string]any) []string {
	t.Helper()
	line, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "script.jsonl")
	if err := os.WriteFile(file, line, 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--script", file}
}

// checked asks for a reply that is compared with a schema.
func checked(schema string) request {
	q := openai.say("Hello", `, "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": `+schema+`}}`)
	q.body = bytes.Replace(q.body, []byte(`"max_tokens": 64`), []byte(`"max_tokens": 150000`), 1)
	return q
}

// leaf is a pattern that takes a while to compile, and fails late.
const leaf = `{"type": "string", "pattern": "^(([ab]+)+[cd]{1,200}){1,5}$"}`

// letters are a text of a and b: a reply that repeats itself would be broken off.
func letters(n int) string {
	b := make([]byte, n)
	for i, x := 0, uint32(1); i < n; i++ {
		x = x*1664525 + 1013904223
		b[i] = "ab"[x>>31]
	}
	return string(b)
}

// checks are schemas that a reply is compared with when it is complete, if a form can be made of them; a script makes the reply.
func checks(t *testing.T) (out []row) {
	add := func(name string, n int, raw string, schema func(n int) string) {
		s := scripted(t, raw, "--context-length", "2000000")
		out = append(out, row{name: "chat response_format, " + name, n: n, server: s, send: one(func(n int) request { return checked(schema(n)) })},
			row{name: "chat response_format, streamed, " + name, n: n, server: s, send: one(func(n int) request {
				r := checked(schema(n))
				r.body = bytes.Replace(r.body, []byte(`{`), []byte(`{"stream": true, `), 1)
				return r
			})})
	}
	long := letters(20_000) + "!"
	add("diamonds of 17 definitions, a pattern at the leaf", 17, `{"x": "`+letters(60)+`!"}`,
		func(n int) string { return diamonds(n, leaf) })
	add("alternatives that are the value itself", 30, `{"x": "aaba"}`, recursive)
	add("patterns on a long text", 100, `{"x": "`+long+`"}`, func(n int) string {
		return property(`{"anyOf": ` + list(n, `{"type": "string", "pattern": "(a|b|ab)*c%d"}`) + `}`)
	})
	add("a pattern that unfolds", 10, `{"x": "`+long+`"}`, func(n int) string {
		return property(`{"type": "string", "pattern": "^` + strings.Repeat(`((a|b){0,30}){0,30}`, n) + `$"}`)
	})
	numbers := make([]string, 4000)
	for i := range numbers {
		numbers[i] = fmt.Sprint(i)
	}
	array := `{"x": [` + strings.Join(numbers, ",") + `]}`
	add("an enum for each of 4,000 elements", 4000, array, func(n int) string {
		return property(`{"type": "array", "items": {"enum": ` + list(n, `"%d"`) + `}}`)
	})
	add("uniqueItems", 1, array, func(int) string { return property(`{"type": "array", "uniqueItems": true}`) })
	members := make([]string, 3000)
	for i := range members {
		members[i] = fmt.Sprintf(`"member%d": %d`, i, i)
	}
	add("patternProperties for each of 3,000 members", 200, `{`+strings.Join(members, ",")+`}`, func(n int) string {
		return `{"type": "object", "patternProperties": {` + repeat(n, `"(e|m|b)*x%d": {}`) + `}}`
	})
	add("propertyNames", 200, `{`+strings.Join(members, ",")+`}`, func(n int) string {
		return `{"type": "object", "propertyNames": {"anyOf": [` + repeat(n, `{"pattern": "(e|m|b)*x%d"}`) + `, {}]}}`
	})
	for _, a := range both {
		field := `, "output_config": {"format": {"type": "json_schema", "schema": %s}}`
		if !a.anthropic {
			field = `, "response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": %s}}`
		}
		out = append(out, row{name: a.name + " schema in words, strict where there is that, diamonds", n: 17, step: promptStep, memory: cacheBytes + floorPeak, send: one(func(n int) request {
			return a.say("Hello", fmt.Sprintf(field, diamonds(n, `{"type": "string", "pattern": "^(a+)+$"}`)))
		})}, row{name: a.name + " json object or schema of 100,000 members", n: 100_000, send: one(func(n int) request {
			return a.say("Hello", fmt.Sprintf(strings.Replace(field, `"strict": true, `, "", 1), `{"properties": {`+repeat(n, `"p%d": {}`)+`}}`))
		})})
	}
	return out
}

// counts are long lists: of parts, messages, tools, stop strings, fields.
func counts() []row {
	const part = `{"type": "text", "text": "abcdefghijklmnopqrst"}`
	counted := func(q request) request { q.path = "/v1/messages/count_tokens"; return q }
	results := func(n int) string {
		return `[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}, ` +
			`{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": ` + list(n, part) + `}]}]`
	}
	messages := func(a api, list string) request {
		return request{api: a, path: a.path, body: []byte(`{"max_tokens": 8, "messages": ` + list + `}`)}
	}
	return slices.Concat(
		each("text parts", 100_000, func(a api, n int) request { return a.ask(list(n, part), "") }),
		each("text parts in an assistant's turn", 100_000, func(a api, n int) request {
			return messages(a, `[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": `+list(n, part)+`}, {"role": "user", "content": "Hi"}]`)
		}),
		each("text parts in a system message", 100_000, func(a api, n int) request {
			return messages(a, `[{"role": "system", "content": `+list(n, part)+`}, {"role": "user", "content": "Hi"}]`)
		}),
		[]row{
			{name: "messages system of text parts", n: 100_000, send: one(func(n int) request { return anthropic.say("Hi", `, "system": `+list(n, part)) })},
			{name: "messages tool_result of text parts", n: 100_000, send: one(func(n int) request { return messages(anthropic, results(n)) })},
			{name: "messages count_tokens, text parts", n: 100_000, send: one(func(n int) request { return counted(anthropic.ask(list(n, part), "")) })},
			{name: "messages count_tokens, tool_result of text parts", n: 100_000, send: one(func(n int) request { return counted(messages(anthropic, results(n))) })},
			{name: "messages count_tokens, messages", n: 100_000, bounded: true, send: one(func(n int) request {
				return counted(messages(anthropic, list(n, `{"role": "user", "content": "Hi"}`)))
			})},
			{name: "chat tool message of text parts", n: 100_000, send: one(func(n int) request {
				return messages(openai, `[{"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": [{"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}, `+
					`{"role": "tool", "tool_call_id": "t", "content": `+list(n, part)+`}]`)
			})},
			{name: "chat logit_bias", n: 500_000, send: one(func(n int) request { return openai.say("Hi", `, "logit_bias": {`+repeat(n, `"%d": 1`)+`}`) })},
			{name: "chat logit_bias of one id", n: 500_000, send: one(func(n int) request { return openai.say("Hi", `, "logit_bias": {`+repeat(n, `"7": 1`)+`}`) })},
			{name: "chat allowed_tools", n: 5000, send: one(func(n int) request {
				return openai.say("Hi", openai.tools(slices.Repeat([]string{`{}`}, n)...)+`, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": `+
					strings.Replace(list(n, `{"type": "function", "function": {"name": "f%d"}}`), `"f0"`, `"f"`, 1)+`}}`)
			})},
			{name: "chat choices", n: 64, memory: cacheBytes + floorPeak, send: one(func(n int) request { return openai.say("Hello", fmt.Sprintf(`, "n": %d`, n)) })},
		},
		each("messages", 100_000, func(a api, n int) request { return messages(a, list(n, `{"role": "user", "content": "Hi"}`)) }, bounded),
		each("turns of user and assistant", 50_000, func(a api, n int) request {
			return messages(a, list(n, `{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hi"}`))
		}, bounded),
		each("messages of the system's", 50_000, func(a api, n int) request { return messages(a, list(n, `{"role": "system", "content": "Hi"}`)) }),
		each("calls in a message and their results", 20_000, func(a api, n int) request {
			if a.anthropic {
				return messages(a, `[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": `+list(n, `{"type": "tool_use", "id": "t%d", "name": "f", "input": {}}`)+
					`}, {"role": "user", "content": `+list(n, `{"type": "tool_result", "tool_use_id": "t%d", "content": "ok"}`)+`}]`)
			}
			return messages(a, `[{"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": `+list(n, `{"id": "t%d", "type": "function", "function": {"name": "f", "arguments": "{}"}}`)+
				`}, `+repeat(n, `{"role": "tool", "tool_call_id": "t%d", "content": "ok"}`)+`]`)
		}),
		each("calls without ids, without results", 20_000, func(a api, n int) request {
			if a.anthropic {
				return messages(a, `[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": `+list(n, `{"type": "tool_use", "id": "t", "name": "f", "input": {}}`)+`}, {"role": "user", "content": "Hi"}]`)
			}
			return messages(a, `[{"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": `+list(n, `{"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}}`)+`}, {"role": "user", "content": "Hi"}]`)
		}),
		each("tools", 10_000, func(a api, n int) request {
			return a.say("Hi", a.tools(slices.Repeat([]string{`{"type": "object", "properties": {"a": {"type": "string"}}}`}, n)...))
		}),
		each("stop strings", 500_000, func(a api, n int) request { return a.say("Hi", `, "`+a.stop()+`": `+list(n, `"stop%d"`)) }),
		each("a long stop string", 1<<20, func(a api, n int) request { return a.say("Hi", `, "`+a.stop()+`": ["`+strings.Repeat("a", n)+`b"]`) }),
		each("stop strings of one letter, long", 100, func(a api, n int) request {
			return a.say("Hi", `, "`+a.stop()+`": `+list(n, `"`+strings.Repeat("a", 10_000)+`%d"`))
		}),
		each("unknown fields", 3_500_000, func(a api, n int) request { return a.say("Hi", `,`+repeat(n, `"a":1`)) }),
		each("unknown fields with names of their own", 1_500_000, func(a api, n int) request { return a.say("Hi", `,`+repeat(n, `"a%d":1`)) }),
		each("unknown fields in a message", 1_500_000, func(a api, n int) request {
			return messages(a, `[{"role": "user", "content": "Hi", `+repeat(n, `"a%d":1`)+`}]`)
		}),
		each("an unknown list", 8_000_000, func(a api, n int) request { return a.say("Hi", `, "a": `+list(n, `1`)) }),
		each("bodies at once", 8, func(a api, n int) request { return a.say("Hi", `, "a": `+list(1_000_000, `{}`)) }, func(r *row) {
			f := r.send
			r.send = func(n int) []request { return slices.Repeat(f(0), n) }
		}),
		each("nested lists", 200_000, func(a api, n int) request {
			return a.say("Hi", `, "a": `+strings.Repeat("[", n)+strings.Repeat("]", n))
		}),
		each("nested objects in a tool's schema", 100_000, func(a api, n int) request {
			return a.say("Hi", a.tools(`{"a": `+strings.Repeat(`{"a":`, n)+`1`+strings.Repeat("}", n)+`}`))
		}),
		each("nested objects in a call's arguments", 4000, func(a api, n int) request {
			args := strings.Repeat(`{"a":`, n) + `1` + strings.Repeat("}", n)
			if a.anthropic {
				return messages(a, `[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": `+args+`}]}, {"role": "user", "content": "Hi"}]`)
			}
			return messages(a, `[{"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": [{"id": "t", "type": "function", "function": {"name": "f", "arguments": `+quote(args)+`}}]}, {"role": "user", "content": "Hi"}]`)
		}),
		each("white space", 20<<20, func(a api, n int) request {
			q := a.say("Hi", "")
			q.body = append([]byte(strings.Repeat(" ", n)), q.body...)
			return q
		}),
	)
}

func (a api) stop() string {
	if a.anthropic {
		return "stop_sequences"
	}
	return "stop"
}

// texts are long ones.
func texts() []row {
	say := func(piece string) func(a api, n int) request {
		return func(a api, n int) request { return a.say(strings.Repeat(piece, n/len(piece)), "") }
	}
	const mb = 1 << 20
	return slices.Concat(
		each("1 MB of letters without spaces", mb, say("abcdefghij")),
		each("1 MB of one letter", mb, say("a")),
		each("4 MB of one letter", 4_000_000, say("a")),
		each("4 MB of words", 4_000_000, say("word ")),
		each("1 MB of spaces", mb, say(" ")),
		each("1 MB of line ends", mb, say("\n")),
		each("1 MB of special tokens", mb, say("<|im_start|>")),
		each("1 MB of beginnings of special tokens", mb, say("<|im_star")),
		each("1 MB of angle brackets", mb, say("<")),
		each("1 MB of control characters", mb, say("\x01\x02")),
		each("1 MB of marks that combine", mb, say("\u0301")),
		each("1 MB of emoji", mb, say("\U0001F600")),
		each("1 MB of digits", mb, say("1")),
		each("1 MB of words", mb, say("word ")),
		each("1 MB of text that opens and closes calls", mb, say("<tool_call>\n</tool_call>")),
		each("4 MB of escapes", 4*mb, func(a api, n int) request { return a.ask(`"`+strings.Repeat(`\u00e9`, n/6)+`"`, "") }),
		each("1 MB in a system prompt", mb, func(a api, n int) request {
			if a.anthropic {
				return a.say("Hi", `, "system": "`+strings.Repeat("a", n)+`"`)
			}
			return request{api: a, path: a.path, body: []byte(`{"messages": [{"role": "system", "content": "` + strings.Repeat("a", n) + `"}, {"role": "user", "content": "Hi"}]}`)}
		}),
		each("10 MB image", 10*mb, func(a api, n int) request { return a.ask(`[`+a.image(strings.Repeat("AAAA", n/4))+`]`, "") }),
		each("10 MB of JPEG markers", 10*mb, func(a api, n int) request { // FF FE 00 02 is a comment of no bytes
			return a.ask(`[`+a.image("/9j//gAC"+strings.Repeat("//4AAv/+AAL//gAC", n/16))+`]`, "")
		}),
		each("4 MB of small images", 4*mb, func(a api, n int) request {
			one := a.image("iVBORw0KGgo=")
			return a.ask(`[`+strings.Repeat(one+", ", n/len(one))+one+`]`, "")
		}),
	)
}

// image is a part with an image in base64.
func (a api) image(data string) string {
	if a.anthropic {
		return `{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "` + data + `"}}`
	}
	return `{"type": "image_url", "image_url": {"url": "data:image/png;base64,` + data + `"}}`
}

// extras are fields beside the conversation.
func extras() []row {
	const mb = 1 << 20
	big := func(field string) func(a api, n int) request {
		return func(a api, n int) request { return a.say("Hi", fmt.Sprintf(field, strings.Repeat("a", n))) }
	}
	return slices.Concat(
		each("a model's name of 1 MB", mb, big(`, "model": "%s"`)),
		each("metadata of 1 MB", mb, big(`, "metadata": {"user_id": "%s"}`)),
		each("a number of 1 MB", mb, func(a api, n int) request { return a.say("Hi", `, "temperature": 0.`+strings.Repeat("1", n)) }),
		each("a count of 1 MB", mb, func(a api, n int) request { return a.say("Hi", `, "top_k": `+strings.Repeat("1", n)) }),
		each("a tool's name of 1 MB", mb, func(a api, n int) request {
			return a.say("Hi", strings.Replace(a.forced(`{}`), `"f"`, `"`+strings.Repeat("f", n)+`"`, 1))
		}),
		each("a header of 100 kB", 100_000, func(a api, n int) request {
			q := a.say("Hi", "")
			q.header = map[string]string{"X-Session-Id": strings.Repeat("a", n), "User-Agent": strings.Repeat("b", n)}
			return q
		}),
		each("an encoding of 400 kB", 400_000, func(a api, n int) request {
			q := a.say("Hi", "")
			q.header = map[string]string{"Content-Encoding": strings.Repeat("a", n)}
			return q
		}, refused),
		each("a key of 400 kB", 400_000, func(a api, n int) request {
			q := a.say("Hi", "")
			q.header = map[string]string{"Authorization": "Bearer " + strings.Repeat("a", n)}
			return q
		}),
		each("a path of 400 kB", 400_000, func(a api, n int) request {
			q := a.say("Hi", "")
			q.path += "/" + strings.Repeat("a", n)
			return q
		}, refused),
		[]row{
			{name: "chat prompt_cache_key and user of 1 MB", n: mb, send: one(func(n int) request {
				return openai.say("Hi", `, "prompt_cache_key": "`+strings.Repeat("k", n)+`", "user": "`+strings.Repeat("u", n)+`"`)
			})},
			{name: "chat chat_template_kwargs", n: 200_000, send: one(func(n int) request {
				return openai.say("Hi", `, "chat_template_kwargs": {`+repeat(n, `"k%d": %d`)+`}`)
			})},
			{name: "chat chat_template_kwargs, nested", n: 4000, send: one(func(n int) request {
				return openai.say("Hi", `, "chat_template_kwargs": {"a": `+strings.Repeat("[", n)+strings.Repeat("]", n)+`}`)
			})},
			{name: "chat chat_template_kwargs, one of 4 MB", n: 4 * mb, send: one(func(n int) request {
				return openai.say("Hi", `, "chat_template_kwargs": {"a": "`+strings.Repeat("a", n)+`"}`)
			})},
			{name: "chat deployment of 400 kB", n: 400_000, refused: true, send: one(func(n int) request {
				q := openai.say("Hi", "")
				q.path = "/openai/deployments/" + strings.Repeat("a", n) + "/chat/completions?api-version=2026-01-01"
				return q
			})},
			{name: "chat reasoning_effort of 1 MB", n: mb, send: one(func(n int) request { return openai.say("Hi", `, "reasoning_effort": "`+strings.Repeat("a", n)+`"`) })},
		},
	)
}

// completions are prompts without a template.
func completions() []row {
	complete := func(body string) request {
		return request{api: openai, path: "/v1/completions", body: []byte(`{"max_tokens": 8, ` + body + `}`)}
	}
	return []row{
		{name: "completions of tokens", n: 1_000_000, send: one(func(n int) request { return complete(`"prompt": ` + list(n, `7`)) })},
		{name: "completions of prompts", n: 500, memory: cacheBytes + floorPeak, send: one(func(n int) request { return complete(`"prompt": ` + list(n, `"Hello %d"`)) })},
		{name: "completions of prompts beyond any bound", n: 500_000, send: one(func(n int) request { return complete(`"prompt": ` + list(n, `"a"`)) })},
		{name: "completions of one letter", n: 1 << 20, send: one(func(n int) request { return complete(`"prompt": "` + strings.Repeat("a", n) + `"`) })},
		{name: "completions of special tokens", n: 1 << 20, send: one(func(n int) request { return complete(`"prompt": "` + strings.Repeat("<|im_end|>", n/10) + `"`) })},
		{name: "completions with a suffix", n: 400_000, send: one(func(n int) request {
			return complete(`"prompt": "a", "suffix": "` + strings.Repeat("word ", n/5) + `"`)
		})},
		{name: "completions with echo and logprobs", n: 2000, memory: cacheBytes + floorPeak, step: promptStep, send: one(func(n int) request {
			return complete(`"echo": true, "logprobs": 5, "prompt": ` + list(n, `7`))
		})},
		{name: "completions, choices", n: 64, memory: cacheBytes + floorPeak, send: one(func(n int) request { return complete(fmt.Sprintf(`"prompt": "Hello", "n": %d`, n)) })},
	}
}

// encoders are requests for vectors and scores, to the tiny models of the SDK tests; there are none without Python.
func encoders(t *testing.T) (out []row) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Log("no python3: no models that embed or rank")
		return nil
	}
	folder := filepath.Join(t.TempDir(), "encoder")
	ranker := filepath.Join(t.TempDir(), "ranker")
	script := `import sys; sys.path.insert(0, "../python"); import encoder; encoder.write(sys.argv[1]); encoder.write(sys.argv[2], ranks=True)`
	if said, err := exec.Command(python, "-c", script, folder, ranker).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	args := []string{"--embedding-model", folder, "--rerank-model", ranker}
	add := func(name, path string, n int, body func(n int) string) {
		out = append(out, row{name: name, n: n, server: args, send: one(func(n int) request { return request{api: openai, path: path, body: []byte(body(n))} })})
	}
	add("embeddings of texts", "/v1/embeddings", 1000, func(n int) string { return `{"model": "encoder", "input": ` + list(n, `"text"`) + `}` })
	add("embeddings of texts beyond any bound", "/v1/embeddings", 500_000, func(n int) string { return `{"model": "encoder", "input": ` + list(n, `"a"`) + `}` })
	add("embeddings of a long text", "/v1/embeddings", 1<<20, func(n int) string { return `{"model": "encoder", "input": "` + strings.Repeat("a", n) + `"}` })
	add("embeddings of words", "/v1/embeddings", 1<<20, func(n int) string {
		return `{"model": "encoder", "input": "` + strings.Repeat("a ", n/2) + `"}`
	})
	add("embeddings of tokens", "/v1/embeddings", 500_000, func(n int) string { return `{"model": "encoder", "input": ` + list(n, `7`) + `}` })
	add("rerank of documents", "/v1/rerank", 500, func(n int) string {
		return `{"model": "ranker", "query": "text", "documents": ` + list(n, `"text"`) + `}`
	})
	add("rerank of documents beyond any bound", "/v1/rerank", 500_000, func(n int) string {
		return `{"model": "ranker", "query": "text", "documents": ` + list(n, `"a"`) + `}`
	})
	add("rerank with a long query", "/v1/rerank", 1<<20, func(n int) string {
		return `{"model": "ranker", "query": "` + strings.Repeat("a ", n/2) + `", "documents": ` + list(50, `"text"`) + `}`
	})
	return out
}

// templates are such as take time; the client's text sets their pace. They are mild to the trials of a model's start.
func templates(t *testing.T) (out []row) {
	demo, err := os.ReadFile(filepath.Join(demoFolder, "chat_template.jinja"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, source string }{
		{"nested loops", `{%- for a in range(10000) -%}{%- for b in range(10000) -%}{%- endfor -%}{%- endfor -%}`},
		{"a loop over characters", `{%- for c in s -%}{%- if c.upper() == c -%}{%- endif -%}{%- endfor -%}`},
		{"a slice for each character", `{%- for c in s -%}{%- if s[loop.index:]|length > 3 -%}{%- endif -%}{%- endfor -%}`},
		{"a search for each character", `{%- for c in s -%}{%- if (s[1:] ~ c ~ "b") in s -%}{%- endif -%}{%- endfor -%}`},
		{"a text that doubles", `{%- set ns = namespace(s=s) -%}{%- for i in range(100) -%}{%- set ns.s = ns.s ~ ns.s -%}{%- endfor -%}`},
		{"a text that grows by one", `{%- set ns = namespace(s="") -%}{%- for c in s -%}{%- set ns.s = ns.s + c -%}{%- endfor -%}`},
		{"replace that grows", `{%- set ns = namespace(s=s) -%}{%- for i in range(100) -%}{%- set ns.s = ns.s.replace("a", "aa") -%}{%- endfor -%}`},
		{"replace for each character", `{%- for c in s -%}{%- set x = s.replace(c, "b") -%}{%- endfor -%}`},
		{"split and join", `{%- for i in range(1000) -%}{%- set x = s.split("a")|join("b") -%}{%- endfor -%}`},
		{"sort", `{%- for i in range(1000) -%}{%- set x = s|list|sort -%}{%- endfor -%}`},
		{"unique", `{%- for i in range(1000) -%}{%- set x = s|list|unique|list -%}{%- endfor -%}`},
		{"lists that grow", `{%- set ns = namespace(l=[]) -%}{%- for c in s -%}{%- set ns.l = ns.l + [c] -%}{%- endfor -%}`},
		{"tojson", `{%- for i in range(1000) -%}{%- set x = messages|tojson -%}{%- endfor -%}`},
		{"filters over lists", `{%- for i in range(1000) -%}{%- set x = s|list|map("upper")|select("equalto", "A")|list|length -%}{%- endfor -%}`},
		{"strip, upper, title", `{%- for i in range(10000) -%}{%- set x = s|upper|lower|title|trim -%}{%- endfor -%}`},
		{"comparisons", `{%- for i in range(10000) -%}{%- if s ~ "a" == s ~ "b" -%}{%- endif -%}{%- endfor -%}`},
		{"multiplied text", `{%- for i in range(10000) -%}{%- set x = "a" * 1000000 -%}{%- endfor -%}`},
		{"macros that call themselves", `{%- macro f(n) -%}{%- if n > 0 -%}{{ f(n - 1) }}{{ f(n - 1) }}{%- endif -%}{%- endmacro -%}{{ f(60) }}`},
		{"format", `{%- for i in range(10000) -%}{%- set x = "%1000000d"|format(7) -%}{%- endfor -%}`},
		{"wide output", `{%- for i in range(1000) -%}{{ s }}{%- endfor -%}`},
	} {
		folder := copyDemo(t)
		evil := `{%- set s = messages[-1].content if messages and messages[-1].content is string else "" -%}{%- if s|length > 10000 -%}` + c.source + `{%- endif -%}`
		if err := os.WriteFile(filepath.Join(folder, "chat_template.jinja"), append([]byte(evil), demo...), 0o600); err != nil {
			t.Fatal(err)
		}
		out = append(out, row{name: "chat template, " + c.name, n: 100_000, server: []string{folder}, most: 2*time.Second + floorCPU, memory: 512 << 20,
			send: one(func(n int) request { return openai.say(strings.Repeat("a", n), "") })})
	}
	return out
}

// copyDemo is a folder with the demo model, its weights by a link, as in the cache of Hugging Face's clients.
func copyDemo(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "model")
	if err := os.CopyFS(folder, os.DirFS(demoFolder)); err != nil {
		t.Fatal(err)
	}
	weights, err := filepath.Abs(filepath.Join(demoFolder, weightsFile))
	if err == nil {
		err = errors.Join(os.Remove(filepath.Join(folder, weightsFile)), os.Symlink(weights, filepath.Join(folder, weightsFile)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

const weightsFile = "model.safetensors"
