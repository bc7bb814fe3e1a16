package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// asServer makes the test's own program a server: what it has to be.
const asServer = "HEARTH_TEST_MCP_SERVER"

func TestMain(m *testing.M) {
	switch os.Getenv(asServer) {
	case "":
		goleak.VerifyTestMain(m)
	case "broken":
		fmt.Fprintln(os.Stderr, "no such database")
		os.Exit(3)
	default:
		if err := testServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			os.Exit(1)
		}
	}
}

// testServer is a server with tools of each kind.
func testServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	add := func(name string, f func(ctx context.Context, args map[string]any) (*sdk.CallToolResult, error)) {
		s.AddTool(&sdk.Tool{Name: name, Description: "the tool " + name, InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)},
			func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				var args map[string]any
				if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
					return nil, err
				}
				return f(ctx, args)
			})
	}
	text := func(s string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
	}
	add("echo", func(_ context.Context, args map[string]any) (*sdk.CallToolResult, error) {
		return text(fmt.Sprint("echo: ", args["text"])), nil
	})
	add("env", func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return text(strings.Join(os.Environ(), "\n")), nil
	})
	add("fail", func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		r := text("it went wrong")
		r.IsError = true
		return r, nil
	})
	add("refuse", func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return nil, errors.New("no such thing")
	})
	add("hang", func(ctx context.Context, _ map[string]any) (*sdk.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	add("long", func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return text(strings.Repeat("é", 1000)), nil
	})
	add("media", func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.ImageContent{MIMEType: "image/png", Data: []byte("abc")}, &sdk.TextContent{Text: "seen"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "a:b", Text: "held"}}, &sdk.ResourceLink{Name: "n", URI: "file:///etc/passwd"}}}, nil
	})
	add("huge", func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return text(strings.Repeat("x", maxMessage)), nil
	})
	add("die", func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		os.Exit(7)
		return nil, nil
	})
	add("more", func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		add("new", func(context.Context, map[string]any) (*sdk.CallToolResult, error) { return text("new"), nil })
		return text("there is another"), nil
	})
	return s
}

// program is the test's own program as a server.
func program(name string, allow ...string) Server {
	return Server{Name: name, Command: os.Args[0], Env: map[string]string{asServer: "good"}, Timeout: 20 * time.Second, Allow: allow}
}

// log keeps what a Host says.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *log) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// host starts servers and waits until each was tried.
func host(t *testing.T, servers ...Server) (*Host, *log) {
	t.Helper()
	l := &log{}
	h := Start(&Config{Servers: servers, Rounds: defaultRounds, Calls: defaultCalls, Time: defaultTime, ResultBytes: 1000}, Options{Lookup: os.LookupEnv, Log: l.add})
	t.Cleanup(h.Close)
	for _, s := range h.servers {
		select {
		case <-s.tried:
		case <-time.After(time.Minute):
			t.Fatal(s.Name + " was not tried")
		}
	}
	return h, l
}

// eventually waits until what is true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); {
		if time.Now().After(end) {
			t.Fatal("not " + what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func call(t *testing.T, h *Host, name, args string) (*Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return h.Call(ctx, name, json.RawMessage(args))
}

// servers are the same server in both ways of reaching it.
func servers(t *testing.T, allow ...string) map[string]Server {
	t.Helper()
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		if r.Header.Get("Authorization") != "Bearer s3cret" {
			return nil
		}
		return testServer()
	}, nil))
	t.Cleanup(web.Close)
	return map[string]Server{
		"stdio": program("a.b", allow...),
		"http":  {Name: "a.b", URL: web.URL, Headers: map[string]string{"Authorization": "Bearer s3cret"}, Timeout: 20 * time.Second, Allow: allow},
	}
}

