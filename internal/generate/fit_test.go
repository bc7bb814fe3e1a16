package generate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/jinja"
)

// Templates that refuse or leave out what published ones do, each in its own way. What they print is easy to read:
// [role:content], with calls as {name arguments id}.
const (
	printAll = `{%- for m in messages -%}[{{ m.role }}:{{ m.content }}{% for c in m.tool_calls %}{{ "{" ~ c.function.name }} {{ c.function.arguments | tojson }} {{ c.id ~ "}" }}{% endfor %}` +
		`{{ "=" ~ m.tool_call_id if m.tool_call_id }}]{%- endfor -%}{% for t in tools %}{{ t.function.name }}{% endfor %}`

	// Nothing but an optional system message, then user and assistant in turns; ids have nine characters, a call has no text.
	printMistral = `{%- set ns = namespace(user=true) -%}
{%- for m in messages -%}
{%- if m.role == "system" and not loop.first -%}{{ raise_exception("a late system message") }}
{%- elif m.role == "user" or m.role == "assistant" and not m.tool_calls -%}
{%- if ns.user != (m.role == "user") -%}{{ raise_exception("roles must alternate") }}{%- endif -%}{%- set ns.user = not ns.user -%}
{%- elif m.tool_calls and m.tool_calls[0].id | length != 9 -%}{{ raise_exception("ids have 9 characters") }}{%- endif -%}
{%- if m.tool_calls -%}[calls{% for c in m.tool_calls %} {{ c.function.name }} {{ c.function.arguments | tojson }} {{ c.id }}{% endfor %}]
{%- elif m.role == "tool" -%}[result {{ m.tool_call_id }} {{ m.content }}]
{%- else -%}[{{ m.role }}:{{ m.content }}]{%- endif -%}
{%- endfor -%}{% for t in tools %}{{ t.function.name }}{% endfor %}`

	// No system role, one call a turn, arguments as text, content null beside calls.
	printOdd = `{%- for m in messages -%}
{%- if m.role == "system" -%}{{ raise_exception("System role not supported") }}{%- endif -%}
{%- if m.tool_calls and m.tool_calls | length > 1 -%}{{ raise_exception("single calls only") }}{%- endif -%}
{%- if m.content is none -%}[call {{ m.tool_calls[0].function.name + " " + m.tool_calls[0].function.arguments }}]
{%- else -%}[{{ m.role }}:{{ m.content }}]{%- endif -%}
{%- endfor -%}{% for t in tools %}{{ t.function.name }}{% endfor %}`

	// Knows nothing of tools; a late system message is moved to the front.
	printPlain = `{%- for m in messages if m.role == "system" -%}({{ m.content }}){%- endfor -%}
{%- for m in messages if m.role == "user" or m.role == "assistant" -%}[{{ m.role }}:{{ m.content }}]{%- endfor -%}`
)

