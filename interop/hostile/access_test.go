//go:build linux

package hostile

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestGivenFiles: a file of keys or of MCP servers, whatever is in it, is taken or refused in one line that names it and the
// place; what is wrong with one MCP server is a warning, and the server starts.
func TestGivenFiles(t *testing.T) {
	skipUnlessAsked(t)
	record("\n| file of keys, or of MCP servers | seen | |\n|---|---|---|")
	hash := "sha256:" + strings.Repeat("0a", 32)
	servers := func(list string) string { return `{"mcpServers": {` + list + `}}` }
	named := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "ada%d user %s\n", i, hash)
		}
		return b.String()
	}
	const keys, mcp = "--api-key-file", "--mcp-config"
	for _, c := range []struct {
		flag, name, text string
		says             string // of standard error, in one line; "": it starts without a word
		starts           bool
	}{
		{keys, "broken JSON", "{\n \"ada\": \"key\"\n", "line 1: ", false},
		{keys, "JSON in lines", "{\n\"ada\":\"some-key\"\n}\n", "line 1: ", false},
		{keys, "a table of TOML", "[keys]\nada = \"some-key\"\n", "line 1: ", false},
		{keys, "bytes of a compressed file", "\x1f\x8b\x08\x00\x00\x00\n\x00\x03\xff", "line 1: ", false},
		{keys, "5 MB", strings.Repeat("ada user some-key\n", 300_000), "4194304", false},
		{keys, "a line of 3 MB", "ada user " + letters(3<<20), "", true},
		{keys, "a word of 3 MB behind a key", "ada user some-key " + letters(3<<20), "line 1: word 4", false},
		{keys, "40,000 keys", named(40_000), "", true},
		{keys, "a million empty lines", strings.Repeat("\n", 1_000_000), "has no lines", false},
		{keys, "two keys of a name", "ada user one-key\nada operator another-key\n", "line 2: another key of the name that line 1 has", false},
		{keys, "a hash that is none", "ada user sha256:zz\n", "line 1: want 64 hexadecimal digits", false},
		{keys, "a hash too short", "ada user " + hash[:40] + "\n", "line 1: want 64 hexadecimal digits", false},
		{keys, "a limit without end", "\nada user some-key rate-limit=99999999999999999999\n", "line 2: word 4: rate-limit: want a whole number", false},
		{keys, "a limit below nothing", "ada user some-key max-requests=-1\n", "line 1: word 4: max-requests: want a whole number", false},
		{keys, "many stars", "ada user some-key models=" + strings.Repeat("*", 1<<20) + "\n", "line 1: word 4: models: want names", false},
		{mcp, "broken JSON", servers(`"a": {`), "must be a JSON object", false},
		{mcp, "2 MB", servers(`"a": {"command": "` + letters(2<<20) + `"}`), "1048576", false},
		{mcp, "half a million levels", servers(`"a": ` + strings.Repeat("[", 500_000)), "must be a JSON object", false},
		{mcp, "65 servers", servers(`"a": {}, ` + repeat(64, `"s%d": {"url": "http://127.0.0.1:1/"}`)), "has 65 servers, more than 64", false},
		{mcp, "a time without end", servers(`"a": {"url": "http://127.0.0.1:1/", "timeout": 1e308}`), "mcpServers.a.timeout: must be a number of seconds", true},
		{mcp, "a program that is not there", servers(`"a": {"command": "/nonexistent/program"}`), "mcpServers.a.command", true},
		{mcp, "an address of another kind", servers(`"a": {"url": "file:///etc/passwd"}`), "mcpServers.a.url: must be an address", true},
		{mcp, "variables in variables", servers(`"a": {"url": "` + strings.Repeat("${A:-", 100_000) + `"}`), "mcpServers.a.url: must be an address", true},
		{mcp, "a header of two lines", servers(`"a": {"url": "http://127.0.0.1:1/", "headers": {"A": "b\r\nc: d"}}`), "mcpServers.a.headers: A: the value must be one line", true},
		{mcp, "80,000 keys of a server", servers(`"a": {` + repeat(80_000, `"k%d": 1`) + `}`), "mcpServers.a: needs command", true},
	} {
		t.Run(c.flag+"/"+c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "given")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			r := run(command(t.TempDir(), "serve", "--port", "0", "--prefix-cache-dir", "off", c.flag, path))
			var faults []error
			if !c.starts {
				faults = append(faults, r.refuses(path, true))
			} else if r.cut != ready {
				faults = append(faults, fmt.Errorf("%s, %.300q", r.ending(), r.stderr))
			}
			said := ""
			for line := range strings.Lines(r.stderr) {
				if c.says != "" && strings.Contains(line, c.says) {
					said = line
				}
			}
			if (said == "") != (c.says == "") || len(said) > longestError {
				faults = append(faults, fmt.Errorf("no line of at most %d bytes says %q: %.300q", longestError, c.says, r.stderr))
			}
			outcome(t, c.flag+": "+c.name, fmt.Sprintf("%s, %s, %d MB", r.ending(), show(r.cpu), r.peak>>20), faults...)
		})
	}
}

