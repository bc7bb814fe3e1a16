package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/mcp"
)

// toolbox is an MCP host with one tool, which says back what it is called with.
type toolbox struct{}

func (toolbox) Servers() []mcp.Status {
	return []mcp.Status{{Name: "box", State: mcp.Connected, Transport: "stdio", Tools: 1}}
}

func (toolbox) Tools() []*mcp.Tool {
	return []*mcp.Tool{{Name: "box__echo", Server: "box", Own: "echo", Parameters: json.RawMessage(`{"type":"object"}`), Allowed: true}}
}

func (toolbox) Call(_ context.Context, name string, args json.RawMessage) (*mcp.Result, error) {
	switch name {
	case "box__echo":
		return &mcp.Result{Text: string(args)}, nil
	case "box__fail":
		return &mcp.Result{Text: "it went wrong", IsError: true}, nil
	case "box__locked":
		return nil, &chat.Error{Kind: chat.Forbidden, Msg: "not allowed"}
	}
	return nil, &chat.Error{Kind: chat.NotFound, Msg: "no such tool"}
}

func TestMCP(t *testing.T) {
	o := managed(&shelf{})
	o.MCP = toolbox{}
	s := New(o)
	for _, tc := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/v1/mcp/servers", "", 200, `{"servers":[{"name":"box","state":"connected","transport":"stdio","tools_count":1,"tools_allowed":0,"error":null,"restarts":0}]}`},
		{"GET", "/mcp/tools", "", 200, `{"count":1,"tools":[{"name":"box__echo","server":"box","tool":"echo","description":"","parameters":{"type":"object"},"allowed":true}]}`},
		{"POST", "/v1/mcp/execute", `{"tool_name":"box__echo","arguments":{"b":1,"a":[2]}}`, 200, `{"tool_name":"box__echo","content":"{\"b\":1,\"a\":[2]}","is_error":false,"error_message":null}`},
		{"POST", "/v1/mcp/execute", `{"tool_name":"box__fail"}`, 200, `{"tool_name":"box__fail","content":null,"is_error":true,"error_message":"it went wrong"}`},
		{"POST", "/v1/mcp/execute", `{"tool_name":"box__locked"}`, 403, "not allowed"},
		{"POST", "/v1/mcp/execute", `{"tool_name":"other"}`, 404, "no such tool"},
		{"POST", "/v1/mcp/execute", `{"tool_name":5}`, 400, "tool_name"},
		{"POST", "/v1/mcp/execute", `{"tool_name":"box__echo","arguments":[]}`, 400, "arguments"},
		{"POST", "/v1/mcp/execute", `[]`, 400, "expected an object"},
		{"GET", "/v1/mcp/execute", "", 405, "use POST"},
		{"GET", "/v1/mcp/other", "", 404, "there are GET /v1/mcp/servers"},
	} {
		if w := do(s, tc.method, tc.path, tc.body, bearer); w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s %s %s = %d %s\nwant %d %s", tc.method, tc.path, tc.body, w.Code, w.Body, tc.status, tc.want)
		}
	}
}

// TestMCPNeedsToken: a caller without a key or the token reaches none of these routes, however near, and one with does.
func TestMCPNeedsToken(t *testing.T) {
	o := managed(&shelf{})
	o.MCP = toolbox{}
	for _, path := range []string{"/v1/mcp/tools", "/v1/v1/mcp/tools", "//mcp//tools/"} {
		if w := do(New(o), "GET", path, ""); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "token") {
			t.Errorf("%s without a token: %d %s", path, w.Code, w.Body)
		}
	}
	if w := do(New(o), "GET", "/", ""); len(w.Result().Cookies()) != 2 || w.Result().Cookies()[1].Path != "/v1/mcp/" {
		t.Errorf("cookies %v", w.Result().Cookies())
	}
	const cookie = "Cookie: hearth_token=made-at-start"
	for _, tc := range []struct {
		headers []string
		status  int
	}{
		{[]string{cookie, "Origin: http://localhost:8080", "Host: localhost:8080"}, 200},
		{[]string{cookie, "Origin: http://localhost:9", "Host: localhost:8080"}, 401},
		{[]string{"Authorization: Bearer other"}, 401},
	} {
		if w := do(New(o), "POST", "/v1/mcp/execute", `{"tool_name":"box__echo"}`, tc.headers...); w.Code != tc.status {
			t.Errorf("%v: %d %s, want %d", tc.headers, w.Code, w.Body, tc.status)
		}
	}
	o.Keys = plain("user-key")
	for key, status := range map[string]int{"": 401, "other": 401, "user-key": 200, "made-at-start": 200} {
		if w := do(New(o), "GET", "/v1/mcp/tools", "", "Authorization: Bearer "+key); w.Code != status {
			t.Errorf("key %q: %d, want %d", key, w.Code, status)
		}
	}
}

// TestNoMCP: without a file of servers there is nothing at these paths, and the answer says how there would be.
func TestNoMCP(t *testing.T) {
	if w := do(New(managed(&shelf{})), "GET", "/v1/mcp/tools", ""); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "--mcp-config FILE") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestMCPInReplies: who may have tools run in a reply: with keys those who have one, else those who show the token, and nobody
// where there are no servers.
func TestMCPInReplies(t *testing.T) {
	body := `{"mcp":true,` + messages[1:]
	o := managed(&shelf{})
	for _, tc := range []struct {
		mcp     MCP
		keys    bool
		headers []string
		status  int
		want    string
	}{
		{nil, false, []string{bearer}, 400, "start hearth with --mcp-config FILE"},
		{toolbox{}, false, nil, 401, "the token that hearth made when it started"},
		{toolbox{}, false, []string{"Origin: http://localhost:3000"}, 401, "token"},
		{toolbox{}, false, []string{bearer}, 200, ""},
		{toolbox{}, true, []string{"x-api-key: user-key"}, 200, ""},
		{toolbox{}, true, nil, 401, ""},
	} {
		o.MCP, o.Keys = tc.mcp, nil
		if tc.keys {
			o.Keys = plain("user-key")
		}
		if w := do(New(o), "POST", "/v1/messages", body, tc.headers...); w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%v, keys %t, %v: %d %s, want %d", tc.mcp, tc.keys, tc.headers, w.Code, w.Body, tc.status)
		}
	}
}
