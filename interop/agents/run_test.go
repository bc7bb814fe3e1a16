// Package agents runs real coding agents, Codex, opencode, Qwen Code, pi and aider, headless and in a clean home, against hearth
// with a script in the model's place, or with the demo: `make interop` installs them and runs this. How they are set up stands in
// docs/agents.md, Codex also as hearth launch sets it up, Qwen Code and pi as the page's Connect view does.
package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"hearth/interop/program"
)

var (
	opencodeFlag = flag.String("opencode", "", "the opencode executable")
	codexFlag    = flag.String("codex", "", "the codex executable")
	aiderFlag    = flag.String("aider", "", "the aider executable")
	hearthFlag   = flag.String("hearth", "", "the hearth binary under test; without it the tests are skipped")
)

// limit is how long one run of an agent may take, on a machine that has other work too.
const limit = 2 * time.Minute

const chatPath = "/v1/chat/completions"

// line is a line of a script; docs/script.md has its meaning.
type line struct {
	IfLast string `json:"if_last,omitempty"`
	IfTool string `json:"if_tool,omitempty"`
	Turn   int    `json:"turn,omitempty"`
	Times  int    `json:"times,omitempty"`
	Raw    string `json:"raw"`
	Fault  *fault `json:"fault,omitempty"`
}

type fault struct {
	Kind  string `json:"kind"`
	After int    `json:"after_tokens,omitempty"`
}

// toolCall is a call as the demo's template has it.
func toolCall(name, args string) string {
	return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " + args + "}\n</tool_call>"
}

// server is hearth, and the folder of everything around it.
type server struct {
	dir, url string
	others   string // address of the proxy that stands for all other hosts
	stderr   *bytes.Buffer
	stop     func()
}

// serve starts hearth with a script of these lines, or with the demo itself.
func serve(t *testing.T, args []string, script ...line) *server {
	t.Helper()
	if *hearthFlag == "" {
		t.Skip("run by make interop, which installs the agents")
	}
	s := &server{dir: t.TempDir(), stderr: &bytes.Buffer{}}
	if script != nil {
		args = append(args, "--script", s.script(t, script))
	}
	// What an agent asks of other hosts, it asks this proxy, and gets nothing.
	others := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s: the agent asks another host", r.Method, r.Host)
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(others.Close)
	s.others = others.URL
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the server's log:\n%s", s.stderr)
		}
	})
	hearth := program.Serve(t, *hearthFlag, s.env(s.dir), s.stderr, args...)
	s.url, s.stop = hearth.URL, func() { hearth.Stop() }
	return s
}

func (s *server) script(t *testing.T, script []line) (path string) {
	t.Helper()
	var b bytes.Buffer
	for _, l := range script {
		if err := json.NewEncoder(&b).Encode(l); err != nil {
			t.Fatal(err)
		}
	}
	path = filepath.Join(s.dir, "script.jsonl")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// env is that of every process: nothing of the user's, the server's address, and what keeps the agents from asking others.
func (s *server) env(home string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_RUNTIME_DIR=" + home, "TERM=dumb", "LANG=C.UTF-8",
		"HTTP_PROXY=" + s.others, "HTTPS_PROXY=" + s.others, "NO_PROXY=127.0.0.1",
		"OPENAI_API_BASE=" + s.url + "/v1", "OPENAI_API_KEY=any", "LITELLM_LOCAL_MODEL_COST_MAP=True",
		"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "npm_config_offline=true"}
}

// project makes a clean home with a project of these files in it.
func (s *server) project(t *testing.T, files map[string]string) (home string) {
	t.Helper()
	home, err := os.MkdirTemp(s.dir, "home-")
	if err == nil {
		err = os.Mkdir(filepath.Join(home, "project"), 0o755)
	}
	for name, text := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(home, "project", name), []byte(text), 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return home
}

// run is one run of an agent.
type run struct {
	home       string
	err        error
	out, notes string
}

func (s *server) run(t *testing.T, home string, command []string) *run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var out, notes bytes.Buffer
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = filepath.Join(home, "project")
	cmd.Env = s.env(home)
	cmd.Stdout, cmd.Stderr = &out, &notes
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	return &run{home: home, err: err, out: out.String(), notes: notes.String()}
}

// says checks what a person sees.
func (r *run) says(t *testing.T, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(r.out, w) {
			t.Errorf("it does not say %q:\n%s%s", w, r.out, r.notes)
		}
	}
}

// has checks a file of the project.
func (r *run) has(t *testing.T, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(filepath.Join(r.home, "project", name)); err != nil || string(got) != want {
		t.Errorf("%s: %q, %v; want %q", name, got, err, want)
	}
}

// call is a request to the model as the server's log has it.
type call struct{ prompt, cached, output int }

var field = regexp.MustCompile(`(\w+)=("(?:[^"\\]|\\.)*"|\S+)`)

// calls ends the server and reads from its log the calls of this path, in the order they ended. All must have been
// answered, and be n, if n is not 0.
func (s *server) calls(t *testing.T, path string, n int) []call {
	t.Helper()
	s.stop()
	var all []call
	for line := range strings.Lines(s.stderr.String()) {
		f := map[string]string{}
		for _, m := range field.FindAllStringSubmatch(line, -1) {
			f[m[1]] = m[2]
		}
		switch {
		case f["msg"] != "request", f["path"] == "/health", f["status"] == "101": // launch asks that; a WebSocket's messages have their own lines
		case f["path"] != path || f["status"] != "200":
			t.Errorf("%s %s: %s %s", f["method"], f["path"], f["status"], f["error"])
		default:
			all = append(all, call{number(f["prompt_tokens"]), number(f["cached_tokens"]), number(f["output_tokens"])})
		}
	}
	if n > 0 && len(all) != n {
		t.Fatalf("%d requests, want %d", len(all), n)
	}
	return all
}

// sockets checks how many WebSockets a server that has ended has had.
func (s *server) sockets(t *testing.T, want int) {
	t.Helper()
	if n := strings.Count(s.stderr.String(), " status=101 "); n != want {
		t.Errorf("%d WebSockets, want %d", n, want)
	}
}

func number(s string) int { n, _ := strconv.Atoi(s); return n }
