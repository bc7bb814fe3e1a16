package generate

import (
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/dialect"
)

// Templates that do different things with reasoning, in the manner of published ones.
const (
	// Prints reasoning behind the last user's turn, in a block that the last answer has in any case, and takes it out of texts.
	printBlocks = `{%- set ns = namespace(last=0) -%}{%- for m in messages if m.role == "user" -%}{%- set ns.last = loop.index0 -%}{%- endfor -%}
{%- for m in messages -%}<|im_start|>{{ m.role ~ "\n" }}
{%- if m.role == "assistant" -%}
{%- set content = m.content -%}{%- set thought = m.reasoning_content or "" -%}
{%- if not m.reasoning_content and "</think>" in content -%}
{%- set thought = content.split("</think>")[0].split("<think>")[-1] -%}{%- set content = content.split("</think>")[-1].lstrip("\n") -%}{%- endif -%}
{%- if loop.last or thought and m.tool_calls -%}{{ "<think>\n" ~ thought.strip("\n") ~ "\n</think>\n\n" }}{%- endif -%}{{ content }}
{%- for c in m.tool_calls -%}<tool_call>{{ {"name": c.function.name, "arguments": c.function.arguments} | tojson }}</tool_call>{%- endfor -%}
{%- else -%}{{ m.content }}{%- endif -%}<|im_end|>{{ "\n" }}{%- endfor -%}{% for t in tools %}{{ t.function.name }}{% endfor %}
{%- if add_generation_prompt -%}<|im_start|>assistant{{ "\n" }}{%- endif -%}`

	// Drops what is before </think>, with the blank lines behind it, and knows no field.
	printCut = `{% for m in messages %}<|im_start|>{{ m.role ~ "\n" ~ (m.content.split("</think>")[-1] if m.role == "assistant" else m.content) }}<|im_end|>{{ "\n" }}{% endfor %}` +
		`{% if add_generation_prompt %}<|im_start|>assistant{{ "\n<think>\n" }}{% endif %}`

	// Puts a closing tag before answers without reasoning.
	printClosed = `{% for m in messages %}<|im_start|>{{ m.role ~ "\n" }}{% if m.role == "assistant" %}{{ "</think>" ~ m.content }}{% else %}{{ m.content }}{% endif %}<|im_end|>{{ "\n" }}{% endfor %}` +
		`{% if add_generation_prompt %}<|im_start|>assistant{{ "\n<think>" }}{% endif %}`

	// Prints the field and nothing around it.
	printField = `{% for m in messages %}[{{ m.role }}{{ "(" ~ m.reasoning_content ~ ")" if m.reasoning_content }}:{{ m.content }}{% for c in m.tool_calls %}{{ c.function | tojson }}{% endfor %}]{% endfor %}` +
		`{% for t in tools %}{{ t.function.name }}{% endfor %}`
)

func answered(text string) chat.Message { return says(chat.Part{Text: text}) }

