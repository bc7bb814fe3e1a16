// Package mcp runs hearth with real MCP servers: the protocol's reference server from npm and two of PyPI, over standard streams
// and over HTTP. make interop installs them.
package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"hearth/interop/program"
)

var (
	hearthFlag = flag.String("hearth", "", "the binary to test")
	npmFlag    = flag.String("everything", "", "mcp-server-everything of npm")
	pythonFlag = flag.String("python", "", "a Python that has mcp-server-time and mcp")
)

const key = "interop-key"

// script calls a tool of each of two servers, then says what they said.
const script = `{"turn": 1, "if_tool": "everything__echo", "raw": "Let me ask.\n<tool_call>\n{\"name\": \"everything__echo\", \"arguments\": {\"message\": \"hello\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"python__add\", \"arguments\": {\"a\": 2, \"b\": 3}}\n</tool_call>"}
{"turn": 2, "raw": "They say: {{.Last}}"}
{"raw": "Nothing to ask."}
`

// free is a port that nobody listens on.
func free(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// background runs a server that listens on a port by itself.
func background(t *testing.T, port string, args ...string) {
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "PORT="+port)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait()
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not listen: %v", args[0], err)
		}
	}
}

// ask is a call of hearth.
func ask(t *testing.T, s *program.Server, method, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestServers(t *testing.T) {
	if *npmFlag == "" || *pythonFlag == "" {
		t.Skip("run by make interop, which installs the servers")
	}
	folder, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(folder, "server.py")
	for transport, servers := range map[string]func() string{
		"stdio": func() string {
			return fmt.Sprintf(`"everything": {"command": %q, "args": ["stdio"], "allow": ["echo", "get-sum"]},
				"python": {"command": %q, "args": [%q, "stdio"], "allow": ["add"]}`, *npmFlag, *pythonFlag, own)
		},
		"http": func() string {
			npm, python := free(t), free(t)
			background(t, npm, *npmFlag, "streamableHttp")
			background(t, python, *pythonFlag, own, python)
			return fmt.Sprintf(`"everything": {"url": "http://127.0.0.1:%s/mcp", "allow": ["echo", "get-sum"]},
				"python": {"url": "http://127.0.0.1:%s/mcp", "allow": ["add"]}`, npm, python)
		},
	} {
		t.Run(transport, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) string {
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			}
			config := write("mcp.json", fmt.Sprintf(`{"mcpServers": {%s, "time": {"command": %q, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"], "allow": ["*"]},
				"broken": {"command": "x", "args": "y"}}}`, servers(), *pythonFlag))
			var stderr bytes.Buffer
			s := program.Serve(t, *hearthFlag, nil, &stderr, "--mcp-config", config, "--script", write("script.jsonl", script), "--api-key", key)
			check(t, s)
			s.Stop()
			if !strings.Contains(stderr.String(), "mcpServers.broken.args: must be a list of texts; this MCP server is left out") {
				t.Errorf("stderr %s", &stderr)
			}
		})
	}
}

// delta is a piece of text in an event of a stream, which is a token or part of one.
var delta = regexp.MustCompile(`"(?:text|content|delta)":"((?:[^"\\]|\\.)*)"`)

// joined is what the events of a stream say together.
func joined(stream string) (text string) {
	for _, m := range delta.FindAllStringSubmatch(stream, -1) {
		text += m[1]
	}
	return text
}

// check asks all that there is to ask of the servers.
func check(t *testing.T, s *program.Server) {
	var servers struct {
		Servers []struct {
			Name, State, Error string
			Tools              int `json:"tools_count"`
		}
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if _, text := ask(t, s, "GET", "/v1/mcp/servers", ""); json.Unmarshal([]byte(text), &servers) != nil {
			t.Fatalf("servers: %s", text)
		}
		connected := 0
		for _, s := range servers.Servers {
			if s.State == "connected" && s.Tools > 0 {
				connected++
			}
		}
		if connected == 3 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("not connected: %+v", servers)
		}
	}
	for _, tc := range []struct {
		tool, args string
		status     int
		want       string
	}{
		{"everything__echo", `{"message": "hello"}`, 200, `"content":"Echo: hello"`},
		{"everything__get-sum", `{"a": 2, "b": 3}`, 200, "The sum of 2 and 3 is 5."},
		{"everything__get-sum", `{"a": "x"}`, 200, `"is_error":true`},
		{"everything__get-env", `{}`, 403, "mcpServers.everything.allow"},
		{"python__add", `{"a": 2, "b": 3}`, 200, `"content":"5"`},
		{"python__fail", `{}`, 403, "mcpServers.python.allow"},
		{"time__get_current_time", `{"timezone": "Europe/Paris"}`, 200, "Europe/Paris"},
		{"time__convert_time", `{"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}`, 200, "21:00"},
		{"other__tool", `{}`, 404, "no MCP tool named"},
	} {
		status, text := ask(t, s, "POST", "/v1/mcp/execute", fmt.Sprintf(`{"tool_name": %q, "arguments": %s}`, tc.tool, tc.args))
		if status != tc.status || !strings.Contains(text, tc.want) {
			t.Errorf("%s %s: %d %s, want %d %s", tc.tool, tc.args, status, text, tc.status, tc.want)
		}
	}
	const said = `They say: Echo: hello`
	for _, tc := range []struct {
		path, body string
		want       []string
	}{
		{"/v1/messages", `"max_tokens": 200, "messages": [{"role": "user", "content": "Ask them."}]`, []string{`"mcp_tool_use"`, `"server_name":"everything"`, `"mcp_tool_result"`, `Echo: hello`, `end_turn`}},
		{"/v1/chat/completions", `"messages": [{"role": "user", "content": "Ask them."}]`, []string{`"mcp_calls"`, `"server_label":"everything"`, `"output":"Echo: hello"`, `"output":"5"`, `"finish_reason":"stop"`}},
		{"/v1/responses", `"input": "Ask them."`, []string{`"mcp_call"`, `"server_label":"everything"`, `"output":"Echo: hello"`, `"output":"5"`, `"status":"completed"`}},
	} {
		for _, stream := range []string{"false", "true"} {
			body := `{"model": "demo", "mcp": ["everything", "python"], "stream": ` + stream + `, ` + tc.body + `}`
			status, text := ask(t, s, "POST", tc.path, body)
			for _, want := range tc.want {
				if status != 200 || !strings.Contains(text, want) {
					t.Errorf("%s, stream %s: %d, no %s in %s", tc.path, stream, status, want, text)
				}
			}
			if stream == "true" {
				text = joined(text)
			}
			if !strings.Contains(text, said) {
				t.Errorf("%s: no %q in %s", tc.path, said, text)
			}
		}
		if _, text := ask(t, s, "POST", tc.path, `{"model": "demo", `+tc.body+`}`); !strings.Contains(text, "Nothing to ask.") {
			t.Errorf("%s without mcp: %s", tc.path, text)
		}
	}
}
