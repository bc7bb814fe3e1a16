package generate

import (
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
