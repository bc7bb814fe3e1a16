package generate

import (
	"slices"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/engine"
)

func TestLoop(t *testing.T) {
	run := func(n int, ids ...int32) []int32 { return slices.Repeat(ids, n) }
	l := Loop{MaxSize: 3, MinCount: 4}
	for _, c := range []struct {
		name string
		l    Loop
		ids  []int32
		want bool
	}{
		{"nothing yet", l, nil, false},
		{"one token", l, run(4, 7), true},
		{"one token, not often enough", l, run(3, 7), false},
		{"three tokens", l, append([]int32{1, 2}, run(4, 7, 8, 9)...), true},
		{"three tokens, the last run not complete", l, append(run(4, 7, 8, 9)[1:], 7), true},
		{"three tokens, a token short", l, run(4, 7, 8, 9)[1:], false},
		{"longer than looked for", l, run(9, 1, 2, 3, 4), false},
		{"another token after it", l, append(run(8, 7), 1), false},
		{"shorter than looked for", Loop{MinSize: 2, MaxSize: 3, MinCount: 4}, run(4, 1, 1, 2), true},
		{"a run of two of the same counts as two", Loop{MinSize: 2, MaxSize: 3, MinCount: 4}, run(8, 7), true},
		{"off", Loop{}, run(99, 7), false},
		{"off without a count", Loop{MaxSize: 3}, run(99, 7), false},
	} {
		r := &repeats{longest: c.l.MaxSize}
		for i := range c.ids {
			r.add(c.ids[:i+1])
		}
		if got := c.l.found(r); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestLoopCutsCalls: where a reply is ended because it goes round in circles, what might have become a call is none, although
// nothing but its end is missing.
func TestLoopCutsCalls(t *testing.T) {
	for _, begun := range []string{"<tool_call>\n<function=now>", "<tool_call>\n{\"name\": \"now\"", "<tool_call>\n[{\"name\": \"now\""} {
		g, s := newTest(t, begun+strings.Repeat("\n \t", 50)+"}]</function>")
		s.finish = engine.Running
		g.cfg.Loop = Loop{MaxSize: 8, MinCount: 6}
		r := &chat.Request{Messages: []chat.Message{text(chat.User, "hi")}, Tools: []chat.Tool{{Name: "now"}}}
		if got := events(t, g, r); strings.Contains(got, "call 0") || !strings.Contains(got, "finish length") {
			t.Errorf("%s: %s", begun, got)
		}
	}
}

// TestLoopEndsReply: what goes round in circles ends as if the tokens had run out; what a loop is not yet goes on.
func TestLoopEndsReply(t *testing.T) {
	g, s := newTest(t, strings.Repeat("no ", 50))
	r := &chat.Request{Messages: []chat.Message{text(chat.User, "hi")}}
	reply := func() chat.Finish {
		seq, err := g.Generate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		var f chat.Finish
		for e, err := range seq {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == chat.EventFinish {
				f = e.Finish
			}
		}
		return f
	}
	if f := reply(); f != chat.FinishStop {
		t.Errorf("without a guard: %s", f)
	}
	g.cfg.Loop = Loop{MaxSize: 8, MinCount: 6}
	if f := reply(); f != chat.FinishLength || s.closed != 2 {
		t.Errorf("with a guard: %s, %d streams closed", f, s.closed)
	}
	if r.Form = new(chat.Form); reply() != chat.FinishStop {
		t.Error("a form is cut")
	}
	words := s.reply
	s.reply = slices.Concat(g.guard.Plain("<think>\n"), words)
	if f := reply(); f != chat.FinishLength {
		t.Errorf("reasoning before a form: %s", f)
	}
	r.Form, s.reply = nil, words
	g.cfg.Loop.MinCount = 60
	if f := reply(); f != chat.FinishStop {
		t.Errorf("not often enough: %s", f)
	}
	g.cfg.Loop.MinCount = 6
	s.reply = g.guard.Plain("<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"" + strings.Repeat("no ", 50) + "\"}}\n</tool_call>")
	if r.Tools = weather(); reply() != chat.FinishToolCalls {
		t.Error("a call is cut")
	}
	r.Tools = append(r.Tools, chat.Tool{Name: "now"})
	r.Choice.Kind = chat.ChoiceRequired
	s.reply = g.guard.Plain("{\"name\":" + strings.Repeat("\n ", 50) + "\"get_weather\", \"arguments\": {}}\n</tool_call>")
	if reply() != chat.FinishToolCalls {
		t.Error("a demanded call is cut before its tool is known")
	}
	s.reply = g.guard.Plain("I " + strings.Repeat("no ", 50))
	if reply() != chat.FinishLength {
		t.Error("what did not become a demanded call goes round in circles")
	}
}
