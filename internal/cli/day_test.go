package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"hearth/internal/catalog"
	"hearth/internal/chat"
	"hearth/internal/chat/chattest"
	"hearth/internal/config"
	"hearth/internal/hub"
)

// The shapes below are those that were recorded of these clients; their texts are not.
const (
	manyTools = 300
	manyTurns = 150
	bigResult = 50 << 10
)

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// result is what a tool gives back: so many bytes of source, of a turn of its own.
func result(turn, size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "%6d\tfunc step%d(x int) (int, error) { return x*%d + %d, nil } // see https://example.org/a/%d?b=%d\n", i+1, i, turn, i, turn, i)
	}
	return b.String()[:size]
}

// forMessages are tools as Claude Code declares them.
func forMessages(tools []chat.Tool) (list []any) {
	for i, tool := range tools {
		d := object{"name": tool.Name, "description": tool.Description, "input_schema": tool.Parameters}
		if i == len(tools)-1 {
			d["cache_control"] = object{"type": "ephemeral"}
		}
		if i%7 == 6 {
			d["defer_loading"] = true
		}
		list = append(list, d)
	}
	return append(list, object{"type": "web_search_20250305", "name": "web_search", "max_uses": 8})
}

// forChat are tools as opencode and Codex declare them.
func forChat(tools []chat.Tool) (list []any) {
	for _, tool := range tools {
		list = append(list, object{"type": "function", "function": object{"name": tool.Name, "description": tool.Description, "parameters": tool.Parameters}})
	}
	return list
}

// claudeCode is a conversation of so many turns in Claude Code's shape.
func claudeCode(turns, size int, tools []chat.Tool) object {
	ephemeral := object{"type": "ephemeral"}
	text := func(s string) object { return object{"type": "text", "text": s} }
	messages := []any{
		object{"role": "user", "content": []any{text("<system-reminder>\nBe careful.\n</system-reminder>"), object{"type": "text", "text": "Look at the files.", "cache_control": ephemeral}}},
		object{"role": "system", "content": []any{text(strings.Repeat("The working directory is /a. ", 300))}},
	}
	for i := range turns {
		id := fmt.Sprintf("toolu_01%022d", i)
		messages = append(messages,
			object{"role": "assistant", "content": []any{object{"type": "thinking", "thinking": "", "signature": "c2lnbmF0dXJl"}, text("Let me look."),
				object{"type": "tool_use", "id": id, "name": tools[0].Name, "input": object{"path": fmt.Sprintf("/a/%d.go", i), "edits": []any{object{"oldText": "a", "newText": "b"}}}},
				object{"type": "tool_use", "id": id + "b", "name": tools[1].Name, "input": object{"owner": "a", "repo": "b", "title": "c", "head": "d", "base": "e"}}}},
			object{"role": "user", "content": []any{
				object{"type": "tool_result", "tool_use_id": id, "content": result(i, size)},
				object{"type": "tool_result", "tool_use_id": id + "b", "content": []any{text("done"), text("https://example.org/pull/7")}, "is_error": i%9 == 8},
				text("<system-reminder>\nThe list of things to do is empty.\n</system-reminder>")}})
	}
	return object{"model": "claude-sonnet-4-5", "max_tokens": 32000, "messages": messages, "tools": forMessages(tools), "stream": true,
		"system": []any{text("x-anthropic-billing-header: cc_version=2.1.329.abc; cc_entrypoint=cli;"), object{"type": "text", "text": "You are an agent.", "cache_control": ephemeral},
			object{"type": "text", "text": strings.Repeat("Be brief, and do what was asked; nothing more, nothing less. ", 800), "cache_control": ephemeral}},
		"thinking": object{"type": "adaptive", "display": "omitted"}, "output_config": object{"effort": "high"},
		"context_management": object{"edits": []any{object{"type": "clear_thinking_20251015", "keep": "all"}}},
		"metadata":           object{"user_id": `{"device_id":"d","account_uuid":"","session_id":"s"}`}}
}

