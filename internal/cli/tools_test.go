package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hearth/internal/demo"
)

// toolless is a copy of the demo whose template knows no tools.
func toolless(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "toolless")
	if err := os.CopyFS(dir, demo.FS()); err != nil {
		t.Fatal(err)
	}
	const chatml = `{% for m in messages %}<|im_start|>{{ m.role }}{{ "\n" }}{{ m.content }}<|im_end|>{{ "\n" }}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant{{ "\n" }}{% endif %}`
	if err := os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte(chatml), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

const (
	messagesTools = `"tools": [{"name": "get_weather", "description": "Get the weather", "input_schema": {"type": "object", "properties": {"city": {"enum": ["Oslo", "Paris"]}, "unit": {"enum": ["celsius", "kelvin"]}}, "required": ["city", "unit"]}}]`
	chatTools     = `"tools": [{"type": "function", "function": {"name": "get_weather", "description": "Get the weather", "parameters": {"type": "object", "properties": {"city": {"enum": ["Oslo", "Paris"]}, "unit": {"enum": ["celsius", "kelvin"]}}, "required": ["city", "unit"]}}}]`
	askWeather    = `"max_tokens": 400, "messages": [{"role": "user", "content": "Hello"}]`
)

// TestToolsInPrompt: under a template that knows no tools, both APIs have them in the prompt, and a call that is demanded comes,
// whole and streamed.
func TestToolsInPrompt(t *testing.T) {
	p := start(t, nil, toolless(t))
	count := func(body string) (n struct {
		Tokens int `json:"input_tokens"`
	}) {
		status, b := request(t, "POST", p.url+"/v1/messages/count_tokens", body)
		if err := json.Unmarshal(b, &n); status != 200 || err != nil {
			t.Fatalf("%d %s", status, b)
		}
		return n
	}
	bare, with := count(`{`+askWeather+`}`), count(`{`+askWeather+`, `+messagesTools+`}`)
	if none := count(`{` + askWeather + `, ` + messagesTools + `, "tool_choice": {"type": "none"}}`); with.Tokens < bare.Tokens+50 || none != bare {
		t.Errorf("%d tokens, with tools %d, hidden %d", bare.Tokens, with.Tokens, none.Tokens)
	}
	for _, choice := range []string{`{"type": "any"}`, `{"type": "tool", "name": "get_weather"}`, `{"type": "any", "disable_parallel_tool_use": true}`} {
		body := `{` + askWeather + `, ` + messagesTools + `, "tool_choice": ` + choice
		_, b := request(t, "POST", p.url+"/v1/messages", body+`}`)
		var m struct {
			Content []struct {
				Type, Text, Name string
				Input            struct{ City, Unit *string }
			}
			Usage struct {
				Input   int `json:"input_tokens"`
				Cached  int `json:"cache_read_input_tokens"`
				Created int `json:"cache_creation_input_tokens"`
			}
		}
		if err := json.Unmarshal(b, &m); err != nil || len(m.Content) == 0 {
			t.Fatalf("%s: %s", choice, b)
		}
		c := m.Content[0]
		if c.Type != "tool_use" || c.Name != "get_weather" || c.Input.City == nil || c.Input.Unit == nil || *c.Input.Unit != "celsius" && *c.Input.Unit != "kelvin" || m.Usage.Input+m.Usage.Cached+m.Usage.Created <= with.Tokens {
			t.Errorf("%s: %s", choice, b)
		}
		_, b = request(t, "POST", p.url+"/v1/messages", `{`+strings.Replace(askWeather, `}]`, `}, {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}}]},
			{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "Sunny"}]}]`, 1)+`, `+messagesTools+`}`)
		if err := json.Unmarshal(b, &m); err != nil || m.Usage.Cached < with.Tokens-8 {
			t.Errorf("the turn after it has %d of %d tokens cached: %s", m.Usage.Cached, with.Tokens, b)
		}
		_, b = request(t, "POST", p.url+"/v1/messages", body+`, "stream": true}`)
		if s := string(b); !strings.Contains(s, `"type":"tool_use"`) || !strings.Contains(s, "input_json_delta") || strings.Contains(s, "<tool_call>") || !strings.Contains(s, "message_stop") {
			t.Errorf("%s: %s", choice, s)
		}
	}
	for _, choice := range []string{`"required"`, `{"type": "function", "function": {"name": "get_weather"}}`,
		`{"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "get_weather"}}]}}`} {
		for _, stream := range []string{"", `, "stream": true`} {
			status, b := request(t, "POST", p.url+"/v1/chat/completions", `{`+askWeather+`, `+chatTools+`, "tool_choice": `+choice+stream+`}`)
			if s := string(b); status != 200 || !strings.Contains(s, `"name":"get_weather"`) || strings.Contains(s, "<tool_call>") {
				t.Errorf("%s: %d %s", choice, status, s)
			}
		}
	}
}

// TestToolsNever: left out of the prompt, tools cannot be demanded; requests that do not demand a call go on, and the log says so
// once.
func TestToolsNever(t *testing.T) {
	p := start(t, nil, toolless(t), "--tools-in-prompt", "never")
	for path, bodies := range map[string][]string{
		"/v1/messages":              {`{` + askWeather + `, ` + messagesTools + `, "tool_choice": {"type": "any"}}`, `{` + askWeather + `, ` + messagesTools + `, "tool_choice": {"type": "tool", "name": "get_weather"}, "stream": true}`},
		"/v1/messages/count_tokens": {`{` + askWeather + `, ` + messagesTools + `, "tool_choice": {"type": "any"}}`},
		"/v1/chat/completions":      {`{` + askWeather + `, ` + chatTools + `, "tool_choice": "required"}`, `{` + askWeather + `, ` + chatTools + `, "tool_choice": {"type": "function", "function": {"name": "get_weather"}}, "stream": true}`},
	} {
		for _, body := range bodies {
			status, b := request(t, "POST", p.url+path, body)
			var e struct {
				Error struct{ Type, Param, Message string }
			}
			if err := json.Unmarshal(b, &e); err != nil || status != 400 || e.Error.Type != "invalid_request_error" || !strings.Contains(e.Error.Message, "--tools-in-prompt auto") {
				t.Errorf("%s: %d %s", path, status, b)
			}
		}
	}
	for range 2 {
		for path, tools := range map[string]string{"/v1/messages": messagesTools, "/v1/chat/completions": chatTools} {
			if status, b := request(t, "POST", p.url+path, `{`+askWeather+`, `+tools+`}`); status != 200 {
				t.Errorf("%d %s", status, b)
			}
		}
	}
	if n := strings.Count(p.stderr.String(), "requests are answered without their tools"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, p.stderr)
	}
}
