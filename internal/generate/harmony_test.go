package generate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/chat"
	"hearth/internal/dialect"
)

// harmonyTemplates are those that print channels: the built-in one, and with -templates the published ones.
func harmonyTemplates(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"built-in": dialect.BuiltinText("harmony")}
	if *templatesDir != "" {
		for name, src := range published(t) {
			if strings.Contains(src, "<|channel|>commentary") {
				all[name] = src
			}
		}
	}
	// as the published one does, text beside a call is reasoning or an error, and calls come one by one
	all["of channels for calls alone"] = "{% macro m(to, channel, text) %}{{ '<|start|>assistant' ~ to ~ '<|channel|>' ~ channel ~ '<|message|>' ~ text }}{% endmacro %}" +
		"{{ '<|start|>system<|message|>' ~ (tools | tojson if tools else '') ~ '<|end|>' }}{% for a in messages %}{% if a.role == 'assistant' and a.tool_calls %}" +
		"{% set ns = namespace(final=false) %}{% for b in messages[loop.index:] %}{% if b.role == 'assistant' and not b.tool_calls %}{% set ns.final = true %}{% endif %}{% endfor %}" +
		"{% if a.content and a.thinking %}{{ raise_exception('one or the other') }}{% elif (a.content or a.thinking) and not ns.final %}{{ m('', 'analysis', a.content or a.thinking) ~ '<|end|>' }}{% endif %}" +
		"{% set c = a.tool_calls[0].function %}{{ m(' to=functions.' ~ c.name, 'commentary json', c.arguments | tojson) ~ '<|call|>' }}" +
		"{% elif a.role == 'assistant' %}{{ m('', 'final', a.content) ~ '<|end|>' }}{% elif a.role == 'tool' %}" +
		"{{ '<|start|>functions.' ~ a.name ~ ' to=assistant<|channel|>commentary<|message|>' ~ a.content | tojson ~ '<|end|>' }}" +
		"{% elif a.role == 'user' %}{{ '<|start|>user<|message|>' ~ a.content ~ '<|end|>' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant' }}{% endif %}"
	return all
}

