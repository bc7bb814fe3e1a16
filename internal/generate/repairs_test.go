package generate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/chat"
)

// TestRepairs: what is put right in calls is counted, once for each reply, and left alone when that is asked for.
func TestRepairs(t *testing.T) {
	g, _ := newTest(t, "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"z\": \"5\", \"city\": \"Oslo\"}}\n</tool_call>")
	r := &chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}, Tools: weather(), Thinking: chat.Thinking{Budget: 50}}
	for range 2 {
		if got, want := events(t, g, r), "start\ncall 0: get_weather\nargs: {\"z\": 5, \"city\": \"Oslo\"}\nend 0: {\"z\": 5, \"city\": \"Oslo\"}\nfinish tool_calls"; got != want {
			t.Errorf("got %s", got)
		}
	}
	if diff := cmp.Diff(map[string]int64{"number": 2}, g.Repairs()); diff != "" {
		t.Error(diff)
	}
	g.cfg.NoToolRepair = true
	if got, want := events(t, g, r), "start\ncall 0: get_weather\nargs: {\"z\": \"5\", \"city\": \"Oslo\"}\nend 0: {\"z\": \"5\", \"city\": \"Oslo\"}\nfinish tool_calls"; got != want {
		t.Errorf("without repairs: %s", got)
	}
	if n := g.Repairs()["number"]; n != 2 {
		t.Errorf("%d repairs counted", n)
	}
}

// TestMended: a call with another name than the model wrote is told of with the reply, within bounds.
func TestMended(t *testing.T) {
	long := strings.Repeat("functions.", 20) + "get_weather"
	reply := "<tool_call>\n{\"name\": \"Get-Weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>\n" +
		strings.Repeat("<tool_call>\n{\"name\": \""+long+"\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>\n", maxMended)
	g, _ := newTest(t, reply)
	r := &chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}, Tools: weather(), Thinking: chat.Thinking{Budget: 50}}
	calls := 0
	all, err := g.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range all {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == chat.EventToolEnd && e.Call.Name == "get_weather" {
			calls++
		}
		if e.Kind != chat.EventFinish {
			continue
		}
		m := e.Usage.Mended
		if len(m) != maxMended || m[0] != "Get-Weather as get_weather" || m[1] != long[:64]+" as get_weather" {
			t.Errorf("mended: %q", m)
		}
	}
	if calls != maxMended+1 || g.Repairs()["name"] != int64(calls) {
		t.Errorf("%d calls, %v", calls, g.Repairs())
	}
}

// TestLeaked: a reply that is nothing but calls without marks calls tools, unless the request wants JSON or no calls.
func TestLeaked(t *testing.T) {
	const call = `{"name": "Get-Weather", "arguments": {"city": "Oslo"}}`
	const fenced = "```json\n" + call + "\n```"
	called := "start\ncall 0: get_weather\nargs: {\"city\": \"Oslo\"}\nend 0: {\"city\": \"Oslo\"}\nfinish tool_calls"
	said := func(text string) string {
		return "start\ntext: " + strings.ReplaceAll(text, "\n", `\n`) + "\nfinish stop"
	}
	for name, c := range map[string]struct {
		reply string
		alter func(*chat.Request)
		want  string
	}{
		"alone":    {call, func(*chat.Request) {}, called},
		"fence":    {fenced, func(*chat.Request) {}, called},
		"tools":    {"<tools>\n" + call + "\n</tools>", func(*chat.Request) {}, called},
		"form":     {fenced, func(r *chat.Request) { r.Form = &chat.Form{} }, said(fenced)},
		"none":     {fenced, func(r *chat.Request) { r.Choice.Kind = chat.ChoiceNone }, said(fenced)},
		"no tools": {fenced, func(r *chat.Request) { r.Tools = nil }, said(fenced)},
		"example":  {"So: " + fenced, func(*chat.Request) {}, said("So: " + fenced)},
	} {
		g, _ := newTest(t, c.reply)
		r := &chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}, Tools: weather(), Thinking: chat.Thinking{Budget: 50}}
		c.alter(r)
		if got := events(t, g, r); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
		if n := g.Repairs()["leaked"]; (n == 1) != (c.want == called) {
			t.Errorf("%s: counted %v", name, g.Repairs())
		}
	}
}
