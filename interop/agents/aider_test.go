package agents

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAider: aider creates a file from a whole one.
func TestAider(t *testing.T) {
	t.Parallel()
	s := serve(t, []string{"--context-length", "32768"}, line{Raw: "Here it is.\n\nhello.py\n```\nprint('Hello from hearth.')\n```\n"})
	r := s.aider(t, s.project(t, nil), "--edit-format", "whole", "--no-git", "--message", "Write hello.py", "hello.py")
	r.says(t, "Here it is.", "Applied edit to hello.py")
	r.has(t, "hello.py", "print('Hello from hearth.')\n")
	s.calls(t, chatPath, 1)
}

// TestAiderDiff: aider edits a file of a repository and commits it. The first edit fits nothing, so it asks again, on the
// cache of the first request.
func TestAiderDiff(t *testing.T) {
	t.Parallel()
	const before, after = "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n"
	edit := func(from string) string {
		return "sums.py\n```python\n<<<<<<< SEARCH\n" + from + "\n=======\n    return a + b\n>>>>>>> REPLACE\n```\n"
	}
	s := serve(t, []string{"--context-length", "32768"},
		line{IfLast: "# Diffs:", Raw: "fix: add instead of subtracting"},
		line{IfLast: "failed to match", Raw: edit("    return a - b")},
		line{IfLast: "Mend the sum", Raw: edit("    return a * b")})
	home := s.project(t, map[string]string{"sums.py": before})
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-c", "user.name=hearth", "-c", "user.email=hearth@example.com"}, args...)...)
		cmd.Dir, cmd.Env = filepath.Join(home, "project"), s.env(home)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	git("init", "-q")
	git("add", "sums.py")
	git("commit", "-q", "-m", "a sum")
	r := s.aider(t, home, "--edit-format", "diff", "--message", "Mend the sum", "sums.py")
	r.says(t, "Applied edit to sums.py")
	r.has(t, "sums.py", after)
	if log := git("log", "--format=%s", "--", "sums.py"); log != "fix: add instead of subtracting\na sum\n" {
		t.Errorf("commits %q", log)
	}
	calls := s.calls(t, chatPath, 3) // edit, edit, message of the commit
	// aider moves what stands last in its prompt, the rules of edits, behind the new turn.
	if calls[1].cached < calls[0].prompt/2 {
		t.Errorf("the second turn reuses %d tokens of %d", calls[1].cached, calls[0].prompt)
	}
}

// TestAiderDemo: what a person sees who tries aider on the demo first.
func TestAiderDemo(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	r := s.aider(t, s.project(t, nil), "--no-git", "--message", "What is the capital of France?")
	r.says(t, "received.") // the tokens of an answer
	s.calls(t, chatPath, 1)
}

// aider runs aider, told of the server as docs/agents.md does.
func (s *server) aider(t *testing.T, home string, args ...string) *run {
	t.Helper()
	const about = `{"openai/demo": {"max_input_tokens": 32768, "max_output_tokens": 8192, "litellm_provider": "openai", "mode": "chat"}}`
	if err := os.WriteFile(filepath.Join(home, ".aider.model.metadata.json"), []byte(about), 0o600); err != nil {
		t.Fatal(err)
	}
	r := s.run(t, home, append([]string{*aiderFlag, "--model", "openai/demo", "--yes-always", "--analytics-disable", "--no-check-update",
		"--no-show-release-notes", "--no-show-model-warnings", "--no-pretty"}, args...))
	if r.err != nil || strings.Contains(r.out, "Error") {
		t.Errorf("aider: %v\n%s%s", r.err, r.out, r.notes)
	}
	return r
}
