//go:build unix

package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// SIGHUP reads the file of MCP servers again: those that are new start, those that are gone end, others stay connected, and what
// is wrong is said.
func TestReloadMCP(t *testing.T) {
	var first atomic.Int64 // sessions of the server a
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		if r.URL.Path == "/a" {
			first.Add(1)
		}
		return sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	}, nil))
	defer web.Close()
	file := filepath.Join(t.TempDir(), "mcp.json")
	write := func(servers string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(`{"mcpServers": {`+servers+`}}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := func(name string) string { return fmt.Sprintf(`"%s": {"url": "%s/%[1]s"}`, name, web.URL) }
	write(server("a"))
	p := startPiped(t, "", "--mcp-config", file)
	p.says(t, "MCP server a: connected")
	sessions := first.Load()
	for _, tc := range []struct {
		servers string
		says    []string
	}{
		{server("a") + "," + server("b") + `, "c": {"command": "x", "args": 5}`, []string{"mcpServers.c.args: must be a list of texts; this MCP server is left out", "MCP server b: connected"}},
		{server("a") + `, "b": {`, []string{"the MCP servers stay as they are: --mcp-config: " + file}},
		{server("a"), []string{"MCP server b: is ended; the file names it no more"}},
	} {
		write(tc.servers)
		_ = p.Process.Signal(syscall.SIGHUP)
		for _, want := range tc.says {
			p.says(t, want)
		}
	}
	if n := first.Load(); n != sessions || n == 0 {
		t.Errorf("%d sessions of the server that stays, %d before", n, sessions)
	}
	_ = p.Process.Signal(syscall.SIGTERM)
	p.ends(t, "SIGTERM")
}
