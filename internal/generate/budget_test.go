package generate

import (
	"testing"

	"hearth/internal/chat"
)

func TestBudget(t *testing.T) {
	for _, c := range []struct {
		name, reply string
		budget      int
		messages    []chat.Message
		want        string
	}{
		{"reached", "<think>\none two three and so on", 4, nil, "start\nreasoning: one two\ntext:  three and so on\nfinish stop"},
		{"not reached", "<think>\none two\n</think>\n\nyes", 40, nil, "start\nreasoning: one two\ntext: yes\nfinish stop"},
		{"none", "<think>\none two three\n</think>\n\nyes", 0, nil, "start\nreasoning: one two three\ntext: yes\nfinish stop"},
		{"the prompt is inside", " and so on and on and on", 3, []chat.Message{text(chat.User, "Hi"), {Role: chat.Assistant, Parts: []chat.Part{thought("Hm")}}},
			"start\nreasoning:  and so on\ntext:  and on and on\nfinish stop"},
		{"no reasoning", "one two three four five", 2, nil, "start\ntext: one two three four five\nfinish stop"},
		{"characters stay whole", "<think>\n日本語日本語", 4, nil, "start\nreasoning: 日\ntext: 本語日本語\nfinish stop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, s := newTest(t, c.reply)
			s.forced = true
			r := &chat.Request{Messages: c.messages, Thinking: chat.Thinking{Mode: chat.On, Budget: c.budget}}
			if r.Messages == nil {
				r.Messages = []chat.Message{text(chat.User, "Hi")}
			}
			if got := events(t, g, r); got != c.want {
				t.Errorf("got %s\nwant %s\ntokens %v", got, c.want, s.reply)
			}
			if hooked := s.prompts[0].Constrain != nil; hooked != (c.budget > 0) {
				t.Errorf("the engine has a hook: %t", hooked)
			}
			seq, err := g.Generate(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			for e, err := range seq {
				if err != nil {
					t.Fatal(err)
				}
				if u := e.Usage; e.Finish != "" && c.budget > 0 && u.Reasoning > c.budget+8 {
					t.Errorf("%d tokens of reasoning", u.Reasoning)
				}
			}
		})
	}
}

// TestBudgetSetting: the server's budget is that of conversations which name none, whether or not they were told not to think; a
// completion has no reasoning, whatever it spells.
func TestBudgetSetting(t *testing.T) {
	g, s := newTest(t, "<think>\none two three and so on")
	s.forced, g.cfg.ThinkingBudget = true, 4
	hi := []chat.Message{text(chat.User, "Hi")}
	for _, c := range []struct {
		name string
		r    chat.Request
		want string
	}{
		{"none named", chat.Request{Messages: hi}, "start\nreasoning: one two\ntext:  three and so on\nfinish stop"},
		{"no thinking asked for", chat.Request{Messages: hi, Thinking: chat.Thinking{Mode: chat.Off}}, "start\nreasoning: one two\ntext:  three and so on\nfinish stop"},
		{"its own", chat.Request{Messages: hi, Thinking: chat.Thinking{Mode: chat.On, Budget: 40}}, "start\nreasoning: one two three and so on\nfinish stop"},
		{"a completion", chat.Request{Prompt: &chat.Prompt{Text: "Hi"}}, "start\ntext: <think>\\none two three and so on\nfinish stop"},
	} {
		if got := events(t, g, &c.r); got != c.want {
			t.Errorf("%s: got %s\nwant %s", c.name, got, c.want)
		}
	}
	if last := s.prompts[len(s.prompts)-1]; last.Constrain != nil {
		t.Error("the engine has a hook for a completion")
	}
}
