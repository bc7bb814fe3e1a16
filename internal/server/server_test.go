package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hearth/internal/access"
	"hearth/internal/chat"
	"hearth/internal/wire"
	"hearth/internal/wire/anthropic"
	"hearth/internal/wire/openai"
	"hearth/internal/wire/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func options() Options {
	return Options{
		Models:    wiretest.New(wiretest.Hello(1)...),
		Protocols: []wire.Protocol{anthropic.Protocol{}, openai.Protocol{}},
		HostNames: []string{"Box.example.org"},
		Version:   "1.2.3", Commit: "abc",
		Health: func() Health {
			return Health{Status: "ok", Model: "test-model", Context: 4096, Thinking: Thinking{true, true},
				PromptCache: PromptCache{Enabled: true, Entries: 2, Bytes: 10, CapBytes: 20, TTL: 30}}
		},
	}
}

// plain are keys as flags have them.
func plain(keys ...string) (all []access.Key) {
	for _, k := range keys {
		all = append(all, access.PlainKey(k))
	}
	return all
}

// do sends method path to s with headers "Name: value" and, for POST, body.
func do(s http.Handler, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "localhost:8080"
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

const (
	messages = `{"max_tokens":5,"messages":[{"role":"user","content":"Hi"}]}`
	anthro   = `{"type":"error","error":{"type":"`
	open     = `{"error":{"message":"`
)

func TestRoutes(t *testing.T) {
	s := New(options())
	for _, tc := range []struct {
		method, path, body string
		headers            []string
		status             int
		prefix             string
	}{
		{"GET", "/", "", nil, 200, "hearth is running"},
		{"HEAD", "/", "", nil, 200, ""},
		{"GET", "/health", "", nil, 200, `{"status":"ok","model":"test-model","context":4096,"thinking":{"enabled":true,"exposed":true},"prompt_cache":{"enabled":true,"entries":2,"bytes":10,"cap_bytes":20,"ttl_ms":30},"version":"1.2.3","commit":"abc"}` + "\n"},
		{"POST", "/v1/messages", messages, nil, 200, `{"id":"msg_`},
		{"POST", "/messages?beta=true", messages, nil, 200, `{"id":"msg_`},
		{"POST", "/v1/v1/messages", messages, nil, 200, `{"id":"msg_`},
		{"POST", "//v1//messages/", messages, nil, 200, `{"id":"msg_`},
		{"POST", "/v1/chat/completions", messages, nil, 200, `{"id":"chatcmpl-`},
		{"POST", "/chat/completions", messages, nil, 200, `{"id":"chatcmpl-`},
		{"GET", "/v1/models", "", nil, 200, `{"object":"list","data":[{"id":"test-model","type":"model"`},
		{"GET", "/v1/models/test-model", "", nil, 200, `{"id":"test-model","type":"model"`},
		{"GET", "/v1/models/nope", "", nil, 404, open + "model: there is no model"},
		{"GET", "/v1/models/nope", "", []string{"Anthropic-Version: 2026-10-21"}, 404, anthro + "not_found_error"},
		{"POST", "/v1/messages", `{"model":"nope","messages":[{"role":"user","content":"Hi"}]}`, nil, 404, anthro + "not_found_error"},
		{"POST", "/v1/chat/completions", `{"model":"nope","messages":[{"role":"user","content":"Hi"}]}`, nil, 404, open + "model: there is no model"},
		{"POST", "/v1/messages", "", []string{"Content-Type: text/plain"}, 415, anthro + "invalid_request_error"},
		{"POST", "/v1/messages", "{", nil, 400, anthro + "invalid_request_error"},
		{"POST", "/v1/chat/completions", "{", nil, 400, open + "the request body is not valid JSON"},
		{"GET", "/v1/messages", "", nil, 405, anthro + "invalid_request_error"},
		{"DELETE", "/v1/chat/completions", "", nil, 405, open + "method DELETE is not allowed"},
		{"POST", "/v1/models", "{}", nil, 405, open + "method POST is not allowed"},
		{strings.Repeat("X", 200), "/v1/models", "{}", nil, 405, open + "method " + strings.Repeat("X", 200) + " is not allowed"},
		{strings.Repeat("X", 201), "/v1/models", "{}", nil, 405, open + "method " + strings.Repeat("X", 200) + "… is not allowed"},
		{"OPTIONS", "/v1/messages", "", nil, 204, ""},
		{"POST", "/v1/audio/speech", "{}", nil, 404, open + "there is nothing at POST /v1/audio/speech"},
		{"POST", "/v1/audio/speech", "{}", []string{"Anthropic-Version: 2023-06-01"}, 404, anthro + "not_found_error"},
		{"POST", "/v1/messages/batches", "{}", nil, 404, anthro + "not_found_error"},
	} {
		w := do(s, tc.method, tc.path, tc.body, tc.headers...)
		if w.Code != tc.status || !strings.HasPrefix(w.Body.String(), tc.prefix) {
			t.Errorf("%s %s = %d %s\nwant %d %s", tc.method, tc.path, w.Code, w.Body, tc.status, tc.prefix)
		}
		if id := w.Header().Get("Request-Id"); !strings.HasPrefix(id, "req_") || id != w.Header().Get("X-Request-Id") {
			t.Errorf("%s %s: request id %q", tc.method, tc.path, id)
		}
	}
}

func TestKeys(t *testing.T) {
	o := options()
	o.Keys = plain("secret", "second")
	s := New(o)
	for _, tc := range []struct {
		path   string
		header string
		status int
	}{
		{"/v1/models", "X-None: x", 401},
		{"/v1/models", "Authorization: Bearer secret", 200},
		{"/v1/models", "Authorization: bearer second", 200},
		{"/v1/models", "X-Api-Key: secret", 200},
		{"/v1/models", "Api-Key: second", 200},
		{"/v1/models", "Authorization: Bearer wrong", 401},
		{"/v1/models", "Authorization: Basic secret", 401},
		{"/v1/models", "X-Api-Key: secre", 401},
		{"/v1/models", "X-Api-Key: secrets", 401},
		{"/nothing", "X-None: x", 401},
		{"/health", "X-None: x", 200},
		{"/", "X-None: x", 200},
	} {
		if w := do(s, "GET", tc.path, "", tc.header); w.Code != tc.status {
			t.Errorf("GET %s with %s = %d, want %d", tc.path, tc.header, w.Code, tc.status)
		}
	}
	if w := do(s, "POST", "/v1/messages", messages); !strings.HasPrefix(w.Body.String(), anthro+"authentication_error") {
		t.Errorf("Anthropic 401 = %s", w.Body)
	}
	if w := do(s, "POST", "/v1/chat/completions", messages, "Authorization: Bearer x"); !strings.HasPrefix(w.Body.String(), open+"Incorrect API key provided") {
		t.Errorf("OpenAI 401 = %s", w.Body)
	}
	open := New(options())
	for _, h := range []string{"X-None: x", "Authorization: Bearer anything", "X-Api-Key: sk-1"} {
		if w := do(open, "GET", "/v1/models", "", h); w.Code != 200 {
			t.Errorf("no keys set, with %s: %d", h, w.Code)
		}
	}
}

func TestHosts(t *testing.T) {
	o := options()
	o.AllowedHosts = []string{"hearth.example.com", "*.lan:8080"}
	s := New(o)
	for host, want := range map[string]int{
		"localhost": 200, "localhost:8080": 200, "LOCALHOST.": 200, "127.0.0.1:1": 200, "127.9.9.9": 200, "[::1]:8080": 200, "[::1]": 200,
		"a.localhost:80": 200, "mac.local": 200, "host.docker.internal:8080": 200, "box.example.org": 200, "BOX": 200,
		"192.168.1.7:8080": 200, "10.0.0.1": 200, "172.16.0.9": 200, "[fd00::1]:80": 200, "[fe80::1%25eth0]": 200, "169.254.1.1": 200,
		"100.64.3.3": 200, "0.0.0.0:8080": 200, "": 200, "[::ffff:127.0.0.1]:80": 200,
		"hearth.example.com:9": 200, "nas.lan": 200,
		"evil.com": 403, "localhost.evil.com": 403, "evil.com:8080": 403, "notlocalhost": 403, "8.8.8.8": 403, "172.32.0.1": 403,
		"[2001:db8::1]:80": 403, "lan": 403, ".lan": 403, "evil.example.org": 403, "127.0.0.1.nip.io": 403, "local": 403, "x.hearth.example.com": 403,
	} {
		w := do(s, "GET", "/health", "", "Host: "+host)
		if w.Code != want {
			t.Errorf("Host %q = %d, want %d", host, w.Code, want)
		}
		if w.Code == 403 && !strings.Contains(w.Body.String(), "--allowed-hosts") {
			t.Errorf("Host %q: the 403 does not name the flag: %s", host, w.Body)
		}
	}
	o.AllowedHosts = []string{"*"}
	if w := do(New(o), "GET", "/health", "", "Host: evil.com"); w.Code != 200 {
		t.Errorf("--allowed-hosts *: %d", w.Code)
	}
}

// The machine's own addresses are its own, public ones too, and where others can reach it so are names without a dot. A name
// that anybody could point here stays out.
func TestOwnHosts(t *testing.T) {
	o := options()
	o.Addresses = func() []netip.Addr {
		return []netip.Addr{netip.MustParseAddr("203.0.113.5"), netip.MustParseAddr("2001:db8::5")}
	}
	for _, network := range []bool{false, true} {
		o.Network = network
		single := map[bool]int{false: 403, true: 200}[network]
		for host, want := range map[string]int{
			"203.0.113.5:8080": 200, "[2001:db8::5]:8080": 200, "[::ffff:203.0.113.5]": 200, "203.0.113.6": 403, "[2001:db8::6]": 403, "[2001:db8::5%25x]": 403,
			"nas": single, "nas:8080": single, "NAS.": single, "gpu_box-2": single,
			"evil.com": 403, "nas.evil.com": 403, "rebind.203.0.113.5.nip.io": 403, "2130706433": 403, "0x7f000001.evil.com": 403, "n\u00e4s": 403, "a b": 403,
		} {
			if w := do(New(o), "GET", "/v1/models", "", "Host: "+host); w.Code != want {
				t.Errorf("network %v, Host %q = %d, want %d", network, host, w.Code, want)
			}
		}
	}
}

// A page that a foreign name brought here has no key, so where one is required every Host passes; without it there is nothing
// to learn but that a server is there.
func TestHostsWithKey(t *testing.T) {
	o := options()
	o.Keys = plain("k")
	s := New(o)
	for _, host := range []string{"hearth.example.com", "8.8.8.8:80", "evil.com", "nas"} {
		for _, tc := range []struct {
			method, path, body, key string
			want                    int
		}{
			{"GET", "/v1/models", "", "k", 200}, {"GET", "/v1/models", "", "wrong", 401}, {"GET", "/v1/models", "", "", 401}, {"POST", "/v1/messages", messages, "k", 200},
			{"POST", "/v1/chat/completions", messages, "k", 200}, {"POST", "/v1/chat/completions", messages, "", 401},
		} {
			if w := do(s, tc.method, tc.path, tc.body, "Host: "+host, "X-Api-Key: "+tc.key); w.Code != tc.want {
				t.Errorf("Host %s, %s %s with key %q = %d, want %d", host, tc.method, tc.path, tc.key, w.Code, tc.want)
			}
		}
		if w := do(s, "GET", "/health", "", "Host: "+host); w.Code != 200 || w.Body.String() != `{"status":"ok"}`+"\n" {
			t.Errorf("Host %s, /health = %d %s", host, w.Code, w.Body)
		}
	}
}

// Clients retry what the header does not forbid: the SDKs by themselves, Claude Code for minutes without a word.
func TestShouldRetry(t *testing.T) {
	o := options()
	o.Keys = plain("k")
	o.MaxBody = 1 << 10
	s := New(o)
	for _, tc := range []struct {
		method, path, body, key string
		status                  int
	}{
		{"POST", "/v1/messages", messages, "k", 200},
		{"POST", "/v1/messages", "{", "k", 400},
		{"POST", "/v1/chat/completions", "{", "k", 400},
		{"POST", "/v1/completions", "{}", "k", 400},
		{"POST", "/v1/messages", messages, "wrong", 401},
		{"POST", "/v1/chat/completions", messages, "wrong", 401},
		{"POST", "/v1/messages", messages, "", 401},
		{"POST", "/v1/messages", `{"model":"nope","max_tokens":5,"messages":[{"role":"user","content":"Hi"}]}`, "k", 404},
		{"POST", "/openai/deployments/nope/chat/completions", messages, "k", 404},
		{"GET", "/nothing", "", "k", 404},
		{"POST", "/v1/messages", messages + strings.Repeat(" ", 2<<10), "k", 413},
	} {
		w := do(s, tc.method, tc.path, tc.body, "X-Api-Key: "+tc.key)
		want := map[bool]string{true: "false", false: ""}[tc.status >= 400]
		if got := w.Header().Get("X-Should-Retry"); w.Code != tc.status || got != want {
			t.Errorf("%s %s with key %q = %d, x-should-retry %q; want %d, %q", tc.method, tc.path, tc.key, w.Code, got, tc.status, want)
		}
	}
	if w := do(New(options()), "GET", "/v1/models", "", "Host: evil.com"); w.Code != 403 || w.Header().Get("X-Should-Retry") != "false" {
		t.Errorf("403: x-should-retry %q", w.Header().Get("X-Should-Retry"))
	}
	o = options()
	o.Protocols = []wire.Protocol{anthropic.Protocol{}, openai.Protocol{Unprocessable: true}}
	if w := do(New(o), "POST", "/v1/chat/completions", `{"messages":[]}`); w.Code != 422 || w.Header().Get("X-Should-Retry") != "false" {
		t.Errorf("%d: x-should-retry %q", w.Code, w.Header().Get("X-Should-Retry"))
	}
	for kind, status := range map[chat.ErrorKind]int{chat.RateLimited: 429, chat.Overloaded: 529, chat.Internal: 500} {
		o := options()
		m := wiretest.New()
		m.Script = func(*chat.Request) ([]wiretest.Step, error) { return nil, &chat.Error{Kind: kind, Msg: "no"} }
		o.Models = m
		if w := do(New(o), "POST", "/v1/messages", messages); w.Code != status || w.Header().Get("X-Should-Retry") != "" {
			t.Errorf("%d: x-should-retry %q", w.Code, w.Header().Get("X-Should-Retry"))
		}
	}
}

func TestOrigins(t *testing.T) {
	o := options()
	o.AllowedHosts = []string{"hearth.example.com"} // hosts are no origins
	o.AllowedOrigins = []string{"https://chat.example.com/", "vscode-webview://*", "https://*.corp.example"}
	s := New(o)
	for origin, want := range map[string]int{
		"http://localhost:3000": 200, "https://127.0.0.1": 200, "http://[::1]:5173": 200, "http://app.localhost": 200, "http://LOCALHOST.:1": 200,
		"http://127.9.9.9:80": 200, "http://[::ffff:127.0.0.1]": 200,
		"http://box:80": 403, "http://192.168.0.2": 403, "http://10.0.0.1:8080": 403, "http://mac.local": 403, "http://host.docker.internal": 403,
		"http://0.0.0.0:3000": 403, "http://[fd00::1]": 403, "http://[fe80::1%25eth0]": 403, "http://[::1%25x]": 403, "http://100.64.3.3": 403,
		"http://hearth.example.com": 403, "ftp://localhost": 403,
		"https://chat.example.com": 200, "https://CHAT.example.com": 200, "vscode-webview://abc": 200, "https://a.corp.example": 200,
		"https://evil.com": 403, "null": 403, "https://chat.example.com.evil.com": 403, "http://chat.example.com": 403, "file://": 403,
		"chrome-extension://localhost": 403, "https://localhost.evil.com": 403, "https://.corp.example": 403, "::": 403,
	} {
		w := do(s, "POST", "/v1/messages", messages, "Origin: "+origin)
		if w.Code != want {
			t.Errorf("Origin %q = %d, want %d", origin, w.Code, want)
		}
		allowed := w.Header().Get("Access-Control-Allow-Origin")
		if want == 200 && allowed != origin || want == 403 && allowed != "" {
			t.Errorf("Origin %q: allow-origin %q", origin, allowed)
		}
		if shown := w.Header().Get("Access-Control-Expose-Headers"); want == 200 && !strings.Contains(shown, "x-hearth-truncation, x-hearth-schema, server-timing, request-id") {
			t.Errorf("Origin %q: it may read %q", origin, shown)
		}
		if want == 403 && !strings.Contains(w.Body.String(), "--allowed-origins") {
			t.Errorf("Origin %q: the 403 does not name the flag: %s", origin, w.Body)
		}
	}
	o.AllowedOrigins = nil
	o.Keys = plain("k")
	w := do(New(o), "POST", "/v1/messages", messages, "Origin: https://elsewhere.com")
	if w.Code != 401 || w.Header().Get("Access-Control-Allow-Origin") != "https://elsewhere.com" {
		t.Errorf("a page elsewhere without the key: %d %v", w.Code, w.Header())
	}
	if w := do(New(o), "OPTIONS", "/v1/messages", "", "Origin: https://elsewhere.com", "Access-Control-Request-Method: POST"); w.Code != 204 {
		t.Errorf("a preflight where a key is needed: %d", w.Code)
	}
	o.Keys = nil
	o.AllowedOrigins = []string{"*"}
	if w := do(New(o), "GET", "/health", "", "Origin: null"); w.Code != 200 {
		t.Errorf("--allowed-origins *: %d", w.Code)
	}
}

// The preflight carries no credential and must pass before the key check.
func TestPreflight(t *testing.T) {
	o := options()
	o.Keys = plain("k")
	s := New(o)
	w := do(s, "OPTIONS", "/v1/messages", "", "Origin: http://localhost:3000", "Access-Control-Request-Method: POST",
		"Access-Control-Request-Headers: x-api-key, anthropic-version", "Access-Control-Request-Private-Network: true")
	h := w.Header()
	if w.Code != 204 || h.Get("Access-Control-Allow-Origin") != "http://localhost:3000" ||
		h.Get("Access-Control-Allow-Headers") != "x-api-key, anthropic-version" || h.Get("Access-Control-Allow-Private-Network") != "true" ||
		!strings.Contains(h.Get("Access-Control-Allow-Methods"), "POST") {
		t.Errorf("%d %v", w.Code, h)
	}
	for name, change := range map[string]func(*Options){
		"without a key":          func(o *Options) { o.Keys = nil },
		"with origins of choice": func(o *Options) { o.AllowedOrigins = []string{"https://chat.example.com"} },
	} {
		o := o
		change(&o)
		if w := do(New(o), "OPTIONS", "/v1/messages", "", "Origin: https://evil.com", "Access-Control-Request-Method: POST"); w.Code != 403 {
			t.Errorf("foreign preflight %s = %d", name, w.Code)
		}
	}
}

type panicking struct{ chat.Models }

func (panicking) List(context.Context) []chat.Model { panic("boom") }

func TestPanicAndLog(t *testing.T) {
	var logged bytes.Buffer
	o := options()
	o.Models = panicking{o.Models}
	o.Log = slog.New(slog.NewJSONHandler(&logged, nil))
	s := New(o)
	w := do(s, "GET", "/v1/models", "")
	if w.Code != 500 || !strings.HasPrefix(w.Body.String(), open+"internal error") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	line := logLine(t, &logged)
	if line["level"] != "ERROR" || line["status"] != 500.0 || !strings.Contains(fmt.Sprint(line["error"]), "boom") {
		t.Errorf("logged %v", line)
	}
	do(s, "POST", "/v1/messages", messages)
	line = logLine(t, &logged)
	for k, want := range map[string]any{"msg": "request", "method": "POST", "path": "/v1/messages", "status": 200.0, "prompt_tokens": 3.0, "output_tokens": 1.0} {
		if line[k] != want {
			t.Errorf("logged %s = %v, want %v", k, line[k], want)
		}
	}
	do(s, "POST", "/v1/messages", `{"model":"nope","messages":[{"role":"user","content":"Hi"}]}`)
	if line = logLine(t, &logged); line["model"] != "nope" || line["status"] != 404.0 || line["error"] == nil {
		t.Errorf("logged %v", line)
	}
}

func logLine(t *testing.T, b *bytes.Buffer) map[string]any {
	t.Helper()
	var line map[string]any
	if err := json.Unmarshal(b.Bytes(), &line); err != nil {
		t.Fatalf("log %q: %v", b, err)
	}
	b.Reset()
	return line
}

// serve runs s on a loopback port and returns its address and a function that shuts it down and reports Serve's error.
func serve(t *testing.T, o Options) (addr string, stop func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- New(o).Serve(ctx, l) }()
	return "http://" + l.Addr().String(), func() error { cancel(); return <-done }
}

