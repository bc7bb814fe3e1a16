package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hearth/internal/catalog"
	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/hub"
)

// writeBase writes the demo model without its chat template.
func writeBase(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "base")
	if err := writeDemo(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "chat_template.jinja")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), []byte(`{"eos_token": "<|im_end|>"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestServeBase: a base model completes text in every way there is, and refuses conversations in the words of each API.
func TestServeBase(t *testing.T) {
	plain := []string{"--speculation", "off"} // how many tokens leave together depends on how long steps take
	url := serveFolder(t, writeBase(t), configured(t, "", nil, plain...))
	// What the same model with its template makes of the same text.
	chats := filepath.Join(t.TempDir(), "base")
	if err := writeDemo(chats); err != nil {
		t.Fatal(err)
	}
	other := serveFolder(t, chats, configured(t, "", nil, plain...))
	for _, body := range []string{
		`{"prompt": "What is 12 + 7", "max_tokens": 12, "temperature": 0}`,
		`{"prompt": "What is 12 + 7", "max_tokens": 12, "temperature": 0, "echo": true, "logprobs": 2}`,
		`{"prompt": ["What is", "hearth is a"], "max_tokens": 6, "temperature": 0, "n": 2}`,
		`{"prompt": [5710, 300, 301], "max_tokens": 6, "temperature": 0}`,
		`{"prompt": "What is 12 + 7", "max_tokens": 12, "temperature": 0, "stop": "?"}`,
		`{"prompt": "a b c", "max_tokens": 0, "echo": true, "logprobs": 0}`,
	} {
		for _, path := range []string{"/v1/completions", "/openai/deployments/base/completions"} {
			for _, stream := range []string{"", `, "stream": true`} {
				body := strings.TrimSuffix(body, "}") + stream + "}"
				status, got := request(t, "POST", url+path, body)
				_, want := request(t, "POST", other+path, body)
				if status != 200 || completed(t, got) == "" || completed(t, got) != completed(t, want) {
					t.Errorf("%s %s: %d %s, want as %s", path, body, status, got, want)
				}
			}
		}
	}
	if status, got := request(t, "POST", url+"/v1/completions", `{"prompt": "a", "suffix": "b"}`); status != 400 || !bytes.Contains(got, []byte(`"param":"suffix"`)) {
		t.Errorf("suffix: %d %s", status, got)
	}
	const talk = `"messages": [{"role": "user", "content": "Hi"}]`
	for _, c := range []struct{ path, body, shape string }{
		{"/v1/messages", `{"max_tokens": 5, ` + talk + `}`, `{"type":"error","error":{"type":"invalid_request_error","message":`},
		{"/v1/messages", `{"max_tokens": 5, "stream": true, ` + talk + `}`, `{"type":"error","error":{"type":"invalid_request_error","message":`},
		{"/v1/messages/count_tokens", `{` + talk + `}`, `{"type":"error","error":{"type":"invalid_request_error","message":`},
		{"/v1/chat/completions", `{` + talk + `}`, `{"error":{"message":`},
		{"/v1/chat/completions", `{"stream": true, ` + talk + `}`, `{"error":{"message":`},
		{"/v1/chat/completions", `{"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "required", ` + talk + `}`, `{"error":{"message":`},
		{"/openai/deployments/base/chat/completions?api-version=2024-10-21", `{` + talk + `}`, `{"error":{"message":`},
		{"/openai/v1/chat/completions", `{` + talk + `}`, `{"error":{"message":`},
	} {
		status, got := request(t, "POST", url+c.path, c.body)
		if status != 400 || !bytes.HasPrefix(got, []byte(c.shape)) || !bytes.Contains(got, []byte("is a base model")) || !bytes.Contains(got, []byte("/v1/completions")) ||
			!bytes.Contains(got, []byte("--chat-template")) {
			t.Errorf("%s: %d %s", c.path, status, got)
		}
		if strings.Contains(c.path, "chat") && !bytes.Contains(got, []byte(`"code":"no_chat_template"`)) {
			t.Errorf("%s: %s", c.path, got)
		}
	}
	for _, path := range []string{"/v1/models", "/v1/models/base"} {
		if _, got := request(t, "GET", url+path, ""); !bytes.Contains(got, []byte(`"kind":"completion"`)) || !bytes.Contains(got, []byte(`"description":"base model without a chat template: `)) {
			t.Errorf("%s: %s", path, got)
		}
	}
	if status, got := request(t, "GET", url+"/health", ""); status != 200 || !bytes.Contains(got, []byte(`"status":"ok"`)) {
		t.Errorf("health: %d %s", status, got)
	}
	if status, got := request(t, "GET", url+"/v1/status", ""); status != 200 || !bytes.Contains(got, []byte(`"status":"running"`)) {
		t.Errorf("status: %d %s", status, got)
	}
}

// completed is what a reply of /v1/completions says, whole or streamed, without what tells replies apart.
func completed(t *testing.T, body []byte) string {
	t.Helper()
	said := ""
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "data: "))
		if line == "" || line == "[DONE]" {
			continue
		}
		var r struct{ Choices json.RawMessage }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		said += string(r.Choices)
	}
	return said
}

// TestServeGivenTemplate: with a template that is given a base model chats, as the same model does with its own.
func TestServeGivenTemplate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.jinja")
	if err := os.WriteFile(file, []byte("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]*config.Config{
		"built in":        configured(t, "", nil, "--chat-template", "chatml"),
		"another's flag":  configured(t, "", nil, "--chat-template-file", file),
		"environment":     configured(t, "", map[string]string{"HEARTH_CHAT_TEMPLATE": file}),
		"settings":        configured(t, "chat_template = 'chatml'", nil),
		"model's section": configured(t, "[models.base]\nchat-template = 'chatml'", nil, "--chat-template", "none"),
	} {
		url := serveFolder(t, writeBase(t), cfg)
		status, got := request(t, "POST", url+"/v1/messages", `{"max_tokens": 100, "temperature": 0, "messages": [{"role": "user", "content": "What is 12 + 7?"}]}`)
		if status != 200 || !bytes.Contains(got, []byte("= 19")) || !bytes.Contains(got, []byte(`"stop_reason":"end_turn"`)) {
			t.Errorf("%s: %d %s", name, status, got)
		}
		if _, got := request(t, "GET", url+"/v1/models", ""); !bytes.Contains(got, []byte(`"kind":"chat"`)) || bytes.Contains(got, []byte("base model")) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestBaseStart: what serve says of a base model can be typed as it stands, and launch does not put an agent on one.
func TestBaseStart(t *testing.T) {
	dir, base := t.TempDir(), writeBase(t)
	p := start(t, []string{"XDG_RUNTIME_DIR=" + dir}, base)
	out := p.stdout()
	for _, want := range []string{"base:  a base model (no chat template)", "try:   curl " + p.url + "/v1/completions ", `"prompt"`} {
		if !strings.Contains(out, want) {
			t.Errorf("stdout does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "/v1/messages") {
		t.Errorf("it is said to chat:\n%s", out)
	}
	_, body, _ := strings.Cut(out, "-d '")
	body, _, _ = strings.Cut(body, "'")
	if status, got := request(t, "POST", p.url+"/v1/completions", body); status != 200 {
		t.Errorf("%s: %d %s", body, status, got)
	}
	for _, args := range [][]string{nil, {"--print"}} {
		if out, errs, code := launch(t, dir, args...); code != 1 || out != "" || !strings.Contains(errs, "base is a base model (no chat template)") || !strings.Contains(errs, "--chat-template") {
			t.Errorf("launch %q beside its server: %d %s%s", args, code, out, errs)
		}
	}
	if out, errs, code := launch(t, t.TempDir(), "--model", base); code != 1 || out != "" || !strings.Contains(errs, "base is a base model") {
		t.Errorf("launch: %d %s%s", code, out, errs)
	}
	if out, errs, code := launch(t, t.TempDir(), "--model", base, "--chat-template", "chatml", "--context-length", "81920"); code != 3 || !strings.Contains(out, "ANTHROPIC_MODEL=base") {
		t.Errorf("launch with a template: %d %s%s", code, out, errs)
	}
}

// TestKnown: a text side that works is known before the weights are loaded, and one that does not never is.
func TestKnown(t *testing.T) {
	for name, tt := range map[string]struct {
		damage func(dir string) error
		known  bool
	}{
		"weights": {func(dir string) error { return os.Truncate(filepath.Join(dir, "model.safetensors"), 1<<20) }, false},
		"template": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte("{% if %}"), 0o600)
		}, false},
		"unsaid": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte("Hello"), 0o600)
		}, false},
		"backend": {func(string) error { return nil }, true},
		"base": {func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "chat_template.jinja")), os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), []byte("{}"), 0o600))
		}, true},
		"tokenizer": {func(dir string) error { return os.Remove(filepath.Join(dir, "tokenizer.json")) }, false},
	} {
		dir := filepath.Join(t.TempDir(), "m")
		if err := writeDemo(dir); err != nil {
			t.Fatal(err)
		}
		if err := tt.damage(dir); err != nil {
			t.Fatal(err)
		}
		src, err := catalog.Find(dir, hub.Cache{})
		if err != nil {
			t.Fatal(err)
		}
		models := catalog.New(src, configured(t, "", nil))
		if err := models.Load(catalog.Backends{}); err == nil { // there is none, which shows last
			t.Errorf("%s: loaded", name)
		}
		if kind := models.List(context.Background())[0].Kind; (kind == chat.Completes) != (name == "base") {
			t.Errorf("%s: kind %q", name, kind)
		}
		select {
		case <-models.Known():
			if !tt.known {
				t.Errorf("%s: known to work", name)
			}
		default:
			if tt.known {
				t.Errorf("%s: not known to work", name)
			}
		}
		if err := models.Close(); err != nil {
			t.Error(err)
		}
	}
}

