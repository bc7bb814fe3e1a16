package claude

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hearth/interop/program"
)

var (
	claudeFlag = flag.String("claude", "", "the claude executable; without it the tests are skipped")
	proxyFlag  = flag.String("litellm", "", "the litellm executable; without it the tests of gateways are skipped")
	hearthFlag = flag.String("hearth", "", "the hearth binary under test")
	showFlag   = flag.Bool("show", false, "print the events of the runs")
)

// limit is how long one run of Claude Code may take, on a machine that has other work too.
const limit = 2 * time.Minute

func hearthBinary(t *testing.T) string {
	t.Helper()
	if *claudeFlag == "" {
		t.Skip("run by make interop, which installs Claude Code")
	}
	if *hearthFlag == "" {
		t.Fatal("-hearth must name the binary under test")
	}
	return *hearthFlag
}

// server is hearth with a script, and the folder of everything around it.
type server struct {
	dir    string
	url    string
	front  string // the address that Claude Code is told; "" is url
	path   string // of the calls of the model; "" is /v1/messages
	stderr *log
}

// log collects what a process writes and lets tests wait for it.
type log struct {
	mu      sync.Mutex
	b       bytes.Buffer
	changed chan struct{}
}

func newLog() *log { return &log{changed: make(chan struct{}, 1)} }

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *log) waitFor(t *testing.T, what string, ok func(string) bool) {
	t.Helper()
	late := time.After(limit)
	for !ok(l.String()) {
		select {
		case <-l.changed:
		case <-late:
			t.Fatalf("%s: not within %v:\n%s", what, limit, l)
		}
	}
}

func serve(t *testing.T, script ...line) *server {
	t.Helper()
	return serveWith(t, nil, script...)
}

// serveWith is serve with more arguments; without a script the demo answers.
func serveWith(t *testing.T, args []string, script ...line) *server {
	t.Helper()
	bin := hearthBinary(t)
	s := &server{dir: t.TempDir(), stderr: newLog()}
	if script != nil {
		args = append(args, "--script", s.write(t, script...))
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the server's log:\n%s", s.stderr)
		}
	})
	s.url = program.Serve(t, bin, s.env(), s.stderr, args...).URL
	t.Cleanup(func() { s.checkBounds(t) })
	return s
}

// checkBounds complains about bounds that were met: nothing that Claude Code does is too much.
func (s *server) checkBounds(t *testing.T) {
	res, err := http.Get(s.url + "/v1/status")
	if err != nil {
		t.Error(err)
		return
	}
	defer res.Body.Close()
	var status struct {
		Bounds map[string]int `json:"bounds_met"`
	}
	if err := json.NewDecoder(res.Body).Decode(&status); err != nil || len(status.Bounds) > 0 {
		t.Errorf("bounds were met: %v, %v", status.Bounds, err)
	}
}

// env is that of every process: nothing of the user's, and a runtime folder of the test's own.
func (s *server) env() []string {
	path := filepath.Dir(*claudeFlag) + string(os.PathListSeparator) + os.Getenv("PATH")
	return []string{"PATH=" + path, "HOME=" + s.dir, "XDG_RUNTIME_DIR=" + s.dir, "TERM=dumb", "DISABLE_AUTOUPDATER=1"}
}

// headless are the arguments that make Claude Code print events and allow it the tools it needs.
var headless = []string{"--output-format", "stream-json", "--verbose", "--allowedTools", "Write,Read,Bash,Task"}

// args are those that run Claude Code on this server through hearth launch.
func (s *server) args(args ...string) []string {
	return slices.Concat([]string{"launch", "claude", "--demo", "--"}, headless, args)
}

func (s *server) claude(t *testing.T, args ...string) *run {
	t.Helper()
	return s.claudeIn(t, s.home(t), args...)
}

func (s *server) claudeIn(t *testing.T, home string, args ...string) *run {
	t.Helper()
	return s.runIn(t, home, hearthBinary(t), s.args(args...)...)
}

func (s *server) runIn(t *testing.T, home, program string, args ...string) *run {
	t.Helper()
	cmd, r := s.command(t, home, program, args...)
	if err := cmd.Run(); err != nil {
		t.Errorf("claude: %v; stderr: %s", err, r.notes)
	}
	r.parse(t)
	return r
}

// untold runs Claude Code with the address and the model alone, as users set it up who have not read anything.
func (s *server) untold(t *testing.T, home string, args ...string) *run {
	t.Helper()
	cmd, r := s.untoldCommand(t, home, slices.Concat(headless, args)...)
	if err := cmd.Run(); err != nil {
		t.Errorf("claude: %v; stderr: %s", err, r.notes)
	}
	r.parse(t)
	return r
}

