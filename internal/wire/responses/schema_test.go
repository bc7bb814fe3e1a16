package responses

import (
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/wire/wiretest"
)

// unheld is a reply with that text, which was not held to what it was asked for.
func unheld(text string) func(*chat.Request) ([]wiretest.Step, error) {
	return func(r *chat.Request) ([]wiretest.Step, error) {
		steps := echo(r)
		steps[0].Event.Usage.Form, steps[1].Event.Text = chat.Unchecked, text
		return steps, nil
	}
}

// outcomes are what a text says became of forms.
func outcomes(text string) (all []string) {
	for _, part := range strings.Split(text, `"hearth_schema":"`)[1:] {
		outcome, _, _ := strings.Cut(part, `"`)
		all = append(all, outcome)
	}
	return all
}

// completed is the event by which a response is complete.
func (c *client) completed() string {
	c.t.Helper()
	for {
		_, b, err := c.Read(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		if kindOf(b) == "response.completed" {
			return string(b)
		}
	}
}

const wantsA = `, "text": {"format": {"type": "json_schema", "name": "n", "schema": {"required": ["a"]}}}`

// TestSchemaWithoutHeader: what became of a form stands in the usage of responses that have no header of their own: in the
// background, stored, and on a WebSocket.
func TestSchemaWithoutHeader(t *testing.T) {
	for text, want := range map[string]chat.Outcome{`{"a": 1}`: chat.Checked, `{"b": 1}`: chat.Unmet} {
		serveLocal(t, t.TempDir(), unheld(text), func(l *local) {
			for _, more := range []string{`"background": true`, `"background": true, "stream": true`, `"stream": false`} {
				a := l.ask("POST", "/v1/responses", `{"input": "Hi", `+more+wantsA+`}`)
				_, id, _ := strings.Cut(a.Body.String(), `"id":"`)
				id, _, _ = strings.Cut(id, `"`)
				for _, body := range []string{l.ask("GET", "/v1/responses/"+id, "").Body.String(), a.Body.String()} {
					if got := outcomes(body); len(got) != 1 && !strings.Contains(body, `"status":"queued"`) || len(got) == 1 && got[0] != string(want) {
						t.Errorf("%s: %q of %s", more, got, body)
					}
				}
			}
		})
		g := wiretest.New()
		g.Script = unheld(text)
		c := serveSockets(t, g, nil).dial(t)
		for warm, want := range map[string]chat.Outcome{`"generate": true`: want, `"generate": false`: ""} {
			c.send(`{"type": "response.create", "input": "Hi", ` + warm + wantsA + `}`)
			last := c.completed()
			if got := outcomes(last); strings.Join(got, " ") != string(want) {
				t.Errorf("%s: %q, want %q", warm, got, want)
			}
		}
	}
}

// TestSchemaOfSummary: a summary before the answer is not what was asked for, and a reply that is one alone says nothing of it.
func TestSchemaOfSummary(t *testing.T) {
	g := wiretest.New()
	g.Script = func(r *chat.Request) ([]wiretest.Step, error) {
		steps := echo(r)
		steps[0].Event.Usage.Prompt = 3000
		if r.Form != nil {
			steps[0].Event.Usage.Form, steps[1].Event.Text = chat.Unchecked, `{"a": 1}`
		}
		return steps, nil
	}
	c := serveSockets(t, g, nil).dial(t)
	for body, want := range map[string]string{
		`"input": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hi"}, {"role": "user", "content": "Go on"}], "context_management": [{"type": "compaction", "compact_threshold": 1}]`: "checked",
		`"input": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hi"}, {"type": "compaction_trigger"}]`:                                                                               "",
	} {
		c.send(`{"type": "response.create", ` + body + wantsA + `}`)
		last := c.completed()
		if got := outcomes(last); strings.Join(got, " ") != want || !strings.Contains(last, `"compaction"`) {
			t.Errorf("%s: %q, want %q: %s", body, got, want, last)
		}
	}
}