// TestCalls: what comes of calls, over both transports.
func TestCalls(t *testing.T) {
	for transport, s := range servers(t, "echo", "fail", "refuse", "long", "media") {
		t.Run(transport, func(t *testing.T) {
			h, l := host(t, s)
			tools := h.Tools()
			if len(tools) != 10 || !strings.Contains(l.text(), "MCP server a.b: connected, 10 tools, 5 allowed: echo, fail, long, media, refuse") {
				t.Fatalf("%d tools, log %s", len(tools), l.text())
			}
			i := slices.IndexFunc(tools, func(t *Tool) bool { return t.Own == "echo" })
			if tool := tools[i]; tool.Name != "a_b__echo" || tool.Server != "a.b" || tool.Description != "the tool echo" || !strings.Contains(string(tool.Parameters), `"text":{"type":"string"}`) {
				t.Errorf("%+v", tool)
			}
			if st := h.Servers()[0]; st.State != Connected || st.Transport != transport || st.Tools != 10 || st.Allowed != 5 || st.Error != nil {
				t.Errorf("%+v", st)
			}
			for name, want := range map[string]Result{
				"a_b__echo":   {"echo: hello", false},
				"a_b__fail":   {"it went wrong", true},
				"a_b__refuse": {`calling "tools/call": no such thing`, true},
				"a_b__long":   {strings.Repeat("é", 500) + "\n[cut: 1000 of 2000 bytes]", false},
				"a_b__media":  {"[an image of type image/png, 3 bytes, which is not passed on]\nseen\nheld\n[the resource n at file:///etc/passwd, which is not fetched]", false},
			} {
				if r, err := call(t, h, name, `{"text":"hello"}`); err != nil || *r != want {
					t.Errorf("%s: %+v, %v, want %+v", name, r, err, want)
				}
			}
			var e *chat.Error
			if _, err := call(t, h, "a_b__env", `{}`); !errors.As(err, &e) || e.Kind != chat.Forbidden || !strings.Contains(e.Msg, "mcpServers.a.b.allow") {
				t.Errorf("a tool that is not allowed: %v", err)
			}
			if _, err := call(t, h, "a_b__other", `{}`); !errors.As(err, &e) || e.Kind != chat.NotFound {
				t.Errorf("a tool that is not there: %v", err)
			}
		})
	}
}

// TestEnvironment: a server's process has no variable but a few, and those that the file gives it.
func TestEnvironment(t *testing.T) {
	t.Setenv("HEARTH_API_KEY", "s3cret")
	s := program("a", "*")
	s.Env["OWN"] = "mine"
	h, _ := host(t, s)
	h.cfg.ResultBytes = 1 << 20
	r, err := call(t, h, "a__env", "{}")
	if err != nil || strings.Contains(r.Text, "s3cret") || !strings.Contains(r.Text, "OWN=mine") || !strings.Contains(r.Text, "PATH=") {
		t.Errorf("%v, %v", r, err)
	}
}

