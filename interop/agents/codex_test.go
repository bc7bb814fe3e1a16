package agents

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const responsesPath = "/v1/responses"

// quiet keeps Codex from asking other hosts.
const quiet = "\n[analytics]\nenabled = false\n\n[features]\nplugins = false\napps = false\nremote_plugin = false\n"

// codex runs Codex as docs/responses.md tells it of the server, in a clean home. It may do what it likes there: what it does, the
// script says.
func (s *server) codex(t *testing.T, home, prompt string) *run {
	t.Helper()
	return s.codexAs(t, home, prompt, "hearth", "")
}

// codexAs is codex with another name for the provider, by which it knows what a server can do, and more settings.
func (s *server) codexAs(t *testing.T, home, prompt, provider, more string) *run {
	t.Helper()
	if *codexFlag == "" {
		t.Skip("run by make interop, which installs Codex")
	}
	settings := fmt.Sprintf("model = \"demo\"\nmodel_provider = \"hearth\"\n%s\n[model_providers.hearth]\nname = %q\nbase_url = %q\nwire_api = \"responses\"\n"+quiet,
		more, provider, s.url+"/v1")
	err := os.Mkdir(filepath.Join(home, ".codex"), 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(home, ".codex", "config.toml"), []byte(settings), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := s.run(t, home, []string{*codexFlag, "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", prompt})
	if r.err != nil {
		t.Errorf("codex: %v\n%s%s", r.err, r.out, r.notes)
	}
	return r
}

// writes is the script of a session that writes a file: Codex's shell takes the command as a text.
func writes() []line {
	return []line{
		{Turn: 1, IfTool: "^exec_command$", Raw: "<think>A file it is.</think>I will write it.\n" + toolCall("exec_command", `{"cmd": "echo Hello from hearth. >hello.txt; cat hello.txt"}`)},
		{Turn: 2, Raw: `The file says: {{find "Hello from \\w+" .Last}}.`},
	}
}

// TestCodex: Codex writes a file and reads it, and the second turn builds on the cache of the first. What is said of the tool's
// result is in its answer, so it came back.
func TestCodex(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, writes()...)
	r := s.codex(t, s.project(t, nil), "Write hello.txt")
	r.says(t, "The file says: Hello from hearth.")
	r.has(t, "hello.txt", "Hello from hearth.\n")
	calls := s.calls(t, responsesPath, 2)
	if whole := calls[0].prompt + calls[0].output - 1; calls[1].cached < whole {
		t.Errorf("the second turn reuses %d tokens, the first had %d", calls[1].cached, whole)
	}
}

// TestCodexRecovers: Codex tries again after each of these, and runs its tool once.
func TestCodexRecovers(t *testing.T) {
	for name, fault := range map[string]fault{"too many requests": {Kind: "rate_limited"}, "an error": {Kind: "error"}, "a cut": {Kind: "cut", After: 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := append([]line{{Times: 1, Turn: 2, Raw: "The file, well, says many things to many people.", Fault: &fault}}, writes()...)
			script[1].Raw = strings.Replace(script[1].Raw, ">hello.txt", ">>hello.txt", 1)
			s := serve(t, nil, script...)
			r := s.codex(t, s.project(t, nil), "Write hello.txt")
			r.says(t, "The file says: Hello from hearth.")
			r.has(t, "hello.txt", "Hello from hearth.\n")
		})
	}
}

