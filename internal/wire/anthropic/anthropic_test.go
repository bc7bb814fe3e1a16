package anthropic

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"hearth/internal/chat"
	"hearth/internal/wire/wiretest"
)

func TestCases(t *testing.T) { wiretest.RunCases(t, Protocol{}, "/v1/messages?beta=true") }

func FuzzMessages(f *testing.F) { wiretest.FuzzDecode(f, Protocol{}, "/v1/messages") }

// A client that folds the stream of a case must arrive at the case's plain reply.
func TestStreamFoldsToPlainReply(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := len(ar.Files)
		plain, sse := string(ar.Files[n-2].Data), string(ar.Files[n-1].Data)
		if !strings.HasPrefix(plain, "HTTP 200\n") {
			continue
		}
		var want any
		if err := json.Unmarshal([]byte(strings.TrimPrefix(plain, "HTTP 200\n")), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, foldStream(t, sse)); diff != "" {
			t.Errorf("%s: -plain +folded stream:\n%s", file, diff)
		}
	}
}

// foldStream does what the SDKs' accumulators do, and checks the order of events on the way.
func foldStream(t *testing.T, sse string) any {
	var msg, block map[string]any
	var args string
	for _, frame := range strings.Split(strings.TrimSpace(strings.TrimPrefix(sse, "HTTP 200\n")), "\n\n") {
		name, data, _ := strings.Cut(frame, "\ndata: ")
		var e map[string]any
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("frame %q: %v", frame, err)
		}
		if name != "event: "+e["type"].(string) {
			t.Fatalf("frame %q: event and type differ", frame)
		}
		switch e["type"] {
		case "message_start":
			msg = e["message"].(map[string]any)
		case "content_block_start":
			block = e["content_block"].(map[string]any)
			args = ""
			content := msg["content"].([]any)
			if e["index"] != float64(len(content)) {
				t.Fatalf("frame %q: want index %d", frame, len(content))
			}
			msg["content"] = append(content, block)
		case "content_block_delta":
			d := e["delta"].(map[string]any)
			for key, field := range map[string]string{"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"} {
				if d["type"] == key {
					block[field] = block[field].(string) + d[field].(string)
				}
			}
			if d["type"] == "input_json_delta" {
				args += d["partial_json"].(string)
			}
		case "content_block_stop":
			var input any
			if json.Unmarshal([]byte(args), &input) == nil { // else the call was cut
				block["input"] = input
			}
			block = nil
		case "message_delta":
			if block != nil {
				t.Fatalf("frame %q: a block is open", frame)
			}
			d := e["delta"].(map[string]any)
			msg["stop_reason"], msg["stop_sequence"], msg["usage"] = d["stop_reason"], d["stop_sequence"], e["usage"]
		}
	}
	return msg
}

// TestNoEnd: a call that was cut before its end has no input in a message, even if all of its arguments came.
func TestNoEnd(t *testing.T) {
	mux := http.NewServeMux()
	call := &chat.ToolCall{ID: "call_a", Name: "run"}
	Protocol{}.Mount(mux, wiretest.Options(wiretest.New(wiretest.Step{Event: chat.Event{Kind: chat.EventToolStart, Call: call}},
		wiretest.Step{Event: chat.Event{Kind: chat.EventToolArgs, Text: `{"input": "ls"}`}},
		wiretest.Step{Event: chat.Event{Kind: chat.EventFinish, Finish: chat.FinishLength}})))
	r := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(`{"max_tokens":5,"messages":[{"role":"user","content":"Hi"}]}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	if want := `"name":"run","input":{}}],"stop_reason":"max_tokens"`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("got %s, want %s in it", w.Body, want)
	}
}

func TestCountTokens(t *testing.T) {
	mux := http.NewServeMux()
	Protocol{}.Mount(mux, wiretest.Options(wiretest.New()))
	for _, tc := range []struct {
		path, body, want string
		status           int
	}{
		{"/v1/messages/count_tokens?beta=true", `{"messages":[{"role":"user","content":"one two three"}]}`, `{"input_tokens":3}`, 200},
		{"/messages/count_tokens", `{"model":"test-model","system":"a","messages":[{"role":"user","content":"b"}]}`, `{"input_tokens":2}`, 200},
		{"/v1/messages/count_tokens", `{"model":"other","messages":[{"role":"user","content":"b"}]}`, `{"type":"error","error":{"type":"not_found_error"`, 404},
		{"/v1/messages/count_tokens", `{"messages":[]}`, `{"type":"error","error":{"type":"invalid_request_error"`, 400},
	} {
		r := httptest.NewRequest(http.MethodPost, tc.path, strings.NewReader(tc.body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Code != tc.status || !strings.HasPrefix(w.Body.String(), tc.want) {
			t.Errorf("POST %s %s = %d %s, want %d %s", tc.path, tc.body, w.Code, w.Body, tc.status, tc.want)
		}
	}
}

func TestSignatureRoundTrip(t *testing.T) {
	for _, text := range []string{"", "Hmm…", "a\nb"} {
		if got := openSignature(sealSignature(text)); got != text {
			t.Errorf("%q came back as %q", text, got)
		}
	}
	for _, foreign := range []string{"", "EqQBCgIYAhIM", "hearth1.!!", "hearth1.a"} {
		if got := openSignature(foreign); got != "" {
			t.Errorf("openSignature(%q) = %q", foreign, got)
		}
	}
}

// Six seconds of prefill: the stream begins with a keep-alive.
func TestKeepAlive(t *testing.T) {
	got := wiretest.SlowStart(t, Protocol{}, "/v1/messages", 6*time.Second)
	if want := "event: ping\ndata: {\"type\": \"ping\"}\n\nevent: message_start\n"; !strings.HasPrefix(got, want) {
		t.Errorf("the stream begins %.80q, want %q", got, want)
	}
}
