package script

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/chat"
	"hearth/internal/demo"
	"hearth/internal/engine"
	"hearth/internal/generate"
)

// TestErrors: a mistake is named with its line and field.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                               "has no lines",
		"# only a comment\n\n":                           "has no lines",
		"{\"raw\": \"a\"}\nhello":                        "line 2: is not a JSON object",
		"\n[1]":                                          "line 2: is not a JSON object",
		`{"raw": "a"} {"raw": "b"}`:                      "line 1: is not a JSON object",
		`{"raw": 5}`:                                     "line 1: raw: must be a string",
		`{"raw": "{{.Last"}`:                             "line 1: raw: is not a template: raw:1: unclosed action",
		`{"raw": "{{shout .Last}}"}`:                     `line 1: raw: is not a template: raw:1: function "shout" not defined`,
		`{}`:                                             "line 1: raw: is required",
		`{"if_last": "("  , "raw": ""}`:                  "line 1: if_last: is not a regular expression",
		`{"if_tool": 5, "raw": ""}`:                      "line 1: if_tool: must be a string",
		`{"turn": 0, "raw": ""}`:                         "line 1: turn: must be a whole number from 1",
		`{"turn": 1.5, "raw": ""}`:                       "line 1: turn: must be a whole number from 1",
		`{"times": -1, "raw": ""}`:                       "line 1: times: must be a whole number from 1",
		`{"family": "klingon", "raw": ""}`:               "line 1: family: no tool-call parser is named \"klingon\"",
		`{"tokens_per_s": -1, "raw": ""}`:                "line 1: tokens_per_s: must not be negative",
		`{"tokens_per_s": null, "raw": ""}`:              "line 1: tokens_per_s: must be a number",
		`{"fault": "cut"}`:                               "line 1: fault: must be an object",
		`{"fault": {}}`:                                  "line 1: fault: kind: is required",
		`{"fault": {"kind": "boom"}}`:                    "line 1: fault: kind: unknown kind \"boom\"",
		`{"fault": {"kind": "cut", "after": 1}}`:         "line 1: fault: after: unknown field",
		`{"fault": {"kind": "cut", "after_tokens": -1}}`: "line 1: fault: after_tokens: must not be negative",
		`{"iflast": "x", "raw": ""}`:                     "line 1: iflast: unknown field; there are if_last, if_tool",
	} {
		if _, err := Parse(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// TestBounds: a line of a script, what it repeats and what an error quotes of a message have bounds.
func TestBounds(t *testing.T) {
	line := func(bytes int) string { return "{\"raw\": \"a\"}\n#" + strings.Repeat("x", bytes-1) }
	if _, err := Parse(strings.NewReader(line(16<<20 - 1))); err != nil {
		t.Error(err)
	}
	if _, err := Parse(strings.NewReader(line(16 << 20))); !errors.Is(err, bufio.ErrTooLong) || !strings.HasPrefix(err.Error(), "line 2: ") {
		t.Errorf("a longer line: %v", err)
	}
	for raw, want := range map[string]string{
		`{{len (repeat 8388608 \"ab\")}}`: "16777216",
		`{{len (repeat 8388609 \"ab\")}}`: "repeat makes at most 16777216 bytes",
	} {
		g := generator(t, `{"raw": "`+raw+`"}`)
		if got := reply(t.Context(), g, &chat.Request{Messages: []chat.Message{user("Hi")}}); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
	g := generator(t, `{"if_last": "other", "raw": ""}`)
	for n, want := range map[int]string{120: strings.Repeat("m", 120) + `"`, 121: strings.Repeat("m", 120) + `…"`} {
		if got := reply(t.Context(), g, &chat.Request{Messages: []chat.Message{user(strings.Repeat("m", n))}}); !strings.Contains(got, want) {
			t.Errorf("%d bytes: %s", n, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"if_last": "a", "if_tool": "b", "turn": 1, "raw": "{{.Last}}", "family": "hermes", "tokens_per_s": 5, "fault": {"kind": "cut"}, "times": 2}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		v := newView(&chat.Request{Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{{Text: "a"}}}}})
		if r := s.find(&v, true); r != nil {
			_, _ = r.say(v)
		}
	})
}

func generator(t *testing.T, script string) *Generator {
	t.Helper()
	s, err := Parse(strings.NewReader(script))
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(generateConfig(t), s, 4096, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// generateConfig is the demo's text side with what may end a reply early.
func generateConfig(t *testing.T) generate.Config {
	t.Helper()
	text, err := generate.Load(demo.FS(), "")
	if err != nil {
		t.Fatal(err)
	}
	text.Loop, text.RunawayStop = generate.Loop{MinSize: 1, MaxSize: 96, MinCount: 4}, true
	return text
}

func user(text string) chat.Message {
	return chat.Message{Role: chat.User, Parts: []chat.Part{{Text: text}}}
}

// reply is a reply as one line: REASONING, text, [calls], the finish, or the error.
func reply(ctx context.Context, g *Generator, r *chat.Request) string {
	events, err := g.Generate(ctx, r)
	if err != nil {
		return "refused: " + err.Error()
	}
	var b strings.Builder
	for e, err := range events {
		if err != nil {
			return b.String() + " broken off: " + err.Error()
		}
		switch e.Kind {
		case chat.EventText:
			b.WriteString(e.Text)
		case chat.EventReasoning:
			b.WriteString(strings.ToUpper(e.Text))
		case chat.EventToolEnd:
			b.WriteString("[" + e.Call.Name + " " + string(e.Call.Arguments) + "]")
		case chat.EventFinish:
			b.WriteString(" " + string(e.Finish) + e.Stop)
		}
	}
	return b.String()
}

const rules = `# conditions
{"if_last": "^times", "times": 2, "raw": "limited"}
{"if_last": "^times", "raw": "unlimited"}
{"if_tool": "^get_", "if_last": "tool", "raw": "Calling.\n<tool_call>\n{\"name\": {{json .Tool}}, \"arguments\": {\"city\": {{json (find \"in (\\\\w+)\" .Last)}}}}\n</tool_call>"}
{"turn": 3, "raw": "turn three of {{len .Tools}} tools"}
{"if_last": "^mistral", "family": "mistral", "raw": "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\"}}]"}
{"if_last": "^think", "raw": "<think>\nHmm.\n</think>\n\nYes."}
{"if_last": "^bad", "raw": "{{find \"nowhere\" .Last}}"}
{"if_last": "^long", "raw": "{{repeat 100 \"word \"}}"}
{"if_last": "^echo", "raw": "{{.Last}}"}
{"if_last": "^which tools", "raw": "{{json .Tools}}"}
`

func TestAnswers(t *testing.T) {
	g := generator(t, rules)
	tools := []chat.Tool{{Name: "list"}, {Name: "get_weather"}, {Name: "get_time"}}
	said := chat.Message{Role: chat.Assistant, Parts: []chat.Part{{Text: "ok"}}}
	system := chat.Message{Role: chat.System, Parts: []chat.Part{{Text: "echo"}}}
	result := chat.Message{Role: chat.ToolRole, Parts: []chat.Part{{Kind: chat.PartToolResult, Result: &chat.ToolResult{Parts: []chat.Part{{Text: "echo result"}}}}}}
	for _, tt := range []struct {
		r    chat.Request
		want string
	}{
		{chat.Request{Messages: []chat.Message{user("times")}}, "limited stop"},
		{chat.Request{Messages: []chat.Message{user("times")}}, "limited stop"},
		{chat.Request{Messages: []chat.Message{user("times")}}, "unlimited stop"},
		{chat.Request{Messages: []chat.Message{user("use a tool in Paris")}, Tools: tools}, `Calling.[get_weather {"city": "Paris"}] tool_calls`},
		{chat.Request{Messages: []chat.Message{user("use a tool")}}, "refused: no line of the script answers this request: turn 1, 0 tools, last message \"use a tool\""},
		{chat.Request{Messages: []chat.Message{user("a"), said, user("b"), said, user("c")}, Tools: tools}, "turn three of 3 tools stop"},
		{chat.Request{Messages: []chat.Message{user("mistral")}, Tools: tools}, `[get_weather {"city": "Rome"}] tool_calls`},
		{chat.Request{Messages: []chat.Message{user("think")}}, "HMM.Yes. stop"},
		{chat.Request{Messages: []chat.Message{user("bad")}}, "refused: the script cannot answer this: line 8: raw: "},
		{chat.Request{Messages: []chat.Message{user("long")}, MaxTokens: 5}, " length"},
		{chat.Request{Messages: []chat.Message{user("echo a STOP b")}, Stop: []string{"STOP"}}, "echo a  stop_textSTOP"},
		{chat.Request{Messages: []chat.Message{user("echo this"), system}}, "echo this stop"},
		{chat.Request{Messages: []chat.Message{user("which tools")}}, "[] stop"},
		{chat.Request{Messages: []chat.Message{user("which tools")}, Tools: tools[:1]}, `["list"] stop`},
		{chat.Request{Messages: []chat.Message{user("a"), said, result, user("and")}}, "echo result\nand stop"},
	} {
		if got := reply(t.Context(), g, &tt.r); !strings.Contains(got, tt.want) {
			t.Errorf("%v: got %q, want %q", tt.r.Messages[len(tt.r.Messages)-1], got, tt.want)
		}
	}
}

// Count is what a reply then reports, also where a call is forced in the syntax of a line's family.
func TestCount(t *testing.T) {
	g := generator(t, rules)
	for _, r := range []*chat.Request{
		{Messages: []chat.Message{user("echo hello")}},
		{Messages: []chat.Message{user("mistral")}, Tools: []chat.Tool{{Name: "get_weather"}}, Choice: chat.ToolChoice{Kind: chat.ChoiceNamed, Name: "get_weather"}},
		{Messages: []chat.Message{user("times")}},
	} {
		n, err := g.Count(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		events, err := g.Generate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range events {
			if err != nil || e.Kind == chat.EventStart && e.Usage.Prompt != n {
				t.Errorf("%v: counted %d, reply says %+v, %v", r.Messages, n, e.Usage, err)
			}
			break
		}
	}
}

// TestFaults: each kind at its place, and what was said before it.
func TestFaults(t *testing.T) {
	for line, want := range map[string]string{
		`{"fault": {"kind": "overloaded"}}`:                                            "refused: the script says that the server is overloaded",
		`{"fault": {"kind": "rate_limited"}}`:                                          "refused: the script says that there are too many requests",
		`{"fault": {"kind": "error"}}`:                                                 "refused: the script says that generation failed",
		`{"raw": "one two three four", "fault": {"kind": "error", "after_tokens": 2}}`: " broken off: the script says that generation failed",
		`{"raw": "one", "fault": {"kind": "overloaded", "after_tokens": 99}}`:          "one stop",
	} {
		if got := reply(t.Context(), generator(t, line), &chat.Request{Messages: []chat.Message{user("Hi")}}); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	for _, line := range []string{`{"fault": {"kind": "cut"}}`, `{"raw": "one two three", "fault": {"kind": "cut", "after_tokens": 1}}`} {
		events, err := generator(t, line).Generate(t.Context(), &chat.Request{Messages: []chat.Message{user("Hi")}})
		for err == nil {
			for _, e := range events {
				err = e
			}
		}
		if !errors.Is(err, chat.ErrCut) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// play submits an answer to a player and returns its stream.
func play(t *testing.T, ctx context.Context, a *answer, p engine.Prompt) generate.Stream {
	t.Helper()
	text, err := generate.Load(demo.FS(), "")
	if err != nil {
		t.Fatal(err)
	}
	s, err := (&player{tok: text.Tokenizer, context: 4096}).Submit(withAnswer(ctx, a), p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPace: tokens come when they are due, a stall ends with its client, and cancelling takes effect between tokens.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		s := play(t, ctx, &answer{raw: "a b c d e f g h", tokensPerSec: 4, fault: &fault{after: 3, kind: stall}}, engine.Prompt{Tokens: []int32{1}})
		for i := range 3 {
			if _, err := s.Next(); err != nil || time.Since(began) != time.Duration(i+1)*250*time.Millisecond {
				t.Errorf("token %d after %v, %v", i, time.Since(began), err)
			}
		}
		time.AfterFunc(time.Hour, cancel)
		if _, err := s.Next(); !errors.Is(err, context.Canceled) || time.Since(began) != time.Hour+750*time.Millisecond {
			t.Errorf("the stall ended after %v with %v", time.Since(began), err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		s = play(t, ctx, &answer{raw: "a b c", tokensPerSec: 0.001}, engine.Prompt{Tokens: []int32{1}})
		began = time.Now()
		time.AfterFunc(time.Second, cancel)
		if _, err := s.Next(); !errors.Is(err, context.Canceled) || time.Since(began) != time.Second {
			t.Errorf("cancelled after %v with %v", time.Since(began), err)
		}
	})
}

// TestEnds: the stop id, the answer's own end, the limit; and what Constrain forces comes next.
func TestEnds(t *testing.T) {
	text, err := generate.Load(demo.FS(), "")
	if err != nil {
		t.Fatal(err)
	}
	eos, _ := text.Tokenizer.EOS()
	name, _ := text.Tokenizer.Token(eos)
	drain := func(a *answer, p engine.Prompt) (string, engine.Reason, int) {
		p.Tokens, p.StopIDs = []int32{1}, []int32{eos}
		s := play(t, t.Context(), a, p)
		var ids []int32
		for {
			tok, err := s.Next()
			if err == io.EOF {
				return text.Tokenizer.Decode(ids, false), s.Finish(), s.Usage().Generated
			}
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, tok.ID)
		}
	}
	forced := false
	for _, tt := range []struct {
		a    answer
		p    engine.Prompt
		said string
		why  engine.Reason
		n    int
	}{
		{answer{raw: "abc"}, engine.Prompt{}, "abc", engine.Stop, 0},
		{answer{raw: "abc" + name + "def"}, engine.Prompt{}, "abc", engine.Stop, 0},
		{answer{raw: "one two three"}, engine.Prompt{MaxTokens: 1}, "", engine.Length, 1},
		{answer{raw: ""}, engine.Prompt{}, "", engine.Stop, 1},
		{answer{raw: "abc"}, engine.Prompt{Constrain: func(int32) engine.Constraint {
			if forced {
				return engine.Constraint{}
			}
			forced = true
			return engine.Constraint{Forced: []int32{eos}}
		}}, "", engine.Stop, 2},
	} {
		said, why, n := drain(&tt.a, tt.p)
		if tt.said != "" && said != tt.said || why != tt.why || tt.n > 0 && n != tt.n {
			t.Errorf("%q: said %q, %v, %d tokens; want %q, %v, %d", tt.a.raw, said, why, n, tt.said, tt.why, tt.n)
		}
	}
}

// TestMatch: what replies say of cached tokens is what a prefix cache would have.
func TestMatch(t *testing.T) {
	seq := func(n int, more ...int32) []byte {
		var s []byte
		for i := range n {
			s = appendIDs(s, int32(i))
		}
		return appendIDs(s, more...)
	}
	p := &player{}
	p.remember(past{tokens: seq(2000)})
	p.remember(past{salt: [16]byte{1}, tokens: seq(4000)})
	for _, tt := range []struct {
		prompt         []byte
		cached, longer int
		hit            string
	}{
		{seq(10, -1), 0, 10, "miss"},
		{seq(2000), 1999, 2000, "exact"},
		{seq(100), 99, 100, "supersequence"},
		{seq(3000), 2000, 2000, "prefix"},
		{seq(1500, -1, -2), 1500, 1500, "lcp"},
	} {
		cached, longer, hit := p.match(&past{tokens: tt.prompt})
		if d := cmp.Diff([]any{tt.cached, tt.longer, tt.hit}, []any{cached, longer, hit.String()}); d != "" {
			t.Errorf("%d tokens: %s", len(tt.prompt)/idBytes, d)
		}
	}
	p.remember(past{tokens: seq(2001)})
	if len(p.latest) != 2 {
		t.Errorf("a sequence that was continued is still there: %d", len(p.latest))
	}
	for i := range 2 * remembered {
		p.remember(past{tokens: seq(5, int32(-i-1))})
	}
	if len(p.latest) != remembered {
		t.Errorf("%d sequences are remembered", len(p.latest))
	}
}

// TestWhole: what a script says is said to the end, whatever the model's folder and the server think of replies that repeat
// themselves.
func TestWhole(t *testing.T) {
	s, err := Parse(strings.NewReader(`{"raw":"{{repeat 1500 ` + "`nothing yet, `" + `}}Done."}`))
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(generateConfig(t), s, 100_000, nil)
	if err != nil {
		t.Fatal(err)
	}
	zero := 0.0
	for _, s := range []chat.Sampling{{}, {Temperature: &zero}} {
		want := strings.Repeat("nothing yet, ", 1500) + "Done. stop"
		if got := reply(t.Context(), g, &chat.Request{Messages: []chat.Message{user("hi")}, Sampling: s}); got != want {
			t.Errorf("%d bytes that end in %q, want %d", len(got), got[max(0, len(got)-40):], len(want))
		}
	}
}

// TestDemanded: a script says all of its turn by itself, also where a call is demanded: nothing is put in front of it.
func TestDemanded(t *testing.T) {
	const call = `<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>`
	g := generator(t, `{"if_last": "both", "raw": "Let me check the weather.\n`+call+`"}
{"if_last": "twice", "raw": "`+call+`\n`+call+`"}
{"if_last": "call", "raw": "`+call+`"}
{"if_last": "mistral", "family": "mistral", "raw": "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}]"}
{"raw": "No."}`)
	const called = `[get_weather {"city": "Paris"}]`
	tools := []chat.Tool{{Name: "get_weather"}, {Name: "other"}}
	free, err := g.Count(t.Context(), &chat.Request{Messages: []chat.Message{user("call")}, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	for _, choice := range []chat.ToolChoice{{Kind: chat.ChoiceRequired}, {Kind: chat.ChoiceNamed, Name: "get_weather"}, {Kind: chat.ChoiceRequired, Single: true}} {
		twice := called + called
		if choice.Name != "" || choice.Single {
			twice = called
		}
		for say, want := range map[string]string{
			"both": "Let me check the weather." + called + " tool_calls", "call": called + " tool_calls", "twice": twice + " tool_calls",
			"mistral": called + " tool_calls", "text": "No. stop",
		} {
			r := &chat.Request{Messages: []chat.Message{user(say)}, Tools: tools, Choice: choice}
			if got := reply(t.Context(), g, r); got != want {
				t.Errorf("%+v, %s: %q, want %q", choice, say, got, want)
			}
		}
		if n, err := g.Count(t.Context(), &chat.Request{Messages: []chat.Message{user("call")}, Tools: tools, Choice: choice}); err != nil || n != free {
			t.Errorf("%+v: the prompt has %d tokens (%v), without a demand %d", choice, n, err, free)
		}
	}
}

// TestLive: what plays is seen, and no more when it has ended or nobody waits for it.
func TestLive(t *testing.T) {
	g := generator(t, `{"raw": "one two three"}`)
	r := &chat.Request{Messages: []chat.Message{user("hi")}, N: 2, Origin: chat.Origin{ID: "req_1"}}
	seen := 0
	events, err := g.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		if live := g.Live(); e.Kind == chat.EventText && e.Choice == 0 && seen == 0 {
			seen++
			if len(live) != 2 || live[0].Request != "req_1" || live[0].Generated == 0 || live[0].First.IsZero() || live[0].Ran != live[0].Prompt || live[0].Max == 0 {
				t.Errorf("live %+v", live)
			}
		}
	}
	if live := g.Live(); len(live) != 0 || seen == 0 {
		t.Errorf("after the end: %+v", live)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		if _, err := g.Generate(ctx, r); err != nil {
			t.Fatal(err)
		}
		leave()
		synctest.Wait()
		if live := g.Live(); len(live) != 0 {
			t.Errorf("of a reply that nobody reads: %+v", live)
		}
	})
}
