package generate

import (
	"strings"
	"testing"

	"hearth/internal/chat"
)

// TestForced: a call that is demanded is begun in the family's way, after reasoning that the template opened is closed.
func TestForced(t *testing.T) {
	const body = `{% for t in tools or [] %}{{ t.function.name }}{% endfor %}{% for m in messages %}[{{ m.content }}]{% endfor %}`
	two := []chat.Tool{{Name: "f"}, {Name: "g"}}
	named := chat.ToolChoice{Kind: chat.ChoiceNamed, Name: "g"}
	required := chat.ToolChoice{Kind: chat.ChoiceRequired}
	for _, c := range []struct {
		name, template string
		choice         chat.ToolChoice
		tools          []chat.Tool
		want           string
	}{
		{"named", body + "{# <tool_call> #}", named, two, "fg[q]<tool_call>\n{\"name\": \"g\", \"arguments\":"},
		{"any of several", body + "{# <tool_call> #}", required, two, "fg[q]<tool_call>\n"},
		{"any of one", body + "{# <tool_call> #}", required, two[:1], "f[q]<tool_call>\n{\"name\": \"f\", \"arguments\":"},
		{"after reasoning", body + "<think>\n{# <tool_call> </think> #}", named, two, "fg[q]<think>\n\n</think>\n\n<tool_call>\n{\"name\": \"g\", \"arguments\":"},
		{"harmony", body + "<|start|>assistant{# <|channel|> <|message|> #}", named, two, "fg[q]<|start|>assistant<|channel|>commentary to=functions.g <|constrain|>json<|message|>"},
		{"kimi counts", body + "{# <|tool_calls_section_begin|> #}", named, two, "<|tool_calls_section_begin|><|tool_call_begin|>functions.g:2<|tool_call_argument_begin|>"},
		{"none", body + "{# <tool_call> #}{{ tools }}", chat.ToolChoice{Kind: chat.ChoiceNone}, two, "[q]None"},
		{"no form of calls", body, required, two, "fg[q]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := withTemplate(t, c.template)
			if err != nil {
				t.Fatal(err)
			}
			r := &chat.Request{Messages: []chat.Message{text(chat.User, "q")}, Tools: c.tools, Choice: c.choice}
			if c.name == "kimi counts" {
				r.Messages = []chat.Message{text(chat.User, "q"), says(callPart("a", "f", "{}"), callPart("b", "f", "{}")), answers(resultPart("a", "")), answers(resultPart("b", ""))}
			}
			got, err := g.Render(t.Context(), r)
			if err != nil || got != c.want && (c.name != "kimi counts" || !strings.HasSuffix(got, c.want)) {
				t.Errorf("got %q, %v\nwant %q", got, err, c.want)
			}
		})
	}
}