// asServer makes this test's program an MCP server of a kind.
const asServer = "HOSTILE_MCP_SERVER"

// mcpServer speaks MCP on standard streams, badly: kind says how.
func mcpServer(kind string) {
	out := bufio.NewWriter(os.Stdout)
	say := func(format string, args ...any) {
		fmt.Fprintf(out, format+"\n", args...)
		if out.Flush() != nil { // nobody reads on
			os.Exit(0)
		}
	}
	if kind == "flood" {
		for {
			if _, err := out.WriteString(letters(1 << 16)); err != nil {
				os.Exit(0)
			}
		}
	}
	tool := `{"name": "t", "inputSchema": {"type": "object"}}`
	for in := bufio.NewReader(os.Stdin); ; {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				ProtocolVersion string
			}
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		result := func(text string) { say(`{"jsonrpc": "2.0", "id": %s, "result": %s}`, m.ID, text) }
		switch {
		case kind == "silent":
		case m.Method == "initialize":
			result(fmt.Sprintf(`{"protocolVersion": %q, "capabilities": {"tools": {}}, "serverInfo": {"name": "hostile", "version": "1"}}`, cmp.Or(m.Params.ProtocolVersion, "2025-06-18")))
			for kind == "chatter" {
				say(`{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": %q}}`, letters(1000))
			}
		case m.Method == "tools/list":
			switch kind {
			case "pages":
				result(`{"tools": [` + tool + `], "nextCursor": "on"}`)
			case "tools":
				result(`{"tools": ` + list(90_000, `{"name": "t%d", "inputSchema": {"type": "object"}}`) + `}`)
			case "deep":
				result(`{"tools": [{"name": "t", "inputSchema": {"type": "object", "properties": {"a": ` + strings.Repeat(`{"items": `, 200_000) + `{}` + strings.Repeat("}", 200_000) + `}}}]}`)
			case "wide":
				result(`{"tools": [` + tool + `, {"name": "u", "inputSchema": {"type": "object", "properties": {` + repeat(200_000, `"p%d": {"type": "string"}`) + `}}}]}`)
			case "bomb":
				result(`{"tools": [{"name": "t", "inputSchema": ` + diamonds(40, `{"type": "string"}`) + `}]}`)
			case "malformed":
				say(`{"jsonrpc": "2.0", "id": %s, "result": {"tools": [`, m.ID)
			default:
				result(`{"tools": [` + tool + `]}`)
			}
		case m.Method == "tools/call":
			switch kind {
			case "huge":
				result(`{"content": [{"type": "text", "text": "` + letters(16<<20) + `"}]}`)
			case "large":
				result(`{"content": [{"type": "text", "text": "` + letters(7<<20) + `"}]}`)
			case "parts":
				result(`{"content": ` + list(100_000, `{"type": "text", "text": "part %d"}`) + `}`)
			case "broken":
				say(`{"jsonrpc": "2.0", "id": %s, "result": {"content": [{"type": "text"`, m.ID)
			case "strange":
				result(`{"content": [{"type": "telepathy"}, null, 5]}`)
			case "dies":
				os.Exit(7)
			case "hangs":
			default:
				result(`{"content": [{"type": "text", "text": "fine"}]}`)
			}
		default:
			say(`{"jsonrpc": "2.0", "id": %s, "error": {"code": -32601, "message": "no such method"}}`, m.ID)
		}
	}
}

