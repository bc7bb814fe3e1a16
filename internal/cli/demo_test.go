package cli

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/demo"
	"hearth/internal/hub"
)

// knownWords are what agents and their libraries take for a full context: they show words of their own then.
var knownWords = regexp.MustCompile(`(?i)prompt is too long|maximum context length|context_length_exceeded|context limit|context window|exceeds|reduce the length|longer than|token limit|too many tokens`)

// A prompt that the demo has no room for is refused with a sentence that says what answers and what to type. An agent's
// first turn, whose client could compact nothing, gets the sentence alone; others get it behind the words that clients know.
func TestDemoAdvice(t *testing.T) {
	url := serveDemo(t, func(c *config.Config) { c.ContextLength = 512 })
	long := strings.Repeat("a ", 700)
	user := object{"role": "user", "content": long}
	turns := []any{object{"role": "user", "content": "Hi"}, object{"role": "assistant", "content": "Hello!"}, user}
	system := object{"role": "system", "content": "Be kind."}
	schema := object{"type": "object", "properties": object{"path": object{"type": "string"}}}
	forMessages := []any{object{"name": "Read", "input_schema": schema}}
	forChat := []any{object{"type": "function", "function": object{"name": "read", "parameters": schema}}}
	const messages, chat, words = "prompt is too long: ", "This model's maximum context length is 511 tokens. However, ", "context_length_exceeded"
	for _, tt := range []struct {
		name, path string
		body       object
		prefix     string // of the words; "" the sentence alone
		code       string
	}{
		{"messages, an agent's first turn", "/v1/messages", object{"messages": []any{user}, "tools": forMessages}, "", ""},
		{"messages, its instructions too", "/v1/messages", object{"system": long, "messages": []any{user, system}, "tools": forMessages}, "", ""},
		{"messages, an agent's later turn", "/v1/messages", object{"messages": turns, "tools": forMessages}, messages, ""},
		{"messages, no agent", "/v1/messages", object{"messages": []any{user}}, messages, ""},
		{"chat, an agent's first turn", "/v1/chat/completions", object{"messages": []any{system, user}, "tools": forChat}, "", ""},
		{"chat, with all tools off", "/v1/chat/completions", object{"messages": []any{user}, "tools": forChat, "tool_choice": "none"}, "", ""},
		{"chat, an agent's later turn", "/v1/chat/completions", object{"messages": turns, "tools": forChat}, chat, words},
		{"chat, no agent", "/v1/chat/completions", object{"messages": []any{system, user}}, chat, words},
		{"azure, an agent's first turn", "/openai/deployments/demo/chat/completions?api-version=2024-10-21", object{"messages": []any{system, user}, "tools": forChat}, "", ""},
		{"azure, no agent", "/openai/deployments/demo/chat/completions?api-version=2024-10-21", object{"messages": []any{user}}, chat, words},
		{"completions", "/v1/completions", object{"prompt": long}, chat, words},
	} {
		for _, stream := range []bool{false, true} {
			tt.body["model"], tt.body["max_tokens"], tt.body["stream"] = "demo", 20, stream
			b, err := json.Marshal(tt.body)
			if err != nil {
				t.Fatal(err)
			}
			status, got := request(t, "POST", url+tt.path, string(b))
			var e struct{ Error struct{ Message, Code string } }
			if err := json.Unmarshal(got, &e); err != nil || status != 400 {
				t.Errorf("%s, stream %t: %d %s", tt.name, stream, status, got)
				continue
			}
			at := strings.Index(e.Error.Message, "This is hearth's demo, a tiny model with a context of 512 tokens, and this prompt has ")
			if at < 0 || !strings.HasSuffix(e.Error.Message, " && hearth serve mlx-community/Qwen3-4B-Instruct-2507-4bit") {
				t.Errorf("%s, stream %t: no advice in %q", tt.name, stream, e.Error.Message)
				continue
			}
			if !strings.HasPrefix(e.Error.Message, tt.prefix) || (at == 0) != (tt.prefix == "") || e.Error.Code != tt.code {
				t.Errorf("%s, stream %t: %q, code %q", tt.name, stream, e.Error.Message, e.Error.Code)
			}
			if w := knownWords.FindString(e.Error.Message[at:]); w != "" {
				t.Errorf("%s: %q stands in the advice", tt.name, w)
			}
		}
	}
}

// Nobody else is taken for the demo: neither the same files in a folder nor a script that answers in its place.
func TestDemoAdviceIsItsOwn(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, demo.FS()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, model, script string }{
		{"a folder", dir, ""},
		{"a script", "", scriptFile(t, `{"raw": "Hello."}`)},
	} {
		cfg := config.Default()
		cfg.ContextLength, cfg.Script = 512, tt.script
		src, err := catalog.Find(tt.model, hub.Cache{})
		if err != nil {
			t.Fatal(err)
		}
		url := serveSource(t, src, cfg)
		body := `{"max_tokens": 20, "tools": [{"name": "Read", "input_schema": {"type": "object"}}], "messages": [{"role": "user", "content": "` + strings.Repeat("a ", 700) + `"}]}`
		status, got := request(t, "POST", url+"/v1/messages", body)
		if status != 400 || !regexp.MustCompile(`"prompt is too long: \d+ tokens > 511 maximum"`).Match(got) {
			t.Errorf("%s: %d %s", tt.name, status, got)
		}
	}
}
