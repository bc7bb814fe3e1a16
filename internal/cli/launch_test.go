package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"hearth/internal/chat"
)

// fakeClaude is a program called claude that shows what it was given and asks its server for the models.
const fakeClaude = `#!/bin/sh
echo "args: $*"
env | grep -E '^(ANTHROPIC|CLAUDE_CODE|BASH|MAX)_' | sort
exit 3
`

// launch runs hearth launch claude with a fake claude on the path.
func launch(t *testing.T, runtimeDir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return launchFake(t, runtimeDir, "claude", fakeClaude, args...)
}

// launchFake runs hearth launch with a shell script in the agent's place.
func launchFake(t *testing.T, runtimeDir, agent, script string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the fake " + agent + " is a shell script")
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, agent), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + runtimeDir, "ANTHROPIC_API_KEY=the user's own"},
		append([]string{"launch", agent}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // its status is what is looked at
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// scriptedServer starts a server whose answers are a script's, with a context as long as an agent needs or as given.
func scriptedServer(t *testing.T, runtimeDir string, args ...string) *process {
	t.Helper()
	return start(t, []string{"XDG_RUNTIME_DIR=" + runtimeDir}, append([]string{"--script", scriptFile(t, `{"raw": "Hello."}`)}, args...)...)
}

// A running server is found by its state file, which only its user can read, and its key comes along.
func TestLaunchFindsServer(t *testing.T) {
	dir := t.TempDir()
	p := scriptedServer(t, dir, "--api-key", "it's secret")
	files, _ := filepath.Glob(filepath.Join(dir, "hearth", "serve-*.json"))
	if len(files) != 1 {
		t.Fatalf("state files: %v", files)
	}
	if st, err := os.Stat(files[0]); err != nil || runtime.GOOS != "windows" && st.Mode().Perm() != 0o600 {
		t.Errorf("state file: %v, %v", st.Mode(), err)
	}
	out, errs, code := launch(t, dir, "--demo", "--", "-p", "hello there")
	want := `args: -p hello there
ANTHROPIC_API_KEY=
ANTHROPIC_AUTH_TOKEN=it's secret
ANTHROPIC_BASE_URL=` + p.url + `
ANTHROPIC_DEFAULT_FABLE_MODEL=demo
ANTHROPIC_DEFAULT_HAIKU_MODEL=demo
ANTHROPIC_DEFAULT_OPUS_MODEL=demo
ANTHROPIC_DEFAULT_SONNET_MODEL=demo
ANTHROPIC_MODEL=demo
ANTHROPIC_SMALL_FAST_MODEL=demo
CLAUDE_CODE_ATTRIBUTION_HEADER=0
CLAUDE_CODE_AUTO_COMPACT_WINDOW=200000
CLAUDE_CODE_DISABLE_1M_CONTEXT=1
CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY=1
CLAUDE_CODE_MAX_CONTEXT_TOKENS=200000
CLAUDE_CODE_SUBAGENT_MODEL=demo
`
	said := fmt.Sprintf("hearth: Claude Code uses the server at %s (process %d): demo, 200000 tokens of context, with its key\n", p.url, p.Process.Pid)
	if out != want || errs != said || code != 3 {
		t.Errorf("status %d, stderr %q, want %q, stdout:\n%s\nwant:\n%s", code, errs, said, out, want)
	}
	out, errs, code = launch(t, dir, "--demo", "--print")
	if code != 0 || !strings.Contains(out, "export ANTHROPIC_AUTH_TOKEN='it'\\''s secret'\n") || strings.Contains(out, "args:") || errs != said {
		t.Errorf("--print: %d\n%s%s", code, out, errs)
	}
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "export ") {
			t.Errorf("--print: a shell would read %q", line)
		}
	}
	if with, _, _ := launch(t, dir, "--demo", "--print", "--", "-p", "hello there"); with != out+"claude -p 'hello there'\n" {
		t.Errorf("--print with arguments: %s", with)
	}
	// Another model than the one that runs is not this server's business.
	if _, errs, code = launch(t, dir, "--print", "--model", "other"); code != 1 || !strings.Contains(errs, "no server runs with other; there are demo at "+p.url) {
		t.Errorf("another model: %d %s", code, errs)
	}
	if _, errs, code = launch(t, dir); code != 1 || !strings.Contains(errs, p.url) || !strings.Contains(errs, "the demo model cannot do an agent's work") ||
		!strings.Contains(errs, "--demo insists") {
		t.Errorf("without --demo: %d %s", code, errs)
	}
	// A server that is gone leaves nothing behind, and one that was killed leaves a file that is not believed.
	_ = p.Process.Kill()
	_ = p.Wait()
	if _, errs, code = launch(t, dir, "--demo", "--print"); code != 1 || !strings.Contains(errs, "no server runs") {
		t.Errorf("after the server's end: %d %s", code, errs)
	}
	if files, _ = filepath.Glob(filepath.Join(dir, "hearth", "*")); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

