package generate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/jinja"
)

// TestSwitches: each way in which templates turn thinking off, on and down is found and used.
func TestSwitches(t *testing.T) {
	const body = `{% for m in messages %}[{{ m.content }}]{% endfor %}`
	for _, c := range []struct {
		name, template string
		want           map[chat.Thinking]string // what stands behind the last message, or is left out in front
		works          bool
	}{
		{"flag", body + `{{ "<think></think>" if enable_thinking is defined and not enable_thinking }}`, map[chat.Thinking]string{
			{}: "[q]", {Mode: chat.On}: "[q]", {Mode: chat.Off}: "[q]<think></think>", {Mode: chat.Off, Effort: "high"}: "[q]<think></think>"}, true},
		{"flag of another name", body + `{{ "<think>" if thinking else "</think>" }}`, map[chat.Thinking]string{
			{}: "[q]</think>", {Mode: chat.On}: "[q]<think>", {Mode: chat.Off}: "[q]</think>"}, true},
		{"mode", body + `{{ "<think>" if thinking_mode != "disabled" }}`, map[chat.Thinking]string{
			{}: "[q]<think>", {Mode: chat.On}: "[q]<think>", {Mode: chat.Off}: "[q]"}, true},
		{"budget", body + `{{ thinking_budget }}`, map[chat.Thinking]string{
			{}: "[q]", {Mode: chat.On, Budget: 512}: "[q]512", {Mode: chat.Off, Budget: 512}: "[q]0"}, true},
		{"efforts with an off word", body + `{% if reasoning_effort is defined and reasoning_effort not in ["no_think", "low", "high"] %}{{ raise_exception("effort") }}{% endif %}{{ reasoning_effort }}`,
			map[chat.Thinking]string{{}: "[q]", {Mode: chat.On}: "[q]high", {Mode: chat.Off}: "[q]no_think", {Effort: "minimal"}: "[q]low", {Effort: "medium"}: "[q]high", {Effort: "max"}: "[q]high",
				{Effort: "none"}: "[q]no_think"}, true},
		{"efforts without an off word", body + `{{ reasoning_effort if reasoning_effort is defined else "medium" }}`,
			map[chat.Thinking]string{{}: "[q]medium", {Mode: chat.On}: "[q]medium", {Mode: chat.Off}: "[q]low", {Effort: "xhigh"}: "[q]high", {Effort: "minimal"}: "[q]low", {Effort: "odd"}: "[q]odd"}, false},
		{"words in the system message", `{% set ns = namespace(on=true) %}{% for m in messages %}{% if "/no_think" in m.content %}{% set ns.on = false %}{% endif %}[{{ m.content }}]{% endfor %}{{ "<think>" if ns.on }}`,
			map[chat.Thinking]string{{}: "[q]<think>", {Mode: chat.Off}: "[/no_think][q]", {Mode: chat.On}: "[/think][q]<think>"}, true},
		{"none", body, map[chat.Thinking]string{{}: "[q]", {Mode: chat.On, Budget: 9, Effort: "high"}: "[q]", {Mode: chat.Off}: "[q]"}, false},
	} {
		g, err := withTemplate(t, c.template)
		if err != nil {
			t.Fatal(err)
		}
		if g.switches.works != c.works {
			t.Errorf("%s: %+v", c.name, g.switches)
		}
		for think, want := range c.want {
			got, err := g.Render(t.Context(), &chat.Request{Messages: []chat.Message{text(chat.User, "q")}, Thinking: think})
			if err != nil || got != want {
				t.Errorf("%s, %+v: %q, %v, want %q", c.name, think, got, err, want)
			}
		}
	}
}

// TestThinkingSetting: the server's setting counts where the request leaves it open.
func TestThinkingSetting(t *testing.T) {
	g, _ := newTest(t, "x")
	g.cfg.Thinking = chat.Off
	for mode, want := range map[chat.Toggle]bool{chat.Default: true, chat.On: false, chat.Off: true} {
		out, err := g.Render(t.Context(), &chat.Request{Messages: []chat.Message{text(chat.User, "q")}, Thinking: chat.Thinking{Mode: mode}})
		if err != nil || strings.HasSuffix(out, "</think>\n\n") != want {
			t.Errorf("asked for %d: %q, %v", mode, out, err)
		}
	}
}

