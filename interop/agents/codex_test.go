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

// codexProviders are the ways in which Codex is told of the server: by a provider of the user's, which posts unless it is told to
// use WebSockets, or by another address for the built-in one, which asks for a WebSocket first. One that is called OpenAI has the
// server sum conversations up.
var codexProviders = map[string]string{
	"own":      "model_provider = \"hearth\"\n\n[model_providers.hearth]\nname = \"hearth\"\nbase_url = %q\nwire_api = \"responses\"\n",
	"sockets":  "model_provider = \"hearth\"\n\n[model_providers.hearth]\nname = \"hearth\"\nbase_url = %q\nwire_api = \"responses\"\nsupports_websockets = true\n",
	"built-in": "openai_base_url = %q\n",
	"compacts": "model_provider = \"hearth\"\n\n[model_providers.hearth]\nname = \"OpenAI\"\nbase_url = %q\nwire_api = \"responses\"\n",
}

// codex runs Codex as docs/agents.md tells it of the server, in a clean home. It may do what it likes there: what it does, the
// script says. The provider "knows" is the user's with a name for the model that Codex knows, "wide" the user's with a context
// that a template which spells tools out does not fill.
func (s *server) codex(t *testing.T, provider, home, prompt string) *run {
	t.Helper()
	if *codexFlag == "" {
		t.Skip("run by make interop, which installs Codex")
	}
	model, window, compact := "demo", 32768, 16000
	switch provider {
	case "knows":
		model, provider = "gpt-5.5", "own"
	case "wide":
		window, compact, provider = 200_000, 100_000, "own"
	}
	settings := fmt.Sprintf("model = %q\nmodel_context_window = %d\nmodel_auto_compact_token_limit = %d\n"+codexProviders[provider]+quiet, model, window, compact, s.url+"/v1")
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

// TestCodex: Codex writes a file and reads it, and each turn builds on the cache of the one before; on a WebSocket the first on a
// prompt that was computed ahead. What is said of the tool's result is in its answer, so it came back.
func TestCodex(t *testing.T) {
	for provider, turns := range map[string]int{"own": 2, "sockets": 3, "built-in": 3} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			s := serve(t, nil, writes()...)
			r := s.codex(t, provider, s.project(t, nil), "Write hello.txt")
			r.says(t, "The file says: Hello from hearth.")
			r.has(t, "hello.txt", "Hello from hearth.\n")
			calls := s.calls(t, responsesPath, turns)
			for i := range calls[1:] {
				const opening = 8 // tokens that begin an answer, and stand behind a prompt that is computed ahead
				if whole := calls[i].prompt + calls[i].output - 1; calls[i+1].cached < whole-opening || calls[i].output > 0 && calls[i+1].cached < whole {
					t.Errorf("turn %d reuses %d tokens, the one before had %d", i+2, calls[i+1].cached, whole)
				}
			}
			s.sockets(t, turns-2)
		})
	}
}

// TestCodexPatches: Codex applies a patch, the input of a custom tool whose grammar in Lark is read here.
func TestCodexPatches(t *testing.T) {
	t.Parallel()
	patch := "*** Begin Patch\n*** Update File: a.txt\n@@\n-red\n+\"green\" \\n </parameter>\n*** Add File: hello.txt\n+Hello from hearth.\n*** End Patch\n"
	s := serve(t, nil,
		line{Turn: 1, IfTool: "^apply_patch$", Raw: toolCall("apply_patch", fmt.Sprintf(`{"input": %q}`, patch))},
		line{Turn: 2, Raw: "Both files are written."})
	r := s.codex(t, "knows", s.project(t, map[string]string{"a.txt": "blue\nred\n"}), "Write hello.txt")
	r.says(t, "Both files are written.")
	r.has(t, "a.txt", "blue\n\"green\" \\n </parameter>\n")
	r.has(t, "hello.txt", "Hello from hearth.\n")
	s.calls(t, responsesPath, 2)
}

// TestCodexRecovers: Codex tries again after each of these, on another WebSocket if it has one, and runs its tool once.
func TestCodexRecovers(t *testing.T) {
	for name, fault := range map[string]fault{"too many requests": {Kind: "rate_limited"}, "an error": {Kind: "error"}, "a cut": {Kind: "cut", After: 3}} {
		for provider, sockets := range map[string]int{"own": 0, "built-in": 2} {
			t.Run(name+"/"+provider, func(t *testing.T) {
				t.Parallel()
				script := append([]line{{Times: 1, Turn: 2, Raw: "The file, well, says many things to many people.", Fault: &fault}}, writes()...)
				script[1].Raw = strings.Replace(script[1].Raw, ">hello.txt", ">>hello.txt", 1)
				s := serve(t, nil, script...)
				r := s.codex(t, provider, s.project(t, nil), "Write hello.txt")
				r.says(t, "The file says: Hello from hearth.")
				r.has(t, "hello.txt", "Hello from hearth.\n")
				s.stop()
				s.sockets(t, sockets)
			})
		}
	}
}

// TestCodexWithoutSocket: where no WebSocket is free Codex posts, and asks for none again.
func TestCodexWithoutSocket(t *testing.T) {
	t.Parallel()
	s := serve(t, []string{"--max-sockets", "0"}, writes()...)
	r := s.codex(t, "built-in", s.project(t, nil), "Write hello.txt")
	r.says(t, "The file says: Hello from hearth.")
	r.has(t, "hello.txt", "Hello from hearth.\n")
	s.stop()
	if n := strings.Count(s.stderr.String(), " status=426 "); n != 1 {
		t.Errorf("it asks for a WebSocket %d times", n)
	}
}

// TestCodexCompacts: Codex has a conversation that grew too long summed up in the middle of its turn, and goes on from there.
// Where the server does that it is on top of what it has cached, reasoning included; else Codex asks the model.
func TestCodexCompacts(t *testing.T) {
	for provider, asked := range map[string]string{"compacts": "Stop here: do not go on", "built-in": "Stop here: do not go on", "own": "CONTEXT CHECKPOINT"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			s := serve(t, nil,
				line{IfLast: asked, Raw: "Seen: a green boat with a red sail."},
				line{IfLast: "Seen: a green boat", Raw: "It is green, and its sail is red."},
				line{Turn: 1, Raw: "<think>A list may say.</think>I will look.\n" + toolCall("exec_command", `{"cmd": "seq 1 3000; echo the boat is green"}`)},
				line{Turn: 2, Raw: "<think>More of it.</think>And again.\n" + toolCall("exec_command", `{"cmd": "echo the sail is red"}`)})
			r := s.codex(t, provider, s.project(t, nil), "What colour is the boat?")
			r.says(t, "It is green, and its sail is red.")
			calls := s.calls(t, responsesPath, 0)
			n := len(calls) // a prompt may have been computed ahead
			if n < 4 || calls[n-1].prompt > 16000 {
				t.Fatalf("it goes on with %d", calls)
			}
			if provider != "own" && calls[n-2].cached < calls[n-3].prompt {
				t.Errorf("the summary reuses %d tokens, the turn before had %d", calls[n-2].cached, calls[n-3].prompt)
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