// Of several servers the latest is taken, or the one with the model that is named, also without its owner; the others are named.
func TestLaunchChooses(t *testing.T) {
	dir := t.TempDir()
	first := scriptedServer(t, dir, "--served-model-name", "org/first")
	second := scriptedServer(t, dir, "--served-model-name", "org/second")
	for name, want := range map[string]struct{ it, other *process }{"": {second, first}, "org/first": {first, second}, "first": {first, second}, "second": {second, first}} {
		out, errs, code := launch(t, dir, "--demo", "--print", "--model", name)
		if code != 0 || !strings.Contains(out, "ANTHROPIC_BASE_URL='"+want.it.url+"'") || !strings.Contains(errs, want.it.url+" (process") ||
			!strings.Contains(errs, "there are also org/") || !strings.Contains(errs, " at "+want.other.url+"; --model NAME chooses") {
			t.Errorf("%q: %d %s%s", name, code, out, errs)
		}
	}
	if _, errs, code := launch(t, dir, "--demo", "--print", "--model", "irst"); code != 1 || !strings.Contains(errs, "no server runs with irst") {
		t.Errorf("part of a name: %d %s", code, errs)
	}
}

// healthServer answers as a server does that says it runs, with what is in status, which it takes one by one, and the last
// again and again.
func healthServer(t *testing.T, runtimeDir, model string, status ...string) {
	t.Helper()
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprint(w, status[0])
		if len(status) > 1 {
			status = status[1:]
		}
	}))
	t.Cleanup(s.Close)
	text, err := json.Marshal(&state{PID: os.Getpid(), URL: s.URL, Model: model})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(runtimeDir, "hearth")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("serve-%d.json", os.Getpid())), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A server that loads is waited for, since how long its context is is known then; one that ends meanwhile is not.
func TestLaunchWaits(t *testing.T) {
	const loading, waits = `{"status": "loading", "model": "big"}`, "hearth: waiting for the server at "
	dir := t.TempDir()
	healthServer(t, dir, "big", loading, loading, loading, `{"status": "ok", "model": "big", "context": 131072}`)
	out, errs, code := launch(t, dir)
	if code != 3 || !strings.Contains(out, "\nCLAUDE_CODE_MAX_CONTEXT_TOKENS=131072\n") || strings.Count(errs, waits) != 1 || !strings.Contains(errs, "131072 tokens of context") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	dir = t.TempDir()
	healthServer(t, dir, "big", loading, loading, "")
	if _, errs, code = launch(t, dir); code != 1 || !strings.Contains(errs, waits) || !strings.Contains(errs, "ended while it loaded big") {
		t.Errorf("%d %s", code, errs)
	}
}

// A model that does not chat is of no use, however long its context is.
func TestLaunchKinds(t *testing.T) {
	for kind, want := range map[chat.ModelKind]string{chat.Completes: "any is a base model", chat.Embeds: "any is a model for embedding and does not chat"} {
		dir := t.TempDir()
		healthServer(t, dir, "any", fmt.Sprintf(`{"status": "ok", "model": "any", "context": 131072, "kind": %q}`, kind))
		if out, errs, code := launch(t, dir, "--force"); code != 1 || out != "" || !strings.Contains(errs, want) || !strings.Contains(errs, "cannot use it") {
			t.Errorf("%s: %d %s%s", kind, code, out, errs)
		}
	}
}