// TestNoThinking: where the server forbids thinking, nothing a request says brings it back, in whatever way the template is told;
// a template that cannot be told is asked as ever.
func TestNoThinking(t *testing.T) {
	const body = `{% for m in messages %}[{{ m.content }}]{% endfor %}`
	for name, c := range map[string]struct{ template, want string }{
		"flag":   {body + `{{ "<think></think>" if enable_thinking is defined and not enable_thinking }}`, "[q]<think></think>"},
		"other":  {body + `{{ "<think>" if thinking else "</think>" }}`, "[q]</think>"},
		"third":  {body + `{{ "<think>" if reasoning else "</think>" }}`, "[q]</think>"},
		"mode":   {body + `{{ "<think>" if thinking_mode != "disabled" }}`, "[q]"},
		"effort": {body + `{% if reasoning_effort is defined and reasoning_effort not in ["no_think", "low", "high"] %}{{ raise_exception("effort") }}{% endif %}{{ reasoning_effort }}`, "[q]no_think"},
		"flag and effort": {body + `{{ "<think></think>" if enable_thinking is defined and not enable_thinking }}{{ reasoning_effort if reasoning_effort is defined else "none set" }}`,
			"[q]<think></think>none set"},
		"words":      {`{% set ns = namespace(on=true) %}{% for m in messages %}{% if "/no_think" in m.content %}{% set ns.on = false %}{% endif %}[{{ m.content }}]{% endfor %}{{ "<think>" if ns.on }}`, "[/no_think][q]"},
		"cannot":     {body + `{{ reasoning_effort if reasoning_effort is defined else "medium" }}`, ""},
		"never does": {body, "[q]"},
	} {
		g, err := withTemplate(t, c.template)
		if err != nil {
			t.Fatal(err)
		}
		g.cfg.Thinking, g.cfg.NoThinking = chat.Off, true
		args := func(kv ...string) map[string]json.RawMessage {
			all := map[string]json.RawMessage{}
			for i := 0; i < len(kv); i += 2 {
				all[kv[i]] = json.RawMessage(kv[i+1])
			}
			return all
		}
		for _, r := range []chat.Request{
			{}, {Thinking: chat.Thinking{Mode: chat.On}}, {Thinking: chat.Thinking{Mode: chat.On, Budget: 2048, Effort: "high"}}, {Thinking: chat.Thinking{Effort: "high"}},
			{TemplateArgs: args("enable_thinking", "true", "thinking", "true", "reasoning", "true", "thinking_mode", `"enabled"`, "thinking_budget", "4096", "reasoning_effort", `"high"`)},
			{Thinking: chat.Thinking{Mode: chat.On}, TemplateArgs: args("enable_thinking", "true", "thinking", `{"type": "enabled"}`, "other", "1")},
		} {
			r.Messages = []chat.Message{text(chat.User, "q")}
			before := len(r.TemplateArgs)
			got, err := g.Render(t.Context(), &r)
			want := c.want
			if name == "cannot" {
				switch {
				case r.Thinking.Effort != "" && r.Thinking.Mode == chat.On, r.TemplateArgs["reasoning_effort"] != nil:
					want = "[q]high"
				case r.Thinking.Mode == chat.On:
					want = "[q]medium"
				default: // the weakest that there is
					want = "[q]low"
				}
			}
			if err != nil || got != want || len(r.TemplateArgs) != before {
				t.Errorf("%s, %+v %v: %q, %v, want %q", name, r.Thinking, r.TemplateArgs, got, err, want)
			}
		}
	}
}

