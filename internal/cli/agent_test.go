package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/hub"
)

// withScript is a whole server with a script in the model's place.
func withScript(t testing.TB, script string) http.Handler {
	t.Helper()
	cfg := config.Default()
	cfg.Script = scriptFile(t, script)
	src, err := catalog.Find("", hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	models := catalog.New(src, cfg)
	if err := models.Load(backends()); err != nil {
		t.Fatal(err)
	}
	return newServer(cfg, models, slog.New(slog.DiscardHandler))
}

func scriptFile(t testing.TB, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.jsonl")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func post(t testing.TB, h http.Handler, path string, body []byte) []byte {
	t.Helper()
	r := httptest.NewRequest("POST", "http://localhost"+path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 200 {
		t.Fatalf("POST %s: %d %.500s", path, w.Code, w.Body)
	}
	return w.Body.Bytes()
}

type object = map[string]any

// agentTools are tools of about so many bytes, in the shape of a coding agent's.
func agentTools(bytes int) []any {
	var tools []any
	for i := 0; bytes > 0; i++ {
		text := strings.Repeat("Reads a file from the local file system; the path must be absolute, not relative. ", 40)
		tools = append(tools, object{"name": fmt.Sprintf("Tool%d", i), "description": text, "input_schema": object{
			"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": false,
			"properties": object{"file_path": object{"description": text[:300], "type": "string"}, "limit": object{"type": "integer", "exclusiveMinimum": 0}},
			"required":   []any{"file_path"},
		}})
		bytes -= len(text) + 600
	}
	return tools
}

// TestTenTurns: a conversation in the shape that Claude Code sends it. Its system-role message is blocks first and a
// string later, cache_control wanders, thinking comes back empty with its signature, and a deferred tool appears among
// the tools once a search has found it. Each turn's prompt reuses all of the one before and of its answer.
func TestTenTurns(t *testing.T) {
	h := withScript(t, `{"raw": "<think>\nTurn {{.Turn}}: I have to look.\n</think>\n\nLet me look.\n<tool_call>\n{\"name\": \"Tool1\", \"arguments\": {\"file_path\": \"/a/{{.Turn}}.txt\", \"limit\": 5}}\n</tool_call>"}`)
	tools := agentTools(30 << 10)
	deferred := object{"name": "Tool0Found", "description": "Found by a search.", "defer_loading": true, "input_schema": object{"type": "object"}}
	ephemeral := object{"type": "ephemeral"}
	env := strings.Repeat("The working directory is /a. ", 300)
	block := func(text string, marked bool) object {
		b := object{"type": "text", "text": text}
		if marked {
			b["cache_control"] = ephemeral
		}
		return b
	}
	messages := []any{object{"role": "user", "content": []any{block("<system-reminder>\nBe careful.\n</system-reminder>", false), block("Look at the files.", true)}}, nil}
	whole := 0
	for turn := 1; turn <= 10; turn++ {
		if turn == 1 {
			messages[1] = object{"role": "system", "content": []any{block(env, true)}}
		} else {
			messages[1] = object{"role": "system", "content": env}
		}
		offered := tools
		if turn > 5 {
			offered = append([]any{tools[0], deferred}, tools[1:]...)
		}
		body, _ := json.Marshal(object{"model": "claude-sonnet-4-5", "max_tokens": 32000, "messages": messages, "tools": offered,
			"system": []any{block(fmt.Sprintf("x-anthropic-billing-header: cc_version=2.1.329.%03x; cc_entrypoint=cli;", turn), false),
				block("You are an agent.", turn%2 == 0), block(strings.Repeat("Be brief. ", 500), true)},
			"thinking": object{"type": "adaptive", "display": "omitted"}, "output_config": object{"effort": "high"},
			"context_management": object{"edits": []any{object{"type": "clear_thinking_20251015", "keep": "all"}}},
			"metadata":           object{"user_id": `{"device_id":"d","session_id":"s"}`}, "stream": false})
		var m struct {
			Content []object
			Usage   struct {
				Input  int `json:"input_tokens"`
				Stored int `json:"cache_creation_input_tokens"`
				Cached int `json:"cache_read_input_tokens"`
				Output int `json:"output_tokens"`
			}
		}
		if err := json.Unmarshal(post(t, h, "/v1/messages?beta=true", body), &m); err != nil {
			t.Fatal(err)
		}
		if m.Usage.Cached < whole {
			t.Errorf("turn %d: %d tokens of the %d before were reused, %d are new", turn, m.Usage.Cached, whole, m.Usage.Input+m.Usage.Stored)
		}
		whole = m.Usage.Input + m.Usage.Stored + m.Usage.Cached + m.Usage.Output - 1 // the stop token never ran
		last := m.Content[len(m.Content)-1]
		if last["type"] != "tool_use" || m.Content[0]["type"] != "thinking" || m.Content[0]["thinking"] != "" {
			t.Fatalf("turn %d: %v", turn, m.Content)
		}
		result := []any{block("contents of the file, with enough text to matter", false)}
		if turn == 5 {
			result = append(result, object{"type": "tool_reference", "tool_name": "Tool0Found"})
			tools = append([]any{tools[0], deferred}, tools[1:]...)[:1:1]
			tools = append(tools, agentTools(30 << 10)[1:]...)
		}
		messages = append(messages, object{"role": "assistant", "content": m.Content}, object{"role": "user", "content": []any{
			object{"type": "tool_result", "tool_use_id": last["id"], "content": result, "cache_control": ephemeral}}})
	}
}

// TestCountTogether: what an agent's look at its context costs: 25 counts with 50 KB of tools, at once.
func TestCountTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("times the machine")
	}
	h := withScript(t, `{"raw": "Hello."}`)
	body, _ := json.Marshal(object{"model": "demo", "tools": agentTools(50 << 10), "messages": []any{object{"role": "user", "content": "foo"}}})
	began := time.Now()
	var wg sync.WaitGroup
	for range 25 {
		wg.Go(func() { post(t, h, "/v1/messages/count_tokens?beta=true", body) })
	}
	wg.Wait()
	if took := time.Since(began); took > time.Second {
		t.Errorf("25 counts with %d KB took %v", len(body)>>10, took)
	} else {
		t.Logf("25 counts with %d KB took %v", len(body)>>10, took)
	}
}

