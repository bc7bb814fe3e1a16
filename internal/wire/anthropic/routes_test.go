package anthropic

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hearth/internal/chat"
	"hearth/internal/wire"
	"hearth/internal/wire/wiretest"
)

const hi = `{"model": "test-model", "max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}]}`

// send posts to p over a generator that plays steps.
func send(t *testing.T, p Protocol, o func(*wire.Options), method, path, body string, steps ...wiretest.Step) *httptest.ResponseRecorder {
	t.Helper()
	options := wiretest.Options(wiretest.New(steps...))
	if o != nil {
		o(&options)
	}
	mux := http.NewServeMux()
	p.Mount(mux, options)
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w
}

// Every route is there with and without the version, at the root and under /anthropic, and replies name the version.
func TestRoutes(t *testing.T) {
	p := Protocol{Version: "2023-06-01"}
	for _, base := range []string{"", "/v1", "/anthropic", "/anthropic/v1"} {
		for _, path := range []string{"/messages", "/messages?beta=true", "/messages/count_tokens", "/messages/count_tokens?beta=true"} {
			w := send(t, p, nil, "POST", base+path, hi, wiretest.Hello(1)...)
			if w.Code != 200 || w.Header().Get("Anthropic-Version") != p.Version {
				t.Errorf("POST %s: %d %v %s", base+path, w.Code, w.Header(), w.Body)
			}
			if r := httptest.NewRequest("POST", base+path, nil); !p.Speaks(r) {
				t.Errorf("%s is not this protocol's", base+path)
			}
		}
	}
	for path, want := range map[string]int{"/anthropic/v1/models": 200, "/anthropic/models": 200, "/anthropic/v1/models/test-model": 200,
		"/anthropic/v1/models/other": 404, "/anthropic/v1/models?limit=0": 400} {
		w := send(t, p, nil, "GET", path, "")
		if w.Code != want || want != 200 && !strings.HasPrefix(w.Body.String(), `{"type":"error"`) {
			t.Errorf("GET %s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestStrict(t *testing.T) {
	for body, want := range map[string]string{
		hi: "",
		`{"max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}]}`:      "model: is required",
		`{"model": "test-model", "messages": [{"role": "user", "content": "Hi"}]}`: "max_tokens: is required",
	} {
		for _, strict := range []bool{false, true} {
			w := send(t, Protocol{Strict: strict}, nil, "POST", "/v1/messages", body, wiretest.Hello(1)...)
			if refused := w.Code == 400 && strings.Contains(w.Body.String(), want); refused != (strict && want != "") {
				t.Errorf("strict %t: %s: %d %s", strict, body, w.Code, w.Body)
			}
			if w := send(t, Protocol{Strict: strict}, nil, "POST", "/v1/messages/count_tokens", body); w.Code != 200 {
				t.Errorf("strict %t: counting %s: %d %s", strict, body, w.Code, w.Body)
			}
		}
	}
}

// A bug in the middle of a stream still ends it with an event, and one before it with a status.
func TestPanics(t *testing.T) {
	steps := wiretest.Hello(1)
	steps[1].Before = func(context.Context) { panic("a bug") }
	w := send(t, Protocol{}, nil, "POST", "/v1/messages", `{"stream": true,`+hi[1:], steps...)
	if !strings.HasPrefix(w.Body.String(), "event: message_start\n") || !strings.HasSuffix(w.Body.String(), "\n\n") ||
		!strings.Contains(w.Body.String(), "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"internal error while generating\"}") {
		t.Errorf("in the generator: %s", w.Body)
	}
	w = send(t, Protocol{}, nil, "POST", "/v1/messages", hi, steps...)
	if w.Code != 500 || !strings.HasPrefix(w.Body.String(), `{"type":"error","error":{"type":"api_error"`) {
		t.Errorf("in the generator, not streamed: %d %s", w.Code, w.Body)
	}
}

// TestInterval: text is collected, but not the first, not a call's start or end, and not the end of the reply; and what is
// slow to come is not held.
func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pause := func(context.Context) { time.Sleep(9 * time.Millisecond) }
		var steps []wiretest.Step
		add := func(e chat.Event) { steps = append(steps, wiretest.Step{Event: e, Before: pause}) }
		add(chat.Event{Kind: chat.EventStart, Usage: &chat.Usage{Prompt: 3}})
		for range 25 {
			add(chat.Event{Kind: chat.EventText, Text: "x"})
		}
		late := chat.Event{Kind: chat.EventText, Text: "y"}
		steps = append(steps, wiretest.Step{Event: late, Before: func(context.Context) { time.Sleep(time.Second) }})
		add(late)
		call := &chat.ToolCall{ID: "t", Name: "f", Arguments: json.RawMessage("{}")}
		add(chat.Event{Kind: chat.EventToolStart, Call: call})
		add(chat.Event{Kind: chat.EventToolArgs, Text: "{}"})
		add(chat.Event{Kind: chat.EventToolEnd, Call: call})
		add(chat.Event{Kind: chat.EventFinish, Finish: chat.FinishToolCalls, Usage: &chat.Usage{Output: 30}})
		began := time.Now()
		w := &timed{ResponseRecorder: httptest.NewRecorder(), began: began}
		options := wiretest.Options(wiretest.New(steps...))
		options.Interval = 10
		mux := http.NewServeMux()
		Protocol{}.Mount(mux, options)
		r := httptest.NewRequest("POST", "/v1/messages", strings.NewReader(`{"stream": true,`+hi[1:]))
		r.Header.Set("Content-Type", "application/json")
		mux.ServeHTTP(w, r)
		// start, the first text with its block's; two collections; what came late; the rest with the call's start; its
		// arguments; its end; the end twice
		want := "9ms:1 18ms:2 108ms:1 198ms:1 1.234s:1 1.252s:3 1.261s:1 1.27s:1 1.279s:1 1.279s:1"
		for _, text := range []string{`"x"`, `"xxxxxxxxxx"`, `"xxxxxxxxxx"`, `"xxxxy"`, `"y"`} {
			_, rest, ok := strings.Cut(w.Body.String(), `"text_delta","text":`+text)
			if !ok {
				t.Fatalf("no text %s in %s", text, w.Body)
			}
			w.Body.Reset()
			w.Body.WriteString(rest)
		}
		if got := strings.Join(w.writes, " "); got != want {
			t.Errorf("frames went out at %s, want %s", got, want)
		}
	})
}

// timed notes when how many frames were written.
type timed struct {
	*httptest.ResponseRecorder
	began  time.Time
	writes []string
}

func (w *timed) Write(b []byte) (int, error) {
	w.writes = append(w.writes, time.Since(w.began).String()+":"+strconv.Itoa(strings.Count(string(b), "\n\n")))
	return w.ResponseRecorder.Write(b)
}
