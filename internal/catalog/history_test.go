package catalog

import (
	"encoding/json"
	"fmt"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/config"
)

// turn has the model answer and appends the answer to the conversation as a client does, and what follows it.
func turn(t *testing.T, g chat.Generator, r *chat.Request) (answer string, u chat.Usage) {
	t.Helper()
	seq, err := g.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	said := chat.Message{Role: chat.Assistant}
	add := func(kind chat.PartKind, text string) {
		if n := len(said.Parts); n == 0 || said.Parts[n-1].Kind != kind {
			said.Parts = append(said.Parts, chat.Part{Kind: kind})
		}
		said.Parts[len(said.Parts)-1].Text += text
		answer += text
	}
	next := chat.Message{Role: chat.User}
	for e, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Kind {
		case chat.EventText:
			add(chat.PartText, e.Text)
		case chat.EventReasoning:
			add(chat.PartReasoning, e.Text)
		case chat.EventToolEnd:
			id := fmt.Sprintf("call_%d_%d", len(r.Messages), e.Tool)
			answer += e.Call.Name + string(e.Call.Arguments)
			said.Parts = append(said.Parts, chat.Part{Kind: chat.PartToolCall, Call: &chat.ToolCall{ID: id, Name: e.Call.Name, Arguments: e.Call.Arguments}})
			next.Parts = append(next.Parts, chat.Part{Kind: chat.PartToolResult, Result: &chat.ToolResult{CallID: id, Parts: []chat.Part{{Text: `{"total": 46}`}}}})
		case chat.EventFinish:
			u = *e.Usage
		}
	}
	if len(next.Parts) == 0 {
		next.Parts = []chat.Part{{Text: fmt.Sprintf("What is %d plus 29?", len(r.Messages)*3)}}
	}
	r.Messages = append(r.Messages, said, next)
	return answer, u
}

func conversation() *chat.Request {
	return &chat.Request{MaxTokens: 60, Thinking: chat.Thinking{Mode: chat.Off},
		Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{{Text: "add the numbers 17 and 29"}}}},
		Tools: []chat.Tool{{Name: "add", Description: "Add two numbers",
			Parameters: json.RawMessage(`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`)}}}
}

// Each turn of a conversation with the demo takes up all that ran in the one before, however oddly it was sampled: its
// prompt and its answer but for the last token. Counting tokens tells what the prompt will have. With the seeds chosen no
// answer is a call cut short, of which a client has nothing to send back.
func TestTurnsReuse(t *testing.T) {
	c := loaded(t, nil)
	g, err := c.Open(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	r := conversation()
	// of less than a page of 64 tokens nothing is taken up, and an answer may be short
	system := "You are a helpful assistant. Add the numbers that the user gives to you, with the tool where it can do that. Be friendly and brief."
	r.Messages = append([]chat.Message{{Role: chat.System, Parts: []chat.Part{{Text: system}}}}, r.Messages...)
	temperature := 1.3
	before, spliced := chat.Usage{}, 0
	for i := range 10 {
		seed := uint64(i + 20)
		r.Sampling = chat.Sampling{Temperature: &temperature, Seed: &seed}
		count, err := g.Count(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		answer, u := turn(t, g, r)
		if count != u.Prompt {
			t.Errorf("turn %d: %d tokens counted, %d in the prompt", i, count, u.Prompt)
		}
		if ran := before.Prompt + before.Output - 1; u.Cached < ran {
			t.Errorf("turn %d: %d tokens cached of %d that ran in the turn before; parted in message %d, then %q", i, u.Cached, ran, u.Parted-1, answer)
		}
		if u.Spliced < spliced {
			t.Errorf("turn %d: %d ids spliced after %d", i, u.Spliced, spliced)
		}
		before, spliced = u, u.Spliced
	}
	if spliced == 0 {
		t.Error("nothing was spliced")
	}
}

// Where the generated ids are those that encoding gives, remembering them changes nothing.
func TestHistoryAnswersAlike(t *testing.T) {
	var said [2][]string
	var prompts [2][]int
	for i, history := range []string{"exact", "text"} {
		t.Run(history, func(t *testing.T) {
			c := loaded(t, func(cfg *config.Config) { cfg.History = history })
			g, err := c.Open(t.Context(), "demo")
			if err != nil {
				t.Fatal(err)
			}
			r := conversation()
			zero := 0.0
			for range 4 {
				r.Sampling = chat.Sampling{Temperature: &zero}
				answer, u := turn(t, g, r)
				said[i], prompts[i] = append(said[i], answer), append(prompts[i], u.Prompt)
				if (u.Spliced > 0) != (history == "exact" && len(said[i]) > 1) {
					t.Errorf("%s, turn %d: %d ids spliced", history, len(said[i]), u.Spliced)
				}
			}
		})
	}
	if fmt.Sprint(said[0]) != fmt.Sprint(said[1]) || fmt.Sprint(prompts[0]) != fmt.Sprint(prompts[1]) {
		t.Errorf("exact: %q %v\ntext:  %q %v", said[0], prompts[0], said[1], prompts[1])
	}
}