// TestInline: in every family, reasoning that a client sends back in tags is what it would be in a field of its own, whatever the
// tags; what only speaks of tags stays.
func TestInline(t *testing.T) {
	families := map[string]bool{"think": false, "none": false}
	for name := range everyFamily(t) {
		families[name] = dialect.CheckNames(name, "") != nil // a variant that only a template can ask for
	}
	user, call, result := text(chat.User, "<think>me</think>too"), callPart("1", "f", "{}"), answers(resultPart("1", "r"))
	for name, variant := range families {
		if variant {
			continue
		}
		reasoning := ""
		if name == "think" {
			name, reasoning = "", "think"
		}
		g, _ := withConfig(t, printField, func(c *Config) { c.ToolParser, c.ReasoningParser = name, reasoning })
		render := func(m ...chat.Message) string {
			t.Helper()
			out, err := g.Render(t.Context(), &chat.Request{Messages: append([]chat.Message{user}, m...)})
			if err != nil {
				t.Fatal(name, err)
			}
			return out
		}
		same := func(got, want []chat.Message) {
			t.Helper()
			if got, want := render(got...), render(want...); got != want {
				t.Errorf("%s%s: got %s, want %s", name, reasoning, got, want)
			}
		}
		as := func(m ...chat.Message) []chat.Message { return append(m, user) }
		tags := [][2]string{{"<think>", "</think>"}, {g.family.Open, g.family.Close}}
		for _, tag := range tags {
			for _, s := range []string{tag[0] + "hm" + tag[1] + "a", "\n" + tag[0] + "\nhm\n" + tag[1] + "\n\na"} {
				if g.family.Open == "" {
					if out := render(as(answered(s))...); !strings.Contains(out, "[assistant:"+s+"]") {
						t.Errorf("%s has no reasoning: got %s", name, out)
					}
					continue
				}
				same(as(answered(s)), as(says(thought("hm"), chat.Part{Text: "a"})))
				same(as(says(chat.Part{Text: s}, call), result), as(says(thought("hm"), chat.Part{Text: "a"}, call), result))
				same(as(says(thought("hm"), chat.Part{Text: s})), as(says(thought("hm"), chat.Part{Text: "a"})))
				same(as(says(thought("first"), chat.Part{Text: s})), as(says(thought("first\n\nhm"), chat.Part{Text: "a"})))
			}
			if g.family.Open != "" {
				same(as(says(chat.Part{Text: tag[0] + "hm" + tag[1]}, call), result), as(says(thought("hm"), call), result))
				same(as(answered(tag[0]+tag[1]+"a")), as(answered("a")))
			}
		}
		for _, s := range []string{"the tag <think>hm</think> is", "<think>, never closed", "</think>a", "<thinking>hm</thinking>"} {
			if out := render(as(answered(s))...); !strings.Contains(out, "[assistant:"+s+"]") {
				t.Errorf("%s: %q became %s", name, s, out)
			}
		}
		if out := render(); !strings.Contains(out, "[user:<think>me</think>too]") {
			t.Errorf("%s: got %s", name, out)
		}
	}
}

// TestInlineTaken: a template that takes reasoning out of texts itself does it in its own way.
func TestInlineTaken(t *testing.T) {
	const raw = "<think> hm\n</think>\n\n\na</think> b"
	call, result, user := callPart("1", "f", "{}"), answers(resultPart("1", "r")), text(chat.User, "u")
	for _, c := range []struct {
		name, template string
		message        chat.Message
		want           string
	}{
		{"blocks", printBlocks, answered(raw), "assistant\n b<|im_end|>"},
		{"blocks, with a call", printBlocks, says(chat.Part{Text: raw}, call), "assistant\n<think>\n hm\n</think>\n\n b<tool_call>"},
		{"blocks, and a field", printBlocks, says(thought("field"), chat.Part{Text: "<think>hm</think>a"}, call), "assistant\n<think>\nfield\n\nhm\n</think>\n\na<tool_call>"},
		{"cut", printCut, answered(raw), "assistant\n b<|im_end|>"},
		{"cut, blank lines", printCut, answered("<think>hm</think>\n\na"), "assistant\n\n\na<|im_end|>"},
	} {
		g, err := withTemplate(t, c.template)
		if err != nil {
			t.Fatal(err)
		}
		messages := []chat.Message{user, c.message, result}
		if c.message.Parts[len(c.message.Parts)-1].Kind != chat.PartToolCall {
			messages[2] = user
		}
		out, err := g.Render(t.Context(), &chat.Request{Messages: messages, Tools: shapeTools})
		if err != nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: got %s, %v, want %s", c.name, out, err, c.want)
		}
	}
}

