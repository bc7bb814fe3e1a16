package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"hearth/internal/chat"
	"hearth/internal/console"
	"hearth/internal/demo"
	"hearth/internal/generate"
	"hearth/internal/script"
	"hearth/internal/server"
	"hearth/internal/wire"
	"hearth/internal/wire/anthropic"
	"hearth/internal/wire/openai"
)

// scripted answers to every name from a script.
type scripted struct{ *script.Generator }

func (s scripted) Open(context.Context, string) (chat.Generator, error) { return s.Generator, nil }
func (s scripted) List(context.Context) []chat.Model                    { return []chat.Model{s.Model()} }

// newScripted is a whole server over a script; look is shown every request's path and body.
func newScripted(t *testing.T, lines string, look func(path string, body []byte)) string {
	t.Helper()
	s, err := script.Parse(strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	text, err := generate.Load(demo.FS(), "")
	if err != nil {
		t.Fatal(err)
	}
	text.Info.ID = "scripted"
	g, err := script.New(text, s, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := server.New(server.Options{Models: scripted{g}, Protocols: []wire.Protocol{anthropic.Protocol{}, openai.Protocol{}},
		Health: func() server.Health { return server.Health{Status: "ok", Model: "scripted"} }})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if look != nil {
			look(r.URL.Path, body)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// quickTraffic is little of it.
func quickTraffic(url string) serveFlags {
	return serveFlags{url: url, api: "auto", agents: 2, turns: 3, system: 1 << 10, result: 1 << 9, answer: 50, tools: len(tools), seed: 1, version: "dev", commit: "unknown"}
}

// drive runs traffic against a server.
func (f *serveFlags) drive(ctx context.Context) (*serveResult, error) {
	return f.run(ctx, func(string) {}, console.NewBar(io.Discard))
}

// aScript calls a tool in the first turn of a conversation and thinks in the second.
const aScript = `{"turn": 1, "if_tool": "read_file", "raw": "Let me look.\n<tool_call>\n{\"name\": {{json .Tool}}, \"arguments\": {\"path\": \"a.go\"}}\n</tool_call>"}
{"turn": 2, "raw": "That is odd: they disagree about a name that one of them made up."}
{"raw": "Done: it is the other one."}
`

// TestServe drives a whole server over both APIs: every turn is answered and counted, calls get their results, and the same
// seed sends the same.
func TestServe(t *testing.T) {
	for _, a := range apis {
		t.Run(a.name, func(t *testing.T) {
			var called atomic.Int64
			url := newScripted(t, aScript, func(path string, body []byte) {
				if path != "/v1/models" && path != a.path && len(body) > 2 {
					t.Errorf("a request to %s", path)
				}
				if bytes.Contains(body, []byte(`"tool_use_id":`)) || bytes.Contains(body, []byte(`"role":"tool"`)) {
					called.Add(1)
				}
			})
			f := quickTraffic(url)
			f.api = a.name
			r, err := f.drive(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if r.All.Requests != 6 || r.Errors+r.Refused+r.Cut != 0 || r.Ended != "" || len(r.PerTurn) != 3 || r.API != a.title || r.Model != "scripted" {
				t.Fatalf("%+v", r)
			}
			if called.Load() != 4 { // the second turn of both agents, and the third, which sends it again
				t.Errorf("%d requests with results of tools", called.Load())
			}
			for i, turn := range r.PerTurn {
				if turn.Requests != 2 || turn.Prompt <= 0 || turn.Output < 10 || turn.First == nil || turn.First.P50 <= 0 || turn.TPS == nil || turn.Between == nil || turn.Cached == nil {
					t.Errorf("turn %d: %+v", i+1, turn)
				}
				if i > 0 && (turn.share() < 50 || turn.Prompt <= r.PerTurn[i-1].Prompt) {
					t.Errorf("turn %d: %d prompt tokens, %.0f %% cached", i+1, turn.Prompt, turn.share())
				}
			}
			again, err := f.drive(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if again.All.Prompt != r.All.Prompt || again.All.Output != r.All.Output {
				t.Errorf("the same seed: %+v and %+v", r.All, again.All)
			}
			f.seed = 2
			if other, err := f.drive(t.Context()); err != nil || other.All.Prompt == r.All.Prompt {
				t.Errorf("another seed: %+v, %v", other, err)
			}
		})
	}
}

// TestServeCmd: what the command prints can be read again and drawn beside another server's.
func TestServeCmd(t *testing.T) {
	url := newScripted(t, aScript, nil)
	dir := t.TempDir()
	args := []string{"serve", url, "--agents", "1", "--turns", "2", "--system", "1KiB", "--result", "500", "--api-key", "secret"}
	out, progress := runBench(t, append(args, "--json")...)
	if !strings.Contains(progress, "speaks Chat Completions; 1 agent of 2 turns, model scripted") {
		t.Errorf("progress: %s", progress)
	}
	file := filepath.Join(dir, "earlier.json")
	if err := os.WriteFile(file, []byte(strings.Replace(out, `"name":"`, `"name":"<other> `, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	svg, page := drawn(t, append(args, "--beside", file, "--name", "this one")...)
	for _, want := range []string{"Time to the first token", "Time between tokens", "Prompt tokens that were cached", "this one", "&lt;other&gt;"} {
		if !strings.Contains(svg, want) || !strings.Contains(page, want) {
			t.Errorf("no %q in %s", want, svg)
		}
	}
	if strings.Contains(page, "secret") || !strings.Contains(page, "--api-key …") {
		t.Error("the page has the key")
	}
	text, _ := runBench(t, append(args, "--beside", file)...)
	if !strings.Contains(text, "traffic 1 agent at once, 2 turns each") || !strings.Contains(text, "2 requests in") || !strings.Contains(text, "<other>") {
		t.Errorf("printed: %s", text)
	}
	one, _ := drawn(t, args...)
	if !strings.Contains(one, "90th percentile") || !strings.Contains(one, ">of them cached<") {
		t.Errorf("one server: %s", one)
	}
}

// chatStream is a reply of Chat Completions in events.
func chatStream(events ...string) string {
	return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n"
}

const (
	someText = `{"choices":[{"delta":{"content":"Well"}}]}`
	theEnd   = `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1}}`
)

// faulty is a server that knows one route, whose n-th request with messages gets what answer writes.
func faulty(t *testing.T, answer func(w http.ResponseWriter, n int)) string {
	t.Helper()
	var n atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		switch {
		case err != nil:
		case r.URL.Path == "/v1/models":
			fmt.Fprint(w, `{"data":[{"id":"first"},{"id":"second"}]}`)
		case r.URL.Path != apis[0].path:
			http.NotFound(w, r)
		case !bytes.Contains(body, []byte("messages")):
			http.Error(w, `{"error":{"message":"messages are missing"}}`, http.StatusBadRequest)
		default:
			answer(w, int(n.Add(1)))
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestServeFaults: whatever a server does wrong is one error that says what, where and what to do.
func TestServeFaults(t *testing.T) {
	status := func(code int, text string) func(http.ResponseWriter, int) {
		return func(w http.ResponseWriter, _ int) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(code)
			fmt.Fprint(w, text)
		}
	}
	stream := func(text string) func(http.ResponseWriter, int) {
		return func(w http.ResponseWriter, _ int) { fmt.Fprint(w, text) }
	}
	for name, tt := range map[string]struct {
		answer    func(http.ResponseWriter, int)
		err, hint string
	}{
		"broken":         {status(500, `{"error":{"message":"out of luck","type":"api_error"}}`), "500 Internal Server Error: out of luck", ""},
		"no words":       {status(500, ""), "500 Internal Server Error: nothing else was said", ""},
		"plain words":    {status(502, "bad \x1b[31mgateway"), `502 Bad Gateway: bad`, ""},
		"error is text":  {status(400, `{"error":"not like this"}`), "not like this", ""},
		"key":            {status(401, `{"error":{"message":"who are you?"}}`), "who are you?", "--api-key"},
		"model":          {status(404, `{"error":{"message":"no such model"}}`), "no such model", "it has first, second: --model NAME"},
		"context":        {status(400, `{"error":{"message":"the prompt is longer than the context"}}`), "longer than the context", "--turns"},
		"always busy":    {status(429, `{"error":{"message":"slow down"}}`), "429 Too Many Requests: slow down", "6 times"},
		"moved":          {status(307, ""), "307 Temporary Redirect", ""},
		"garbage":        {stream("data: {{{\n\n"), "is no chat completion", ""},
		"a web page":     {stream("<!doctype html><p>Hello\n\n"), "cut after 0 events", ""},
		"cut":            {stream(chatStream(someText, someText)), "cut after 2 events", ""},
		"error in it":    {stream(chatStream(someText, `{"error":{"message":"lost it","type":"server_error"}}`)), "server_error: lost it", ""},
		"endless":        {stream("data: " + strings.Repeat("x", mostEvent+1)), "more than 1 MiB", ""},
		"nothing at all": {func(http.ResponseWriter, int) { panic(http.ErrAbortHandler) }, "does not answer", "is a server running there?"},
	} {
		t.Run(name, func(t *testing.T) {
			f := quickTraffic(faulty(t, tt.answer))
			_, err := f.drive(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "\x1b") {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			var h interface{ Hint() string }
			if got := errors.As(err, &h); got != (tt.hint != "") || got && !strings.Contains(h.Hint(), tt.hint) {
				t.Errorf("hint of %v: want %q", err, tt.hint)
			}
		})
	}
}

// TestServeGoesOn: a server that is too busy is asked again, and one turn that fails does not end the others.
func TestServeGoesOn(t *testing.T) {
	url := faulty(t, func(w http.ResponseWriter, n int) {
		switch {
		case n%3 == 1 && n < 9:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
		case n == 12:
			w.WriteHeader(http.StatusInternalServerError)
		default:
			fmt.Fprint(w, chatStream(someText, theEnd, "[DONE]"))
		}
	})
	f := quickTraffic(url)
	f.agents, f.turns = 3, 4 // eight turns are answered before the one that fails, whoever has it
	r, err := f.drive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Refused != 3 || r.Errors != 1 || len(r.Problems) != 1 || r.Problems[0].Count != 1 || r.All.Requests < 8 || r.All.Cached != nil || r.All.Output != int64(r.All.Requests) {
		t.Errorf("%+v", r)
	}
	var out bytes.Buffer
	if err := r.print(&out); err != nil || !strings.Contains(out.String(), "1 time: POST") || !strings.Contains(out.String(), "3 tried again") {
		t.Errorf("%v: %s", err, out.String())
	}
}

// TestServeEnds: at its end, by hand or by the clock, there is what was measured until then.
func TestServeEnds(t *testing.T) {
	for _, by := range []string{"by hand", "by --seconds"} {
		t.Run(by, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			silent := make(chan struct{})
			url := faulty(t, func(w http.ResponseWriter, n int) {
				if n <= 2 {
					fmt.Fprint(w, chatStream(someText, theEnd))
					return
				}
				if by == "by hand" {
					stop()
				}
				<-silent
			})
			defer close(silent)
			f := quickTraffic(url)
			f.agents = 1
			if by == "by --seconds" {
				f.seconds = 1
			}
			r, err := f.drive(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if r.Ended != by || r.All.Requests != 2 || r.Cut != 1 || r.Errors != 0 {
				t.Errorf("%+v", r)
			}
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	f := quickTraffic("http://127.0.0.1:1")
	if _, err := f.drive(ctx); err == nil {
		t.Error("nothing was measured, and nothing said")
	}
}

// TestGathered: a server cannot make a result grow without end.
func TestGathered(t *testing.T) {
	var g gathered
	for i := range 3 * mostProblems {
		g.add(turn{err: fmt.Errorf("problem %d", i)}, false)
	}
	g.add(turn{err: errors.New("problem 0")}, false)
	if len(g.texts) != mostProblems || g.errors != 3*mostProblems+1 || g.texts[0].Count != 2 {
		t.Errorf("%d errors: %+v", g.errors, g.texts)
	}
	var r reply
	if r.call(mostCalls) != nil || r.call(-1) != nil || r.call(mostCalls-1) == nil || len(r.calls) != mostCalls {
		t.Errorf("%d calls", len(r.calls))
	}
}

// TestServeNowhere: addresses without such a server, and flags that cannot be.
func TestServeNowhere(t *testing.T) {
	nobody := httptest.NewServer(http.NotFoundHandler())
	defer nobody.Close()
	dir := t.TempDir()
	odd := filepath.Join(dir, "odd.json")
	if err := os.WriteFile(odd, []byte(`{"a": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(dir, "large.json")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, mostBeside+1); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{nobody.URL, "--agents", "1025"}, "--agents"}, {[]string{nobody.URL, "--turns", "10001"}, "--turns"}, {[]string{nobody.URL, "--result", "5MiB"}, "--result"},
		{[]string{nobody.URL, "--beside", large}, "large.json"},
		{[]string{}, "which server?"},
		{[]string{"ftp://a"}, "is no address"}, {[]string{"http://"}, "is no address"}, {[]string{"http://user:word@a/"}, "is no address"},
		{[]string{"127.0.0.1:1"}, "http://127.0.0.1:1 does not answer"},
		{[]string{nobody.URL}, "speaks neither API"}, {[]string{nobody.URL, "--api", "anthropic"}, "does not speak the API anthropic"},
		{[]string{nobody.URL, "--api", "grpc"}, "unknown API"}, {[]string{nobody.URL, "--agents", "0"}, "--agents"}, {[]string{nobody.URL, "--turns", "0"}, "--turns"},
		{[]string{nobody.URL, "--seconds", "-1"}, "--seconds"}, {[]string{nobody.URL, "--answer", "0"}, "--answer"}, {[]string{nobody.URL, "--tools", "99"}, "--tools"},
		{[]string{nobody.URL, "--system", "1GB"}, "--system"}, {[]string{nobody.URL, "--beside", odd}, "it is no result"},
		{[]string{nobody.URL, "--beside", filepath.Join(dir, "none")}, "--beside"}, {[]string{nobody.URL, "--svg", dir}, "--svg"},
		{[]string{nobody.URL, "--beside", "1,2,3,4,5,6,7,8"}, "7 files at most"},
	} {
		cmd := NewCmd("dev", "unknown")
		cmd.SetArgs(append([]string{"serve"}, tt.args...))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt.args, err, tt.want)
		}
	}
}

// TestAddresses: an address is taken with and without scheme, /v1 and route.
func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080", "http://a:1/": "http://a:1", "https://a/v1": "https://a", "https://a/v1/chat/completions": "https://a",
		"http://a/v1/messages": "http://a", "http://a/under/v1/": "http://a/under",
	} {
		if c, err := newClient(address, "", 1); err != nil || c.base != want {
			t.Errorf("%s: %+v, %v, want %s", address, c, err, want)
		}
	}
}

// dataOf is the data of all events of a stream.
func dataOf(r io.Reader) (all []string, err error) {
	e := newEvents(r)
	for {
		data, err := e.next()
		if err != nil {
			return all, err
		}
		all = append(all, string(data))
	}
}

// TestEvents: lines end in all three ways, data of several lines is one, and what is no data is nothing.
func TestEvents(t *testing.T) {
	for in, want := range map[string]string{
		"data: a\n\ndata: b\n\n":                              "a|b",
		"data:a\r\n\r\ndata: b\r\r":                           "a|b",
		"\xef\xbb\xbfdata: a\n\n":                             "a",
		"event: x\nid: 1\n\n: comment\n\ndata: a\nretry: 5\n": "a",
		"data: a\ndata\ndata:  b\n\n":                         "a\n\n b",
		"data: a\ndatabase: b\n\n\n\n\ndata: c":               "a|c",
		"":                                                    "", "\n\n\n": "", "data": "", "data:\n\ndata: x\n\n": "|x",
	} {
		all, err := dataOf(strings.NewReader(in))
		if got := strings.Join(all, "|"); got != want || !errors.Is(err, io.EOF) {
			t.Errorf("%q: %q, %v, want %q", in, got, err, want)
		}
	}
}

// FuzzReply: whatever a server sends is a reply or an error, and where it is cut into pieces makes no difference.
func FuzzReply(f *testing.F) {
	f.Add(false, []byte(chatStream(someText, `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}`, theEnd, "[DONE]")))
	f.Add(false, []byte(chatStream(`{"choices":[{"delta":{"tool_calls":[{"index":-1},{"index":9999999,"function":{"arguments":"x"}}]}}]}`, `{"error":{"message":"m"}}`)))
	f.Add(true, []byte(`event: message_start
data: {"type":"message_start","message":{"usage":{"input_tokens":3,"cache_read_input_tokens":5,"output_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f"}}

data: {"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{\"a\": 1}"}}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}

data: {"type":"message_stop"}

`))
	f.Add(true, []byte("data: {\"type\":\"error\"}\r\n\r\n"))
	f.Fuzz(func(t *testing.T, messages bool, data []byte) {
		a := apis[0]
		if messages {
			a = apis[1]
		}
		read := func(in io.Reader) (*reply, string) {
			r, at := &reply{}, time.Duration(0)
			err := r.read(a, in, func() time.Duration { at += time.Millisecond; return at })
			return r, fmt.Sprint(err)
		}
		r, err := read(bytes.NewReader(data))
		pieces, err2 := read(iotest.OneByteReader(bytes.NewReader(data)))
		if fmt.Sprintf("%+v", *r) != fmt.Sprintf("%+v", *pieces) || err != err2 {
			t.Fatalf("%+v, %s in one piece and %+v, %s in many", *r, err, *pieces, err2)
		}
		if len(r.gaps) != max(r.grown-1, 0) || r.rate() < 0 {
			t.Fatalf("%+v", *r)
		}
		w, fail := newWriter(1, 1)
		if fail != nil {
			t.Fatal(fail)
		}
		c := &conversation{w: w, result: 10}
		c.begin()
		c.goOn(r)
		for _, a := range apis {
			body, err := json.Marshal(a.body(c, "m", 1))
			if err != nil || !json.Valid(body) {
				t.Fatalf("the next request: %v: %s", err, body)
			}
		}
	})
}

// FuzzResult: what is read as an earlier result can be listed and drawn.
func FuzzResult(f *testing.F) {
	f.Add([]byte(`{"name":"a","url":"http://a","agents":1,"turns":2,"all":{"requests":1},"per_turn":[{"turn":1,"requests":0,"prompt_tokens":5,"cached_tokens":1},{"turn":2,"first_token_ms":{"p50":-1,"p99":1e300}}]}`))
	f.Add([]byte(`{"name":"\u0000<b>","per_turn":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := readResult(data)
		if err != nil {
			return
		}
		for _, of := range []*serveResult{r, {Name: "b", beside: []*serveResult{r}}} {
			if err := of.print(io.Discard); err != nil {
				t.Fatal(err)
			}
			p := of.page("command")
			if svg := p.SVG(); bytes.Contains(svg, []byte("NaN")) || bytes.Contains(svg, []byte("Inf")) && !bytes.Contains(data, []byte("Inf")) {
				t.Fatalf("%s", svg)
			}
			p.HTML()
		}
	})
}
