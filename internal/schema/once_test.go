package schema_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"hearth/internal/chat"
	"hearth/internal/chat/chattest"
	"hearth/internal/engine"
	"hearth/internal/generate"
	"hearth/internal/schema"
	"hearth/internal/tokenizer"
	"hearth/internal/wire"
	"hearth/internal/wire/anthropic"
	"hearth/internal/wire/openai"
	"hearth/internal/wire/wiretest"
)

// typist is an engine that says the same whatever it is asked, and asks before each token what may come.
type typist struct{ says []int32 }

func (e typist) Context() int { return 1 << 20 }

func (e typist) Submit(_ context.Context, p engine.Prompt) (generate.Stream, error) {
	return &typed{left: e.says, steer: p.Constrain}, nil
}

type typed struct {
	left  []int32
	steer func(int32) engine.Constraint
}

func (s *typed) Next() (engine.Token, error) {
	if len(s.left) == 0 {
		return engine.Token{}, io.EOF
	}
	id := s.left[0]
	s.left = s.left[1:]
	return engine.Token{ID: id}, s.steer(id).Err
}

func (s *typed) Finish() engine.Reason { return engine.Stop }
func (s *typed) Usage() engine.Usage   { return engine.Usage{} }
func (s *typed) Close()                {}
func (s *typed) Started() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// only is the models of a server that has one.
type only struct{ *generate.Generator }

func (o only) List(context.Context) []chat.Model                    { return []chat.Model{o.Model()} }
func (o only) Open(context.Context, string) (chat.Generator, error) { return o, nil }
func (o only) mount(mux *http.ServeMux, protocols ...wire.Protocol) *http.ServeMux {
	for _, p := range protocols {
		p.Mount(mux, wiretest.Options(o))
	}
	return mux
}

// server serves a model that says the same to everyone.
func server(tb testing.TB, says string) http.Handler {
	tb.Helper()
	cfg, err := generate.Load(os.DirFS("../demo/model"), "")
	if err != nil {
		tb.Fatal(err)
	}
	cfg.Engine, cfg.ConstrainTools = typist{cfg.Tokenizer.Encode(says, tokenizer.EncodeOptions{ParseSpecial: true})}, true
	cfg.Now = func() time.Time { return time.Unix(9, 0) }
	g, err := generate.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return only{g}.mount(http.NewServeMux(), openai.Protocol{}, anthropic.Protocol{})
}

// as is a schema as bodies below spell it.
func as(text string) json.RawMessage {
	b, err := json.Marshal(json.RawMessage(text))
	if err != nil {
		panic(err)
	}
	return b
}

// agentTools are n tools, each with a schema of its own.
func agentTools(n int) []chat.Tool {
	tools := chattest.AgentTools(n)
	for i := range tools {
		tools[i].Parameters = as(fmt.Sprintf(`{"$comment":"%d",%s`, i, tools[i].Parameters[1:]))
	}
	return tools
}

func chatBody(tb testing.TB, tools []chat.Tool, more string) string {
	tb.Helper()
	var list []any
	for _, t := range tools {
		list = append(list, map[string]any{"type": "function", "function": map[string]any{"name": t.Name, "parameters": t.Parameters}})
	}
	b, err := json.Marshal(list)
	if err != nil {
		tb.Fatal(err)
	}
	return `{"messages": [{"role": "user", "content": "Hi"}], "tools": ` + string(b) + more + `}`
}

func messagesBody(tb testing.TB, tools []chat.Tool, more string) string {
	tb.Helper()
	var list []any
	for _, t := range tools {
		list = append(list, map[string]any{"name": t.Name, "input_schema": t.Parameters})
	}
	b, err := json.Marshal(list)
	if err != nil {
		tb.Fatal(err)
	}
	return `{"max_tokens": 1000, "messages": [{"role": "user", "content": "Hi"}], "tools": ` + string(b) + more + `}`
}

func post(h http.Handler, path, body string) string {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Body.String()
}

// calls is what a model says that calls a tool twice, once with an argument of the wrong type.
func calls(tool string) string {
	call := func(more string) string {
		return `<tool_call>` + "\n" + `{"name": "` + tool + `", "arguments": {"path": "/a", "edits": [{"oldText": "a", "newText": "b"}]` + more + `}}` + "\n</tool_call>\n"
	}
	return call("") + call(`, "dryRun": "True"`)
}

// TestToolsAreReadOnce: of a request with 300 tools each schema is read once for all choices, calls and rooms. Where the same
// tools were sent before those of the tools that are called are read, and the others not at all.
func TestToolsAreReadOnce(t *testing.T) {
	tools := agentTools(300)
	called := &tools[0]
	h := server(t, calls(called.Name))
	read := schema.OnRead(t)
	post(h, "/v1/chat/completions", chatBody(t, tools, `, "n": 2`))
	for s, n := range read() {
		if n != 1 {
			t.Errorf("%d times: %.100s", n, s)
		}
	}
	for name, c := range map[string]struct{ path, body string }{
		"chat":      {"/v1/chat/completions", chatBody(t, tools, `, "n": 2`)},
		"chat, sse": {"/v1/chat/completions", chatBody(t, tools, `, "n": 3, "stream": true`)},
		"messages":  {"/v1/messages", messagesBody(t, tools, ``)},
	} {
		t.Run(name, func(t *testing.T) {
			read := schema.OnRead(t)
			reply := post(h, c.path, c.body)
			if !strings.Contains(reply, called.Name) || name == "chat" && strings.Count(reply, `\"dryRun\": true`) != 2 {
				t.Errorf("no call, or not mended: %s", reply)
			}
			if got, want := read(), map[string]int{string(called.Parameters): 1}; !maps.Equal(got, want) {
				t.Errorf("%d schemas were read", len(got))
				for s, n := range got {
					t.Logf("%d times: %.100s", n, s)
				}
			}
		})
	}
}

// BenchmarkTools answers a request with 300 tools by two calls of one of them.
func BenchmarkTools(b *testing.B) {
	tools := agentTools(300)
	h := server(b, calls(tools[0].Name))
	body := chatBody(b, tools, ``)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if reply := post(h, "/v1/chat/completions", body); !strings.Contains(reply, tools[0].Name) {
			b.Fatal(reply)
		}
	}
}