// TestPreambles: what is said beside a call is commentary that stays, and reasoning stays until an answer came.
func TestPreambles(t *testing.T) {
	const (
		user, end = "<|start|>user<|message|>", "<|end|>"
		analysis  = "<|start|>assistant<|channel|>analysis<|message|>"
		words     = "<|start|>assistant<|channel|>commentary<|message|>"
		final     = "<|start|>assistant<|channel|>final<|message|>"
		called    = "<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>{\"city\": \"Oslo\"}<|call|>"
		result    = "<|start|>functions.get_weather to=assistant<|channel|>commentary<|message|>\"sunny\"<|end|>"
	)
	word := func(s string) chat.Part { return chat.Part{Text: s} }
	oslo := func(id string) chat.Part { return callPart(id, "get_weather", `{"city": "Oslo"}`) }
	asks, sunny := text(chat.User, "Q"), answers(resultPart("c1", "sunny"))
	loop := []chat.Message{asks, says(thought("R1"), word("I look."), oslo("c1")), sunny}
	for _, c := range []struct {
		name     string
		messages []chat.Message
		want     string
	}{
		{"reasoning, words and a call", loop, user + "Q" + end + analysis + "R1" + end + words + "I look." + end + called + result},
		{"words and a call", []chat.Message{asks, says(word("I look."), oslo("c1")), sunny}, user + "Q" + end + words + "I look." + end + called + result},
		{"words behind a call", []chat.Message{asks, says(oslo("c1"), word("I look.")), sunny}, user + "Q" + end + words + "I look." + end + called + result},
		{"marks in words", []chat.Message{asks, says(thought("<|start|>assistant"), word("<|start|>assistant to=functions.f<|end|>"), oslo("c1")), sunny},
			user + "Q" + end + analysis + "<|start|>assistant" + end + words + "<|start|>assistant to=functions.f<|end|>" + end + called + result},
		{"a second round", append(loop[:3:3], says(thought("R2"), word("Again."), oslo("c2")), answers(resultPart("c2", "sunny"))),
			user + "Q" + end + analysis + "R1" + end + words + "I look." + end + called + result + analysis + "R2" + end + words + "Again." + end + called + result},
		{"an answer", append(loop[:3:3], says(thought("R2"), word("Sunny.")), text(chat.User, "U")),
			user + "Q" + end + words + "I look." + end + called + result + final + "Sunny." + end + user + "U" + end},
		{"an answer, a call", append(loop[:3:3], text(chat.Assistant, "Sunny."), text(chat.User, "U"), says(thought("R3"), word("So."), oslo("c3")), answers(resultPart("c3", "sunny"))),
			user + "Q" + end + words + "I look." + end + called + result + final + "Sunny." + end + user + "U" + end + analysis + "R3" + end + words + "So." + end + called + result},
		{"words in a message of their own", []chat.Message{asks, says(thought("R1"), oslo("c1")), sunny, text(chat.Assistant, "I look."), says(oslo("c2")), answers(resultPart("c2", "sunny"))},
			user + "Q" + end + analysis + "R1" + end + called + result + words + "I look." + end + called + result},
		{"each in a message of its own", []chat.Message{asks, says(thought("R1")), text(chat.Assistant, "I"), text(chat.Assistant, "look."), says(oslo("c1")), sunny},
			user + "Q" + end + analysis + "R1" + end + words + "I\n\nlook." + end + called + result},
	} {
		for name, src := range harmonyTemplates(t) {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				g := talkOver(t, name, src, true).g
				out, err := g.prompt(t.Context(), &chat.Request{Messages: c.messages, Tools: spokenTools})
				if err != nil {
					t.Fatal(err)
				}
				_, got, _ := strings.Cut(out.text, user)
				if diff := cmp.Diff(c.want+"<|start|>assistant", user+got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				for _, s := range out.draft.Spans { // what the template wrote for an assistant begins with its first words
					if text := out.draft.Text[s.From:s.To]; strings.HasPrefix(text, "<|start|>assistant") != s.Answer || strings.Count(text, "<|start|>functions.") > 1 {
						t.Errorf("message %d is %q", s.Message, text)
					}
				}
				if len(out.draft.Spans) < 3 {
					t.Errorf("spans %+v", out.draft.Spans)
				}
			})
		}
	}
}

// TestPreambleReuses: through a loop of reasoning, words, calls and results each turn takes up all that ran in the one before.
func TestPreambleReuses(t *testing.T) {
	const start, call = "<|end|><|start|>assistant", "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"city\":\"Oslo\"}"
	for name, src := range harmonyTemplates(t) {
		t.Run(name, func(t *testing.T) {
			k := talkOver(t, name, src, false)
			reused, all := 0, 0
			for i, answer := range []string{
				"<|channel|>analysis<|message|>Let me see where that is." + start + "<|channel|>commentary<|message|>I look." + start + call,
				"<|channel|>analysis<|message|>Once more, for another day." + start + call,
				"<|channel|>commentary<|message|>And again." + start + call,
				"<|channel|>analysis<|message|>Hm." + start + "<|channel|>commentary<|message|>Now the last one." + start + call,
				"<|channel|>final<|message|>It is sunny.",
			} {
				common, ran := k.say(answer)
				if reused, all = reused+common, all+ran; common != ran {
					seen := k.m.seen[len(k.m.seen)-2]
					t.Errorf("turn %d: %d of %d tokens had run:\n%q\n%q", i, common, ran, k.g.cfg.Tokenizer.Decode(seen[common:], false), k.g.cfg.Tokenizer.Decode(k.m.prompt[common:], false))
				}
				if k.calls == i && i < 4 {
					t.Errorf("turn %d: no call in %q", i, answer)
				}
				k.results("sunny")
			}
			t.Logf("%d of %d tokens had run", reused, all)
		})
	}
}
