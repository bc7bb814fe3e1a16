package responses

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/server"
	"hearth/internal/wire/wiretest"
)

// openCase is a case of Open Responses' public suite, or one that real clients need, in words of our own.
type openCase struct {
	name  string
	steps []openStep
}

// openStep is a request of a case, with PREVIOUS for the id of the last response and OUTPUT for its output, and what must come of
// it. Those of one socket have its number; 0 is a POST.
type openStep struct {
	socket int
	path   string // "": /v1/responses
	body   string
	status int    // of a POST; 0: 200
	code   string // of the error that a socket must give; "": none
	item   string // a type that the output must have; "": message
	fails  bool   // whatever the error
}

const (
	oneTool   = `"tools": [{"type": "function", "name": "get_weather", "description": "Tells the weather.", "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}}]`
	redDot    = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
	unstored  = `{"type": "response.create", "model": "test-model", "store": false, `
	following = unstored + `"previous_response_id": "PREVIOUS", "input": `
)

var openCases = []openCase{
	{"basic-response", []openStep{{body: `{"model": "test-model", "input": [{"type": "message", "role": "user", "content": "Greet me."}]}`}}},
	{"assistant-phase", []openStep{{body: `{"model": "test-model", "input": [{"type": "message", "role": "assistant", "phase": "commentary", "content": "I look it up."},
		{"type": "message", "role": "assistant", "phase": "final_answer", "content": "Seven."}, {"type": "message", "role": "user", "content": "Again?"}]}`}}},
	{"streaming-response", []openStep{{body: `{"model": "test-model", "stream": true, "input": [{"type": "message", "role": "user", "content": "Count."}]}`}}},
	{"system-prompt", []openStep{{body: `{"model": "test-model", "input": [{"type": "message", "role": "system", "content": "Rhyme."}, {"type": "message", "role": "user", "content": "Hello."}]}`}}},
	{"tool-calling", []openStep{{item: "function_call", body: `{"model": "test-model", "input": [{"type": "message", "role": "user", "content": "Does it rain in Bergen?"}], ` + oneTool + `}`}}},
	{"tool-calling-streaming", []openStep{{item: "function_call", body: `{"model": "test-model", "stream": true, "input": [{"type": "message", "role": "user", "content": "Does it rain in Bergen?"}], ` + oneTool + `}`}}},
	{"image-input", []openStep{{body: `{"model": "test-model", "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is it?"},
		{"type": "input_image", "image_url": "data:image/png;base64,` + redDot + `"}]}]}`}}},
	{"multi-turn", []openStep{{body: `{"model": "test-model", "input": [{"type": "message", "role": "user", "content": "I am Ada."}, {"type": "message", "role": "assistant", "content": "Hello Ada."},
		{"type": "message", "role": "user", "content": "Who am I?"}]}`}}},
	{"compact-response", []openStep{{path: "/v1/responses/compact", item: "compaction", body: `{"model": "test-model", "prompt_cache_key": "k", "input": [{"type": "message", "role": "user", "content": "We meet on Friday."},
		{"type": "message", "role": "assistant", "content": "Noted."}]}`}}},
	{"compact-missing-model", []openStep{{path: "/v1/responses/compact", status: 400, body: `{"input": [{"type": "message", "role": "user", "content": "Sum it up."}]}`}}},
	{"websocket-response", []openStep{{socket: 1, body: `{"type": "response.create", "model": "test-model", "input": [{"type": "message", "role": "user", "content": "Count."}]}`}}},
	{"websocket-sequential-responses", []openStep{{socket: 1, body: unstored + `"input": "Say one."}`}, {socket: 1, body: unstored + `"input": "Say two."}`}}},
	{"websocket-continuation", []openStep{{socket: 1, body: unstored + `"input": "The word is amber."}`}, {socket: 1, body: following + `"Which word?"}`}}},
	{"websocket-reconnect-store-false-recovery", []openStep{{socket: 1, body: unstored + `"input": "The word is jade."}`},
		{socket: 2, code: "previous_response_not_found", body: following + `"Which word?"}`}, {socket: 2, body: unstored + `"input": [{"type": "message", "role": "user", "content": "Begin anew."}]}`}}},
	{"websocket-previous-response-not-found", []openStep{{socket: 1, code: "previous_response_not_found", body: unstored + `"previous_response_id": "resp_nowhere", "input": "Which word?"}`}}},
	{"websocket-failed-continuation-evicts-cache", []openStep{{socket: 1, body: unstored + `"input": "The word is coral."}`},
		{socket: 1, fails: true, body: following + `[{"type": "function_call_output", "call_id": "call_nowhere", "output": "x"}]}`},
		{socket: 1, code: "previous_response_not_found", body: following + `"Which word?"}`}}},
	{"websocket-compact-new-chain", []openStep{{path: "/v1/responses/compact", item: "compaction", body: `{"model": "test-model", "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "The word is slate."}]},
		{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]}, {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Shorten this."}]}]}`},
		{socket: 1, body: unstored + `"tools": [], "input": [OUTPUT, {"type": "message", "role": "user", "content": "Go on."}]}`}}},
	// What clients do: Codex has a first message that generates nothing, then sends only what is new, and keys that nobody else
	// knows; OpenClaw has two turns of the user's in a row, and ids without their underscores.
	{"codex-warm-up", []openStep{{socket: 1, item: "-", body: unstored + `"generate": false, "input": [{"type": "message", "role": "developer", "content": "Be brief."}], ` + oneTool + `}`},
		{socket: 1, item: "function_call", body: following + `[{"role": "user", "content": "Does it rain?"}], ` + oneTool + `}`},
		{socket: 1, body: following + `[{"type": "function_call_output", "call_id": "call_1", "output": "Yes."}], ` + oneTool + `}`}}},
	{"codex-keys", []openStep{{body: `{"model": "test-model", "client_metadata": {"a": "b"}, "include": ["reasoning.encrypted_content"], "store": false, "prompt_cache_key": "k",
		"input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}], "internal_chat_message_metadata_passthrough": {"a": 1}}]}`}}},
	{"openclaw-turns", []openStep{{body: `{"model": "test-model", "input": [{"role": "user", "content": "Hi"}, {"role": "user", "content": [{"type": "input_text", "text": "It is Monday."}]}]}`}}},
	{"openclaw-ids", []openStep{{item: "function_call", body: `{"model": "test-model", "input": "Does it rain?", ` + oneTool + `}`},
		{body: `{"model": "test-model", "previous_response_id": "PREVIOUS", "input": [{"type": "function_call_output", "call_id": "call1", "output": "Yes."}], ` + oneTool + `}`}}},
}

