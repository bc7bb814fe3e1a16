package claude

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// anyKey is a key that a gateway takes for a good one.
const anyKey = "sk-0123456789abcdef0123456789abcdef"

// gateway is LiteLLM's proxy, and what it sends on.
type gateway struct {
	url, path string

	mu     sync.Mutex
	to     *url.URL // the server behind it
	bodies []string // of what it sent to path
}

// TestGateway: LiteLLM stands between Claude Code and the server, and makes of Messages what it is told to.
func TestGateway(t *testing.T) {
	for name, way := range map[string]struct {
		path, settings string
		returns        string // how reasoning comes back
	}{
		// Its own choice for models that are OpenAI's or like them.
		"responses": {"/v1/responses", "reasoning_auto_summary: true", `"encrypted_content":"hearth1.`},
		"chat":      {"/v1/chat/completions", "use_chat_completions_url_for_anthropic_messages: true", `"reasoning_content":"Two files it is."`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, way.path, way.settings)
			t.Run("files", func(t *testing.T) { g.files(t, way.returns) })
			t.Run("faults", g.faults)
			t.Run("a prompt that is too long", g.tooLong)
		})
	}
}

// files: two calls of one turn write two files, a third shows a picture. Calls, reasoning and counts of tokens come through, and
// turns build on the cache.
func (g *gateway) files(t *testing.T, returns string) {
	s := g.serve(t, nil,
		line{Turn: 1, IfTool: "^Write$", Raw: "<think>Two files it is.</think>I will write them.\n" +
			toolCall("Write", `{"file_path": "hello.txt", "content": "Hello from hearth.\n"}`) + "\n" +
			toolCall("Write", `{"file_path": "two.txt", "content": "Two.\n"}`)},
		line{Turn: 2, IfTool: "^Read$", Raw: "<think>Now the picture.</think>" + toolCall("Read", `{"file_path": "dot.png"}`)},
		line{Turn: 3, Raw: `The picture: {{find "treat them as data" .Last}}.`})
	home := s.home(t)
	if err := os.WriteFile(filepath.Join(home, "project", "dot.png"), dot, 0o600); err != nil {
		t.Fatal(err)
	}
	r := s.untold(t, home, "-p", "Write two files")
	r.says(t, "The picture: treat them as data.")
	r.wrote(t, "hello.txt", "Hello from hearth.\n")
	r.wrote(t, "two.txt", "Two.\n")
	var shown strings.Builder
	for _, e := range r.events {
		shown.Write(e.Message.Content)
	}
	for what, n := range map[string]int{`"type":"tool_use"`: 3, `"thinking":"Two files it is."`: 1, `"thinking":"Now the picture."`: 1} {
		if got := strings.Count(shown.String(), what); got != n {
			t.Errorf("%s is shown %d times, want %d: %s", what, got, n, shown.String())
		}
	}

	calls := s.requests(t, 3)
	// The picture comes in a message of the user's, before which the template leaves out what was thought.
	for i, whole := range []int{0, calls[0].prompt + calls[0].output - 1, calls[0].prompt} {
		if calls[i].cached < whole {
			t.Errorf("turn %d reuses %d tokens, want %d", i+1, calls[i].cached, whole)
		}
	}
	var want call
	for _, c := range calls {
		want.prompt, want.cached, want.output = want.prompt+c.prompt, want.cached+c.cached, want.output+c.output
	}
	if u := r.result().Usage; u.Input+u.Written+u.Read != want.prompt || u.Read != want.cached || u.Output != want.output {
		t.Errorf("Claude Code counts %+v, the server %d tokens of prompts, of them %d cached, and %d of output", u, want.prompt, want.cached, want.output)
	}
	for i, body := range g.sent() {
		if !strings.Contains(body, `"stream":true`) || i > 0 && !strings.Contains(body, returns) || i == 2 && !strings.Contains(body, "data:image/png;base64,") {
			t.Errorf("request %d: %s", i+1, body)
		}
	}
}

