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