// Claude Code is told what makes it compact in time, or is not run where its prompt, or a session, does not fit.
func TestLaunchContexts(t *testing.T) {
	const fits, small, few = "Claude Code's prompt of some 14000 tokens does not fit", "is too small for Claude Code", "are few for Claude Code"
	for _, tt := range []struct {
		context int
		args    string
		said    string // "" for nothing but which server it is
		limits  string // window, compaction, reply, file, output of a command; "": it is not run
	}{
		{8192, "", fits, ""},
		{8192, "--force", fits, ""},
		{16047, "--force", fits, ""},
		{16048, "", small, ""},
		{16048, "--force", few, "29048 100000 2006 2006 4012"},
		{32768, "", small, ""},
		{32768, "--force", few, "45768 100000 4096 4096 8192"},
		{40959, "", small, ""},
		{40960, "", few, "53960 100000 5120 5120 10240"},
		{65536, "", few, "78536 100000 8192 8192 16384"},
		{81919, "", few, "94919 100000 10239 10239 20479"},
		{81920, "", "", "94920 100000 10240 10240 20480"},
		{99999, "", "", "112999 112999 12499 12499 24999"},
		{100000, "", "", "100000 100000 25000 - -"},
		{131072, "", "", "131072 131072 - - -"},
		{262144, "--force", "", "262144 262144 - - -"},
	} {
		dir := t.TempDir()
		healthServer(t, dir, "org/100%s", fmt.Sprintf(`{"status": "ok", "model": "org/100%%s", "context": %d}`, tt.context))
		out, errs, code := launch(t, dir, strings.Fields(tt.args)...)
		what := fmt.Sprintf("%d %s: %d %s%s", tt.context, tt.args, code, out, errs)
		if !strings.Contains(errs, tt.said) || !strings.Contains(errs, strconv.Itoa(tt.context)) || tt.said != "" && !strings.Contains(errs, "81920") {
			t.Errorf("%s\nwant %q with the numbers", what, tt.said)
		}
		if tt.limits == "" {
			if !strings.Contains(errs, " has org/100%s: ") || code != 1 || out != "" || !strings.Contains(errs, "start that server with --context-length 81920") {
				t.Error(what)
			}
			if strings.Contains(errs, "--force") != (tt.said == small) {
				t.Errorf("%s\n--force is of use where the prompt fits", what)
			}
			continue
		}
		if tt.said == "" && strings.Count(errs, "\n") != 1 {
			t.Errorf("%s\nsays more than which server it is", what)
		}
		limits := strings.Fields(tt.limits)
		for i, name := range []string{"MAX_CONTEXT_TOKENS", "AUTO_COMPACT_WINDOW", "MAX_OUTPUT_TOKENS", "FILE_READ_MAX_OUTPUT_TOKENS", "BASH_MAX_OUTPUT_LENGTH"} {
			if i < 4 {
				name = "CLAUDE_CODE_" + name
			}
			name = "\n" + name + "="
			if limits[i] == "-" && strings.Contains(out, name) || limits[i] != "-" && !strings.Contains(out, name+limits[i]+"\n") {
				t.Errorf("%s\nwant%s%s", what, name, limits[i])
			}
		}
	}
}

