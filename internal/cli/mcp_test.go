package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hearth/internal/config"
)

// TestReadMCP: what is wrong with one server is said with its file, server and key, and the other is there; what is wrong with
// the file is an error.
func TestReadMCP(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcp.json")
	for text, want := range map[string]struct {
		servers int
		stderr  string
		err     string
	}{
		`{"mcpServers": {"a": {"command": "x", "args": 5}, "b": {"url": "http://127.0.0.1/mcp", "alow": []}}}`: {1,
			"hearth: warning: " + file + ": mcpServers.a.args: must be a list of texts; this MCP server is left out\n" +
				"hearth: note: " + file + ": mcpServers.b: the key \"alow\" means nothing here\n", ""},
		`{`: {0, "", "--mcp-config: " + file + ": must be a JSON object with mcpServers in it"},
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var stderr strings.Builder
		c, err := readMCP(&config.Config{MCPConfig: file}, &stderr)
		if (err == nil) != (want.err == "") || err != nil && !strings.Contains(err.Error(), want.err) || stderr.String() != want.stderr || c != nil && len(c.Servers) != want.servers {
			t.Errorf("%s: %+v, %v, %s", text, c, err, &stderr)
		}
	}
	if c, err := readMCP(&config.Config{}, nil); c != nil || err != nil {
		t.Errorf("no file: %v, %v", c, err)
	}
}