func (s *server) untoldCommand(t *testing.T, home string, args ...string) (*exec.Cmd, *run) {
	t.Helper()
	cmd, r := s.command(t, home, *claudeFlag, args...)
	cmd.Env = append(cmd.Env, "ANTHROPIC_BASE_URL="+cmp.Or(s.front, s.url), "ANTHROPIC_AUTH_TOKEN="+anyKey, "ANTHROPIC_MODEL=demo", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
	return cmd, r
}

// bigFiles writes n files of so many lines, big0.txt and on.
func bigFiles(t *testing.T, home string, n, lines int) {
	t.Helper()
	for i := range n {
		text := strings.Repeat(fmt.Sprintf("line of file %d with some words in it\n", i), lines)
		if err := os.WriteFile(filepath.Join(home, "project", fmt.Sprintf("big%d.txt", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// home makes a clean home with a project in it.
func (s *server) home(t *testing.T) string {
	t.Helper()
	home, err := os.MkdirTemp(s.dir, "home-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(home, "project"), 0o755); err != nil {
		t.Fatal(err)
	}
	return home
}

func (s *server) command(t *testing.T, home, program string, args ...string) (*exec.Cmd, *run) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	r := &run{home: home, out: newLog(), notes: newLog()}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = filepath.Join(home, "project")
	cmd.Env = append(s.env(), "HOME="+home)
	cmd.Stdout, cmd.Stderr = r.out, r.notes
	return cmd, r
}

// run is one run of Claude Code.
type run struct {
	home       string
	out, notes *log
	events     []event
}

func (r *run) parse(t *testing.T) {
	t.Helper()
	for line := range strings.Lines(r.out.String()) {
		var e event
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &e) == nil {
			r.events = append(r.events, e)
		}
	}
}

func (r *run) result() event {
	if n := len(r.events); n > 0 {
		return r.events[n-1]
	}
	return event{}
}

// compactions counts how often the conversation was made a summary.
func (r *run) compactions() (n int) {
	for _, e := range r.events {
		if e.Subtype == "compact_boundary" {
			n++
		}
	}
	return n
}

func (r *run) says(t *testing.T, want string) {
	t.Helper()
	if e := r.result(); e.IsError || !strings.Contains(e.Result, want) {
		t.Errorf("the result is %q (error %v), want %q; stderr: %s", e.Result, e.IsError, want, r.notes)
	}
}

func (r *run) wrote(t *testing.T, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(filepath.Join(r.home, "project", name)); err != nil || string(got) != want {
		t.Errorf("%s: %q, %v; want %q", name, got, err, want)
	}
}

// show prints the events of runs and the requests behind them, for docs/claude-code.md.
func (s *server) show(t *testing.T, runs ...*run) {
	t.Helper()
	if !*showFlag {
		return
	}
	var b strings.Builder
	for _, r := range runs {
		for _, e := range r.events {
			what, text := e.Type, string(e.Message.Content)
			if e.Subtype != "" {
				what += " " + e.Subtype
			}
			if e.ParentToolUse != "" {
				what = "  agent: " + what
			}
			if e.Type == "result" {
				text = e.Result
			}
			if len(text) > 300 {
				text = text[:300] + "…"
			}
			fmt.Fprintf(&b, "%-10s %s\n", what, text)
		}
	}
	calls := s.parse(t)
	for _, c := range calls {
		fmt.Fprintf(&b, "request at %5.2f s, until %5.2f s: prompt %d tokens, of them cached %d; output %d\n",
			c.began.Sub(calls[0].began).Seconds(), c.ended.Sub(calls[0].began).Seconds(), c.prompt, c.cached, c.output)
	}
	fmt.Printf("== %s\n%s", t.Name(), b.String())
}

// call is a request to the model as the server's log has it.
type call struct {
	began, ended           time.Time
	status                 string
	prompt, cached, output int
}

var field = regexp.MustCompile(`(\w+)=("(?:[^"\\]|\\.)*"|\S+)`)

// parse reads the log of the calls of the model, in the order they began.
func (s *server) parse(t *testing.T) []call {
	t.Helper()
	path := cmp.Or(s.path, "/v1/messages")
	var all []call
	for line := range strings.Lines(s.stderr.String()) {
		f := map[string]string{}
		for _, m := range field.FindAllStringSubmatch(line, -1) {
			f[m[1]] = m[2]
		}
		if f["msg"] != "request" || f["path"] != path {
			continue
		}
		c := call{status: f["status"], prompt: number(f["prompt_tokens"]), cached: number(f["cached_tokens"]), output: number(f["output_tokens"])}
		ended, err := time.Parse(time.RFC3339Nano, f["time"])
		ms, err2 := strconv.ParseFloat(f["ms"], 64)
		if err != nil || err2 != nil {
			t.Fatalf("log line %q: %v, %v", line, err, err2)
		}
		c.ended = ended
		c.began = ended.Add(-time.Duration(ms * float64(time.Millisecond)))
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b call) int { return a.began.Compare(b.began) })
	return all
}

// statuses are those of the calls in order.
func (s *server) statuses(t *testing.T) string {
	t.Helper()
	var all []string
	for _, c := range s.parse(t) {
		all = append(all, c.status)
	}
	return strings.Join(all, " ")
}

// requests is parse where their number is known.
func (s *server) requests(t *testing.T, n int) []call {
	t.Helper()
	all := s.parse(t)
	if len(all) != n {
		t.Fatalf("%d requests, want %d", len(all), n)
	}
	return all
}

func number(s string) int { n, _ := strconv.Atoi(s); return n }