// TestFit: what the trials find out about a template, and what becomes of conversations that it would not print.
func TestFit(t *testing.T) {
	sunny := []chat.Message{text(chat.System, "S"), text(chat.User, "q"), says(chat.Part{Text: "hm"}, callPart("call_1", "f", `{"b":1,"a":"x"}`), callPart("call_2", "g", `{}`)),
		answers(resultPart("call_1", "R")), answers(resultPart("call_2", "T")), text(chat.System, "late"), text(chat.User, "u"), text(chat.User, "v")}
	for _, c := range []struct {
		name, template string
		messages       []chat.Message
		want           string
	}{
		{"nothing to do", printAll, sunny, `[system:S][user:q][assistant:hm{f {"b": 1, "a": "x"} call_1}{g {} call_2}][tool:R=call_1][tool:T=call_2][system:late][user:u][user:v]`},
		{"strict turns", printMistral, sunny, `[system:S][user:q][calls f {"b": 1, "a": "x"} NINE1 g {} NINE2][result NINE1 R][result NINE2 T` +
			"\n\n<system-reminder>\nlate\n</system-reminder>\n\nu\n\nv]"},
		{"single calls as text", printOdd, sunny, "[user:S\n\nq][assistant:hm][call f {\"b\": 1, \"a\": \"x\"}][tool:R][call g {}][tool:T][user:<system-reminder>\nlate\n</system-reminder>\n\nu][user:v]"},
		{"no tools", printPlain, sunny, "(S)[user:q][assistant:hm\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"b\": 1, \"a\": \"x\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>]" +
			"[user:<tool_response>\nR\n</tool_response>][user:<tool_response>\nT\n</tool_response>\n\n<system-reminder>\nlate\n</system-reminder>][user:u][user:v]"},
		{"several systems", printMistral, []chat.Message{text(chat.System, "a"), text(chat.System, "b"), text(chat.User, "q")}, "[system:a\n\nb][user:q]"},
		{"system alone", printOdd, []chat.Message{text(chat.System, "a")}, "[user:a]"},
		{"assistant first", printMistral, []chat.Message{text(chat.Assistant, "a"), text(chat.User, "q")}, "[user:Go on.][assistant:a][user:q]"},
		{"two assistants", printMistral, []chat.Message{text(chat.User, "q"), text(chat.Assistant, "a"), text(chat.Assistant, "b"), text(chat.User, "r")}, "[user:q][assistant:a\n\nb][user:r]"},
		{"a call without a result", printMistral, []chat.Message{text(chat.User, "q"), says(callPart("abcdefgh1", "f", "{}")), text(chat.User, "r")},
			"[user:q][calls f {} abcdefgh1][result abcdefgh1 [no result]\n\nr]"},
		{"a result without a call", printMistral, []chat.Message{text(chat.User, "q"), answers(resultPart("x", "R")), text(chat.Assistant, "a"), text(chat.User, "r")},
			"[user:q\n\n<tool_response>\nR\n</tool_response>][assistant:a][user:r]"},
		{"ids rewritten by the client", printAll, []chat.Message{text(chat.User, "q"), says(callPart("call_1", "f", "{}"), callPart("call_2", "g", "{}")), answers(resultPart("call2", "R")), answers(resultPart("call_2", "T"))},
			"[user:q][assistant:{f {} call_1}{g {} call_2}][tool:R=call_1][tool:T=call_2]"},
		{"broken arguments", printAll, []chat.Message{text(chat.User, "q"), says(callPart("1", "f", `{"a": `), callPart("2", "f", `[1]`), callPart("3", "f", ``))},
			`[user:q][assistant:{f {"raw_arguments": "{\"a\":"} 1}{f {"raw_arguments": "[1]"} 2}{f {} 3}]`},
		{"billing", printAll, []chat.Message{text(chat.System, "x-anthropic-billing-header: cc_version=1.abc;"), text(chat.System, "x-anthropic-billing-header: y\n\nBe nice."), text(chat.User, "q")}, "[system:Be nice.][user:q]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := withTemplate(t, c.template)
			if err != nil {
				t.Fatal(err)
			}
			got, err := g.Render(t.Context(), &chat.Request{Messages: c.messages})
			if err != nil {
				t.Fatal(err)
			}
			want := strings.NewReplacer("NINE1", dialect.IDsNine.Write("", "call_1", "", 0), "NINE2", dialect.IDsNine.Write("", "call_2", "", 0)).Replace(c.want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%+v (-want +got):\n%s", g.forms[0], diff)
			}
		})
	}
}

// TestShapes: whatever the shape of a conversation, templates that refuse much render it and lose nothing.
func TestShapes(t *testing.T) {
	for name, template := range map[string]string{"all": printAll, "mistral": printMistral, "odd": printOdd, "plain": printPlain} {
		g, err := withTemplate(t, template)
		if err != nil {
			t.Fatal(err)
		}
		for shape, messages := range shapes {
			for _, r := range requests(messages)[:2] {
				out, err := g.Render(t.Context(), r)
				if err != nil {
					t.Errorf("%s, %s: %v", name, shape, err)
					continue
				}
				for _, word := range words(messages) {
					if !strings.Contains(out, word) && (word != "AA" || g.forms[0].has(callsWithText)) {
						t.Errorf("%s, %s: %s is lost in %q", name, shape, word, out)
					}
				}
			}
		}
	}
}