// chatAgent is a conversation of so many turns in the shape of agents of Chat Completions: calls side by side, reasoning that
// comes back, a reminder in a second part of the user's text.
func chatAgent(role string, turns, size int, tools []chat.Tool) object {
	messages := []any{
		object{"role": role, "content": strings.Repeat("You are a coding agent. Keep going until the problem is solved. ", 400)},
		object{"role": "user", "content": []any{object{"type": "text", "text": "Look at the files."}, object{"type": "text", "text": "<system-reminder>Plan mode is off.</system-reminder>"}}},
	}
	for i := range turns {
		var calls, results []any
		for j := range 3 {
			id := fmt.Sprintf("call_%d_%d", i, j)
			calls = append(calls, object{"id": id, "type": "function", "function": object{"name": tools[0].Name, "arguments": fmt.Sprintf(`{"path":"/a/%d-%d.go","edits":[{"oldText":"a","newText":"b"}]}`, i, j)}})
			results = append(results, object{"role": "tool", "tool_call_id": id, "content": result(i+j, size/3)})
		}
		messages = append(messages, object{"role": "assistant", "content": nil, "reasoning_content": "I have to look.", "tool_calls": calls})
		messages = append(messages, results...)
	}
	return object{"model": "demo", "messages": messages, "tools": forChat(tools), "tool_choice": "auto", "parallel_tool_calls": true, "stream": true,
		"stream_options": object{"include_usage": true}, "max_tokens": 32000, "temperature": 0.55, "top_p": 1, "reasoning_effort": "medium", "prompt_cache_key": "ses_1", "store": false,
		"metadata": object{"a": "b"}, "stop": []any{"\n\nHuman:", "<|endoftext|>"}}
}