// TestNoThinkingInWords: a /think in the client's system message does not bring it back either, where the template looks for it.
func TestNoThinkingInWords(t *testing.T) {
	const template = `{% set mode = "/think" if enable_thinking is not defined or enable_thinking else "/no_think" %}{% if messages[0].role == "system" %}{% set s = messages[0].content %}` +
		`{% if "/no_think" in s %}{% set mode = "/no_think" %}{% elif "/think" in s %}{% set mode = "/think" %}{% endif %}({{ s.replace("/no_think", "").replace("/think", "").strip() }}){% endif %}` +
		`{% for m in messages %}{% if m.role == "user" %}[{{ m.content }}]{% endif %}{% endfor %}{{ mode }}`
	g, err := withTemplate(t, template)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		system    string
		forbidden bool
		want      string
		mode      chat.Toggle
	}{
		{"Be kind. /think", false, "(Be kind.)[q]/think", chat.Off}, // the template's word is the last
		{"Be kind. /think", true, "(Be kind.)[q]/no_think", chat.On},
		{"Be kind.", true, "(Be kind.)[q]/no_think", chat.On},
		{"Be kind.", false, "(Be kind.)[q]/think", chat.On},
		{"", true, "[q]/no_think", chat.On},
	} {
		g.cfg.NoThinking, g.cfg.Thinking = c.forbidden, chat.Off
		r := &chat.Request{Messages: []chat.Message{text(chat.User, "q")}, Thinking: chat.Thinking{Mode: c.mode}}
		if c.system != "" {
			r.Messages = append([]chat.Message{text(chat.System, c.system)}, r.Messages...)
		}
		if got, err := g.Render(t.Context(), r); err != nil || got != c.want {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}

// TestShortReply: a request that leaves thinking open and says that its reply may be short does not think, unless a setting
// of the server, or a variable of the template that it sets, says otherwise.
func TestShortReply(t *testing.T) {
	const off = "</think>\n\n"
	open, short := chat.Thinking{}, chat.Thinking{Short: true}
	for _, c := range []struct {
		name    string
		setting chat.Toggle
		args    string // of the template, set by the server
		think   chat.Thinking
		off     bool
	}{
		{"open", chat.Default, "", open, false},
		{"short", chat.Default, "", short, true},
		{"short, the server says on", chat.On, "", short, false},
		{"short, the server says off", chat.Off, "", short, true},
		{"short, asked for", chat.Default, "", chat.Thinking{Short: true, Mode: chat.On}, false},
		{"short, a variable says on", chat.Default, `{"enable_thinking": true}`, short, false},
		{"short, a variable says how hard", chat.Default, `{"reasoning_effort": "high"}`, short, false},
		{"short, another variable", chat.Default, `{"language": "en"}`, short, true},
	} {
		g, s := newTest(t, "x")
		g.cfg.Thinking = c.setting
		if c.args != "" {
			if err := json.Unmarshal([]byte(c.args), &g.cfg.TemplateArgs); err != nil {
				t.Fatal(err)
			}
		}
		r := &chat.Request{Messages: []chat.Message{text(chat.User, "q")}, Thinking: c.think, MaxTokens: 100}
		out, err := g.Render(t.Context(), r)
		if err != nil || strings.HasSuffix(out, off) != c.off {
			t.Errorf("%s: %q, %v", c.name, out, err)
		}
		open := *r
		open.Thinking.Short = false
		n, err := g.Count(t.Context(), &open)
		seq, err2 := g.Generate(t.Context(), r)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		for e, err := range seq {
			if u := e.Usage; err != nil || u != nil && (u.Prompt-u.Short != n || u.Prompt != len(s.prompts[0].Tokens)) {
				t.Errorf("%s: %d tokens counted, %v, %+v", c.name, n, err, u)
			}
		}
	}
}

// TestShortReplyTold: only templates that can be told not to think are told anything.
func TestShortReplyTold(t *testing.T) {
	const body = `{% for m in messages %}[{{ m.content }}]{% endfor %}`
	for template, want := range map[string]string{
		body + `{{ "<think></think>" if enable_thinking is defined and not enable_thinking }}`: "[q]<think></think>",
		body + `{{ reasoning_effort if reasoning_effort is defined else "medium" }}`:           "[q]medium",
		body + `{{ enable_thinking }}`: "[q]False",
		body:                           "[q]",
	} {
		g, err := withTemplate(t, template)
		if err != nil {
			t.Fatal(err)
		}
		got, err := g.Render(t.Context(), &chat.Request{Messages: []chat.Message{text(chat.User, "q")}, Thinking: chat.Thinking{Short: true}})
		if err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", template, got, err, want)
		}
	}
}

// TestShortRepliesBetween: a session whose requests ask now for short replies, now for long ones, computes nothing of a
// prompt again.
func TestShortRepliesBetween(t *testing.T) {
	k := newTalk(t, true)
	for i, short := range []bool{true, false, true, true, false, false, true} {
		k.r.Messages = append(k.r.Messages, text(chat.User, fmt.Sprint("question ", i)))
		k.r.Thinking.Short = short
		answer := "Yes.<|im_end|>"
		if !short {
			answer = "<think>\nIt is.\n</think>\n\n" + answer
		}
		const ends = 4 // an empty block of thinking, which the template leaves out later
		before := len(k.m.prompt)
		if common, _ := k.say(answer); common < before-ends {
			t.Errorf("turn %d: %d tokens of the prompt of %d before it are in this one", i, common, before)
		}
	}
}

// TestThinkingArgs: whatever is said to a template about thinking, a request may not take back where thinking is forbidden.
func TestThinkingArgs(t *testing.T) {
	vars := jinja.NewDict()
	s := switches{mode: true, budget: true, efforts: []string{"low"}}
	s.set(vars, chat.Thinking{Mode: chat.On, Budget: 9, Effort: "low"})
	if vars.Len() < 7 {
		t.Errorf("only %d variables are set", vars.Len())
	}
	for _, name := range vars.Keys() {
		if !slices.Contains(thinkingArgs, name) {
			t.Errorf("%s is none of thinkingArgs", name)
		}
	}
}
