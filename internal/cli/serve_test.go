package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/hub"
	"hearth/internal/server"
)

func newServer(cfg *config.Config, models *catalog.Catalog, log *slog.Logger) *server.Server {
	return server.New(serverOptions(cfg, models, nil, log))
}

// process is a running hearth serve.
type process struct {
	*exec.Cmd
	url    string
	lines  []string // of stdout up to "ready"
	stderr *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// command is hearth with an environment of its own; testscript.Main put it on the path.
func command(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "hearth", args...)
	dir := t.TempDir()
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "XDG_RUNTIME_DIR=" + dir}, env...)
	return cmd
}

// start runs serve on a free port until it is ready.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: command(t, env, append([]string{"serve", "--port", "0"}, args...)...), stderr: &lockedBuffer{}}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Stderr = p.stderr
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Kill() // it may have ended
		_ = p.Wait()
	})
	for s := bufio.NewScanner(out); s.Scan(); {
		p.lines = append(p.lines, s.Text())
		if rest, ok := strings.CutPrefix(s.Text(), "listening on "); ok {
			p.url, _, _ = strings.Cut(rest, " ")
		}
		if strings.HasPrefix(s.Text(), "ready in ") {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return p
		}
	}
	t.Fatalf("serve ended before it was ready:\n%s%s", strings.Join(p.lines, "\n"), p.stderr)
	return nil
}

func (p *process) stdout() string { return strings.Join(p.lines, "\n") }

func request(t *testing.T, method, url, body string, header ...string) (int, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, b
}

const hello = `{"max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}`

func TestServeDemo(t *testing.T) {
	p := start(t, nil)
	for _, want := range []string{"listening on http://127.0.0.1:", "model: demo, a tiny demo", "hearth serve ", "auth: none", "page:  " + p.url + " in a browser", "try:   curl " + p.url + "/v1/messages"} {
		if !strings.Contains(p.stdout(), want) {
			t.Errorf("stdout does not say %q:\n%s", want, p.stdout())
		}
	}
	status, body := request(t, "POST", p.url+"/v1/messages", hello)
	var m struct {
		Content []struct{ Type, Text string }
		Usage   struct {
			Output int `json:"output_tokens"`
		}
	}
	if err := json.Unmarshal(body, &m); err != nil || status != 200 || len(m.Content) == 0 || m.Usage.Output == 0 {
		t.Errorf("messages: %d, error %v: %s", status, err, body)
	}
	status, body = request(t, "POST", p.url+"/v1/chat/completions", `{"model": "claude-sonnet-4-5", "stream": true, "max_tokens": 5, "messages": [{"role": "user", "content": "Hello"}]}`)
	if status != 200 || !bytes.Contains(body, []byte(`"model":"claude-sonnet-4-5"`)) || !bytes.HasSuffix(bytes.TrimSpace(body), []byte("data: [DONE]")) {
		t.Errorf("chat completions: %d: %s", status, body)
	}
	if status, body = request(t, "POST", p.url+"/openai/deployments/prod/chat/completions", `{"max_tokens": 1, "messages": [{"role": "user", "content": "Hello"}]}`); status != 200 {
		t.Errorf("a deployment: %d: %s", status, body)
	}
	if status, body = request(t, "POST", p.url+"/v1/messages", `{"model": "nope", "max_tokens": 1, "messages": [{"role": "user", "content": "Hello"}]}`); status != 404 {
		t.Errorf("unknown model: %d: %s", status, body)
	}
	status, body = request(t, "GET", p.url+"/health", "")
	var h struct {
		Status, Model string
		Context       int
		Thinking      struct{ Enabled, Exposed bool }
	}
	if err := json.Unmarshal(body, &h); err != nil || status != 200 || h.Status != "ok" || h.Model != "demo" || h.Context != 8192 || !h.Thinking.Enabled {
		t.Errorf("health: %d, error %v: %s", status, err, body)
	}
}

// The second loopback address is served on the same port.
func TestServeLocalhost(t *testing.T) {
	if l, err := net.Listen("tcp6", "[::1]:0"); err != nil {
		t.Skipf("no IPv6 here: %v", err)
	} else {
		l.Close()
	}
	p := start(t, nil)
	_, port, _ := strings.Cut(strings.TrimPrefix(p.url, "http://"), ":")
	if status, body := request(t, "GET", "http://[::1]:"+port+"/v1/models", ""); status != 200 || !bytes.Contains(body, []byte(`"demo"`)) {
		t.Errorf("models: %d: %s", status, body)
	}
}

