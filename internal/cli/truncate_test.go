package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"hearth/internal/config"
)

// responded is what the tests below look at in an answer of the Responses API.
type responded struct {
	status int
	header string // of what was left out
	Output []struct{ Type string }
	Usage  struct {
		Input   int `json:"input_tokens"`
		Dropped int `json:"hearth_dropped_messages"`
	}
	Tokens int `json:"input_tokens"`
	Error  struct{ Code string }
}

func respond(t *testing.T, url string, body object) (r responded) {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Post(url, "application/json", bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	r.status, r.header = res.StatusCode, res.Header.Get("X-Hearth-Truncation")
	if err := json.NewDecoder(res.Body).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTruncation: the demo answers a conversation of any length whose oldest turns may be left out. Of its prompt it has what
// leaves room for the reply, and one turn more would not. A last turn that does not fit is an error, and so is one that may not
// be cut.
func TestTruncation(t *testing.T) {
	const context, room, turns = 512, 50, 24
	url := serveDemo(t, func(c *config.Config) { c.ContextLength = context }) + "/v1/responses"
	items := []any{object{"role": "developer", "content": "Be brief."}}
	dropped := 0
	for turn := range turns {
		items = append(items, object{"role": "user", "content": fmt.Sprintf("Sheep number %d: what does it say?", turn)})
		body := object{"model": "demo", "input": items, "max_output_tokens": room, "truncation": "auto", "store": false}
		r := respond(t, url, body)
		if r.status != 200 || r.Usage.Input > context-room || r.Usage.Dropped < dropped || (r.header != "") != (r.Usage.Dropped > 0) {
			t.Fatalf("turn %d: %+v after %d dropped", turn, r, dropped)
		}
		if dropped = r.Usage.Dropped; dropped%2 != 0 {
			t.Fatalf("turn %d: half a turn was left out: %d messages", turn, dropped)
		}
		from := func(n int) int {
			return respond(t, url+"/input_tokens", object{"model": "demo", "input": append(items[:1:1], items[n:]...)}).Tokens
		}
		if n := from(1 + dropped); n != r.Usage.Input {
			t.Errorf("turn %d: the prompt has %d tokens, and what is left of the conversation %d", turn, r.Usage.Input, n)
		}
		if dropped > 0 && from(dropped-1) <= context-room {
			t.Errorf("turn %d: a turn more has %d tokens", turn, from(dropped-1))
		}
		body["truncation"] = "disabled"
		if r := respond(t, url, body); turn == turns-1 && (r.status != 400 || r.Error.Code != "context_length_exceeded") {
			t.Errorf("it may not be cut: %+v", r)
		}
		items = append(items, object{"role": "assistant", "content": "Baa, says the sheep, and looks at the number on its back."})
	}
	if dropped < 10 {
		t.Errorf("only %d messages were left out", dropped)
	}
	long := strings.Repeat("sheep ", 2*context)
	if r := respond(t, url, object{"model": "demo", "input": append(items, object{"role": "user", "content": long}), "truncation": "auto"}); r.status != 400 || r.Error.Code != "context_length_exceeded" {
		t.Errorf("a last turn that does not fit: %+v", r)
	}

	// A conversation that does not fit is summed up without its oldest turns.
	window := respond(t, url+"/compact", object{"model": "demo", "input": items})
	if n := len(window.Output); window.status != 200 || n != turns+1 || window.Output[n-1].Type != "compaction" || window.Usage.Dropped == 0 {
		t.Errorf("%+v", window)
	}
	if r := respond(t, url+"/compact", object{"model": "demo", "input": long}); r.status != 400 || r.Error.Code != "context_length_exceeded" {
		t.Errorf("a message that does not fit is summed up: %+v", r)
	}
}
