package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hearth/internal/chat"
	"hearth/internal/wire/wiretest"
)

// says is a turn of a model: a text, then calls of these tools with their arguments in turn.
func says(text string, calls ...string) []wiretest.Step {
	var steps []wiretest.Step
	add := func(e chat.Event) { steps = append(steps, wiretest.Step{Event: e}) }
	add(chat.Event{Kind: chat.EventStart, Usage: &chat.Usage{Prompt: 10}})
	for _, c := range text {
		add(chat.Event{Kind: chat.EventText, Text: string(c)})
	}
	for i := 0; i < len(calls); i += 2 {
		call := &chat.ToolCall{Name: calls[i], Arguments: json.RawMessage(calls[i+1])}
		add(chat.Event{Kind: chat.EventToolStart, Tool: i / 2, Call: &chat.ToolCall{Name: calls[i]}})
		add(chat.Event{Kind: chat.EventToolArgs, Tool: i / 2, Text: calls[i+1]})
		add(chat.Event{Kind: chat.EventToolEnd, Tool: i / 2, Call: call})
	}
	finish := chat.FinishStop
	if len(calls) > 0 {
		finish = chat.FinishToolCalls
	}
	add(chat.Event{Kind: chat.EventFinish, Finish: finish, Usage: &chat.Usage{Prompt: 10, Output: 5}})
	return steps
}

// model answers with turns, one after the other, the last for ever, and notes what it was asked.
type model struct {
	*wiretest.Generator
	asked []*chat.Request
}

func newModel(turns ...[]wiretest.Step) *model {
	m := &model{Generator: wiretest.New()}
	m.Script = func(r *chat.Request) ([]wiretest.Step, error) {
		c := *r
		m.asked = append(m.asked, &c)
		return turns[min(len(m.asked), len(turns))-1], nil
	}
	return m
}

// reply is a reply as words: texts, calls that end (with * those that are run here), results and the end.
func reply(t *testing.T, m chat.Models, r *chat.Request) (words []string, finish chat.Event, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	g, err := m.Open(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	events, err := g.Generate(ctx, r)
	if err != nil {
		return nil, finish, err
	}
	text := ""
	for e, err := range events {
		if e.Kind != chat.EventText && text != "" {
			words, text = append(words, text), ""
		}
		if err != nil {
			return words, e, err
		}
		switch e.Kind {
		case chat.EventText:
			text += e.Text
		case chat.EventToolEnd:
			here := ""
			if e.Call.MCP != nil {
				here = "*"
			}
			words = append(words, fmt.Sprintf("%s%d %s%s", here, e.Tool, e.Call.Name, e.Call.Arguments))
		case chat.EventToolResult:
			words = append(words, fmt.Sprintf("%d: %s, failed %t", e.Tool, chat.Text(e.Result.Parts), e.Result.IsError))
		case chat.EventStart:
			words = append(words, "start")
		case chat.EventFinish:
			return append(words, string(e.Finish)), e, nil
		}
	}
	t.Fatal("no end")
	return nil, finish, nil
}

// asking is a request that asks for all tools.
func asking() *chat.Request {
	return &chat.Request{MCP: &chat.MCP{Servers: []string{chat.AllServers}}, Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{{Text: "Hi"}}}},
		Tools: []chat.Tool{{Name: "mine"}}}
}

func TestLoop(t *testing.T) {
	h, _ := host(t, program("a", "echo", "fail"))
	m := newModel(says("Well.", "a__echo", `{"text":"x"}`, "a__fail", `{}`), says("And?", "a__echo", `{"text":"y"}`), says("So."))
	r := asking()
	r.Choice, r.MaxTokens = chat.ToolChoice{Kind: chat.ChoiceRequired, Single: true}, 100
	words, finish, err := reply(t, Models{m, h}, r)
	want := []string{"start", "Well.", `*0 a__echo{"text":"x"}`, `*1 a__fail{}`, "0: echo: x, failed false", "1: it went wrong, failed true",
		"And?", `*2 a__echo{"text":"y"}`, "2: echo: y, failed false", "So.", "stop"}
	if err != nil || !slices.Equal(words, want) {
		t.Errorf("%v\n got %q\nwant %q", err, words, want)
	}
	if u := finish.Usage; u.Prompt != 30 || u.Output != 15 || len(u.Bounds) != 0 {
		t.Errorf("usage %+v", u)
	}
	if len(m.asked) != 3 || len(r.Messages) != 1 || len(r.Tools) != 1 {
		t.Fatalf("asked %d times; the request became %+v", len(m.asked), r)
	}
	var names []string
	for _, tool := range m.asked[0].Tools {
		names = append(names, tool.Name)
	}
	if !slices.Equal(names, []string{"mine", "a__echo", "a__fail"}) || m.asked[0].MCP != nil {
		t.Errorf("tools %v", names)
	}
	last := m.asked[2]
	if roles := fmt.Sprint(last.Messages[0].Role, last.Messages[1].Role, last.Messages[2].Role, last.Messages[3].Role, last.Messages[4].Role); roles != "userassistanttoolassistanttool" && roles != "user assistant tool assistant tool" {
		t.Errorf("roles %s", roles)
	}
	said := last.Messages[1].Parts
	results := last.Messages[2].Parts
	if len(said) != 3 || said[0].Text != "Well." || said[1].Call.Name != "a__echo" || said[1].Call.ID == "" || said[1].Call.ID != results[0].Result.CallID || !results[1].Result.IsError {
		t.Errorf("said %+v, results %+v", said, results)
	}
	if m.asked[1].Choice.Kind != chat.ChoiceAuto || !m.asked[1].Choice.Single || m.asked[1].MaxTokens != 95 {
		t.Errorf("the second round has choice %+v and %d tokens", m.asked[1].Choice, m.asked[1].MaxTokens)
	}
}