func TestServeKey(t *testing.T) {
	for name, tt := range map[string]struct {
		env, args []string
		says      string
	}{
		"flag":  {nil, []string{"--api-key", "secret"}, "auth: on, from --api-key"},
		"env":   {[]string{"HEARTH_API_KEY=secret", "ANTHROPIC_AUTH_TOKEN=other"}, nil, "auth: on, from HEARTH_API_KEY"},
		"token": {[]string{"ANTHROPIC_AUTH_TOKEN=secret"}, nil, "auth: on, from ANTHROPIC_AUTH_TOKEN"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, tt.env, tt.args...)
			if !strings.Contains(p.stdout(), tt.says) || strings.Contains(p.stdout(), "secret") {
				t.Errorf("stdout must say %q and keep the key to itself:\n%s", tt.says, p.stdout())
			}
			for _, c := range []struct {
				header []string
				want   int
			}{
				{nil, 401}, {[]string{"X-Api-Key", "wrong"}, 401},
				{[]string{"X-Api-Key", "secret"}, 200}, {[]string{"Authorization", "Bearer secret"}, 200}, {[]string{"Api-Key", "secret"}, 200},
			} {
				if status, body := request(t, "POST", p.url+"/v1/messages", hello, c.header...); status != c.want {
					t.Errorf("%v: %d, want %d: %s", c.header, status, c.want, body)
				}
			}
		})
	}
}

// A folder answers to its name, its path and the names it is served under.
func TestServeFolder(t *testing.T) {
	dir := t.TempDir() + "/little"
	if err := writeDemo(dir); err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, dir, "--served-model-name", "mine,gpt-*", "--any-model=false")
	if strings.Contains(p.stdout(), "tiny demo") || !strings.Contains(p.stdout(), "model: mine ("+dir+")") {
		t.Errorf("stdout:\n%s", p.stdout())
	}
	for model, want := range map[string]int{"mine": 200, "little": 200, dir: 200, dir + "/": 200, "default_model": 200, "": 200, "other": 404} {
		body, _ := json.Marshal(map[string]any{"model": model, "max_tokens": 1, "messages": []any{map[string]string{"role": "user", "content": "hi"}}})
		if status, got := request(t, "POST", p.url+"/v1/messages", string(body)); status != want {
			t.Errorf("model %q: %d, want %d: %s", model, status, want, got)
		}
	}
}

// TestServeWarnings: what is wrong with a folder and was read over is a line of the log for each thing, also for a model in a
// process of its own and for the small model.
func TestServeWarnings(t *testing.T) {
	dir := t.TempDir() + "/little"
	if err := writeDemo(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/generation_config.json", []byte(`{"eos_token_id": 5711, "temperature": "hot",}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/special_tokens_map.json", []byte(`{`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{dir}, {dir, "--model-process", "always"}, {"demo", "--small-model", dir}} {
		p := start(t, nil, append(args, "--cache-memory-mb", "64")...)
		p.end(t)
		for _, want := range []string{
			`level=WARN msg="generation_config.json: has a comma too many at byte 44, line 1, which JSON does not allow; it is read without" folder=` + dir,
			`level=WARN msg="generation_config.json: temperature: \"hot\" is no number; the key is left out" folder=` + dir,
			`level=WARN msg="special_tokens_map.json: is no valid JSON at byte 1, line 1: unexpected end of JSON input; the file is left out: no token that it names has a role" folder=` + dir,
		} {
			if n := strings.Count(p.stderr.String(), want); n != 1 {
				t.Errorf("%v: %d times %s in\n%s", args, n, want, p.stderr)
			}
		}
	}
	p := start(t, nil, "demo")
	if p.end(t); strings.Contains(p.stderr.String(), "WARN") {
		t.Errorf("the demo: %s", p.stderr)
	}
}

// end stops the server, after which all that it said is there.
func (p *process) end(t *testing.T) {
	t.Helper()
	if err := errors.Join(p.Process.Signal(os.Interrupt), p.Wait()); err != nil {
		t.Fatal(err)
	}
}

// Names with haiku mean the small model, its own name too, and all others the main one.
func TestSmallModel(t *testing.T) {
	dir := t.TempDir() + "/little"
	if err := writeDemo(dir); err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, dir, "--small-model", "demo", "--context-length", "512", "--cache-memory-mb", "64")
	_, list := request(t, "GET", p.url+"/v1/models", "")
	if i, j := bytes.Index(list, []byte(`"id":"little"`)), bytes.Index(list, []byte(`"id":"demo"`)); i < 0 || j < i {
		t.Errorf("models: %s", list)
	}
	words := strings.Repeat("one two ", 400) // too long for the main model's 512 tokens
	for model, want := range map[string]int{"claude-haiku-4-5": 200, "Claude-3-Haiku": 200, "demo": 200, "little": 400, "claude-sonnet-4-5": 400, "default": 400, "other": 404} {
		body, _ := json.Marshal(map[string]any{"model": model, "max_tokens": 1, "messages": []any{map[string]string{"role": "user", "content": words}}})
		if status, got := request(t, "POST", p.url+"/v1/messages", string(body)); status != want {
			t.Errorf("model %q: %d, want %d: %.200s", model, status, want, got)
		}
	}
}

func TestAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address := l.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	for flag, value := range map[string]string{"--port": port, "--listen": address} {
		cmd := command(t, nil, "serve", flag, value)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err = cmd.Run()
		want := "hearth: error: address " + address + " is already in use\nhearth: hint: stop what listens there, or use another port: hearth serve " + flag + " " + strings.TrimSuffix(value, port)
		free, advised := strings.CutPrefix(stderr.String(), want)
		if _, bad := strconv.Atoi(strings.TrimSuffix(free, "\n")); cmd.ProcessState.ExitCode() != 1 || stdout.Len() > 0 || !advised || bad != nil {
			t.Errorf("%s: error %v, stdout %q, stderr %q", flag, err, stdout.String(), stderr.String())
		}
	}
}

