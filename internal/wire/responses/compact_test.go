package responses

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/wire"
	"hearth/internal/wire/wiretest"
)

func FuzzCompact(f *testing.F) { wiretest.FuzzDecode(f, Protocol{}, "/v1/responses/compact") }

// summing answers a request for a summary with one, and others as answer does.
func summing(r *chat.Request) []wiretest.Step {
	steps := answer(r)
	if strings.HasSuffix(said(r), summaryRequest) {
		steps[2].Event.Text = "A boat is wanted."
	}
	return steps
}

// boat is the summary as clients get it.
var boat = encrypted(sealedSummary, "A boat is wanted.")

// TestCompact: the next window has what the user said, wherever that comes from, and one summary; nothing is stored, and the
// conversation goes on from it.
func TestCompact(t *testing.T) {
	a := serveStored(t, newStore(t, t.TempDir()), summing)
	first := a.create(`{"input": "One."}`)
	second := a.create(`{"previous_response_id": "` + first.ID + `", "input": [{"type": "message", "id": "msg_two", "role": "user", "content": [{"type": "input_text", "text": "Two."}]}]}`)
	for _, path := range []string{"/v1/responses/compact", "/responses/compact", "/openai/v1/responses/compact", "/openai/deployments/m/responses/compact"} {
		status, d := a.call("POST", path, "ada", `{"model": "m", "stream": true, "instructions": "Sys.", "previous_response_id": "`+second.ID+`", "input": [
			{"type": "item_reference", "id": "msg_two"}, {"role": "developer", "content": "Dev."}, {"role": "user", "content": "Three."}]}`)
		if status != http.StatusOK || d.Object != "response.compaction" {
			t.Fatalf("%s: %d %+v", path, status, d)
		}
		want := "system:Sys. user:One. assistant:Hm. assistant:1 messages user:Two. assistant:Hm. assistant:3 messages user:Two. " +
			"system:Dev. user:Three. user:" + summaryRequest
		if said(a.got) != want {
			t.Errorf("%s: the model is asked %s", path, said(a.got))
		}
		var texts []string
		for _, item := range d.Output[:len(d.Output)-1] {
			texts = append(texts, fmt.Sprint(item["role"], item["content"].([]any)[0].(map[string]any)["text"]))
		}
		last := d.Output[len(d.Output)-1]
		if fmt.Sprint(texts) != "[userOne. userTwo. userTwo. userThree.]" || last["type"] != "compaction" || last["encrypted_content"] != boat {
			t.Errorf("%s: %v %v", path, texts, last)
		}
		if status, _ := a.call("GET", "/v1/responses/"+d.ID, "ada", ""); status != http.StatusNotFound {
			t.Errorf("%s: it is stored: %d", path, status)
		}
		window, _ := json.Marshal(append(d.Output, map[string]any{"role": "user", "content": "Four."}))
		a.create(`{"input": ` + string(window) + `}`)
		if want := "user:One. user:Two. user:Two. user:Three. user:" + summaryPreface + "A boat is wanted. user:Four."; said(a.got) != want {
			t.Errorf("%s: it goes on as %s, want %s", path, said(a.got), want)
		}
	}
	if status, d := a.call("POST", "/v1/responses/compact", "ada", `{"model": "m", "input": "One."}`); status != http.StatusOK || len(d.Output) != 2 {
		t.Errorf("a text: %d %v", status, d.Output)
	}
}

// TestCompactStored: a summary at the end of a response, or at the front of one, is where the next one goes on; the model reads
// the user's messages, the last summary and what came behind it.
func TestCompactStored(t *testing.T) {
	a := serveStored(t, newStore(t, t.TempDir()), summing)
	first := a.create(`{"input": "One."}`)
	second := a.create(`{"previous_response_id": "` + first.ID + `", "input": [{"type": "compaction_trigger"}]}`)
	if len(second.Output) != 1 || second.Output[0]["type"] != "compaction" || second.Output[0]["encrypted_content"] != boat {
		t.Fatalf("%v", second.Output)
	}
	third := a.create(`{"previous_response_id": "` + second.ID + `", "input": "Two."}`)
	window := "user:One. user:" + summaryPreface + "A boat is wanted. user:Two."
	if said(a.got) != window {
		t.Errorf("%s, want %s", said(a.got), window)
	}
	fourth := a.create(`{"previous_response_id": "` + third.ID + `", "input": "Three.", "context_management": [{"type": "compaction", "compact_threshold": 5}]}`)
	window = "user:One. user:Two. user:Three. user:" + summaryPreface + "A boat is wanted."
	if said(a.got) != window || len(fourth.Output) != 3 || fourth.Output[0]["type"] != "compaction" || fourth.Output[2]["type"] != "message" {
		t.Errorf("%s, want %s; %v", said(a.got), window, fourth.Output)
	}
	a.create(`{"previous_response_id": "` + fourth.ID + `", "input": "Four."}`)
	if want := window + " assistant:Hm. assistant:4 messages user:Four."; said(a.got) != want {
		t.Errorf("%s, want %s", said(a.got), want)
	}
}

