package generate

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hearth/internal/chat"
)

// TestTogether: what the tokens of a step say leaves in one event as far as it is of one text, and all of it is what single
// tokens say: logprobs, calls, stop strings within a step, and counts.
func TestTogether(t *testing.T) {
	for _, reply := range []string{
		"One two three four five six seven eight nine ten",
		"<think>\nHm, well, so it is\n</think>\n\nYes, it is so indeed, and it STOP here is no more of it",
		"Look: <tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}\n</tool_call>",
		"über ähnliche Größen 日本語のテキスト 🙂🙂 end",
	} {
		for _, logprobs := range []bool{false, true} {
			all := func(step int) (events, whole []chat.Event) {
				g, s := newTest(t, reply)
				s.step = step
				r := &chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}, Tools: weather(), Stop: []string{"STOP"}, Logprobs: logprobs, N: 2}
				collect(t, g, r, func(e *chat.Event) {
					events = append(events, *e)
					last := len(whole) - 1
					if call := e.Call; call != nil {
						c := *call
						c.ID = "" // random
						e.Call = &c
					}
					if e.Fragment() && last >= 0 && e.Same(&whole[last]) {
						whole[last].Join(e)
					} else {
						whole = append(whole, *e)
					}
				})
				for i := range whole {
					whole[i].Joined = 0
				}
				return events, whole
			}
			single, want := all(0)
			for _, step := range []int{2, 3, 7, 1000} {
				events, got := all(step)
				if d := cmp.Diff(want, got, cmpopts.IgnoreFields(chat.Usage{}, "Tokenized")); d != "" {
					t.Fatalf("%.10s, %d tokens a step: %s", reply, step, d)
				}
				if len(events) >= len(single) {
					t.Errorf("%.10s, %d tokens a step: %d events of %d", reply, step, len(events), len(single))
				}
				joined := 0
				for i := range events {
					if joined += 1 + events[i].Joined; step == 1000 && i > 0 && events[i].Fragment() && events[i].Same(&events[i-1]) && i < len(events)-2 {
						t.Errorf("%.10s: event %d is of the text before it: %s", reply, i, fmt.Sprint(events[i]))
					}
				}
				if joined != len(single) {
					t.Errorf("%.10s, %d tokens a step: %d pieces of %d", reply, step, joined, len(single))
				}
			}
		}
	}
}
