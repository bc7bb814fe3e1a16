package generate

import (
	"context"
	"slices"
	"strings"
	"testing"

	"hearth/internal/chat"
)

// explained is what a request is told of itself, "what: value (origin)" each.
func explained(t *testing.T, g *Generator, r *chat.Request) (lines []string, text string) {
	t.Helper()
	seq, err := g.Generate(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind != chat.EventStart && e.Usage != nil && (e.Usage.Decisions != nil || e.Usage.Text != "") {
			t.Error("told again at the end")
		}
		if e.Kind == chat.EventStart {
			for _, d := range e.Usage.Decisions {
				lines = append(lines, d.What+": "+d.Value+" ("+d.Origin+")")
			}
			text = e.Usage.Text
		}
	}
	return lines, text
}

// TestExplain: every decision has who made it; the request before the settings, those before the folder, that before the program.
func TestExplain(t *testing.T) {
	const secret = "a-word-of-the-caller"
	g, s := newTest(t, "Hello")
	s.cached = 0
	g.cfg.Defaults.MinP = new(0.05)
	g.cfg.Defaults.TopP = new(0.8)
	ask := func() *chat.Request {
		return &chat.Request{Messages: []chat.Message{text(chat.User, secret)}, MaxTokens: 7, Stop: []string{secret}, Tools: weather(),
			Thinking: chat.Thinking{Mode: chat.Off}, Sampling: chat.Sampling{Temperature: new(0.4), Seed: new(uint64(5))}}
	}
	if lines, text := explained(t, g, ask()); lines != nil || text != "" {
		t.Errorf("nobody asked: %q %q", lines, text)
	}
	r := ask()
	r.Explain = chat.ExplainDecisions
	lines, prompt := explained(t, g, r)
	for _, want := range []string{
		"template: chat_template.jinja (the model's folder)",
		"parser: hermes (the template's text)",
		"thinking: off (request)",
		"tools: 1 (the template declares them)",
		"temperature: 0.4 (request)",
		"top_p: 0.8 (settings)",
		"min_p: 0.05 (settings)",
		"seed: fixed (request)",
		"max_tokens: 7 (request)",
		"cache: lcp: 0 of ",
	} {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, want) }) {
			t.Errorf("no %q in %q", want, lines)
		}
	}
	if prompt != "" || strings.Contains(strings.Join(lines, " "), secret) {
		t.Errorf("text of the prompt: %q %q", prompt, lines)
	}
	r = ask()
	r.Explain, r.Sampling, r.MaxTokens, r.Thinking = chat.ExplainText, chat.Sampling{}, 0, chat.Thinking{}
	lines, prompt = explained(t, g, r)
	for _, want := range []string{"temperature: 0.2 (generation_config.json)", "top_p: 0.8 (settings)", "seed: drawn (built-in)", "max_tokens: 4044 (the room left in the context)", "thinking: "} {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, want) }) {
			t.Errorf("no %q in %q", want, lines)
		}
	}
	if !strings.Contains(prompt, secret) {
		t.Errorf("prompt %q", prompt)
	}
}