// During the drain a running reply is finished; one that does not finish gets the protocol's error event.
func TestDrain(t *testing.T) {
	for _, tc := range []struct {
		name  string
		drain time.Duration
		want  string
	}{
		{"finishes", time.Minute, "event: message_stop"},
		{"is ended", time.Millisecond, `"type":"overloaded_error","message":"the server is shutting down"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			started, release := make(chan struct{}), make(chan struct{})
			steps := wiretest.Hello(1)
			steps[1].Before = func(ctx context.Context) {
				close(started)
				select {
				case <-release:
				case <-ctx.Done():
				}
			}
			o := options()
			o.Models, o.Drain = wiretest.New(steps...), tc.drain
			addr, stop := serve(t, o)
			reply := make(chan string)
			go func() { reply <- post(addr+"/v1/messages", strings.Replace(messages, "{", `{"stream":true,`, 1)) }()
			<-started
			stopped := make(chan error)
			go func() { stopped <- stop() }()
			if tc.drain > time.Second {
				close(release)
			}
			if got := <-reply; !strings.Contains(got, tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if err := <-stopped; err != nil {
				t.Error(err)
			}
		})
	}
}

// A client that leaves cancels its generation, streamed or not.
func TestDisconnectCancels(t *testing.T) {
	for _, stream := range []string{"", `"stream":true,`} {
		started, ended := make(chan struct{}), make(chan struct{})
		steps := wiretest.Hello(1)
		steps[1].Before = func(ctx context.Context) { close(started); <-ctx.Done(); close(ended) }
		o := options()
		o.Models = wiretest.New(steps...)
		addr, stop := serve(t, o)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-started; cancel() }()
		r, _ := http.NewRequestWithContext(ctx, "POST", addr+"/v1/chat/completions", strings.NewReader(strings.Replace(messages, "{", "{"+stream, 1)))
		r.Header.Set("Content-Type", "application/json")
		if resp, err := http.DefaultClient.Do(r); err == nil {
			_, _ = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		<-ended
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
}

// A client that sends too much still gets to read its 413.
func TestTooLargeOverTCP(t *testing.T) {
	o := options()
	o.MaxBody = 1 << 20
	addr, stop := serve(t, o)
	defer func() { _ = stop() }()
	got := post(addr+"/v1/chat/completions", `{"x":"`+strings.Repeat("x", 2<<20)+`"}`)
	if !strings.HasPrefix(got, "413 "+open+"the request body is larger than the limit of 1 MiB") {
		t.Errorf("got %s", got)
	}
}

func post(url, body string) string {
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(resp.StatusCode, " ", string(b))
}

// FuzzSource feeds the guard what clients control: it never fails, and lets no public name or address through.
func FuzzSource(f *testing.F) {
	for _, s := range []string{"localhost:80", "[::1]:8080", "evil.com", "http://127.0.0.1:3000", "null", "a.local.", "[fe80::1%25x]", "8.8.8.8", "://", "https://evil.com/.local"} {
		f.Add(s)
	}
	g := newGuard(&Options{Network: true, Addresses: func() []netip.Addr { return nil }})
	f.Fuzz(func(t *testing.T, s string) {
		cleaned := cleanPath(s)
		if again := cleanPath(cleaned); len(cleaned) > 1 && again != cleaned && !strings.HasSuffix(cleaned, "/") {
			t.Errorf("cleanPath(%q) = %q, then %q", s, cleaned, again)
		}
		g.origin(s)
		for _, name := range []string{"evil.com", "8.8.8.8", "evil.com:80", "[2001:db8::1]"} {
			if g.host(s+"."+name) || g.origin("https://"+name+":80/"+s) || g.origin("https://"+s+"@evil.com") && !strings.ContainsAny(s, "/?#\\") {
				t.Errorf("%q let %s through", s, name)
			}
		}
	})
}
