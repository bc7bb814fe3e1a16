package cli

import (
	"fmt"
	"io"

	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/mcp"
	"hearth/internal/server"
)

// readMCP reads the file of MCP servers, if there is one, and says what of it is left out.
func readMCP(cfg *config.Config, stderr io.Writer) (*mcp.Config, error) {
	if cfg.MCPConfig == "" {
		return nil, nil
	}
	c, err := mcp.ReadConfig(cfg.MCPConfig, config.Environ)
	if err != nil {
		return nil, console.Hintf(fmt.Errorf("--mcp-config: %w", err), "docs/mcp.md has an example")
	}
	for _, f := range c.Faults {
		fmt.Fprintf(stderr, "hearth: warning: %s: %v; this MCP server is left out\n", cfg.MCPConfig, f)
	}
	for _, r := range c.Remarks {
		fmt.Fprintf(stderr, "hearth: note: %s: %s\n", cfg.MCPConfig, r)
	}
	return c, nil
}

// startMCP starts the MCP servers, and gives the server what it needs of them.
func (s *serving) startMCP(o *server.Options) {
	if s.mcp == nil {
		return
	}
	s.host = mcp.Start(s.mcp, mcp.Options{Version: o.Version, Lookup: config.Environ, Log: func(line string) { s.log.Info(line) }})
	o.MCP, o.Models = s.host, mcp.Models{Models: o.Models, Host: s.host}
}

// stopMCP ends them.
func (s *serving) stopMCP() {
	if s.host != nil {
		s.host.Close()
	}
}