// Of several keys the agent gets one that is not the operator's; where the server knows hashes only, the user names theirs.
func TestLaunchKeys(t *testing.T) {
	hash := sha256.Sum256([]byte("hers"))
	for file, want := range map[string]string{
		"op operator k-op\nalice user k-alice\n":                             "k-alice alice",
		"op operator k-op\nalice user sha256:" + hex.EncodeToString(hash[:]): "k-op op",
		"alice user sha256:" + hex.EncodeToString(hash[:]):                   "",
	} {
		dir := t.TempDir()
		keys := filepath.Join(dir, "keys")
		if err := os.WriteFile(keys, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		p := scriptedServer(t, dir, "--api-key-file", keys)
		out, errs, code := launch(t, dir, "--demo")
		if want != "" {
			key, owner, _ := strings.Cut(want, " ")
			if code != 3 || !strings.Contains(out, "\nANTHROPIC_AUTH_TOKEN="+key+"\n") || !strings.HasSuffix(errs, ", with the key of "+owner+"\n") || strings.Contains(errs, key) {
				t.Errorf("%q: %d %s%s", file, code, out, errs)
			}
			continue
		}
		if code != 1 || !strings.Contains(errs, "knows no more than the hashes") || !strings.Contains(errs, "--api-key KEY") {
			t.Errorf("without a key: %d %s%s", code, out, errs)
		}
		if out, errs, code = launch(t, dir, "--demo", "--api-key", "hers"); code != 3 || !strings.Contains(out, "\nANTHROPIC_AUTH_TOKEN=hers\n") ||
			!strings.HasSuffix(errs, ", with the key from --api-key\n") {
			t.Errorf("with a key: %d %s%s", code, out, errs)
		}
		status, b := request(t, "POST", p.url+"/v1/messages", hello, "X-Api-Key", "hers")
		stop(t, p) // its log is whole then
		if status != 200 || !strings.Contains(p.stderr.String(), " key=alice ") {
			t.Errorf("%d %s\n%s", status, b, p.stderr)
		}
	}
}

// Without a server, launch serves as long as the program runs.
func TestLaunchServes(t *testing.T) {
	file := scriptFile(t, `{"raw": "Hello."}`)
	out, errs, code := launch(t, t.TempDir(), "--demo", "--script", file, "--context-length", "81920")
	if code != 3 || !strings.Contains(out, "ANTHROPIC_BASE_URL=http://127.0.0.1:") || !strings.Contains(out, "MAX_CONTEXT_TOKENS=94920") ||
		!strings.Contains(errs, "no server runs; loading demo") || !strings.Contains(errs, "uses a server of its own at http://127.0.0.1:") {
		t.Errorf("status %d\n%s%s", code, out, errs)
	}
	out, errs, code = launch(t, t.TempDir(), "--demo", "--script", file, "--context-length", "32768")
	if code != 1 || out != "" || !strings.Contains(errs, "ask for more: hearth launch claude --context-length 81920") {
		t.Errorf("too small: status %d\n%s%s", code, out, errs)
	}
}

// The demo's context does not hold the prompt, which nothing insists on.
func TestLaunchDemo(t *testing.T) {
	dir := t.TempDir()
	running := start(t, []string{"XDG_RUNTIME_DIR=" + dir})
	for _, args := range [][]string{nil, {"--demo"}, {"--demo", "--force"}, {"--demo", "--print"}} {
		for _, d := range []string{dir, t.TempDir()} {
			if d != dir && slices.Contains(args, "--print") {
				continue // nothing is started for that
			}
			out, errs, code := launch(t, d, args...)
			if code != 1 || out != "" || !strings.Contains(errs, "prompt of some 14000 tokens does not fit into its context of 8192") ||
				!strings.Contains(errs, "name a model: hearth launch claude --model ") || strings.Contains(errs, "insists") || strings.Contains(errs, running.url) != (d == dir) {
				t.Errorf("%v: %d %s%s", args, code, out, errs)
			}
		}
	}
}

func TestLaunchMistakes(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"hello"}, "arguments of Claude Code go after --: hearth launch claude -- hello"},
		{nil, "the demo model cannot do an agent's work"},
		{[]string{"--model", "demo"}, "the demo model cannot do an agent's work"},
		{[]string{"--model", "./nowhere"}, "./nowhere"},
	} {
		if _, errs, code := launch(t, t.TempDir(), tt.args...); code != 1 || !strings.Contains(errs, tt.want) {
			t.Errorf("%v: %d %s, want %q", tt.args, code, errs, tt.want)
		}
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"claude", "--demo"}, "there is no claude on the path: Claude Code is not installed"},
		{[]string{"codex", "--demo"}, "there is no codex on the path: Codex is not installed"},
		{[]string{"opencode"}, "does not know the agent \"opencode\"\nhearth: hint: it knows claude and codex"},
		{[]string{"codx"}, "did you mean: hearth launch codex"},
		{[]string{"claude-code"}, "did you mean: hearth launch claude"},
		{[]string{"codex", "--print"}, "no server runs\nhearth: hint: start one: hearth serve mlx-community/"},
	} {
		cmd := command(t, []string{"PATH=" + t.TempDir(), "XDG_RUNTIME_DIR=" + t.TempDir()}, "version")
		cmd.Args = append(append(cmd.Args[:1], "launch"), tt.args...)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("%v: %v %s, want %q", tt.args, err, out, tt.want)
		}
	}
}