// TestExplain: what cannot be listened on is said with the flag that named it.
func TestExplain(t *testing.T) {
	for _, tc := range []struct {
		err    error
		listen bool
		want   string
	}{
		{syscall.EACCES, false, "hearth serve --port 8080"},
		{syscall.EACCES, true, "hearth serve --listen 192.0.2.1:8080"},
		{syscall.EADDRINUSE, true, "hearth serve --listen 192.0.2.1:444"},
		{syscall.EADDRNOTAVAIL, false, "--host takes"},
		{syscall.EADDRNOTAVAIL, true, "--listen takes"},
	} {
		var hinted interface{ Hint() string }
		if err := explain(tc.err, "192.0.2.1", 443, tc.listen); !errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), tc.want) {
			t.Errorf("%v, %v: %v, want the hint %q", tc.err, tc.listen, err, tc.want)
		}
	}
}

// Shells that export HOST as a compiler triple, and platforms that export PORT as an address, do not stop us.
func TestForeignEnvironment(t *testing.T) {
	p := start(t, []string{"HOST=x86_64-conda-linux-gnu", "PORT=tcp://10.0.0.1:80"})
	if !strings.HasPrefix(p.url, "http://127.0.0.1:") {
		t.Errorf("listens on %s", p.url)
	}
	stop(t, p) // its log is whole then
	if got := p.stderr.String(); strings.Count(got, "ignoring HOST=\"x86_64-conda-linux-gnu\"") != 1 || strings.Contains(got, "PORT=") {
		t.Errorf("stderr %q: want one line about HOST, none about PORT, which --port overrides", got)
	}
}

// SIGTERM lets the running reply end, refuses new connections and ends with status 0.
func TestDrain(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	p := start(t, nil)
	res, err := http.Post(p.url+"/v1/messages", "application/json",
		strings.NewReader(`{"stream": true, "max_tokens": 40, "messages": [{"role": "user", "content": "Tell me about yourself"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || !bytes.Contains(body, []byte("message_stop")) {
		t.Errorf("the reply was cut: error %v: %s", err, body)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("exit: %v\n%s", err, p.stderr)
	}
	if !strings.Contains(p.stderr.String(), "hearth: stopping") || strings.Contains(p.stderr.String(), "panic") {
		t.Errorf("stderr %q", p.stderr)
	}
}

// /health answers while the model loads, and a request waits for it.
func TestWhileLoading(t *testing.T) {
	cfg := config.Default()
	src, err := catalog.Find("demo", hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	models := catalog.New(src, cfg)
	srv := httptest.NewServer(newServer(cfg, models, slog.New(slog.DiscardHandler)))
	defer srv.Close()
	if status, body := request(t, "GET", srv.URL+"/health", ""); status != 200 || !bytes.Contains(body, []byte(`"status":"loading","model":"demo"`)) {
		t.Errorf("health: %d: %s", status, body)
	}
	for path, want := range map[string]int{"/livez": 200, "/readyz": 503} {
		if status, body := request(t, "GET", srv.URL+path, ""); status != want || string(body) != `{"status":"loading"}`+"\n" {
			t.Errorf("%s: %d: %s", path, status, body)
		}
	}
	// Nothing is said of a context that is not known yet, and launch waits for it.
	for _, path := range []string{"/health", "/v1/models", "/v1/models/demo", "/anthropic/v1/models"} {
		_, body := request(t, "GET", srv.URL+path, "")
		for _, field := range []string{`"context`, `"max_`} {
			if bytes.Contains(body, []byte(field)) {
				t.Errorf("%s while the model loads: %s", path, body)
			}
		}
	}
	known := make(chan *server.Health, 1)
	go func() {
		h, err := (&state{URL: srv.URL}).loaded(t.Context())
		if err != nil {
			t.Error(err)
		}
		known <- h
	}()
	replied := make(chan int, 1)
	go func() {
		res, err := http.Post(srv.URL+"/v1/messages", "application/json", strings.NewReader(hello))
		if err != nil {
			replied <- 0
			return
		}
		res.Body.Close()
		replied <- res.StatusCode
	}()
	if err := models.Load(backends()); err != nil {
		t.Fatal(err)
	}
	defer models.Close()
	if status := <-replied; status != 200 {
		t.Errorf("the request that waited: %d", status)
	}
	if h := <-known; h == nil || h.Context != 8192 || h.Status != "ok" {
		t.Errorf("health that was waited for: %+v", h)
	}
	for _, path := range []string{"/health", "/livez", "/readyz"} {
		if status, body := request(t, "GET", srv.URL+path, ""); status != 200 || !bytes.Contains(body, []byte(`"status":"ok"`)) {
			t.Errorf("%s: %d: %s", path, status, body)
		}
	}
}
