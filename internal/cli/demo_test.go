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
			var e struct {
				Error struct{ Message, Code string }
			}
			if err := json.Unmarshal(got, &e); err != nil || status != 400 {
				t.Errorf("%s, stream %t: %d %s", tt.name, stream, status, got)
				continue
			}
			at := strings.Index(e.Error.Message, "This is hearth's demo, a tiny model with a context of 512 tokens: it is too small for this prompt of ")
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

// An agent's prompt that fits, but is more than the demo can read, is answered with the sentence, whole and streamed, and so is
// each later turn. Shorter ones, those without tools, what is asked for as a call or in a form, and a reply that has begun are
// the model's own.
func TestDemoAnswers(t *testing.T) {
	url := serveDemo(t, func(*config.Config) {})
	long := strings.Repeat("a ", 2070)
	schema := object{"type": "object", "properties": object{"path": object{"type": "string"}}, "required": []string{"path"}}
	forMessages := []any{object{"name": "Read", "input_schema": schema}}
	forChat := []any{object{"type": "function", "function": object{"name": "Read", "parameters": schema}}}
	user := []any{object{"role": "user", "content": "Hello"}}
	turns := append(user[:1:1], object{"role": "assistant", "content": "Hello!"}, object{"role": "user", "content": "And?"})
	begun := append(user[:1:1], object{"role": "assistant", "content": "Well,"})
	said := regexp.MustCompile(`This is hearth's demo, a tiny model with a context of 8192 tokens: it is too small for this prompt of \d+; for a real model: ` +
		`hearth pull mlx-community/Qwen3-4B-Instruct-2507-4bit && hearth serve mlx-community/Qwen3-4B-Instruct-2507-4bit$`)
	for _, tt := range []struct {
		name, path string
		body       object
		choices    int // 0: one
		advised    bool
	}{
		{"messages", "/v1/messages", object{"system": long, "messages": user, "tools": forMessages}, 0, true},
		{"messages, a later turn", "/v1/messages", object{"system": long, "messages": turns, "tools": forMessages}, 0, true},
		{"messages, a call is asked for", "/v1/messages", object{"system": long, "messages": user, "tools": forMessages, "tool_choice": object{"type": "any"}}, 0, false},
		{"messages, begun", "/v1/messages", object{"system": long, "messages": begun, "tools": forMessages}, 0, false},
		{"messages, begun, and a call is asked for", "/v1/messages", object{"system": long, "messages": begun, "tools": forMessages, "tool_choice": object{"type": "any"}}, 0, false},
		{"messages, a form", "/v1/messages", object{"system": long, "messages": user, "tools": forMessages, "output_config": object{"format": object{"type": "json_schema", "schema": schema}}}, 0, false},
		{"chat, a form", "/v1/chat/completions", object{"messages": append([]any{object{"role": "system", "content": long}}, user...), "tools": forChat, "response_format": object{"type": "json_object"}}, 0, false},
		{"messages, thinking", "/v1/messages", object{"system": long, "messages": user, "tools": forMessages, "thinking": object{"type": "enabled", "budget_tokens": 1024}}, 0, true},
		{"messages, no tools", "/v1/messages", object{"system": long, "messages": user}, 0, false},
		{"messages, short", "/v1/messages", object{"messages": user, "tools": forMessages}, 0, false},
		{"chat", "/v1/chat/completions", object{"messages": append([]any{object{"role": "system", "content": long}}, user...), "tools": forChat}, 0, true},
		{"chat, two choices", "/v1/chat/completions", object{"messages": append([]any{object{"role": "system", "content": long}}, turns...), "tools": forChat, "n": 2}, 2, true},
		{"chat, short", "/v1/chat/completions", object{"messages": user, "tools": forChat}, 0, false},
	} {
		for _, stream := range []bool{false, true} {
			tt.body["model"], tt.body["max_tokens"], tt.body["stream"], tt.body["temperature"] = "demo", 120, stream, 1
			b, err := json.Marshal(tt.body)
			if err != nil {
				t.Fatal(err)
			}
			status, got := request(t, "POST", url+tt.path, string(b))
			if status != 200 {
				t.Errorf("%s, stream %t: %d %s", tt.name, stream, status, got)
			}
			texts, ends := replyTexts(t, got, stream)
			for i, text := range texts[:max(tt.choices, 1)] {
				if said.MatchString(text) != tt.advised || tt.advised && ends[i] != "end_turn" && ends[i] != "stop" {
					t.Errorf("%s, stream %t: %q, %s", tt.name, stream, text, ends[i])
				}
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

// replyTexts are the texts of a reply's choices in either protocol, and why each ended.
func replyTexts(t *testing.T, body []byte, stream bool) (texts, ends [2]string) {
	t.Helper()
	type part struct {
		Index          int
		Message, Delta struct{ Content string }
		FinishReason   string `json:"finish_reason"`
	}
	lines := []string{string(body)}
	if stream {
		lines = nil
		for line := range strings.Lines(string(body)) {
			if data, ok := strings.CutPrefix(line, "data: {"); ok {
				lines = append(lines, "{"+data)
			}
		}
	}
	for _, line := range lines {
		var e struct {
			Choices    []part
			Content    []struct{ Text string }
			StopReason string `json:"stop_reason"`
			Delta      struct {
				Text       string
				StopReason string `json:"stop_reason"`
			}
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		for _, c := range e.Choices {
			texts[c.Index] += c.Message.Content + c.Delta.Content
			ends[c.Index] += c.FinishReason
		}
		for _, c := range e.Content {
			texts[0] += c.Text
		}
		texts[0] += e.Delta.Text
		ends[0] += e.StopReason + e.Delta.StopReason
	}
	return texts, ends
}