// faults: Claude Code gets its answer through every way a reply can fail.
func (g *gateway) faults(t *testing.T) {
	const words = "one two three four"
	s := g.serve(t, nil,
		line{Times: 1, Fault: &fault{Kind: "overloaded"}},
		line{Times: 1, Fault: &fault{Kind: "rate_limited"}},
		line{Times: 1, Raw: words, Fault: &fault{Kind: "error", After: 3}},
		line{Times: 1, Raw: words, Fault: &fault{Kind: "cut", After: 3}},
		line{Raw: "Here I am."})
	s.untold(t, s.home(t), "-p", "Hi").says(t, "Here I am.")
	if got := s.statuses(t); got != "503 429 200 200 200" {
		t.Errorf("statuses %s", got)
	}
}

// tooLong: Claude Code reads the words of the error, and compacts the conversation.
func (g *gateway) tooLong(t *testing.T) {
	s := g.serve(t, []string{"--context-length", "60000"},
		line{IfLast: "detailed summary of the conversation", Raw: "<summary>Nine files were read.</summary>"},
		line{Times: 9, IfTool: "^Read$", Raw: toolCall("Read", `{"file_path": "big{{.Turn}}.txt"}`)},
		line{Raw: "All was read."})
	home := s.home(t)
	bigFiles(t, home, 10, 440)
	s.untold(t, home, "-p", "Read the files").says(t, "All was read.")
	if got := s.statuses(t); got != strings.Repeat("200 ", 8)+"400 200 200" { // refused, summary, answer
		t.Errorf("statuses %s", got)
	}
}

// serve starts a server behind the gateway.
func (g *gateway) serve(t *testing.T, args []string, script ...line) *server {
	t.Helper()
	s := serveWith(t, args, script...)
	to, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	g.mu.Lock()
	g.to, g.bodies = to, nil
	g.mu.Unlock()
	s.front, s.path = g.url, g.path
	return s
}

// sent are the bodies of the requests to the server so far, without blanks.
func (g *gateway) sent() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.bodies)
}

// startGateway runs LiteLLM with one model. What it sends there passes a proxy, which keeps it.
func startGateway(t *testing.T, path, settings string) *gateway {
	t.Helper()
	hearthBinary(t)
	if *proxyFlag == "" {
		t.Skip("run by make interop, which installs LiteLLM")
	}
	g := &gateway{path: path, to: &url.URL{}}
	between := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		body, err := io.ReadAll(r.In.Body)
		if err != nil {
			t.Error(err)
		}
		r.Out.Body = io.NopCloser(bytes.NewReader(body))
		g.mu.Lock()
		defer g.mu.Unlock()
		r.SetURL(g.to)
		var compact bytes.Buffer
		if r.In.URL.Path == path && json.Compact(&compact, body) == nil {
			g.bodies = append(g.bodies, compact.String())
		}
	}})
	t.Cleanup(between.Close)
	others := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s: the gateway asks another host", r.Method, r.Host)
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(others.Close)

	home := t.TempDir()
	config := filepath.Join(home, "config.yaml")
	text := "model_list:\n  - model_name: demo\n    litellm_params: {model: openai/demo, api_base: \"" + between.URL + "/v1\", api_key: any, store: false}\n" +
		"    model_info: {supports_reasoning: true}\nlitellm_settings:\n  " + settings + "\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	stderr := newLog()
	cmd := exec.CommandContext(t.Context(), *proxyFlag, "--config", config, "--host", "127.0.0.1", "--port", "0")
	cmd.Dir, cmd.Stdout, cmd.Stderr = home, stderr, stderr
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LITELLM_MASTER_KEY=" + anyKey, "LITELLM_LOCAL_MODEL_COST_MAP=True",
		"HTTP_PROXY=" + others.URL, "HTTPS_PROXY=" + others.URL, "NO_PROXY=127.0.0.1"}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = limit
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // the test's context has ended, and interrupted it
		if t.Failed() {
			t.Logf("the gateway's log:\n%s", stderr)
		}
	})
	const says = "Uvicorn running on "
	stderr.waitFor(t, "the gateway", func(log string) bool {
		_, rest, ok := strings.Cut(log, says)
		return ok && strings.Contains(rest, "\n")
	})
	_, rest, _ := strings.Cut(stderr.String(), says)
	g.url, _, _ = strings.Cut(rest, " ")
	return g
}

// dot is a picture of one pixel.
var dot = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU\x00\x00\x00\nIDATx\x9cc`\x00\x00\x00\x02\x00\x01H\xaf\xa4q\x00\x00\x00\x00IEND\xaeB`\x82")
