package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestThinkingForbidden: a server's no to thinking holds against every way in which requests ask for it, on every API, whole and
// streamed; a default, which is what chat-template-kwargs give, does not.
func TestThinkingForbidden(t *testing.T) {
	chatAsks := []string{`"reasoning_effort": "high"`, `"enable_thinking": true`, `"chat_template_kwargs": {"enable_thinking": true}`, `"chat_template_kwargs": {"thinking": true}`,
		`"thinking": {"type": "enabled"}`, `"reasoning": {"effort": "high"}`, `"enable_thinking": true, "reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": true, "reasoning_effort": "high"}`}
	all := map[string][]string{
		"/v1/messages": {`"thinking": {"type": "enabled", "budget_tokens": 1024}`, `"thinking": {"type": "adaptive"}`, `"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}`,
			`"chat_template_kwargs": {"enable_thinking": true}, "thinking": {"type": "enabled", "budget_tokens": 1024}`},
		"/v1/chat/completions": chatAsks,
		"/openai/deployments/demo/chat/completions?api-version=2024-10-21": chatAsks[1:3],
	}
	plain := map[string][]string{"/v1/messages": all["/v1/messages"][:1], "/v1/chat/completions": chatAsks[1:2]}
	thinks := func(url, path, ask string) bool {
		status, got := request(t, "POST", url+path, `{"messages": [{"role": "user", "content": "What is 17 + 25?"}], "max_tokens": 2000, `+ask+"}")
		if status != 200 {
			t.Fatalf("%s, %s: %d %s", path, ask, status, got)
		}
		return strings.Contains(string(got), "reasoning_content") || strings.Contains(string(got), `"thinking"`) || strings.Contains(string(got), "thinking_delta")
	}
	for _, c := range []struct {
		file  string
		env   map[string]string
		args  []string
		asks  map[string][]string
		holds bool
	}{
		{env: map[string]string{"MLX_ENABLE_THINKING": "0"}, asks: all, holds: true},
		{env: map[string]string{"VLLM_MLX_ENABLE_THINKING": "false"}, asks: all, holds: true},
		{env: map[string]string{"HEARTH_ENABLE_THINKING": "false"}, asks: plain, holds: true},
		{args: []string{"--enable-thinking=false"}, asks: plain, holds: true},
		{file: "[models.demo]\nenable_thinking = false", asks: plain, holds: true},
		{args: []string{"--chat-template-kwargs", `{"enable_thinking": false}`}, asks: plain},
		{args: []string{"--enable-thinking"}, asks: plain},
	} {
		url := serveFolder(t, "demo", configured(t, c.file, c.env, c.args...))
		for path, list := range c.asks {
			for _, ask := range list {
				for _, stream := range []string{"", `, "stream": true`} {
					if got := thinks(url, path, ask+stream); got == c.holds {
						t.Errorf("%q %v %v: %s, %s%s: thinks %t", c.file, c.env, c.args, path, ask, stream, got)
					}
				}
			}
		}
		if thinks(url, "/v1/chat/completions", `"enable_thinking": false`) {
			t.Errorf("%q %v %v: a request cannot switch thinking off", c.file, c.env, c.args)
		}
	}
}

// TestThinkingBudgetSetting: the server's budget counts for requests that name none.
func TestThinkingBudgetSetting(t *testing.T) {
	url := serveFolder(t, "demo", configured(t, "", nil, "--default-thinking-token-budget=6"))
	reasoned := func(fields string) int {
		status, body := request(t, "POST", url+"/v1/chat/completions", `{"messages": [{"role": "user", "content": "What is 17 + 25?"}], "max_tokens": 500, "temperature": 0`+fields+`}`)
		var r struct {
			Usage struct {
				Details struct {
					Reasoning int `json:"reasoning_tokens"`
				} `json:"completion_tokens_details"`
			}
		}
		if err := json.Unmarshal(body, &r); err != nil || status != 200 {
			t.Fatalf("%d %v %s", status, err, body)
		}
		return r.Usage.Details.Reasoning
	}
	set, own := reasoned(`, "enable_thinking": true`), reasoned(`, "thinking": {"type": "enabled", "budget_tokens": 20}`)
	if set < 6 || set > 9 || own < 20 || own > 23 {
		t.Errorf("%d tokens of reasoning with the server's budget of 6, %d with the request's of 20", set, own)
	}
}