// continuing is a base model's generator.
type continuing struct {
	scripted
	asked []*chat.Request
}

func (c *continuing) Generate(ctx context.Context, r *chat.Request) (iter.Seq2[chat.Event, error], error) {
	c.asked = append(c.asked, r)
	return c.scripted.Generate(ctx, r)
}

// TestTalkBase: each line is continued by itself, as it stands, and what comes is printed as it stands.
func TestTalkBase(t *testing.T) {
	gen := &continuing{scripted: scripted{events: []chat.Event{text("\n\n  return"), finish}}}
	var out, notes bytes.Buffer
	k := &talk{gen: gen, out: &out, notes: &notes, base: true, most: 256}
	if err := k.loop(t.Context(), &typed{[]string{"def f(): ", "", "/help", "x"}}); err != nil {
		t.Fatal(err)
	}
	if len(gen.asked) != 2 || k.messages != nil || out.String() != "\n\n  return\n\n\n  return\n\n" {
		t.Errorf("%d requests, messages %v, said %q", len(gen.asked), k.messages, out.String())
	}
	for i, want := range []string{"def f(): ", "x"} {
		if r := gen.asked[i]; r.Prompt == nil || r.Prompt.Text != want || len(r.Messages) > 0 || r.MaxTokens != 256 {
			t.Errorf("%+v", r)
		}
	}
	if !strings.Contains(notes.String(), "Type the beginning of a text to have it continued.") || strings.Contains(notes.String(), "/clear") {
		t.Errorf("notes: %s", notes.String())
	}
	if s := k.continues(false); !strings.Contains(s, "every line is continued by itself, and none is remembered") {
		t.Error(s)
	}
}
