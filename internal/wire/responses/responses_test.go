package responses

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"hearth/internal/chat"
	"hearth/internal/wire/openai"
	"hearth/internal/wire/wiretest"
)

func TestCases(t *testing.T) { wiretest.RunCases(t, Protocol{}, "/v1/responses") }

func TestNames(t *testing.T) { wiretest.Names(t) }

func FuzzResponses(f *testing.F) { wiretest.FuzzDecode(f, Protocol{}, "/v1/responses") }

// section is a part of a case's file.
func section(t *testing.T, file, name string) string {
	t.Helper()
	ar, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(ar.Files, func(f txtar.File) bool { return f.Name == name })
	return string(ar.Files[i].Data)
}

var (
	dataLine = regexp.MustCompile(`(?m)^event: (\S+)\ndata: (.*)$`)
	terminal = []string{"response.completed", "response.incomplete", "response.failed"}
)

// TestStreams: in every case's stream the numbers have no gap, one terminal event stands last, what is added is done unless it is
// a call that was cut off, and the response at the end is that of the reply that is not streamed.
func TestStreams(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range files {
		sse := section(t, file, "response.sse")
		events := dataLine.FindAllStringSubmatch(sse, -1)
		if !strings.HasPrefix(sse, "HTTP 200") {
			continue
		}
		added, done := map[int]string{}, map[int]bool{}
		for n, m := range events {
			var e struct {
				Type           string
				SequenceNumber *int `json:"sequence_number"`
				OutputIndex    int  `json:"output_index"`
				Item           struct{ Type string }
				Response       json.RawMessage
			}
			if err := json.Unmarshal([]byte(m[2]), &e); err != nil || e.Type != m[1] || e.SequenceNumber == nil || *e.SequenceNumber != n {
				t.Fatalf("%s: event %d is %s", file, n, m[0])
			}
			if slices.Contains(terminal, e.Type) != (n == len(events)-1) {
				t.Errorf("%s: %s is event %d of %d", file, e.Type, n, len(events))
			}
			switch e.Type {
			case "response.output_item.added":
				added[e.OutputIndex] = e.Item.Type
			case "response.output_item.done":
				done[e.OutputIndex] = true
			}
			plain := section(t, file, "response.json")
			if body, ok := strings.CutPrefix(plain, "HTTP 200\n"); ok && n == len(events)-1 && len(events) > 2 {
				if got := withoutIDs(string(e.Response)); got != withoutIDs(strings.TrimSpace(body)) {
					t.Errorf("%s: the stream ends with\n%s\nand the reply is\n%s", file, got, body)
				}
			}
		}
		for i, kind := range added {
			open := strings.HasSuffix(file, "cut_in_call.txtar") || strings.HasSuffix(file, "broken_call.txtar")
			if done[i] == (open && kind == "function_call") {
				t.Errorf("%s: item %d, a %s: done %t", file, i, kind, done[i])
			}
		}
	}
}

// withoutIDs leaves out the numbers that tests give ids.
func withoutIDs(s string) string { return regexp.MustCompile(`_\d+"`).ReplaceAllString(s, `_"`) }

// TestKeepAlive: a stream that says nothing yet is kept alive, and begins as ever.
func TestKeepAlive(t *testing.T) {
	sse := wiretest.SlowStart(t, Protocol{}, "/v1/responses", 12*time.Second)
	if !strings.HasPrefix(sse, ": keep-alive\n\n: keep-alive\n\nevent: response.created\n") {
		t.Errorf("%q", sse)
	}
}