// openAnswer calls the tool that is offered, says a word to its result, and else too.
func openAnswer(r *chat.Request) []wiretest.Step {
	usage := &chat.Usage{Prompt: 3, Output: 1}
	begin := wiretest.Step{Event: chat.Event{Kind: chat.EventStart, Usage: &chat.Usage{Prompt: 3}}}
	if len(r.Tools) == 0 || r.Messages[len(r.Messages)-1].Role == chat.ToolRole {
		return []wiretest.Step{begin, {Event: chat.Event{Kind: chat.EventText, Text: "Yes."}},
			{Event: chat.Event{Kind: chat.EventFinish, Finish: chat.FinishStop, Usage: usage}}}
	}
	call := &chat.ToolCall{ID: "call_1", Name: r.Tools[0].Name, Arguments: json.RawMessage(`{"place":"Bergen"}`)}
	return []wiretest.Step{begin, {Event: chat.Event{Kind: chat.EventToolStart, Call: &chat.ToolCall{ID: call.ID, Name: call.Name}}},
		{Event: chat.Event{Kind: chat.EventToolArgs, Text: string(call.Arguments)}}, {Event: chat.Event{Kind: chat.EventToolEnd, Call: call}},
		{Event: chat.Event{Kind: chat.EventFinish, Finish: chat.FinishToolCalls, Usage: usage}}}
}

