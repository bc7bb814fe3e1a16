package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// fakeCodex is a program called codex that has a version, and shows what it was given, an argument a line.
const fakeCodex = `#!/bin/sh
[ "$*" = --version ] && { echo codex-cli %s; exit; }
env | grep CODEX_HEARTH | sort
printf '%%s\n' "$@"
exit 3
`

func launchCodex(t *testing.T, runtimeDir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return launchFake(t, runtimeDir, "codex", fmt.Sprintf(fakeCodex, "0.171.0"), args...)
}

// Codex finds the server by its arguments, its key is in the environment alone, and what the user says of Codex comes last.
func TestLaunchCodex(t *testing.T) {
	dir := t.TempDir()
	p := scriptedServer(t, dir, "--api-key", "it's secret", "--served-model-name", `org/a"b`)
	out, errs, code := launchCodex(t, dir, "--demo", "--", "exec", "-c", "web_search=live", "hello there")
	want := `CODEX_HEARTH_KEY=it's secret
-c
model_provider="hearth"
-c
model_providers.hearth.name="OpenAI"
-c
model_providers.hearth.base_url="` + p.url + `/v1"
-c
model_providers.hearth.wire_api="responses"
-c
model_providers.hearth.env_key="CODEX_HEARTH_KEY"
-c
model_providers.hearth.stream_idle_timeout_ms=3600000
-c
model="org/a\"b"
-c
review_model="org/a\"b"
-c
model_context_window=200000
-c
model_auto_compact_token_limit=183616
-c
web_search="disabled"
-c
analytics.enabled=false
-c
check_for_update_on_startup=false
-c
features.plugins=false
-c
features.apps=false
-c
features.daemon_auto_start=false
exec
-c
web_search=live
hello there
`
	said := fmt.Sprintf("hearth: Codex uses the server at %s (process %d): org/a\"b, 200000 tokens of context, with its key\n", p.url, p.Process.Pid)
	if out != want || errs != said || code != 3 {
		t.Errorf("status %d, stderr %q, want %q, stdout:\n%s\nwant:\n%s", code, errs, said, out, want)
	}
	// What --print prints does the same in a shell.
	printed, errs, code := launchCodex(t, dir, "--demo", "--print", "--", "exec", "-c", "web_search=live", "hello there")
	if code != 0 || errs != said || strings.Count(printed, "\n") != 2 || !strings.HasPrefix(printed, "export CODEX_HEARTH_KEY='it'\\''s secret'\ncodex -c 'model_provider=\"hearth\"' ") {
		t.Fatalf("--print: %d %s%s", code, printed, errs)
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "codex"), fmt.Appendf(nil, fakeCodex, "0.171.0"), 0o755); err != nil {
		t.Fatal(err)
	}
	sh := exec.Command("sh", "-c", printed)
	sh.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
	if ran, _ := sh.Output(); string(ran) != want {
		t.Errorf("a shell runs\n%s\nwant\n%s", ran, want)
	}
	// A server that was killed leaves a file that is not believed.
	_ = p.Process.Kill()
	_ = p.Wait()
	if _, errs, code := launchCodex(t, dir, "--demo", "--print"); code != 1 || !strings.Contains(errs, "no server runs") {
		t.Errorf("after the server's end: %d %s", code, errs)
	}
}

// Where no key is asked for there is one all the same, and a small model is nothing that Codex uses.
func TestLaunchCodexServes(t *testing.T) {
	out, errs, code := launchCodex(t, t.TempDir(), "--demo", "--script", scriptFile(t, `{"raw": "Hello."}`), "--context-length", "65536", "--small-model", "demo")
	if code != 3 || !strings.HasPrefix(out, "CODEX_HEARTH_KEY=hearth\n-c\n") || !strings.Contains(out, "\nmodel_providers.hearth.base_url=\"http://127.0.0.1:") ||
		!strings.Contains(errs, "no server runs; loading demo for as long as Codex runs") || !strings.Contains(errs, ": demo, 65536 tokens of context, no key is asked for\n") {
		t.Errorf("status %d\n%s%s", code, out, errs)
	}
}

// Codex compacts while there is room for what tools say last and for the summary, or is not run where its prompt, or a session,
// does not fit.
func TestLaunchCodexContexts(t *testing.T) {
	const fits, small, few = "Codex's prompt of some 12000 tokens does not fit", "is too small for Codex", "are few for Codex"
	for _, tt := range []struct {
		context  int
		args     string
		said     string // "" for nothing but which server it is
		compacts int    // 0: it is not run
	}{
		{14047, "--force", fits, 0},
		{14048, "", small, 0},
		{14048, "--force", few, 10536},
		{32767, "", small, 0},
		{32768, "", few, 24576},
		{65535, "", few, 49152},
		{65536, "", "", 49152},
		{262144, "", "", 245760},
	} {
		dir := t.TempDir()
		healthServer(t, dir, "org/m", fmt.Sprintf(`{"status": "ok", "model": "org/m", "context": %d}`, tt.context))
		out, errs, code := launchCodex(t, dir, strings.Fields(tt.args)...)
		what := fmt.Sprintf("%d %s: %d %s%s", tt.context, tt.args, code, out, errs)
		if !strings.Contains(errs, tt.said) || tt.said == "" && strings.Count(errs, "\n") != 1 || tt.said != "" && !strings.Contains(errs, "65536") {
			t.Errorf("%s\nwant %q", what, tt.said)
		}
		switch {
		case tt.compacts == 0 && (code != 1 || out != ""):
			t.Error(what)
		case tt.compacts != 0 && (code != 3 || !strings.Contains(out, fmt.Sprintf("\nmodel_context_window=%d\n", tt.context)) ||
			!strings.Contains(out, "\nmodel_auto_compact_token_limit="+strconv.Itoa(tt.compacts)+"\n")):
			t.Errorf("%s\nwant it to compact at %d", what, tt.compacts)
		}
	}
}

// What is no Codex, or an old one, is not run, and how to get one is said.
func TestLaunchCodexVersions(t *testing.T) {
	dir := t.TempDir()
	healthServer(t, dir, "org/m", `{"status": "ok", "model": "org/m", "context": 65536}`)
	const old = "is codex-cli 0.141.9; the oldest version that is known to work is 0.142"
	for script, want := range map[string]string{
		fmt.Sprintf(fakeCodex, "0.141.9"):                       old,
		fmt.Sprintf(fakeCodex, "0.142.0"):                       "",
		fmt.Sprintf(fakeCodex, "0.180.0-alpha.2"):               "",
		fmt.Sprintf(fakeCodex, "1.0.0"):                         "",
		"#!/bin/sh\necho codex, a reader of books":              `is not OpenAI's Codex: its --version says "codex, a reader of books"`,
		"#!/bin/sh\necho no binary for this machine >&2\nfalse": "no binary for this machine",
	} {
		out, errs, code := launchFake(t, dir, "codex", script)
		if want == "" && code != 3 || want != "" && (code != 1 || out != "" || !strings.Contains(errs, want) || !strings.Contains(errs, "hint: npm install -g @openai/codex@latest\n")) {
			t.Errorf("%s\n%d %s%s, want %q", script, code, out, errs, want)
		}
	}
	if _, errs, code := launchFake(t, dir, "codex", fmt.Sprintf(fakeCodex, "0.141.9"), "--print"); code != 1 || !strings.Contains(errs, old) {
		t.Errorf("--print: %d %s", code, errs)
	}
}