// TestRoutes: who asks for a WebSocket where there is none is told so, and other methods have the shape of errors.
func TestRoutes(t *testing.T) {
	for _, tt := range []struct {
		method, path, upgrade string
		status                int
	}{
		{"GET", "/v1/responses", "websocket", 426}, {"GET", "/responses", "WebSocket", 426}, {"GET", "/openai/v1/responses", "websocket", 426},
		{"GET", "/v1/responses", "", 405}, {"DELETE", "/v1/responses", "", 405}, {"OPTIONS", "/v1/responses", "", 204},
		{"POST", "/v1/responses/input_tokens", "", 200}, {"POST", "/openai/deployments/m/responses/input_tokens", "", 200},
		{"GET", "/v1/responses/input_tokens", "", 405}, {"POST", "/openai/deployments/test-model/responses", "", 200},
	} {
		mux := http.NewServeMux()
		g := wiretest.New(wiretest.Hello(1)...)
		g.Names = []string{"*"}
		Protocol{}.Mount(mux, wiretest.Options(g))
		r := httptest.NewRequest(tt.method, tt.path, strings.NewReader(`{"input": "Hi"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Upgrade", tt.upgrade)
		w := httptest.NewRecorder()
		if mux.ServeHTTP(w, r); w.Code != tt.status {
			t.Errorf("%s %s: %d %s, want %d", tt.method, tt.path, w.Code, w.Body, tt.status)
		}
		if !(Protocol{}).Speaks(r) {
			t.Errorf("%s is not claimed", tt.path)
		}
	}
	for _, path := range []string{"/v1/chat/completions", "/openai/deployments/m/chat/completions", "/v1/responsesx"} {
		if (Protocol{}).Speaks(httptest.NewRequest("GET", path, nil)) {
			t.Errorf("%s is claimed", path)
		}
	}
}

// TestSettings: reasoning that is not shown, tools that are refused, limits as OpenAI has them, the status of older servers.
func TestSettings(t *testing.T) {
	thought := []wiretest.Step{
		{Event: chat.Event{Kind: chat.EventStart, Usage: &chat.Usage{Prompt: 3}}}, {Event: chat.Event{Kind: chat.EventReasoning, Text: "Hm."}},
		{Event: chat.Event{Kind: chat.EventText, Text: "Hi."}}, {Event: chat.Event{Kind: chat.EventFinish, Finish: chat.FinishStop, Usage: &chat.Usage{Prompt: 3, Output: 2}}},
	}
	for _, tt := range []struct {
		p      Protocol
		body   string
		status int
		has    string
		not    string
	}{
		{Protocol{}, `{"input": "Hi"}`, 200, `"reasoning_text"`, `encrypted_content`},
		{Protocol{Protocol: openai.Protocol{Thinking: chat.Off}}, `{"input": "Hi"}`, 200, `"Hi."`, `"reasoning_text"`},
		{Protocol{Protocol: openai.Protocol{Thinking: chat.Off}}, `{"input": "Hi", "include": ["reasoning.encrypted_content"]}`, 200, encrypted(sealed, "Hm."), `"Hm."`},
		{Protocol{}, `{"input": "Hi", "tools": [{"type": "web_search"}]}`, 200, `web_search`, ``},
		{Protocol{RefuseHosted: true}, `{"input": "Hi", "tools": [{"type": "web_search"}]}`, 400, `tools[0].type: tools of type \"web_search\" do not run here`, ``},
		{Protocol{}, `{"input": "Hi", "max_output_tokens": 3}`, 200, `"max_output_tokens":3`, ``},
		{Protocol{Protocol: openai.Protocol{Strict: true}}, `{"input": "Hi", "max_output_tokens": 3}`, 400, `at least 16`, ``},
		{Protocol{Protocol: openai.Protocol{Unprocessable: true}}, `{"input": []}`, 422, `at least one message`, ``},
	} {
		mux := http.NewServeMux()
		tt.p.Mount(mux, wiretest.Options(wiretest.New(thought...)))
		r := httptest.NewRequest("POST", "/v1/responses", strings.NewReader(tt.body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if got := w.Body.String(); w.Code != tt.status || !strings.Contains(got, tt.has) || tt.not != "" && strings.Contains(got, tt.not) {
			t.Errorf("%s: %d %s, want %d with %s and without %s", tt.body, w.Code, got, tt.status, tt.has, tt.not)
		}
	}
}

// TestRoundTrip: a response's output sent back as input is what the model said, reasoning also where only its encrypted form
// comes back.
func TestRoundTrip(t *testing.T) {
	for _, drop := range []string{"", "content", "summary"} {
		var body struct{ Output []map[string]any }
		if err := json.Unmarshal([]byte(strings.TrimPrefix(section(t, "testdata/summary.txtar", "response.json"), "HTTP 200\n")), &body); err != nil {
			t.Fatal(err)
		}
		for _, item := range body.Output {
			if item["type"] == "reasoning" {
				delete(item, drop)
			}
			delete(item, "id")
		}
		text, _ := json.Marshal(map[string]any{"input": body.Output})
		req, err := Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		if m := req.Messages; len(m) != 1 || m[0].Role != chat.Assistant || len(m[0].Parts) != 2 || m[0].Parts[0].Text != "One. Two." || m[0].Parts[1].Text != "Hi." {
			t.Errorf("without %s: %+v", drop, m)
		}
	}
	if _, ok := decrypted(sealed, sealed+"%"); ok {
		t.Error("what is not base64 was taken")
	}
	if got, ok := decrypted(sealed, encrypted(sealed, "é"+strconv.Itoa(1))); !ok || got != "é1" {
		t.Errorf("%q", got)
	}
}
