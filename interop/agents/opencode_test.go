package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// providers are the two ways of docs/agents.md to tell opencode of hearth.
var providers = []struct{ name, npm, path string }{
	{"chat", "@ai-sdk/openai-compatible", "/v1/chat/completions"},
	{"messages", "@ai-sdk/anthropic", "/v1/messages"},
}

// Beside the conversation opencode asks for a title, without tools.
var title = line{IfLast: "title for this conversation", Raw: "A file"}

// TestOpencode: opencode writes a file and reads it back, each turn building on the cache of the one before. It asks for
// 32,000 tokens, which do not fit behind its prompt.
func TestOpencode(t *testing.T) {
	for _, p := range providers {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, []string{"--context-length", "32768"}, title,
				line{Turn: 1, IfTool: "^write$", Raw: "I will write it.\n" + toolCall("write", `{"filePath": "hello.txt", "content": "Hello from hearth.\n"}`)},
				line{Turn: 2, IfTool: "^read$", Raw: toolCall("read", `{"filePath": "hello.txt"}`)},
				line{Turn: 3, Raw: `The file says: {{find "Hello from \\w+" .Last}}.`})
			r := s.opencode(t, s.project(t, nil), p.npm, nil, "Write hello.txt and read it back")
			r.says(t, "I will write it.", "The file says: Hello from hearth.")
			r.has(t, "hello.txt", "Hello from hearth.\n")
			var turns []call
			for _, c := range s.calls(t, p.path, 4) {
				if c.prompt > 3000 { // the title's has some 1,300
					turns = append(turns, c)
				}
			}
			if len(turns) != 3 {
				t.Fatalf("%d turns, want 3", len(turns))
			}
			for i := 1; i < len(turns); i++ {
				if whole := turns[i-1].prompt + turns[i-1].output - 1; turns[i].cached < whole {
					t.Errorf("turn %d reuses %d tokens, the turn before had %d", i+1, turns[i].cached, whole)
				}
			}
		})
	}
}

// TestOpencodeContextFills: told how long the context is, opencode compacts the conversation before it is full, and goes on.
func TestOpencodeContextFills(t *testing.T) {
	for _, p := range providers {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, []string{"--context-length", "32768"}, title,
				line{IfLast: "(?i)summary", Raw: "Four files were read."},
				line{Times: 4, IfTool: "^read$", Raw: toolCall("read", `{"filePath": "big{{.Turn}}.txt"}`)},
				line{Raw: "All was read."})
			big := strings.Repeat("a line of a file with some words in it\n", 450)
			files := map[string]string{"big1.txt": big, "big2.txt": big, "big3.txt": big, "big4.txt": big}
			r := s.opencode(t, s.project(t, files), p.npm, object{"context": 32768, "output": 8192}, "Read the files")
			r.says(t, "Four files were read.", "All was read.")
			s.calls(t, p.path, 0)
		})
	}
}

// demoSays is how the demo begins to say that it is too small.
const demoSays = "This is hearth's demo, a tiny model with a context of 8192 tokens: it is too small for this prompt of "

// TestOpencodeDemo: what a person sees who tries opencode on the demo first.
func TestOpencodeDemo(t *testing.T) {
	for _, p := range providers {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, nil)
			r := s.opencode(t, s.project(t, nil), p.npm, nil, "What is the capital of France?")
			r.says(t, demoSays, "; for a real model: hearth pull ", " && hearth serve ")
			s.calls(t, p.path, 0)
		})
	}
}

// TestOpencodeDemoTooSmall: where the project's instructions leave no room on the demo, opencode shows what it says of that.
func TestOpencodeDemoTooSmall(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	home := s.project(t, map[string]string{"AGENTS.md": strings.Repeat("Be kind to whoever reads this code after you.\n", 400)})
	r := s.run(t, home, s.opencodeCommand(t, home, providers[0].npm, nil, "What is the capital of France?"))
	if r.err == nil || !strings.Contains(r.notes, demoSays) {
		t.Errorf("%v\n%s%s", r.err, r.out, r.notes)
	}
}

type object = map[string]any

// opencodeCommand tells opencode of the server in its settings, as docs/agents.md does, and runs it.
func (s *server) opencodeCommand(t *testing.T, home, npm string, limit object, prompt string) []string {
	t.Helper()
	model := object{}
	if limit != nil {
		model["limit"] = limit
	}
	settings := object{"model": "hearth/demo", "small_model": "hearth/demo", "autoupdate": false, "share": "disabled",
		"provider": object{"hearth": object{"npm": npm, "name": "hearth",
			"options": object{"baseURL": s.url + "/v1", "apiKey": "any"}, "models": object{"demo": model}}}}
	b, err := json.Marshal(settings)
	if err == nil {
		err = os.WriteFile(filepath.Join(home, "project", "opencode.json"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return []string{*opencodeFlag, "run", prompt}
}

// opencode runs opencode, which must succeed.
func (s *server) opencode(t *testing.T, home, npm string, limit object, prompt string) *run {
	t.Helper()
	r := s.run(t, home, s.opencodeCommand(t, home, npm, limit, prompt))
	if r.err != nil {
		t.Errorf("opencode: %v\n%s%s", r.err, r.out, r.notes)
	}
	return r
}
