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
	say := func(kind string) func(string) {
		return func(line string) { fmt.Fprintf(stderr, "hearth: %s: %s\n", kind, line) }
	}
	c, err := readServers(cfg.MCPConfig, say("warning"), say("note"))
	if err != nil {
		return nil, console.Hintf(err, "docs/mcp.md has an example")
	}
	return c, nil
}

func readServers(file string, warn, note func(line string)) (*mcp.Config, error) {
	c, err := mcp.ReadConfig(file, config.Environ)
	if err != nil {
		return nil, fmt.Errorf("--mcp-config: %w", err)
	}
	for _, f := range c.Faults {
		warn(fmt.Sprintf("%s: %v; this MCP server is left out", file, f))
	}
	for _, r := range c.Remarks {
		note(file + ": " + r)
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
	s.reload = append(s.reload, func() error {
		c, err := readServers(s.cfg.MCPConfig, func(line string) { s.log.Warn(line) }, func(line string) { s.log.Info(line) })
		if err != nil {
			return fmt.Errorf("the MCP servers stay as they are: %w", err)
		}
		s.host.Reload(c)
		return nil
	})
}

// stopMCP ends them.
func (s *serving) stopMCP() {
	if s.host != nil {
		s.host.Close()
	}
}