// openReply is what a case looks at.
type openReply struct {
	Type, ID, Object string
	Status           any // an error's is a number
	Output           []json.RawMessage
	Response         *openReply
	Error            *struct{ Code string }
}

// TestOpenCases: the cases of Open Responses' public suite, each with replies and events of the shapes in their table. The table
// of docs/responses.md has them all.
func TestOpenCases(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/responses.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range openCases {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(string(doc), "| `"+c.name+"` |") {
				t.Error("docs/responses.md does not have it")
			}
			g := wiretest.New()
			g.Script = func(r *chat.Request) ([]wiretest.Step, error) { return openAnswer(r), nil }
			s := serveSockets(t, g, func(p *Protocol, _ *server.Options) { p.Store = newStore(t, t.TempDir()) })
			sockets := map[int]*client{}
			previous, output := "", ""
			for _, step := range c.steps {
				body := strings.ReplaceAll(strings.ReplaceAll(step.body, "PREVIOUS", previous), "OUTPUT", output)
				var got *openReply
				if step.socket == 0 {
					got = step.post(t, s, body)
				} else {
					if sockets[step.socket] == nil {
						sockets[step.socket] = s.dial(t)
					}
					got = step.message(t, sockets[step.socket], body)
				}
				if got != nil {
					var all []string
					for _, item := range got.Output {
						all = append(all, string(item))
					}
					previous, output = got.ID, strings.Join(all, ",")
				}
			}
		})
	}
}

// post sends a step over HTTP; nil: it was refused as it should be.
func (s openStep) post(t *testing.T, to *socketServer, body string) *openReply {
	t.Helper()
	path := s.path
	if path == "" {
		path = "/v1/responses"
	}
	resp, err := http.Post(to.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case resp.StatusCode != max(s.status, 200) && (s.status != 0 || resp.StatusCode != 200):
		t.Fatalf("%d %s", resp.StatusCode, data)
	case s.status != 0:
		return nil
	}
	if strings.Contains(body, `"stream": true`) {
		var got *openReply
		for _, m := range dataLine.FindAllStringSubmatch(string(data), -1) {
			got = s.event(t, []byte(m[2]))
		}
		return got
	}
	got := &openReply{}
	if err := json.Unmarshal(data, got); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	if s.path == "" {
		checkShape(t, "reply", "response", data, map[string]bool{})
		if got.Status != completed {
			t.Errorf("it is %s", got.Status)
		}
	} else if got.Object != "response.compaction" {
		t.Errorf("%s", data)
	}
	s.look(t, got)
	return got
}

// message sends a step over a socket and reads to the end of its reply; nil: it failed as it should.
func (s openStep) message(t *testing.T, c *client, body string) *openReply {
	t.Helper()
	c.send(body)
	for {
		_, data, err := c.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var e openReply
		if err := json.Unmarshal(data, &e); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if e.Type == "error" {
			if !s.fails && (s.code == "" || e.Error.Code != s.code) {
				t.Errorf("%s", data)
			}
			return nil
		}
		if got := s.event(t, data); got != nil {
			if s.fails || s.code != "" {
				t.Errorf("it does not fail: %s", data)
			}
			return got
		}
	}
}

// event looks at an event and gives the response of the last one.
func (s openStep) event(t *testing.T, data []byte) *openReply {
	t.Helper()
	checkShape(t, "event", "event", data, map[string]bool{})
	var e openReply
	if err := json.Unmarshal(data, &e); err != nil || e.Type != "response.completed" {
		return nil
	}
	s.look(t, e.Response)
	return e.Response
}

// look checks that the output has what it should have.
func (s openStep) look(t *testing.T, r *openReply) {
	t.Helper()
	want := s.item
	if want == "" {
		want = "message"
	}
	if found := strings.Contains(fmt.Sprintf("%s", r.Output), `"type":"`+want+`"`); found == (want == "-") || r.ID == "" {
		t.Errorf("the output has no %s: %s", want, r.Output)
	}
}