// TestMCPServers: whatever an MCP server says, others are answered meanwhile, memory is bounded, who calls its tool gets an
// answer, the server beside it goes on working, and SIGTERM ends all.
func TestMCPServers(t *testing.T) {
	skipUnlessAsked(t)
	record("\n| MCP server | seen | |\n|---|---|---|")
	for _, c := range []struct {
		kind, name string
		says       string // the answer to a call, or what is told of the server's tools
	}{
		{"huge", "a result of 16 MB", "is_error"},
		{"large", "a result of 7 MB", "[cut: 65536 of 7340032 bytes]"},
		{"parts", "a result in 100,000 parts", "[cut: 65536 of 1088889 bytes]"},
		{"broken", "half a result", "is_error"},
		{"strange", "a result of kinds that do not exist", "is_error"},
		{"dies", "one that ends in a call", "is_error"},
		{"hangs", "one that does not answer a call", "within 1s (mcpServers.bad.timeout)"},
		{"pages", "a list of tools without end", "those after 64 pages"},
		{"tools", "90,000 tools in a list", "those after the first 512"},
		{"deep", "a schema of 200,000 levels", "mcp_server_not_connected"},
		{"wide", "a schema of 200,000 properties", "u: its schema has more than 262144 bytes"},
		{"bomb", "a schema with 2^40 ways to its end", "fine"},
		{"malformed", "half a list of tools", "mcp_server_not_connected"},
		{"chatter", "notifications without end", "mcp_server_not_connected"},
		{"flood", "a line without end", "mcp_server_not_connected"},
		{"silent", "one that says nothing", "mcp_server_not_connected"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "mcp.json")
			entry := func(name, kind string) string {
				return fmt.Sprintf(`%q: {"command": %q, "env": {%q: %q}, "allow": ["*"], "timeout": 1}`, name, os.Args[0], asServer, kind)
			}
			if err := os.WriteFile(file, []byte(`{"mcpServers": {`+entry("bad", c.kind)+`, `+entry("good", "good")+`}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := serve(dir, nil, "--prefix-cache-dir", "off", "--mcp-config", file)
			if err != nil {
				t.Fatal(err)
			}
			token := s.token(t, dir)
			before := s.own("VmRSS")
			answer := s.mcp(token, http.MethodPost, "/v1/mcp/execute", `{"tool_name": "bad__t"}`)
			for end := time.Now().Add(10 * time.Second); strings.Contains(answer, "mcp_server_not_connected") && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				answer = s.mcp(token, http.MethodPost, "/v1/mcp/execute", `{"tool_name": "bad__t"}`)
			}
			told := s.mcp(token, http.MethodGet, "/v1/mcp/servers", "")
			var faults []error
			if !strings.Contains(answer+told, c.says) || len(answer) > 140<<10 || len(told) > 64<<10 {
				faults = append(faults, fmt.Errorf("want %q: %.300s; %.300s", c.says, answer, told))
			}
			if good := s.mcp(token, http.MethodPost, "/v1/mcp/execute", `{"tool_name": "good__t"}`); !strings.Contains(good, `"content":"fine"`) {
				faults = append(faults, fmt.Errorf("the server beside it: %.300s", good))
			}
			if _, err := s.hello(context.Background()); err != nil {
				faults = append(faults, err)
			}
			peak := max(0, s.own("VmHWM")-before)
			if peak > 256<<20 {
				faults = append(faults, fmt.Errorf("%d MB of memory", peak>>20))
			}
			began := time.Now()
			faults = append(faults, s.stop(syscall.SIGTERM))
			state := "not connected"
			if strings.Contains(told, `"name":"bad","state":"connected"`) {
				state = "connected"
			}
			outcome(t, c.name, fmt.Sprintf("%s, %s, %d MB, ended after %.1f s", state, brief(answer), peak>>20, time.Since(began).Seconds()), errors.Join(faults...))
		})
	}
}

// brief is an answer in a few words.
func brief(answer string) string {
	var a struct {
		Content *string
		Error   json.RawMessage
		Message *string `json:"error_message"`
	}
	if json.Unmarshal([]byte(answer), &a) != nil {
		return "no answer"
	}
	switch {
	case a.Message != nil:
		return "the call failed: " + strings.ReplaceAll(fmt.Sprintf("%.80s", *a.Message), "|", "¦")
	case a.Content != nil:
		return fmt.Sprintf("%d bytes", len(*a.Content))
	}
	return "an error"
}

// own is memory of the server's process alone.
func (s *server) own(field string) int64 {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(raw), field+":")
	var kb int64
	_, _ = fmt.Sscan(rest, &kb)
	return kb << 10
}

// token is what the server's file of state says for its routes.
func (s *server) token(t *testing.T, dir string) string {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "hearth", "serve-*.json"))
	if len(files) != 1 {
		t.Fatalf("files of state: %v", files)
	}
	raw, err := os.ReadFile(files[0])
	var state struct{ Token string }
	if err = cmp.Or(err, json.Unmarshal(raw, &state)); err != nil {
		t.Fatal(err)
	}
	return state.Token
}

// mcp asks a route under /v1/mcp/, and gives what comes back, or the error.
func (s *server) mcp(token, method, path, body string) string {
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := (&http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