// TestLoopOwn: a turn with calls of the client's own ends there, with the results of the others; calls of tools that are not
// allowed, or nowhere, are the client's too, and never run.
func TestLoopOwn(t *testing.T) {
	h, _ := host(t, program("a", "echo"))
	m := newModel(says("", "mine", `{}`, "a__echo", `{"text":"x"}`, "a__die", `{}`))
	words, _, err := reply(t, Models{m, h}, asking())
	want := []string{"start", "0 mine{}", `*0 a__echo{"text":"x"}`, "1 a__die{}", "0: echo: x, failed false", "tool_calls"}
	if err != nil || !slices.Equal(words, want) || len(m.asked) != 1 {
		t.Errorf("%v\n got %q\nwant %q", err, words, want)
	}
	r := asking()
	r.Tools[0].Name = "a__echo"
	if words, _, err := reply(t, Models{newModel(says("", "a__echo", `{}`)), h}, r); err == nil {
		t.Errorf("the client's own tool of the same name: %q", words)
	}
}

// TestLoopBounds: rounds, calls and time of a reply. What is beyond does not run, and the model answers with what it has.
func TestLoopBounds(t *testing.T) {
	h, _ := host(t, program("a", "*"))
	cfg := *h.cfg
	for name, tc := range map[string]struct {
		set  func(*Config)
		most int // calls that the request wants
		want []string
	}{
		"rounds": {func(c *Config) { c.Rounds = 2 }, 0, []string{"start", "*0 a__echo{}", "0: echo: <nil>, failed false", "*1 a__echo{}", "1: echo: <nil>, failed false",
			"*2 a__echo{}", "2: not run: no further call may be made in this reply, failed true", "stop"}},
		"calls": {func(c *Config) { c.Calls = 1 }, 0, []string{"start", "*0 a__echo{}", "0: echo: <nil>, failed false", "*1 a__echo{}",
			"1: not run: no further call may be made in this reply, failed true", "stop"}},
		"calls of the request": {func(*Config) {}, 1, []string{"start", "*0 a__echo{}", "0: echo: <nil>, failed false", "*1 a__echo{}",
			"1: not run: no further call may be made in this reply, failed true", "stop"}},
		"time": {func(c *Config) { c.Time = time.Nanosecond }, 0, []string{"start", "*0 a__echo{}", "0: not run: the 1ns for calls in this reply are over, failed true", "*1 a__echo{}",
			"1: not run: no further call may be made in this reply, failed true", "stop"}},
	} {
		*h.cfg = cfg
		tc.set(h.cfg)
		r := asking()
		r.MCP.Calls = tc.most
		m := newModel(says("", "a__echo", "{}"))
		words, finish, err := reply(t, Models{m, h}, r)
		if err != nil || !slices.Equal(words, tc.want) || !slices.Contains(finish.Usage.Bounds, chat.BoundMCP) || m.asked[len(m.asked)-1].Choice.Kind != chat.ChoiceNone {
			t.Errorf("%s: %v, bounds %v\n got %q\nwant %q", name, err, finish.Usage.Bounds, words, tc.want)
		}
	}
	*h.cfg = cfg
	h.cfg.Calls = 1
	words, _, _ := reply(t, Models{newModel(says("", "a__echo", "{}", "a__echo", "{}"), says("So.")), h}, asking())
	if got := strings.Join(words, "|"); !strings.Contains(got, "1: not run: this reply has had its 1 calls, failed true|So.|stop") {
		t.Errorf("two calls in one round: %s", got)
	}
	h.cfg.Calls, h.cfg.Time = cfg.Calls, 300*time.Millisecond
	words, _, _ = reply(t, Models{newModel(says("", "a__hang", "{}"), says("So.")), h}, asking())
	if got := strings.Join(words, "|"); !strings.Contains(got, "0: broken off: the 300ms for calls in this reply are over, failed true|So.|stop") {
		t.Errorf("a call that takes too long: %s", got)
	}
	*h.cfg = cfg
	r := asking()
	r.MaxTokens = 5
	words, finish, _ := reply(t, Models{newModel(says("", "a__echo", "{}")), h}, r)
	if got := strings.Join(words, "|"); !strings.HasSuffix(got, "failed false|length") || finish.Usage.Output != 5 {
		t.Errorf("no token is left: %s, %+v", got, finish.Usage)
	}
}

