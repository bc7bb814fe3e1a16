package script

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"hearth/internal/chat"
	"hearth/internal/server"
	"hearth/internal/wire"
	"hearth/internal/wire/anthropic"
	"hearth/internal/wire/openai"
	"hearth/internal/wire/responses"
)

// scene is a reply that every family gives in its own way, as package dialect's tests have it.
type scene struct{ family, name, raw string }

// scenesOf reads the replies of all families, by the names of some scenes; of all scenes with these two tools if none is named.
func scenesOf(t *testing.T, names ...string) (all []scene) {
	files, err := filepath.Glob("../dialect/testdata/scenes/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenes", err)
	}
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range ar.Files {
			name, opts, _ := strings.Cut(f.Name, " ")
			if strings.Contains(name, "/") || !strings.HasPrefix(opts, "tools=f,get_weather") || strings.Contains(opts, "reasoning") ||
				len(names) > 0 && !slices.Contains(names, name) {
				continue
			}
			raw := strings.ReplaceAll(strings.ReplaceAll(string(f.Data), "\n", ""), "⏎", "\n")
			all = append(all, scene{strings.TrimSuffix(filepath.Base(file), ".txtar"), name, raw})
		}
	}
	return all
}

// apis is a server that says what it is asked to say, in any family, and the generator in it.
type apis struct {
	*Generator
	http.Handler
}

func (a *apis) List(context.Context) []chat.Model { return []chat.Model{a.Model()} }

func (a *apis) Open(context.Context, string) (chat.Generator, error) { return a.Generator, nil }