// TestOpenPrefill: an unfinished answer that begins with unfinished reasoning goes on there, behind no other block.
func TestOpenPrefill(t *testing.T) {
	const header = "<|im_start|>assistant\n"
	for _, c := range []struct{ name, template, prefill, want, reply string }{
		{"a block of its own", printBlocks, "<think>\nLet me ", header + "<think>\nLet me ", "reasoning: see."},
		{"without a word", printBlocks, "<think>", header + "<think>\n", "reasoning: see."},
		{"with a line end", printBlocks, "<think>\n", header + "<think>\n", "reasoning: see."},
		{"closed", printBlocks, "<think>\nhm\n</think>\n\nIt is", header + "<think>\nhm\n</think>\n\nIt is", "text: see."},
		{"closed, and no more", printBlocks, "<think>\nhm\n</think>", header + "<think>\nhm\n</think>\n\n", "text: see."},
		{"text", printBlocks, "It is <think>", header + "<think>\n\n</think>\n\nIt is <think>", ""},
		{"no place for reasoning", printCut, "<think>\nLet me ", header + "<think>\nLet me ", "reasoning: see."},
		{"a closing tag before", printClosed, "<think>\nLet me ", header + "<think>\nLet me ", "reasoning: see."},
		{"the field alone", printField, "<think>\nLet me ", "[assistant:<think>\nLet me ", ""},
		{"harmony", dialect.BuiltinText("harmony"), "<think>\nLet me ", "<|start|>assistant<|channel|>analysis<|message|>Let me ", ""},
		{"harmony, closed", dialect.BuiltinText("harmony"), "<think>\nhm\n</think>\n\nIt is", "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>It is", ""},
	} {
		g, s := withConfig(t, c.template, func(*Config) {})
		r := &chat.Request{Messages: []chat.Message{text(chat.User, "</think>"), answered(c.prefill)}}
		got, err := g.Render(t.Context(), r)
		if err != nil || !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, err, c.want)
			continue
		}
		if c.reply != "" {
			s.says(g, "see.")
			if out := events(t, g, r); !strings.Contains(out, c.reply) {
				t.Errorf("%s: the reply is %s, want %s", c.name, out, c.reply)
			}
		}
	}
}

// TestInlineEveryTemplate: under every published template reasoning in tags is what it is in a field, or what the template makes
// of it itself; and an answer that begins with an open block goes on in it.
func TestInlineEveryTemplate(t *testing.T) {
	changed := 0
	for name, src := range published(t) {
		g, err := withTemplate(t, src)
		if err != nil {
			t.Fatal(err)
		}
		if g.family.Open == "" {
			continue
		}
		user, call, result := text(chat.User, "QUESTION"), callPart("call00001", "f", `{"k": "v"}`), answers(resultPart("call00001", "RESULT"))
		render := func(m ...chat.Message) string {
			t.Helper()
			out, err := g.Render(t.Context(), &chat.Request{Messages: append([]chat.Message{user}, m...), Tools: shapeTools})
			if err != nil {
				t.Fatal(name, err)
			}
			return out
		}
		plain, err := withTemplate(t, src)
		if err != nil {
			t.Fatal(err)
		}
		none := *g.family
		none.Think = &dialect.Think{}
		plain.family = &none
		for _, c := range []struct {
			trait traits
			turns func(parts ...chat.Part) []chat.Message
		}{
			{takesInline, func(parts ...chat.Part) []chat.Message { return []chat.Message{says(parts...), user} }},
			{takesInlineByCalls, func(parts ...chat.Part) []chat.Message { return []chat.Message{says(append(parts, call)...), result} }},
		} {
			for _, s := range []string{"<think>\nHM\n</think>\n\nANSWER", "<think>HM</think>ANSWER"} {
				inline := chat.Part{Text: s}
				before, err := plain.Render(t.Context(), &chat.Request{Messages: append([]chat.Message{user}, c.turns(inline)...), Tools: shapeTools})
				if err != nil {
					t.Fatal(name, err)
				}
				got := render(c.turns(inline)...)
				if got != before {
					changed++
				}
				want := render(c.turns(thought("HM"), chat.Part{Text: "ANSWER"})...)
				if takes := g.forms[0].has(c.trait) && strings.HasPrefix(s, g.family.Open); takes && got != before || !takes && got != want {
					t.Errorf("%s: got %.300q, before %.300q, in a field %.300q", name, got[max(0, len(got)-300):], before[max(0, len(before)-300):], want[max(0, len(want)-300):])
				}
			}
		}
		got := render(answered("<think>\nLet me"))
		before := strings.TrimSpace(strings.TrimSuffix(got, "Let me"))
		if before, ok := strings.CutSuffix(before, strings.TrimSpace(g.family.Open)); ok && (strings.HasSuffix(strings.TrimSpace(before), g.family.Close) || strings.HasSuffix(strings.TrimSpace(before), g.family.Open)) {
			t.Errorf("%s: another block before the one that is open: %q", name, got[max(0, len(got)-100):])
		}
	}
	t.Logf("%d renderings of answers with reasoning in tags are others than without reading it", changed)
}