// TestAgentsDay: what agents send on a normal day, the largest of it included, meets no bound.
func TestAgentsDay(t *testing.T) {
	var log bytes.Buffer
	cfg := config.Default()
	cfg.Script, cfg.ContextLength = scriptFile(t, `{"if_tool": "edit_file_0$", "raw": "Let me look.\n<tool_call>\n{\"name\": {{json .Tool}}, \"arguments\": {\"path\": \"/a/b.go\", \"edits\": [{\"oldText\": \"a\", \"newText\": \"b\"}]}}\n</tool_call>"}
{"raw": "{\"title\": \"A talk\", \"tags\": [\"a\", \"b\"]}"}`), 20_000_000
	src, err := catalog.Find("", hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	models := catalog.New(src, cfg)
	if err := models.Load(backends()); err != nil {
		t.Fatal(err)
	}
	h := newServer(cfg, models, slog.New(slog.NewTextHandler(&log, nil)))
	tools := chattest.AgentTools(manyTools)
	with := func(o object, more object) object {
		for k, v := range more {
			o[k] = v
		}
		return o
	}
	named := tools[0].Name
	title := object{"type": "object", "additionalProperties": false, "required": []any{"title", "tags"},
		"properties": object{"title": object{"type": "string", "pattern": "^[A-Z].{0,80}$"}, "tags": object{"type": "array", "items": object{"type": "string"}, "uniqueItems": true, "maxItems": 8}}}
	for _, c := range []struct {
		name, path string
		body       object
		want       string // in the reply
	}{
		{"Claude Code, first turn", "/v1/messages?beta=true", claudeCode(0, 0, tools), `"tool_use"`},
		{"Claude Code, many turns", "/v1/messages?beta=true", claudeCode(manyTurns, bigResult, tools), `"tool_use"`},
		{"Claude Code, after a failed stream", "/v1/messages?beta=true", with(claudeCode(20, 5000, tools), object{"stream": false}), `"tool_use"`},
		{"Claude Code, a title", "/v1/messages?beta=true", object{"model": "claude-haiku-4-5", "max_tokens": 32000, "stream": true, "messages": []any{object{"role": "user", "content": "Look at the files."}},
			"output_config": object{"format": object{"type": "json_schema", "schema": title}}, "thinking": object{"type": "disabled"}}, `message_stop`},
		{"any tool", "/v1/messages", with(claudeCode(1, 5000, tools), object{"tool_choice": object{"type": "any", "disable_parallel_tool_use": true}}), `"tool_use"`},
		{"a named tool", "/v1/messages", with(claudeCode(1, 5000, tools), object{"tool_choice": object{"type": "tool", "name": named}}), `"tool_use"`},
		{"a look at the context", "/v1/messages/count_tokens?beta=true", object{"model": "demo", "tools": forMessages(tools), "messages": []any{object{"role": "user", "content": "foo"}}}, `"input_tokens"`},
		{"opencode, first turn", "/v1/chat/completions", chatAgent("system", 0, 0, tools), `"tool_calls"`},
		{"opencode, many turns", "/v1/chat/completions", chatAgent("system", manyTurns, bigResult, tools), `"tool_calls"`},
		{"opencode, a title by messages", "/v1/messages", object{"model": "demo", "max_tokens": 31999, "thinking": object{"type": "enabled", "budget_tokens": -1}, "stream": true,
			"messages": []any{object{"role": "user", "content": "Generate a title for this conversation:\n"}, object{"role": "user", "content": "Look at the files."}}}, `message_stop`},
		{"Codex, many turns", "/v1/chat/completions", with(chatAgent("developer", 60, bigResult, tools), object{"tool_choice": "auto", "tools": append(forChat(tools),
			object{"type": "custom", "custom": object{"name": "apply_patch", "description": strings.Repeat("Edits files. ", 100), "format": object{"type": "grammar", "grammar": object{"syntax": "lark", "definition": "start: begin hunk+ end\nbegin: \"*** Begin Patch\" LF\nend: \"*** End Patch\" LF?\nhunk: /.+/ LF\n%import common.LF"}}}})}), `"tool_calls"`},
		{"tools that are required", "/v1/chat/completions", with(chatAgent("system", 1, 5000, tools), object{"tool_choice": "required"}), `"tool_calls"`},
		{"some of the tools", "/v1/chat/completions", with(chatAgent("system", 1, 5000, tools), object{"tool_choice": object{"type": "allowed_tools", "allowed_tools": object{"mode": "auto",
			"tools": []any{object{"type": "function", "function": object{"name": named}}}}}}), `"tool_calls"`},
		{"a reply in a schema", "/v1/chat/completions", object{"model": "demo", "messages": []any{object{"role": "user", "content": "A title, please."}},
			"response_format": object{"type": "json_schema", "json_schema": object{"name": "title", "schema": title}}}, `A talk`},
		{"text to go on from", "/v1/completions", object{"model": "demo", "prompt": result(1, bigResult), "max_tokens": 100, "stop": []any{"\n\n"}}, `"text"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := post(t, h, c.path, marshal(t, c.body)); !bytes.Contains(got, []byte(c.want)) || bytes.Contains(got, []byte(`"error"`)) {
				t.Errorf("the reply is %.500s", got)
			}
		})
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/v1/status", nil))
	var status struct {
		Processed int            `json:"total_requests_processed"`
		Bounds    map[string]int `json:"bounds_met"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil || status.Processed == 0 {
		t.Fatalf("status %s, %v", w.Body, err)
	}
	if len(status.Bounds) > 0 {
		t.Errorf("bounds were met: %v", status.Bounds)
	}
	for _, word := range []string{" bounds=", " loose_tools=", " mended_calls=", " level=WARN", " level=ERROR"} {
		if at := strings.Index(log.String(), word); at >= 0 {
			t.Errorf("the log has%s: %.300s", word, log.String()[max(0, at-200):])
		}
	}
}