// TestCodexCompacts: Codex has a conversation that grew too long summed up in the middle of its turn, and goes on from there.
// Where the provider calls itself OpenAI the server does that, on top of what it has cached; else Codex asks the model.
func TestCodexCompacts(t *testing.T) {
	for provider, asked := range map[string]string{"OpenAI": "Stop here: do not go on", "hearth": "CONTEXT CHECKPOINT"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			s := serve(t, nil,
				line{Times: 1, Turn: 1, Raw: "I will look.\n" + toolCall("exec_command", `{"cmd": "seq 1 3000; echo the boat is green"}`)},
				line{Times: 1, Turn: 2, Raw: "And again.\n" + toolCall("exec_command", `{"cmd": "echo the sail is red"}`)},
				line{Times: 1, IfLast: asked, Raw: "Seen: a green boat with a red sail."},
				line{IfLast: "Seen: a green boat", Raw: "It is green, and its sail is red."})
			r := s.codexAs(t, s.project(t, nil), "What colour is the boat?", provider, "model_context_window = 32768\nmodel_auto_compact_token_limit = 16000\n")
			r.says(t, "It is green, and its sail is red.")
			calls := s.calls(t, responsesPath, 4)
			if calls[3].prompt > 16000 {
				t.Errorf("it goes on with %d tokens", calls[3].prompt)
			}
			if provider == "OpenAI" && calls[2].cached < calls[1].prompt {
				t.Errorf("the summary reuses %d tokens, the turn before had %d", calls[2].cached, calls[1].prompt)
			}
		})
	}
}

// launch runs Codex by hearth launch, which finds the server, for a user who has settings of their own for another provider.
func (s *server) launch(t *testing.T, home string, args ...string) *run {
	t.Helper()
	const own = "model = \"gpt-5.6-sol\"\nmodel_reasoning_effort = \"high\"\nweb_search = \"live\"\n"
	if *codexFlag == "" {
		t.Skip("run by make interop, which installs Codex")
	}
	file := filepath.Join(home, ".codex", "config.toml")
	err := os.Mkdir(filepath.Dir(file), 0o700)
	if err == nil {
		err = os.WriteFile(file, []byte(own), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	command := []string{"env", "XDG_RUNTIME_DIR=" + s.dir, "PATH=" + filepath.Dir(*codexFlag) + ":" + os.Getenv("PATH"), *hearthFlag, "launch", "codex", "--demo", "--",
		"exec", "--skip-git-repo-check", "--sandbox", "danger-full-access"}
	r := s.run(t, home, append(command, args...))
	if r.err != nil {
		t.Errorf("hearth launch codex: %v\n%s%s", r.err, r.out, r.notes)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != own {
		t.Errorf("the user's settings are now %q, %v", after, err)
	}
	return r
}

// TestCodexLaunched: without a setting of the user's, Codex finds the server and its key, and writes a file. It does not ask for
// a search that only its maker's servers run.
func TestCodexLaunched(t *testing.T) {
	t.Parallel()
	s := serve(t, []string{"--api-key", "secret", "--hosted-tools", "refuse"}, writes()...)
	r := s.launch(t, s.project(t, nil), "Write hello.txt")
	r.says(t, "The file says: Hello from hearth.")
	r.has(t, "hello.txt", "Hello from hearth.\n")
	s.calls(t, responsesPath, 2)
}

// TestCodexGoesOn: in the least context that launch takes without being forced, a session of a dozen files goes on, compacted
// again and again, and no request is refused.
func TestCodexGoesOn(t *testing.T) {
	t.Parallel()
	const files = 12
	s := serve(t, []string{"--context-length", "32768"},
		line{IfLast: "Stop here: do not go on", Raw: "<think>What was it?</think>" + strings.Repeat("Files were read, with little in them. ", 100)},
		line{Times: files, IfTool: "^exec_command$", Raw: "I read on.\n" + toolCall("exec_command", `{"cmd": "echo >>read; cat big.txt"}`)},
		line{Raw: "All was read."})
	home := s.project(t, map[string]string{"big.txt": strings.Repeat("A line of a file that is read again and again.\n", 400)})
	r := s.launch(t, home, "Read them all.")
	r.says(t, "All was read.")
	r.has(t, "read", strings.Repeat("\n", files))
	if calls := s.calls(t, responsesPath, 0); len(calls) < files+2 {
		t.Errorf("%d requests for %d files: it compacted nothing", len(calls), files)
	}
}
