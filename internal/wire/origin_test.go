package wire

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hearth/internal/access"
	"hearth/internal/chat"
)

func TestIdentify(t *testing.T) {
	caller := [16]byte{7}
	for _, tc := range []struct {
		name, body string
		header     []string
		want       chat.Origin
	}{
		{"nothing", `{}`, nil, chat.Origin{}},
		{"not an object", `[1]`, nil, chat.Origin{}},
		{"Claude Code", `{"metadata":{"user_id":"{\"device_id\":\"d\",\"account_uuid\":\"\",\"session_id\":\"5f3b-1\"}"}}`, nil, chat.Origin{Session: "5f3b-1"}},
		{"older Claude Code", `{"metadata":{"user_id":"user_abc_account__session_5f3b-2"}}`, nil, chat.Origin{Session: "5f3b-2"}},
		{"a user without a session", `{"metadata":{"user_id":"somebody@example.org"}}`, nil, chat.Origin{}},
		{"a user of another type", `{"metadata":{"user_id":5}}`, nil, chat.Origin{}},
		{"metadata of another type", `{"metadata":"x"}`, nil, chat.Origin{}},
		{"header wins", `{"metadata":{"user_id":"user_abc_account__session_b"},"prompt_cache_key":"c"}`,
			[]string{"X-Session-Id", "d", "X-Claude-Code-Session-Id", "a"}, chat.Origin{Session: "a", Marked: true}},
		{"Codex", `{"prompt_cache_key":"thread-1"}`, nil, chat.Origin{Session: "thread-1", Marked: true}},
		{"a gateway", `{}`, []string{"session_id", "s-1"}, chat.Origin{Session: "s-1"}},
		{"Dynamo", `{}`, []string{"x-dynamo-session-id", "s-2"}, chat.Origin{Session: "s-2"}},
		{"a body", `{"session_id":"s-3"}`, nil, chat.Origin{Session: "s-3"}},
		{"a number", `{"session_id":3}`, nil, chat.Origin{}},
		{"the agent's own over a gateway's", `{"session_id":"c"}`, []string{"x-dynamo-session-id", "b", "session_id", "a"}, chat.Origin{Session: "a"}},
		{"a header over a body", `{"session_id":"c"}`, []string{"x-dynamo-session-id", "b"}, chat.Origin{Session: "b"}},
		{"a body's own field over what it also says", `{"session_id":"a","metadata":{"user_id":"user_abc_account__session_b"},"prompt_cache_key":"c","previous_response_id":"d"}`,
			nil, chat.Origin{Session: "a", Marked: true}},
		{"Responses", `{"previous_response_id":"resp_1"}`, nil, chat.Origin{Session: "resp_1"}},
		{"marked", `{"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}`, nil, chat.Origin{Marked: true}},
		{"said, not marked", `{"messages":[{"role":"user","content":"\"cache_control\""}]}`, nil, chat.Origin{}},
		{"flex", `{"service_tier":"flex"}`, nil, chat.Origin{Background: true}},
		{"other tiers", `{"service_tier":"auto"}`, nil, chat.Origin{}},
		{"background", `{}`, []string{"X-Hearth-Priority", "background"}, chat.Origin{Background: true}},
		{"history is no origin", `{}`, []string{"X-Hearth-History", "text"}, chat.Origin{}},
		{"header over tier", `{"service_tier":"flex"}`, []string{"X-Hearth-Priority", "interactive"}, chat.Origin{}},
		{"a name for a log", `{"prompt_cache_key":"a b\nc"}`, nil, chat.Origin{Session: "sha256:24b366cf6891c1a7", Marked: true}},
		{"a long name", `{"prompt_cache_key":"` + strings.Repeat("a", 65) + `"}`, nil, chat.Origin{Session: "sha256:635361c48bb9eab1", Marked: true}},
	} {
		v, perr := Parse([]byte(tc.body))
		if perr != nil {
			t.Fatal(perr)
		}
		r := httptest.NewRequest("POST", "/", nil)
		for i := 0; i < len(tc.header); i += 2 {
			r.Header.Set(tc.header[i], tc.header[i+1])
		}
		info := &Info{RequestID: "req_1", Client: access.Client{Caller: caller, Salt: [16]byte{8}}}
		var req chat.Request
		if err := Identify(r.WithContext(WithInfo(r.Context(), info)), v, &req); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		tc.want.ID, tc.want.Caller, tc.want.Salt = "req_1", caller, [16]byte{8}
		if req.Origin != tc.want || info.Session != tc.want.Session {
			t.Errorf("%s: %+v, want %+v", tc.name, req.Origin, tc.want)
		}
	}
	v, _ := Parse([]byte(`{}`))
	r := httptest.NewRequest("POST", "/", nil)
	r.Header.Set("X-Hearth-Priority", "urgent")
	if err := Identify(r, v, &chat.Request{}); err == nil || err.Kind != chat.Invalid || !strings.Contains(err.Error(), `X-Hearth-Priority: must be interactive or background, got "urgent"`) {
		t.Errorf("a wrong priority: %v", err)
	}
}

// FuzzIdentify: headers and fields name a session that can stand in a line of a log, and nothing but a wrong priority, history or
// choice of servers is refused.
func FuzzIdentify(f *testing.F) {
	f.Add("X-Session-Id", "s-1", `{"metadata":{"user_id":"{\"session_id\":\"5f3b-1\"}"}}`)
	f.Add("X-Session-Id", "", `{"metadata":{"user_id":"user_abc_account__session_5f3b-2"},"prompt_cache_key":"a b\nc"}`)
	f.Add(PriorityHeader, "background", `{"service_tier":"flex","session_id":3}`)
	f.Add(HistoryHeader, "text", `{"mcp":["a","b"]}`)
	f.Add(MCPHeader, "a, b,,c", `{"mcp":true}`)
	f.Add(MCPHeader, "true", `{"mcp":[],"previous_response_id":"resp_1"}`)
	f.Fuzz(func(t *testing.T, header, value, body string) {
		v, bad := Parse([]byte(body))
		if bad != nil {
			return
		}
		r := httptest.NewRequest("POST", "/", nil)
		r.Header[http.CanonicalHeaderKey(header)] = []string{value}
		info := &Info{RequestID: "req_1", MCP: MCPOpen}
		var req chat.Request
		if err := Identify(r.WithContext(WithInfo(r.Context(), info)), v, &req); err != nil {
			if err.Kind != chat.Invalid && err.Kind != chat.TooLarge || len(err.Error()) > 1000 {
				t.Errorf("%s: %q, %s: %v", header, value, body, err)
			}
			return
		}
		if s := req.Origin.Session; s != cleanSession(s) || len(s) > 64 || info.Session != s {
			t.Errorf("%s: %q, %s: session %q", header, value, body, s)
		}
		if req.MCP != nil && (len(req.MCP.Servers) == 0 || len(req.MCP.Servers) > mostServers) {
			t.Errorf("%s: %q, %s: servers %q", header, value, body, req.MCP.Servers)
		}
	})
}
