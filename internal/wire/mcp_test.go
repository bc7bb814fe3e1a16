package wire

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"hearth/internal/chat"
)

// TestUseMCP: which servers a request names, by its body or its header, and who may.
func TestUseMCP(t *testing.T) {
	many := strings.Repeat(`"x",`, mostServers)
	for _, tc := range []struct {
		body, header string
		want         []string // servers
		err          string
	}{
		{body: `{}`},
		{body: `{"mcp": null}`},
		{body: `{"mcp": false}`, header: "true"},
		{body: `{"mcp": true}`, want: []string{"*"}},
		{body: `{"mcp": ["a", "b"]}`, header: "c", want: []string{"a", "b"}},
		{body: `{}`, header: "true", want: []string{"*"}},
		{body: `{}`, header: "false"},
		{body: `{}`, header: "a, b", want: []string{"a", "b"}},
		{body: `{"mcp": []}`, err: "mcp: must name at least one server"},
		{body: `{"mcp": "a"}`, err: "mcp: must be true, false or a list of names of MCP servers"},
		{body: `{"mcp": [1]}`, err: "mcp[0]: expected a string"},
		{body: `{"mcp": [` + many + `"x"]}`, err: "at most 64"},
		{body: `{}`, header: strings.Repeat("x,", mostServers) + "x", err: "at most 64"},
	} {
		v, bad := Parse([]byte(tc.body))
		if bad != nil {
			t.Fatal(bad)
		}
		r := httptest.NewRequest("POST", "/", nil)
		if tc.header != "" {
			r.Header.Set(MCPHeader, tc.header)
		}
		var req chat.Request
		err := useMCP(r, v.Get("mcp"), &Info{MCP: MCPOpen}, &req)
		switch {
		case tc.err != "":
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%.60s %.20q: %v, want %q", tc.body, tc.header, err, tc.err)
			}
			continue
		case err != nil || (req.MCP == nil) != (tc.want == nil) || req.MCP != nil && !slices.Equal(req.MCP.Servers, tc.want):
			t.Errorf("%.60s %.20q: %+v, %v", tc.body, tc.header, req.MCP, err)
		}
		for access, kind := range map[MCPAccess]chat.ErrorKind{MCPAbsent: chat.Invalid, MCPDenied: chat.Unauthenticated} {
			if err := useMCP(r, v.Get("mcp"), &Info{MCP: access}, &chat.Request{}); (err == nil) != (tc.want == nil) || err != nil && err.Kind != kind {
				t.Errorf("%.60s %.20q: access %d: %v", tc.body, tc.header, access, err)
			}
		}
	}
}