// TestTimeout: a call that takes too long, and one whose caller leaves; the server goes on.
func TestTimeout(t *testing.T) {
	for transport, s := range servers(t, "echo", "hang") {
		t.Run(transport, func(t *testing.T) {
			s.Timeout = 300 * time.Millisecond
			h, _ := host(t, s)
			if r, err := call(t, h, "a_b__hang", "{}"); err != nil || !r.IsError || !strings.Contains(r.Text, "within 300ms (mcpServers.a.b.timeout)") {
				t.Errorf("%+v, %v", r, err)
			}
			ctx, leave := context.WithCancel(t.Context())
			leave()
			if _, err := h.Call(ctx, "a_b__hang", nil); !errors.Is(err, context.Canceled) {
				t.Errorf("the caller left: %v", err)
			}
			if r, err := call(t, h, "a_b__echo", `{"text":"x"}`); err != nil || r.Text != "echo: x" {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// TestRestart: a server that dies comes back; the call that it died in is told, and so is one meanwhile.
func TestRestart(t *testing.T) {
	h, l := host(t, program("a", "*"))
	if r, err := call(t, h, "a__die", "{}"); err != nil || !r.IsError {
		t.Errorf("%+v, %v", r, err)
	}
	eventually(t, "noticed", func() bool { return strings.Contains(l.text(), "exit status 7; it is tried again") })
	eventually(t, "connected again", func() bool { st := h.Servers()[0]; return st.State == Connected && st.Restarts == 1 })
	if r, err := call(t, h, "a__echo", `{"text":"x"}`); err != nil || r.Text != "echo: x" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestBroken: servers that do not start are told of with the reason, and hinder no other.
func TestBroken(t *testing.T) {
	broken, missing := program("broken"), program("missing")
	broken.Env[asServer] = "broken"
	missing.Command = "/nonexistent/server"
	h, l := host(t, broken, missing, Server{Name: "away", URL: "http://127.0.0.1:1/mcp"}, program("good", "echo"))
	for _, want := range []string{"MCP server broken: ", "no such database; it is tried again", "MCP server missing: start /nonexistent/server (mcpServers.missing.command)", "MCP server away: ", "MCP server good: connected"} {
		if !strings.Contains(l.text(), want) {
			t.Errorf("no %q in %s", want, l.text())
		}
	}
	var e *chat.Error
	if _, err := call(t, h, "broken__x", "{}"); !errors.As(err, &e) || e.Kind != chat.Overloaded || !strings.Contains(e.Msg, "no such database") {
		t.Errorf("%v", err)
	}
	if r, err := call(t, h, "good__echo", `{"text":"x"}`); err != nil || r.Text != "echo: x" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestHugeMessage: a message beyond the bound is not read on; the server is there again afterwards.
func TestHugeMessage(t *testing.T) {
	for transport, s := range servers(t, "*") {
		t.Run(transport, func(t *testing.T) {
			h, _ := host(t, s)
			if r, err := call(t, h, "a_b__huge", "{}"); err != nil || !r.IsError || len(r.Text) > 4<<10 {
				t.Errorf("%.100v, %v", r, err)
			}
			eventually(t, "there again", func() bool {
				r, err := call(t, h, "a_b__echo", `{"text":"x"}`)
				return err == nil && r.Text == "echo: x"
			})
		})
	}
}

// TestRedirect: headers with secrets go to no other address than the file's.
func TestRedirect(t *testing.T) {
	var got atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	defer other.Close()
	web := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer web.Close()
	h, _ := host(t, Server{Name: "a", URL: web.URL, Headers: map[string]string{"Authorization": "Bearer s3cret"}, Timeout: time.Second})
	if st := h.Servers()[0]; st.State != Failed || got.Load() != 0 {
		t.Errorf("%+v, %d requests elsewhere", st, got.Load())
	}
}

// TestChanged: a server that says that its tools have changed is asked again.
func TestChanged(t *testing.T) {
	h, _ := host(t, program("a", "more", "new"))
	if r, err := call(t, h, "a__more", "{}"); err != nil || r.IsError {
		t.Fatalf("%+v, %v", r, err)
	}
	eventually(t, "known", func() bool { return len(h.Tools()) == 11 })
	if r, err := call(t, h, "a__new", "{}"); err != nil || r.Text != "new" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestAtOnce: as many calls of a server as may run, and one more.
func TestAtOnce(t *testing.T) {
	h, _ := host(t, program("a", "*"))
	ctx, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range mostAtOnce {
		all.Go(func() { _, _ = h.Call(ctx, "a__hang", nil) })
	}
	eventually(t, "all running", func() bool { return len(h.servers[0].slots) == mostAtOnce })
	var e *chat.Error
	if _, err := call(t, h, "a__echo", "{}"); !errors.As(err, &e) || e.Bound != chat.BoundMCP || e.RetryAfter == 0 {
		t.Errorf("%v", err)
	}
	leave()
	all.Wait()
	if r, err := call(t, h, "a__echo", `{"text":"x"}`); err != nil || r.Text != "echo: x" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestReload: servers that the file has as before go on with what runs there, others end or start, one that has changed ends
// first, and what is wrong is told of. Whoever waits for a server that is no more is told so.
func TestReload(t *testing.T) {
	same, gone, other := program("same", "*"), program("gone", "*"), program("other", "echo")
	h, l := host(t, same, gone, other)
	before := h.servers
	running := make(chan error, 1)
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		_, err := h.Call(ctx, "same__hang", nil)
		running <- err
	}()
	eventually(t, "running", func() bool { return len(before[0].slots) == 1 })
	cut := make(chan *Result, 1)
	go func() {
		r, err := h.Call(t.Context(), "gone__hang", nil)
		if err != nil {
			t.Error(err)
		}
		cut <- r
	}()
	eventually(t, "running", func() bool { return len(before[1].slots) == 1 })

	changed := program("other", "echo", "env")
	next := *h.cfg
	next.Servers = []Server{program("new", "echo"), changed, program("same", "*")}
	next.Faults = []Fault{{"broken", "args", errors.New("must be a list of texts")}}
	next.ResultBytes = 300
	h.Reload(&next)
	eventually(t, "connected", func() bool {
		for _, st := range h.Servers()[:3] {
			if st.State != Connected {
				return false
			}
		}
		return true
	})
	if r := <-cut; !r.IsError || !strings.Contains(r.Text, "names it no more") {
		t.Errorf("a call of a server that ended: %+v", r)
	}
	for _, s := range before[1:] {
		<-s.ended
	}
	if h.servers[2] != before[0] || len(running) != 0 {
		t.Error("the server that is the same was not left alone")
	}
	leave()
	if err := <-running; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if st := h.Servers(); len(st) != 4 || st[2].Restarts != 0 || st[3].Error == nil || !strings.Contains(*st[3].Error, "mcpServers.broken.args: must be a list of texts") {
		t.Errorf("%+v", st)
	}
	for _, name := range []string{"new__echo", "other__echo", "other__env", "same__long"} {
		if r, err := call(t, h, name, `{"text":"x"}`); err != nil || r.IsError || len(r.Text) > 350 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	var e *chat.Error
	if _, err := call(t, h, "gone__echo", "{}"); !errors.As(err, &e) || e.Kind != chat.NotFound {
		t.Errorf("a tool of a server that is gone: %v", err)
	}
	for _, want := range []string{"MCP server gone: is ended; the file names it no more", "MCP server other: is started again, the file has it otherwise"} {
		if !strings.Contains(l.text(), want) {
			t.Errorf("no %q in %s", want, l.text())
		}
	}
	// A server that never was tried is waited for no longer when it is gone.
	late := Server{Name: "late", URL: "http://" + silent(t) + "/mcp", Timeout: time.Second}
	next.Servers = append(next.Servers, late)
	h.Reload(&Config{Servers: slices.Clone(next.Servers)})
	waited := make(chan error, 1)
	go func() {
		_, err := h.choose(t.Context(), []string{"late"})
		waited <- err
	}()
	h.Reload(&Config{Servers: next.Servers[:3]})
	if err := <-waited; err == nil {
		t.Error("a server that is gone was chosen")
	}
}

// silent is an address where somebody listens and says nothing.
func silent(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// TestTimed: while a tool runs its request has that tool's time limit, and no other.
func TestTimed(t *testing.T) {
	h, _ := host(t, program("a", "*"))
	info := &wire.Info{}
	ctx, leave := context.WithCancel(wire.WithInfo(t.Context(), info))
	done := make(chan error, 1)
	go func() {
		_, err := h.Call(ctx, "a__hang", nil)
		done <- err
	}()
	eventually(t, "timed", info.Timed)
	leave()
	if err := <-done; !errors.Is(err, context.Canceled) || info.Timed() {
		t.Errorf("%v, timed %t", err, info.Timed())
	}
}