// TestRefusal: what a template refuses for the words in it stays refused, with the template's own.
func TestRefusal(t *testing.T) {
	g, err := withTemplate(t, `{% for m in messages %}{% if "bad" in m.content %}{{ raise_exception("no bad words") }}{% endif %}{{ m.content }}{% endfor %}`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.Render(t.Context(), &chat.Request{Messages: []chat.Message{text(chat.User, "bad")}})
	if e := chat.AsError(err); e.Kind != chat.Invalid || !strings.HasSuffix(e.Msg, ": no bad words") {
		t.Errorf("got %v", err)
	}
}

// FuzzFit: any order of what a conversation can hold is rendered by templates that refuse much, and twice the same.
func FuzzFit(f *testing.F) {
	for _, seed := range []string{"\x01\x02", "\x00\x01\x03\x04\x01", "\x03\x05\x04\x02\x00\x06", "\x02\x02\x07\x04\x04\x00", "\x01\x09\x01\x0b\x04\x0a"} {
		f.Add([]byte(seed))
	}
	var gens []*Generator
	for _, template := range []string{printAll, printMistral, printOdd, printPlain} {
		g, err := withTemplate(f, template)
		if err != nil {
			f.Fatal(err)
		}
		gens = append(gens, g)
	}
	f.Fuzz(func(t *testing.T, actions []byte) {
		messages := conversation(actions)
		if len(messages) == 0 {
			return
		}
		for i, g := range gens {
			r := &chat.Request{Messages: messages}
			out, err := g.Render(t.Context(), r)
			if err != nil {
				t.Fatalf("template %d: %v", i, err)
			}
			if again, err := g.Render(t.Context(), r); err != nil || again != out {
				t.Fatalf("template %d: %q, then %q, %v", i, out, again, err)
			}
		}
	})
}

// conversation makes messages of bytes, one of each.
func conversation(actions []byte) []chat.Message {
	var messages []chat.Message
	for i, a := range actions[:min(len(actions), 24)] {
		id := string(rune('a' + i%7))
		switch a % 12 {
		case 0:
			messages = append(messages, text(chat.System, "s"))
		case 1:
			messages = append(messages, text(chat.User, "u"))
		case 2:
			messages = append(messages, text(chat.Assistant, "a"))
		case 3:
			messages = append(messages, says(callPart(id, "f", `{"k": 1}`)))
		case 4:
			messages = append(messages, answers(resultPart(id, "r")))
		case 5:
			messages = append(messages, says(thought("t"), chat.Part{Text: "a"}, callPart(id, "f", ``), callPart("", "g", `{`)))
		case 6:
			messages = append(messages, chat.Message{Role: chat.User, Parts: []chat.Part{resultPart(id, "r"), {Text: "u"}, resultPart("z", "")}})
		case 7:
			messages = append(messages, chat.Message{Role: chat.Assistant})
		case 8:
			messages = append(messages, chat.Message{Role: chat.User})
		case 9:
			messages = append(messages, text(chat.Assistant, "<think>\nt\n</think>\n\na"))
		case 10:
			messages = append(messages, text(chat.Assistant, "<think>t"))
		case 11:
			messages = append(messages, says(callPart("z", "f", `{}`), callPart("z", "g", `{}`), callPart(id, "f", `{}`)), answers(resultPart(id, "r"), resultPart("z", "r")))
		}
	}
	return messages
}

// TestRunawayTemplate: a template that never ends does not keep a model from loading for long.
func TestRunawayTemplate(t *testing.T) {
	tmpl, err := NewTemplate("t", `{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}{{ messages[0].content }}`)
	if err != nil {
		t.Fatal(err)
	}
	p, err := findForm(tmpl, dialect.Choose(dialect.Evidence{}), jinja.Limits{Steps: 1000}, false, nil)
	if err != nil || !p.spent || p.form.has(systemFirst) || findSwitches(p).works {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestGrowth: an agent's conversation begins, in every later request, as it was.
func TestGrowth(t *testing.T) {
	turns := [][]chat.Message{
		{text(chat.System, "s"), text(chat.System, "t"), text(chat.User, "u1"), text(chat.System, "late")},
		{says(thought("h"), chat.Part{Text: "a1"}, callPart("call_1", "f", `{"k": 1}`), callPart("call_2", "g", `{}`)),
			{Role: chat.User, Parts: []chat.Part{resultPart("call_1", "r1"), resultPart("call_2", "r2"), {Text: "reminder"}}}, text(chat.System, "later")},
		{says(callPart("call_3", "f", `{"k": 2}`)), answers(resultPart("call_3", "r3"))},
		{text(chat.Assistant, "a2"), text(chat.User, "u2"), text(chat.User, "u3")},
		{text(chat.Assistant, "a3"), text(chat.System, "latest"), text(chat.User, "u4")},
		{says(callPart("call_4", "f", `{}`)), answers(resultPart("call_4", "r4")), text(chat.System, "last")},
	}
	for name, template := range map[string]string{"all": printAll, "mistral": printMistral, "odd": printOdd} {
		g, err := withTemplate(t, template)
		if err != nil {
			t.Fatal(err)
		}
		var messages []chat.Message
		before := ""
		for _, more := range turns {
			messages = append(messages, more...)
			out, err := g.Render(t.Context(), &chat.Request{Messages: messages})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(out, before) {
				t.Errorf("%s: %q does not go on from %q", name, out, before)
			}
			before = out
		}
	}
}
