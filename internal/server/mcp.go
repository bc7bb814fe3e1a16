package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/mcp"
	"hearth/internal/wire"
)

// MCP is what the routes under /v1/mcp/ are about; *mcp.Host is one.
type MCP interface {
	Servers() []mcp.Status
	Tools() []*mcp.Tool
	Call(ctx context.Context, name string, args json.RawMessage) (*mcp.Result, error)
}

var _ = wire.Declare("arguments", "tool_name")

// mcpPath is where those routes are, behind /v1 or not.
const mcpPath = "/mcp/"

// ofMCP reports requests for them.
func ofMCP(r *http.Request) bool {
	return strings.HasPrefix(strings.TrimPrefix(r.URL.Path, "/v1"), mcpPath)
}

// mcpAccess says whether a call may have tools run in its reply; shown: it shows a key, or the token.
func (s *Server) mcpAccess(shown bool) wire.MCPAccess {
	switch {
	case s.o.MCP == nil:
		return wire.MCPAbsent
	case !shown:
		return wire.MCPDenied
	}
	return wire.MCPOpen
}

// mountMCP adds the routes under /v1/mcp/.
func (s *Server) mountMCP(mux wire.Mux, o wire.Options) {
	get := func(path string, body func() any) {
		wire.Handle(mux, "", mcpPath+path, wire.Method(s.fail, http.MethodGet, func(w http.ResponseWriter, _ *http.Request) {
			wire.WriteJSON(w, http.StatusOK, body())
		}))
	}
	get("servers", func() any { return map[string]any{"servers": s.o.MCP.Servers()} })
	get("tools", func() any {
		tools := s.o.MCP.Tools()
		return map[string]any{"tools": tools, "count": len(tools)}
	})
	wire.Handle(mux, "", mcpPath+"execute", wire.Method(s.fail, http.MethodPost, func(w http.ResponseWriter, r *http.Request) { s.execute(w, r, o) }))
}

// executed is the body of POST /v1/mcp/execute.
type executed struct {
	Tool    string  `json:"tool_name"`
	Content *string `json:"content"` // null where there is an error
	IsError bool    `json:"is_error"`
	Error   *string `json:"error_message"`
}

// execute runs one tool.
func (s *Server) execute(w http.ResponseWriter, r *http.Request, o wire.Options) {
	var name string
	var args json.RawMessage
	body := o.Read(w, r, s.fail, func(v wire.Value) *chat.Error {
		var d wire.Decoder
		if d.Want(v, wire.Object) {
			name = d.String(v.Get("tool_name"))
			args = d.ObjectRaw(v.Get("arguments"))
		}
		return d.Err()
	})
	if body == nil {
		return
	}
	body.Close()
	res, err := s.o.MCP.Call(r.Context(), name, args)
	if err != nil {
		s.fail(w, r, chat.AsError(err))
		return
	}
	out := executed{Tool: name, Content: &res.Text}
	if res.IsError {
		out = executed{Tool: name, IsError: true, Error: &res.Text}
	}
	wire.WriteJSON(w, http.StatusOK, out)
}
