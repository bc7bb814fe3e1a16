package generate

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/chat/chattest"
)

// TestAgentsTools: calls of tools as agents declare them are kept to their schemas, each of them, whether called for by name, by
// demand or by the model, and no bound is met on the way: nothing about such tools is too much.
func TestAgentsTools(t *testing.T) {
	tools := chattest.AgentTools(300)
	kinds := 0
	for kinds < len(tools) && (kinds == 0 || tools[kinds].Name[:12] != tools[0].Name[:12]) {
		kinds++
	}
	check := func(t *testing.T, g *Generator, r *chat.Request) {
		t.Helper()
		seq, err := g.Generate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		var ended *chat.ToolCall
		for e, err := range seq {
			switch {
			case err != nil:
				t.Fatal(err)
			case e.Kind == chat.EventToolEnd:
				ended = e.Call
			case e.Kind == chat.EventFinish && len(e.Usage.Bounds)+len(e.Usage.Loose) > 0:
				t.Errorf("bounds were met: %v, for %v", e.Usage.Bounds, e.Usage.Loose)
			}
		}
		if ended == nil {
			t.Fatal("no call came to its end")
		}
		at := slices.IndexFunc(tools, func(t chat.Tool) bool { return t.Name == ended.Name })
		if at < 0 {
			t.Fatalf("a call of %q", ended.Name)
		}
		var schema struct {
			Required   []string
			Properties map[string]any
			Patterns   any `json:"patternProperties"`
		}
		var args map[string]any
		if err := json.Unmarshal(tools[at].Parameters, &schema); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(ended.Arguments, &args); err != nil {
			t.Fatalf("%s: %v", ended.Arguments, err)
		}
		for _, name := range schema.Required {
			if _, ok := args[name]; !ok {
				t.Errorf("%s: %s is missing in %s", ended.Name, name, ended.Arguments)
			}
		}
		for name := range args {
			if schema.Properties[name] == nil {
				t.Errorf("%s: nothing is called %q in its schema: %s", ended.Name, name, ended.Arguments)
			}
		}
	}
	ask := func(tools []chat.Tool, choice chat.ToolChoice) *chat.Request {
		return &chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}, Tools: tools, Choice: choice}
	}
	for i := range kinds {
		t.Run(tools[i].Name, func(t *testing.T) {
			if n := len(tools[i].Parameters) + len(tools[i].Description); n < 1500 {
				t.Errorf("a tool of %d bytes is none of an agent's", n)
			}
			g, m := newMonkey(t, "")
			m.hasten(t)
			for range 3 {
				check(t, g, ask(tools[i:i+1], chat.ToolChoice{Kind: chat.ChoiceNamed, Name: tools[i].Name}))
			}
		})
	}
	for name, choice := range map[string]chat.ToolChoice{"opened by the model": {}, "demanded": {Kind: chat.ChoiceRequired}} {
		t.Run(fmt.Sprintf("%d tools, %s", len(tools), name), func(t *testing.T) {
			open := ""
			if choice.Kind == chat.ChoiceAuto {
				open = "Let me see.\n<tool_call>"
			}
			g, m := newMonkey(t, open)
			m.context = 1 << 20
			m.hasten(t)
			for range 3 {
				check(t, g, ask(tools, choice))
			}
		})
	}
}