// TestLoopErrors: what breaks the reply off, before it begins and later.
func TestLoopErrors(t *testing.T) {
	away := Server{Name: "away", URL: "http://127.0.0.1:1/mcp", Timeout: time.Second}
	h, _ := host(t, program("a", "echo", "hang"), program("none"), away)
	h.cfg.Faults = []Fault{{"broken", "args", errors.New("must be a list of texts")}}
	for name, tc := range map[string]struct {
		change func(*chat.Request)
		kind   chat.ErrorKind
		want   string
	}{
		"unknown":       {func(r *chat.Request) { r.MCP.Servers = []string{"a", "b"} }, chat.Invalid, `mcp: there is no MCP server named "b"`},
		"left out":      {func(r *chat.Request) { r.MCP.Servers = []string{"broken"} }, chat.Invalid, "mcpServers.broken.args: must be a list of texts"},
		"not connected": {func(r *chat.Request) { r.MCP.Servers = []string{"away"} }, chat.Overloaded, `the MCP server "away" is not connected`},
		"nothing":       {func(r *chat.Request) { r.MCP.Servers = []string{"none"} }, chat.Invalid, "none of these MCP servers has a tool that its file allows"},
		"choices":       {func(r *chat.Request) { r.N = 2 }, chat.Invalid, "n: with mcp there is one choice"},
		"a prompt":      {func(r *chat.Request) { r.Prompt = &chat.Prompt{} }, chat.Invalid, "mcp: tools are for conversations"},
		"tools":         {func(r *chat.Request) { r.Tools = make([]chat.Tool, 4095) }, chat.Invalid, "there are 4097 tools"},
	} {
		r := asking()
		tc.change(r)
		var e *chat.Error
		if _, _, err := reply(t, Models{newModel(says("So.")), h}, r); !errors.As(err, &e) || e.Kind != tc.kind || !strings.Contains(e.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	m := newModel(says("", "a__hang", "{}"))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	events, err := generator{m, h}.Generate(ctx, asking())
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for ctx.Err() == nil && len(h.servers[0].slots) == 0 {
			time.Sleep(time.Millisecond)
		}
		leave()
	}()
	for e, err := range events {
		if err != nil && (!errors.Is(err, context.Canceled) || e.Usage.Output != 5) {
			t.Errorf("the client left: %v, %+v", err, e)
		}
	}
	m = newModel(says("", "a__echo", "{}"), []wiretest.Step{{Event: chat.Event{Kind: chat.EventStart}}, {Err: errors.New("the model fell over")}})
	if words, e, err := reply(t, Models{m, h}, asking()); err == nil || err.Error() != "the model fell over" || e.Usage.Output != 5 {
		t.Errorf("%q, %+v, %v", words, e, err)
	}
}

// TestLoopRoom: results that do not fit behind the conversation are left out, and the model is told.
func TestLoopRoom(t *testing.T) {
	h, _ := host(t, program("a", "long"))
	m := wiretest.New()
	m.Script = func(r *chat.Request) ([]wiretest.Step, error) {
		if len(r.Messages) == 1 {
			return says("", "a__long", "{}"), nil
		}
		switch text := chat.Text(r.Messages[2].Parts[0].Result.Parts); {
		case len(text) > 500:
			return nil, &chat.Error{Kind: chat.ContextLength}
		default:
			return says(text), nil
		}
	}
	words, _, err := reply(t, Models{m, h}, asking())
	if got := strings.Join(words[len(words)-2:], "|"); err != nil || got != "the result has 1026 bytes, more than there is room for|stop" {
		t.Errorf("%v, %s", err, got)
	}
}

// TestLoopOff: a request that does not ask for tools is its model's alone, and a count has the tools of one that does.
func TestLoopOff(t *testing.T) {
	h, _ := host(t, program("a", "echo"))
	m := newModel(says("So."))
	r := asking()
	r.MCP = nil
	if words, _, err := reply(t, Models{m, h}, r); err != nil || !slices.Equal(words, []string{"start", "So.", "stop"}) || m.asked[0] == nil || len(m.asked[0].Tools) != 1 {
		t.Errorf("%q, %v", words, err)
	}
	r = asking()
	r.MCP.Servers = []string{"b"}
	if _, err := (generator{m, h}).Count(t.Context(), r); err == nil {
		t.Error("a count names a server that is not there, without an error")
	}
}