// TestCompactErrors: what is wrong with a request is said before the model is asked; a model that writes no summary is an error
// here and one of a stored response, on which nothing builds.
func TestCompactErrors(t *testing.T) {
	for body, param := range map[string]string{
		`{"input": "Hi"}`: "model", `{"model": "m"}`: "input", `{"model": "m", "input": []}`: "input", `{"model": 1, "input": "Hi"}`: "model",
		`{"model": "m", "input": [{"role": "system", "content": "Sys."}]}`:          "input",
		`{"model": "m", "input": [{"type": "compaction", "encrypted_content": 1}]}`: "input[0].encrypted_content",
		`{"model": "m", "input": "Hi", "previous_response_id": "resp_1"}`:           "previous_response_id",
	} {
		status, reply := wiretest.Post(t, Protocol{}, "/v1/responses/compact", body)
		if status != http.StatusBadRequest || !strings.Contains(reply, `"param":"`+param+`"`) {
			t.Errorf("%s: %d %s", body, status, reply)
		}
	}
	if status, reply := wiretest.Post(t, Protocol{}, "/openai/deployments/m/responses/compact", `{"input": "Hi"}`); status != http.StatusOK {
		t.Errorf("a deployment: %d %s", status, reply)
	}
	a := serveStored(t, newStore(t, t.TempDir()), func(r *chat.Request) []wiretest.Step {
		steps := answer(r)
		steps[2].Event.Text = " "
		return steps
	})
	for path, body := range map[string]string{"/v1/responses/compact": `{"model": "m", "input": "Hi"}`, "/v1/responses": `{"input": [{"role": "user", "content": "Hi"}, {"type": "compaction_trigger"}]}`} {
		if status, d := a.call("POST", path, "ada", body); status != http.StatusInternalServerError || d.Error == nil || d.Error.Message != errNoSummary.Msg {
			t.Errorf("%s: %d %+v", path, status, d)
		}
	}
}

// TestCompactTools: a model that calls a tool in the place of a summary is asked again without tools; what both cost is told.
func TestCompactTools(t *testing.T) {
	const each = 2 // tokens of a reply
	asked := 0
	a := serveStored(t, nil, func(r *chat.Request) []wiretest.Step {
		asked++
		steps := summing(r)
		if len(r.Tools) > 0 && r.Choice.Kind != chat.ChoiceNone {
			call := wiretest.Step{Event: chat.Event{Kind: chat.EventToolStart, Call: &chat.ToolCall{ID: "c1", Name: "f"}}}
			steps[2].Event.Text = "I look."
			steps = slices.Insert(steps, 3, call)
		}
		return steps
	})
	status, d := a.call("POST", "/v1/responses/compact", "ada", `{"model": "m", "input": "Hi", "tools": [{"type": "function", "name": "f"}]}`)
	if status != http.StatusOK || d.Output[1]["encrypted_content"] != boat || asked != 2 || d.Usage.Output != 2*each {
		t.Errorf("%d %+v after %d", status, d, asked)
	}
	d = a.create(`{"input": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Go on."}],
		"tools": [{"type": "function", "name": "f"}], "context_management": [{"type": "compaction", "compact_threshold": 1}]}`)
	if asked != 5 || d.Output[0]["encrypted_content"] != boat || d.Output[len(d.Output)-1]["type"] != "function_call" || d.Usage.Output != 3*each {
		t.Errorf("%+v after %d", d, asked)
	}
}

// TestCompactCut: a summary that was cut off by an error is not told to be done, and says nothing.
func TestCompactCut(t *testing.T) {
	g := wiretest.New(wiretest.Hello(1)[:2]...)
	g.Script = func(*chat.Request) ([]wiretest.Step, error) {
		return append(wiretest.Hello(1)[:2], wiretest.Step{Err: &chat.Error{Kind: chat.Overloaded, Msg: "too much"}}), nil
	}
	mux := http.NewServeMux()
	Protocol{}.Mount(mux, wiretest.Options(g))
	a := serveOn(t, mux)
	resp, err := http.Post(a+"/v1/responses", "application/json", strings.NewReader(`{"stream": true, "input": [{"role": "user", "content": "Hi"}, {"type": "compaction_trigger"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	sse := body(t, resp)
	if strings.Contains(sse, "output_item.done") || strings.Contains(sse, sealedSummary) || !strings.Contains(sse, "event: response.failed") || !strings.Contains(sse, "event: response.compaction.compacting") {
		t.Error(sse)
	}
}

// TestDropped: what was left out stands in a header and in the usage, streamed or not.
func TestDropped(t *testing.T) {
	long := strings.Repeat("word ", 3000)
	in := `"truncation": "auto", "input": [{"role": "user", "content": "` + long + `"}, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "` + long + `"}]`
	for _, stream := range []string{"true", "false"} {
		mux := http.NewServeMux()
		Protocol{}.Mount(mux, wiretest.Options(wiretest.New(wiretest.Hello(1)...)))
		r := httptest.NewRequest("POST", "/v1/responses", strings.NewReader(`{"stream": `+stream+`, `+in+`}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r.WithContext(wire.WithInfo(r.Context(), &wire.Info{})))
		got := w.Body.String()
		if h := w.Header().Get("X-Hearth-Truncation"); h != "dropped=2" || !strings.Contains(got, `"hearth_dropped_messages":2`) {
			t.Errorf("stream %s: %q %s", stream, h, got)
		}
	}
}

func serveOn(t *testing.T, h http.Handler) (url string) {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func body(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