// agentRequest is a request of about 100 KB; n makes its conversation, its tools and its system prompt others.
func agentRequest(n int) []byte {
	messages := []any{object{"role": "user", "content": fmt.Sprintf("Conversation %d. Look at the files.", n)}}
	for i := range 12 {
		id := fmt.Sprintf("toolu_%d", i)
		messages = append(messages,
			object{"role": "assistant", "content": []any{object{"type": "text", "text": "Let me look."},
				object{"type": "tool_use", "id": id, "name": "Tool1", "input": object{"file_path": fmt.Sprintf("/a/%d-%d.go", n, i), "limit": 50}}}},
			object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": id,
				"content": strings.Repeat(fmt.Sprintf("%d\tfunc f%d(x int) int { return x*%d + 1 } // adds one\n", i, n, i), 60)}}})
	}
	body, _ := json.Marshal(object{"model": "demo", "max_tokens": 1000, "tools": agentTools(50 << 10), "messages": messages,
		"system": strings.Repeat(fmt.Sprintf("Be brief and correct; look before you write, %d. ", n), 200)})
	return bytes.ReplaceAll(body, []byte("Tool"), fmt.Appendf(nil, "Tool%d", n))
}

// BenchmarkAddedLatency is what the server adds to a request of 100 KB: decode, validate, render, tokenise, encode.
func BenchmarkAddedLatency(b *testing.B) {
	h := withScript(b, `{"raw": "Done."}`)
	b.Run("new", func(b *testing.B) {
		n := 0
		for b.Loop() {
			n++
			post(b, h, "/v1/messages", agentRequest(n))
		}
	})
	b.Run("seen", func(b *testing.B) {
		body := agentRequest(0)
		b.SetBytes(int64(len(body)))
		post(b, h, "/v1/messages", body)
		for b.Loop() {
			post(b, h, "/v1/messages", body)
		}
	})
}