// newAPIs makes one for the families of some scenes; fault is JSON of the lines of its script, context as New has it.
func newAPIs(t *testing.T, fault string, context int, scenes []scene) *apis {
	var lines strings.Builder
	seen := map[string]bool{}
	for _, s := range scenes {
		if !seen[s.family] {
			seen[s.family] = true
			parser := strings.TrimSuffix(s.family, "_v30") // gigachat reads that too
			fmt.Fprintf(&lines, `{"if_last": "^%s\n", "family": "%s", "raw": "{{find \"(?s)\\n(.*)\" .Last}}"%s}`+"\n", s.family, parser, fault)
		}
	}
	script, err := Parse(strings.NewReader(lines.String()))
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(generateConfig(t), script, context, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &apis{Generator: g}
	a.Handler = server.New(server.Options{Models: a, Protocols: []wire.Protocol{anthropic.Protocol{}, openai.Protocol{}, responses.Protocol{}},
		HostNames: []string{}, Health: func() server.Health { return server.Health{} }})
	return a
}

const parameters = `{"type": "object", "properties": {"s": {"type": "string"}, "i": {"type": "integer"}, "b": {"type": "boolean"},
	"l": {"type": "array"}, "o": {"type": "object"}}}`

// said is what a client has of a reply.
type said struct {
	text   string
	calls  []saidCall
	finish string
}

type saidCall struct{ name, args string }

// bound is what a request says of where a reply ends.
type bound struct {
	tokens int    // 0: as many as it takes
	stop   string // a stop string
}

// request asks the generator for a scene.
func (s scene) request(b bound) *chat.Request {
	r := &chat.Request{MaxTokens: b.tokens, Messages: []chat.Message{user(s.family + "\n" + s.raw)}}
	if b.stop != "" {
		r.Stop = []string{b.stop}
	}
	for _, name := range []string{"f", "get_weather"} {
		r.Tools = append(r.Tools, chat.Tool{Name: name, Parameters: json.RawMessage(parameters)})
	}
	return r
}

// events is a reply as the generator gives it. The arguments of a call that has no end are what came of them, behind "open ".
func (a *apis) events(t *testing.T, s scene, b bound) said {
	t.Helper()
	events, err := a.Generate(t.Context(), s.request(b))
	if err != nil {
		t.Fatal(err)
	}
	var out said
	open := false
	for e, err := range events {
		if err != nil {
			out.finish = "error"
			break
		}
		last := len(out.calls) - 1
		switch e.Kind {
		case chat.EventText:
			out.text += e.Text
		case chat.EventToolStart:
			out.calls, open = append(out.calls, saidCall{e.Call.Name, "open "}), true
		case chat.EventToolArgs:
			out.calls[last].args += e.Text
		case chat.EventToolEnd:
			if whole := strings.TrimPrefix(out.calls[last].args, "open "); whole != string(e.Call.Arguments) || !open {
				t.Errorf("%s %s: the end of a call has arguments %s, fragments gave %s", s.family, s.name, e.Call.Arguments, whole)
			}
			out.calls[last].args, open = string(e.Call.Arguments), false
		case chat.EventFinish:
			out.finish = string(e.Finish)
		}
	}
	return out
}

// asked is a request of an API.
func asked(api string, s scene, end bound, stream bool) string {
	var tools []any
	for _, name := range []string{"f", "get_weather"} {
		f := map[string]any{"name": name, "parameters": json.RawMessage(parameters)}
		switch api {
		case "messages":
			f = map[string]any{"name": name, "input_schema": f["parameters"]}
		case "chat":
			f = map[string]any{"type": "function", "function": f}
		default:
			f["type"] = "function"
		}
		tools = append(tools, f)
	}
	body := map[string]any{"model": "m", "stream": stream, "tools": tools}
	says, most, stop := "messages", "max_tokens", "stop"
	switch api {
	case "messages":
		stop = "stop_sequences"
	case "responses":
		says, most = "input", "max_output_tokens"
	}
	body[says] = []any{map[string]any{"role": "user", "content": s.family + "\n" + s.raw}}
	body[most] = cmp.Or(end.tokens, 2000)
	if end.stop != "" {
		body[stop] = []string{end.stop}
	}
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (a *apis) post(t *testing.T, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Host = "localhost:8080"
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w
}

// messages is a reply of /v1/messages.
func (a *apis) messages(t *testing.T, s scene, b bound, stream bool) (out said) {
	w := a.post(t, "/v1/messages", asked("messages", s, b, stream))
	type block struct {
		Type, Text, Name string
		Input            json.RawMessage
	}
	add := func(b block) {
		switch b.Type {
		case "text":
			out.text += b.Text
		case "tool_use":
			out.calls = append(out.calls, saidCall{b.Name, string(b.Input)})
		}
	}
	if !stream {
		var m struct {
			Content    []block
			StopReason string `json:"stop_reason"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil {
			t.Fatalf("%s: %v", w.Body, err)
		}
		for _, b := range m.Content {
			add(b)
		}
		out.finish = cmp.Or(m.StopReason, "error")
		return out
	}
	frames(w.Body.Bytes(), func(data []byte) {
		var e struct {
			Type  string
			Block block `json:"content_block"`
			Delta struct {
				Text       string
				Partial    string `json:"partial_json"`
				StopReason string `json:"stop_reason"`
			}
		}
		if err := json.Unmarshal(data, &e); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		switch e.Type {
		case "content_block_start":
			e.Block.Input = nil
			add(e.Block)
		case "content_block_delta":
			out.text += e.Delta.Text
			if e.Delta.Partial != "" {
				out.calls[len(out.calls)-1].args += e.Delta.Partial
			}
		case "message_delta":
			out.finish = e.Delta.StopReason
		case "error":
			out.finish = "error"
		}
	})
	return out
}

// chats is a reply of /v1/chat/completions.
func (a *apis) chats(t *testing.T, s scene, b bound, stream bool) (out said) {
	w := a.post(t, "/v1/chat/completions", asked("chat", s, b, stream))
	type message struct {
		Content string
		Calls   []struct {
			Index    int
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
	read := func(data []byte) {
		var c struct {
			Choices []struct {
				Delta, Message message
				Finish         string `json:"finish_reason"`
			}
			Error json.RawMessage
		}
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if c.Error != nil {
			out.finish = "error"
		}
		for _, x := range c.Choices {
			m := x.Message
			if stream {
				m = x.Delta
			}
			out.text += m.Content
			out.finish = cmp.Or(x.Finish, out.finish)
			for i, call := range m.Calls {
				if !stream {
					call.Index = i
				}
				if call.Index == len(out.calls) {
					out.calls = append(out.calls, saidCall{name: call.Function.Name})
				}
				out.calls[call.Index].args += call.Function.Arguments
			}
		}
	}
	if !stream {
		read(w.Body.Bytes())
		return out
	}
	frames(w.Body.Bytes(), func(data []byte) {
		if string(data) != "[DONE]" {
			read(data)
		}
	})
	return out
}

// responses is a reply of /v1/responses. The arguments of a call that is not told to be complete are behind "open ".
func (a *apis) responses(t *testing.T, s scene, b bound, stream bool) (out said) {
	w := a.post(t, "/v1/responses", asked("responses", s, b, stream))
	type item struct {
		Type, Status, Name, Arguments string
		Content                       []struct{ Text string }
	}
	type response struct {
		Output     []item
		Status     string
		Incomplete struct{ Reason string } `json:"incomplete_details"`
	}
	finish := func(r response) {
		if out.finish = "error"; r.Status != "" && r.Status != "failed" {
			out.finish = strings.TrimSpace(r.Status + " " + r.Incomplete.Reason)
		}
	}
	if !stream {
		var r response
		if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", w.Body, err)
		}
		for _, i := range r.Output {
			switch {
			case i.Type == "message":
				out.text += i.Content[0].Text
			case i.Type == "function_call" && i.Status == "completed":
				out.calls = append(out.calls, saidCall{i.Name, i.Arguments})
			case i.Type == "function_call":
				out.calls = append(out.calls, saidCall{i.Name, "open " + i.Arguments})
			}
		}
		finish(r)
		return out
	}
	frames(w.Body.Bytes(), func(data []byte) {
		var e struct {
			Type, Delta string
			Item        item
			Response    response
		}
		if err := json.Unmarshal(data, &e); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		last := len(out.calls) - 1
		switch e.Type {
		case "response.output_text.delta":
			out.text += e.Delta
		case "response.output_item.added":
			if e.Item.Type == "function_call" {
				out.calls = append(out.calls, saidCall{e.Item.Name, "open "})
			}
		case "response.function_call_arguments.delta":
			out.calls[last].args += e.Delta
		case "response.output_item.done":
			if e.Item.Type == "function_call" {
				out.calls[last].args = strings.TrimPrefix(out.calls[last].args, "open ")
			}
		case "response.completed", "response.incomplete", "response.failed":
			finish(e.Response)
		}
	})
	return out
}

// frames gives out the data of events.
func frames(body []byte, frame func(data []byte)) {
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
			frame(data)
		}
	}
}

// finishes are the names of the APIs for why a reply ended.
var finishes = map[string][3]string{"stop": {"end_turn", "stop", "completed"}, "stop_text": {"stop_sequence", "stop", "completed"},
	"length": {"max_tokens", "length", "incomplete max_output_tokens"}, "context": {"model_context_window_exceeded", "length", "incomplete max_output_tokens"},
	"tool_calls": {"tool_use", "tool_calls", "completed"}}

// sameEverywhere asks for a reply over every API, streamed and whole, and compares it with what the generator gives. A call
// without an end has what was streamed of its arguments, which is no JSON, or none.
func (a *apis) sameEverywhere(t *testing.T, s scene, b bound) said {
	t.Helper()
	return a.same(t, s, b, 0, 1, 2)
}

// same asks over some of the APIs: 0 is Messages, 1 Chat, 2 Responses.
func (a *apis) same(t *testing.T, s scene, b bound, apis ...int) said {
	t.Helper()
	want := a.events(t, s, b)
	for _, c := range want.calls {
		if args, open := strings.CutPrefix(c.args, "open "); open && json.Valid([]byte(args)) {
			t.Errorf("%s %s %v: a call without an end has whole arguments: %s", s.family, s.name, b, args)
		}
	}
	for i, ask := range []func(*testing.T, scene, bound, bool) said{a.messages, a.chats, a.responses} {
		if !slices.Contains(apis, i) || i == 2 && b.stop != "" { // Responses has no stop strings
			continue
		}
		for _, stream := range []bool{false, true} {
			mean := said{text: want.text, finish: finishes[want.finish][i]}
			for _, c := range want.calls {
				args, open := strings.CutPrefix(c.args, "open ")
				switch {
				case open && i == 0 && !stream:
					args = "{}"
				case open && i == 2:
					args = c.args
				}
				mean.calls = append(mean.calls, saidCall{c.name, args})
			}
			if got := ask(t, s, b, stream); fmt.Sprint(compact(got)) != fmt.Sprint(compact(mean)) {
				t.Errorf("%s %s %v, API %d, streamed %v: %q\ngot  %v\nwant %v", s.family, s.name, b, i, stream, s.raw, got, mean)
			}
		}
	}
	return want
}

// compact leaves out blanks in arguments, which a whole message does not keep.
func compact(s said) said {
	for i := range s.calls {
		var b bytes.Buffer
		if json.Compact(&b, []byte(s.calls[i].args)) == nil {
			s.calls[i].args = b.String()
		}
	}
	return s
}

// stride is the distance between the places that are tried: n where tests are to be quick.
func stride(n int) int {
	if testing.Short() {
		return n
	}
	return 1
}

// TestAPIsAgree: every scene of every family, and what is left of some with a character dropped, is the same streamed and whole:
// scenes over all APIs, what is damaged over one of them.
func TestAPIsAgree(t *testing.T) {
	all := scenesOf(t)
	a := newAPIs(t, "", 0, all)
	for i := 0; i < len(all); i += stride(5) {
		a.sameEverywhere(t, all[i], bound{})
	}
	for _, s := range scenesOf(t, "several_arguments", "two_calls", "reasoning_text_call") {
		raw := []rune(s.raw)
		for at := len(s.family) % 7; at < len(raw); at += 7 * stride(5) {
			s.raw = string(raw[:at]) + string(raw[at+1:])
			a.same(t, s, bound{}, at%3)
		}
	}
}

// TestCutCalls cuts calls of every family after every token, over all APIs. What comes out has no call but those that the
// whole reply has too, and no text of one that began.
func TestCutCalls(t *testing.T) {
	scenes := scenesOf(t, "several_arguments", "two_calls")
	a := newAPIs(t, "", 0, scenes)
	for _, s := range scenes {
		whole := a.sameEverywhere(t, s, bound{})
		for most := 1; ; most += stride(5) {
			apis := []int{0, 1, 2}
			if s.name != "two_calls" { // its calls are cut over one of them at each token
				apis = []int{most % 3}
			}
			got := a.same(t, s, bound{tokens: most}, apis...)
			if got.finish != "length" {
				break
			}
			got.isCutOf(t, s, whole)
		}
	}
}

// isCutOf checks what must hold for a reply that was cut, of which whole is the rest.
func (cut said) isCutOf(t *testing.T, s scene, whole said) {
	t.Helper()
	for i, c := range cut.calls {
		if !strings.HasPrefix(c.args, "open ") && (i >= len(whole.calls) || c != whole.calls[i]) {
			t.Errorf("%s %s: a call that the model did not make: %v", s.family, s.name, c)
		}
	}
	if k := len(cut.calls); k > 0 && strings.HasPrefix(cut.calls[k-1].args, "open ") && !strings.HasPrefix(whole.text, cut.text) {
		t.Errorf("%s %s: text of a call shows: %q", s.family, s.name, cut.text)
	}
}

// TestEndsOfCalls: the end of the context and an error cut calls as max_tokens does. A stop string counts in text alone.
func TestEndsOfCalls(t *testing.T) {
	scenes := scenesOf(t, "text_before")
	free := newAPIs(t, "", 0, scenes)
	for _, s := range scenes {
		whole := free.sameEverywhere(t, s, bound{})
		if got := free.sameEverywhere(t, s, bound{stop: "x"}); len(got.calls) > 0 && fmt.Sprint(got) != fmt.Sprint(whole) {
			t.Errorf("%s: a stop string in arguments: %v, without %v", s.family, got, whole)
		}
		if got := free.sameEverywhere(t, s, bound{stop: "look"}); got.finish != "stop_text" || len(got.calls) > 0 || got.text != "I " {
			t.Errorf("%s: a stop string in text: %v", s.family, got)
		}
		prompt, err := free.Count(t.Context(), s.request(bound{}))
		if err != nil {
			t.Fatal(err)
		}
		got := newAPIs(t, "", prompt+12, []scene{s}).sameEverywhere(t, s, bound{})
		if got.isCutOf(t, s, whole); got.finish != "context" {
			t.Errorf("%s: the context is full: %v", s.family, got)
		}
	}
	for _, after := range []int{10, 20, 30} {
		broken := newAPIs(t, fmt.Sprintf(`, "fault": {"kind": "error", "after_tokens": %d}`, after), 0, scenes)
		for _, s := range scenes {
			whole := free.events(t, s, bound{})
			for _, got := range []said{broken.messages(t, s, bound{}, true), broken.chats(t, s, bound{}, true), broken.responses(t, s, bound{}, true)} {
				for i, c := range got.calls {
					if json.Valid([]byte(c.args)) && c != whole.calls[i] {
						t.Errorf("%s: an error after %d tokens leaves %v", s.family, after, got)
					}
				}
				if got.finish != "error" && fmt.Sprint(got.calls) != fmt.Sprint(whole.calls) {
					t.Errorf("%s: an error after %d tokens: %v", s.family, after, got)
				}
			}
		}
	}
}

// TestReplayOverAPIs: what the model thought in a turn that was streamed or came whole, seen by the client or hidden from
// it, is in the next prompt of that conversation over any API, and in none of another.
func TestReplayOverAPIs(t *testing.T) {
	script, err := Parse(strings.NewReader(`{"raw": "<think>\nThere is much to think about before anybody looks.\n</think>\n\nI look.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"s\": \"é\", \"i\": 5.0}}\n</tool_call>"}`))
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(generateConfig(t), script, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &apis{Generator: g}
	a.Handler = server.New(server.Options{Models: a, Protocols: []wire.Protocol{anthropic.Protocol{Thinking: chat.Off}, openai.Protocol{Thinking: chat.Off}},
		HostNames: []string{}, Health: func() server.Health { return server.Health{} }})
	const chatTurn = `, {"role": "assistant", "content": "I look.", "tool_calls": [{"id": "mine", "type": "function", "function": {"name": "f", "arguments": "{\"i\":5,\"s\":\"\\u00e9\"}"}}]},
		{"role": "tool", "tool_call_id": "mine", "content": "sunny"}`
	const messagesTurn = `, {"role": "assistant", "content": [{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "mine", "name": "f", "input": {"i": 5, "s": "é"}}]},
		{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "mine", "content": "sunny"}]}`
	bodies := map[string]string{
		"/v1/chat/completions": `{"model": "m", "stream": %t, "tools": [{"type": "function", "function": {"name": "f", "parameters": %s}}], "messages": [{"role": "user", "content": %q}%s]}`,
		"/v1/messages":         `{"model": "m", "max_tokens": 2000, "stream": %t, "tools": [{"name": "f", "input_schema": %s}], "messages": [{"role": "user", "content": %q}%s]}`,
	}
	turns := map[string]string{"/v1/chat/completions": chatTurn, "/v1/messages": messagesTurn}
	tokens := func(path, question, turn string, stream bool) (n int) {
		w := a.post(t, path, fmt.Sprintf(bodies[path], stream, parameters, question, turn))
		if stream {
			return 0
		}
		var u struct {
			Usage struct {
				Prompt int `json:"prompt_tokens"`
				Input  int `json:"input_tokens"`
				Read   int `json:"cache_read_input_tokens"`
				Added  int `json:"cache_creation_input_tokens"`
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &u); err != nil || strings.Contains(w.Body.String(), "much to think") {
			t.Fatalf("%s, %v", w.Body, err)
		}
		return u.Usage.Prompt + u.Usage.Input + u.Usage.Read + u.Usage.Added
	}
	for first := range turns {
		for then := range turns {
			for _, stream := range []bool{true, false} {
				question := fmt.Sprint("Rain? ", first, then, stream)
				before := tokens(then, question, turns[then], false)
				tokens(first, question, "", stream)
				if after := tokens(then, question, turns[then], false); after < before+10 {
					t.Errorf("%s, streamed %t, then %s: %d tokens, %d if it was not said here", first, stream, then, after, before)
				}
				if other := tokens(then, question+"?", turns[then], false); other > before+2 {
					t.Errorf("%s, streamed %t, then %s: another conversation has %d tokens, not %d", first, stream, then, other, before)
				}
			}
		}
	}
}

// TestReplayTurns measures what a turn of an agent computes whose client keeps no reasoning, in ten turns over each API.
// With -v it prints the figures of docs/cache.md.
func TestReplayTurns(t *testing.T) {
	const raw = `{"raw": "<think>\nThe user wants to know, so I look it up in turn {{.Turn}}; there may be more to say about that than one would think at first, and it takes a while.\n</think>\n\nI look.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"s\": \"Oslo\", \"i\": {{.Turn}}}}\n</tool_call>"}`
	computed := func(never, messages bool) (all []int) {
		script, err := Parse(strings.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		cfg := generateConfig(t)
		cfg.NoReplay = never
		g, err := New(cfg, script, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		a := &apis{Generator: g}
		a.Handler = server.New(server.Options{Models: a, Protocols: []wire.Protocol{anthropic.Protocol{}, openai.Protocol{}},
			HostNames: []string{}, Health: func() server.Health { return server.Health{} }})
		var said []any
		for turn := range 10 {
			tool, path := any(map[string]any{"type": "function", "function": map[string]any{"name": "f", "parameters": json.RawMessage(parameters)}}), "/v1/chat/completions"
			if messages {
				tool, path = map[string]any{"name": "f", "input_schema": json.RawMessage(parameters)}, "/v1/messages"
			}
			body, err := json.Marshal(map[string]any{"model": "m", "max_tokens": 2000, "tools": []any{tool}, "messages": append([]any{map[string]any{"role": "user", "content": "Weather?"}}, said...)})
			if err != nil {
				t.Fatal(err)
			}
			w := a.post(t, path, string(body))
			_, figure, _ := strings.Cut(w.Header().Get("X-Hearth-Cache"), "computed=")
			figure, _, _ = strings.Cut(figure, ";")
			n, err := strconv.Atoi(figure)
			if err != nil {
				t.Fatalf("%v: %s", err, w.Body)
			}
			all = append(all, n)
			id, args := fmt.Sprint("call", turn), map[string]any{"s": "Oslo", "i": turn + 1}
			if messages {
				said = append(said, map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "text", "text": "I look."}, map[string]any{"type": "tool_use", "id": id, "name": "f", "input": args}}},
					map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": id, "content": "sunny"}}})
				continue
			}
			spelled, _ := json.Marshal(args)
			said = append(said, map[string]any{"role": "assistant", "content": "I look.", "tool_calls": []any{map[string]any{"id": id, "type": "function", "function": map[string]any{"name": "f", "arguments": string(spelled)}}}},
				map[string]any{"role": "tool", "tool_call_id": id, "content": "sunny"})
		}
		return all
	}
	for _, messages := range []bool{false, true} {
		put, left := computed(false, messages), computed(true, messages)
		t.Logf("messages %t: %v, with nothing put back %v", messages, put, left)
		for i := 1; i < len(put); i++ {
			if put[i] > 20 || left[i] < 3*put[i] {
				t.Errorf("messages %t, turn %d: %d tokens, with nothing put back %d", messages, i, put[i], left[i])
			}
		}
	}
}
