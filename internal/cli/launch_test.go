package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// fakeClaude is a program called claude that shows what it was given and asks its server for the models.
const fakeClaude = `#!/bin/sh
echo "args: $*"
env | grep -E '^(ANTHROPIC|CLAUDE_CODE)_' | sort
exit 3
`

// launch runs hearth launch claude with a fake claude on the path.
func launch(t *testing.T, runtimeDir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the fake claude is a shell script")
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "claude"), []byte(fakeClaude), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + runtimeDir, "ANTHROPIC_API_KEY=the user's own"},
		append([]string{"launch", "claude"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // its status is what is looked at
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// A running server is found by its state file, which only its user can read, and its key comes along.
func TestLaunchFindsServer(t *testing.T) {
	dir := t.TempDir()
	p := start(t, []string{"XDG_RUNTIME_DIR=" + dir, "HEARTH_API_KEY=it's secret"})
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
CLAUDE_CODE_AUTO_COMPACT_WINDOW=8192
CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
CLAUDE_CODE_MAX_CONTEXT_TOKENS=8192
CLAUDE_CODE_MAX_OUTPUT_TOKENS=2048
CLAUDE_CODE_SUBAGENT_MODEL=demo
`
	if out != want || errs != "" || code != 3 {
		t.Errorf("status %d, stderr %q, stdout:\n%s\nwant:\n%s", code, errs, out, want)
	}
	out, _, code = launch(t, dir, "--demo", "--print")
	if code != 0 || !strings.Contains(out, "export ANTHROPIC_AUTH_TOKEN='it'\\''s secret'\n") || strings.Contains(out, "args:") {
		t.Errorf("--print: %d\n%s", code, out)
	}
	// Another model than the one that runs is not this server's business.
	if _, errs, code = launch(t, dir, "--print", "--model", "other"); code != 1 || !strings.Contains(errs, "no server runs") {
		t.Errorf("another model: %d %s", code, errs)
	}
	if _, errs, code = launch(t, dir); code != 1 || !strings.Contains(errs, "the demo model cannot do an agent's work") || !strings.Contains(errs, "--demo insists") {
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

// Of several keys the agent gets one that is not the operator's; where the server knows hashes only, the user names theirs.
func TestLaunchKeys(t *testing.T) {
	hash := sha256.Sum256([]byte("hers"))
	for file, want := range map[string]string{
		"op operator k-op\nalice user k-alice\n":                             "k-alice",
		"op operator k-op\nalice user sha256:" + hex.EncodeToString(hash[:]): "k-op",
		"alice user sha256:" + hex.EncodeToString(hash[:]):                   "",
	} {
		dir := t.TempDir()
		keys := filepath.Join(dir, "keys")
		if err := os.WriteFile(keys, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		p := start(t, []string{"XDG_RUNTIME_DIR=" + dir}, "--api-key-file", keys)
		out, errs, code := launch(t, dir, "--demo")
		if want != "" {
			if code != 3 || !strings.Contains(out, "\nANTHROPIC_AUTH_TOKEN="+want+"\n") {
				t.Errorf("%q: %d %s%s", file, code, out, errs)
			}
			continue
		}
		if code != 1 || !strings.Contains(errs, "knows no more than the hashes") || !strings.Contains(errs, "--api-key KEY") {
			t.Errorf("without a key: %d %s%s", code, out, errs)
		}
		if out, errs, code = launch(t, dir, "--demo", "--api-key", "hers"); code != 3 || !strings.Contains(out, "\nANTHROPIC_AUTH_TOKEN=hers\n") {
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
	out, errs, code := launch(t, t.TempDir(), "--demo", "--context-length", "4096")
	if code != 3 || !strings.Contains(out, "ANTHROPIC_BASE_URL=http://127.0.0.1:") || !strings.Contains(out, "MAX_CONTEXT_TOKENS=4096") ||
		!strings.Contains(errs, "no server runs; loading demo") {
		t.Errorf("status %d\n%s%s", code, out, errs)
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
	cmd := command(t, []string{"PATH=" + t.TempDir()}, "version")
	cmd.Args = append(cmd.Args[:1], "launch", "claude", "--demo")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "Claude Code is not installed") {
		t.Errorf("without claude: %v %s", err, out)
	}
}
