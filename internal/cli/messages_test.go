package cli

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/hub"
)

// demoServer is a whole server with the demo model, which thinks unless it is told not to.
func demoServer(t *testing.T, set func(cfg *config.Config)) http.Handler {
	t.Helper()
	return folderServer(t, "", set)
}

// folderServer is a whole server with the model of a folder.
func folderServer(t *testing.T, folder string, set func(cfg *config.Config)) http.Handler {
	t.Helper()
	cfg := config.Default()
	cfg.PrefixCacheDir = "off"
	set(cfg)
	src, err := catalog.Find(folder, hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	models := catalog.New(src, cfg)
	if err := models.Load(backends()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = models.Close() })
	return newServer(cfg, models, slog.New(slog.DiscardHandler))
}

type messageReply struct {
	Content []struct{ Type, Text, Thinking string }
	Usage   struct {
		Input    int `json:"input_tokens"`
		Creation int `json:"cache_creation_input_tokens"`
		Read     int `json:"cache_read_input_tokens"`
		Details  struct {
			Thinking int `json:"thinking_tokens"`
		} `json:"output_tokens_details"`
	}
}

// text is what clients read: the first block of text.
func (m *messageReply) text(t *testing.T) string {
	t.Helper()
	for _, b := range m.Content {
		if b.Type == "text" {
			return b.Text
		}
	}
	t.Errorf("no block of text in %+v", m)
	return ""
}

// TestShortMessages: requests as published examples have them, with 100 tokens and no word of thinking, get an answer; all
// replies have a block of text, and their prompt is as long as count_tokens says of the same
// body, with max_tokens in it or without, as SDKs send it.
func TestShortMessages(t *testing.T) {
	on := true
	for _, c := range []struct {
		name, fields string
		set          func(cfg *config.Config)
		thinks       bool
	}{
		{"100 tokens", `"max_tokens": 100`, nil, false},
		{"1 token", `"max_tokens": 1`, nil, false},
		{"room to think", `"max_tokens": 1024`, nil, true},
		{"the operator has it think", `"max_tokens": 100`, func(cfg *config.Config) { cfg.EnableThinking = &on }, true},
		{"asked for", `"max_tokens": 100, "thinking": {"type": "enabled", "budget_tokens": 50}`, nil, true},
		{"asked for, no room", `"max_tokens": 20, "thinking": {"type": "adaptive"}`, nil, true},
		{"hidden, no room", `"max_tokens": 20, "thinking": {"type": "adaptive"}`, func(cfg *config.Config) { off := false; cfg.ExposeThinking = &off }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := demoServer(t, func(cfg *config.Config) {
				if c.set != nil {
					c.set(cfg)
				}
			})
			for _, content := range []string{
				`"What is 17 × 23?"`,
				`[{"type": "text", "text": "What is 17 × 23?"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}]`,
			} {
				body := fmt.Sprintf(`{"temperature": 0, %s, "messages": [{"role": "user", "content": %s}]`, c.fields, content)
				var m messageReply
				if err := json.Unmarshal(post(t, h, "/v1/messages", []byte(body+"}")), &m); err != nil {
					t.Fatal(err)
				}
				if text := m.text(t); !c.thinks && text == "" {
					t.Errorf("the text is empty: %+v", m)
				}
				if (m.Usage.Details.Thinking > 0) != c.thinks {
					t.Errorf("%d tokens of thinking", m.Usage.Details.Thinking)
				}
				for _, counted := range []string{body + "}", strings.Replace(body, `"max_tokens"`, `"no_tokens"`, 1) + "}"} {
					var n struct {
						Input int `json:"input_tokens"`
					}
					if err := json.Unmarshal(post(t, h, "/v1/messages/count_tokens", []byte(counted)), &n); err != nil {
						t.Fatal(err)
					}
					if got := m.Usage.Input + m.Usage.Creation + m.Usage.Read; got != n.Input {
						t.Errorf("the prompt has %d tokens, count_tokens says %d of %s", got, n.Input, counted)
					}
				}
				stream := string(post(t, h, "/v1/messages", []byte(body+`, "stream": true}`)))
				if !strings.Contains(stream, `"content_block":{"type":"text","text":""}`) {
					t.Errorf("the stream has no block of text:\n%s", stream)
				}
			}
		})
	}
}

// TestImages: a conversation that holds an image or a file goes on in every API, unless the server refuses them: then it says
// where and why.
func TestImages(t *testing.T) {
	const png, pdf = "iVBORw0KGgo=", "JVBERi0xLjc="
	messages := func(block string) string {
		return `{"max_tokens": 1, "messages": [{"role": "user", "content": [` + block + `, {"type": "text", "text": "What is it?"}]}, {"role": "assistant", "content": "A cat."}, {"role": "user", "content": "Sure?"}]}`
	}
	cases := []struct{ paths, body, refusal string }{
		{"/v1/messages /v1/messages/count_tokens", messages(`{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "` + png + `"}}`),
			"messages.0.content.0.source: this model cannot see images"},
		{"/v1/messages /v1/messages/count_tokens", messages(`{"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}`),
			`messages.0.content.0.source.type: image source \"url\" is not supported: send the image as base64`},
		{"/v1/messages /v1/messages/count_tokens", messages(`{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "` + pdf + `"}}`),
			`messages.0.content.0.source.media_type: documents of \"application/pdf\" are not supported: send the text, as a source of type text`},
		{"/v1/messages /v1/messages/count_tokens", `{"max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "i", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "` + png + `"}}]}]}]}`, ""},
		{"/v1/chat/completions /openai/deployments/demo/chat/completions", messages(`{"type": "image_url", "image_url": {"url": "data:image/png;base64,` + png + `"}}`),
			"messages[0].content[0].image_url.url: this model cannot see images"},
		{"/v1/chat/completions /openai/deployments/demo/chat/completions", messages(`{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}`),
			"messages[0].content[0].image_url.url: image URLs are not fetched: send the image as data:image/…;base64,…"},
		{"/v1/chat/completions /openai/deployments/demo/chat/completions", messages(`{"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,` + pdf + `"}}`),
			"messages[0].content[0].type: no model here takes file parts: send text"},
	}
	for _, refuse := range []bool{false, true} {
		h := demoServer(t, func(cfg *config.Config) {
			if refuse {
				cfg.Images = "refuse"
			}
		})
		for _, c := range cases {
			for _, path := range strings.Fields(c.paths) {
				for _, body := range []string{c.body, c.body[:len(c.body)-1] + `, "stream": true}`} {
					r := httptest.NewRequest("POST", "http://localhost"+path, strings.NewReader(body))
					r.Header.Set("Content-Type", "application/json")
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					if want := refuse && c.refusal != ""; (w.Code == http.StatusBadRequest) != want || !want && w.Code != http.StatusOK || want && !strings.Contains(w.Body.String(), c.refusal) {
						t.Errorf("refuse %v, %s %s: %d %s", refuse, path, body, w.Code, w.Body)
					}
				}
			}
		}
	}
}
