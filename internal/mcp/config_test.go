package mcp

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func lookup(name string) (string, bool) {
	v, ok := map[string]string{"TOKEN": "s3cret", "EMPTY": "", "HOME": "/home/me"}[name]
	return v, ok
}

func TestConfig(t *testing.T) {
	c, err := parseConfig([]byte(`{
		// as people write it
		"mcpServers": {
			"files": {"command": "npx", "args": ["-y", "server", "${HOME}/x"], "env": {"KEY": "${env:TOKEN}", "LEVEL": "${EMPTY:-info}"}, "allow": ["read"], "timeout": 2.5},
			"web": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}, "autoApprove": ["all"]},
			"off": {"command": "x", "disabled": true},
			"too": {"command": "x", "enabled": false},
		},
		"max_rounds": 3, "max_tool_calls": 4, "max_seconds": 60, "max_result_bytes": 1000, "default_timeout": 7, "other": 1
	}`), lookup)
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Servers: []Server{
			{Name: "files", Command: "npx", Args: []string{"-y", "server", "/home/me/x"}, Env: map[string]string{"KEY": "s3cret", "LEVEL": "info"}, Allow: []string{"read"}, Timeout: 2500 * time.Millisecond},
			{Name: "web", URL: "https://example.com/mcp", Headers: map[string]string{"Authorization": "Bearer s3cret"}, Timeout: 7 * time.Second},
		},
		Rounds: 3, Calls: 4, Time: time.Minute, ResultBytes: 1000,
	}
	if len(c.Remarks) != 2 {
		t.Errorf("remarks %q", c.Remarks)
	}
	c.Remarks = nil
	if d := cmp.Diff(want, c); d != "" {
		t.Error(d)
	}
	if c, err = parseConfig([]byte(`{"mcpServers": {}}`), lookup); err != nil || c.Rounds != defaultRounds || c.Calls != defaultCalls || c.Time != defaultTime || c.ResultBytes != defaultResult {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestManyKeys: of keys without a meaning the first are named, the rest counted.
func TestManyKeys(t *testing.T) {
	var keys strings.Builder
	for i := range 100 {
		fmt.Fprintf(&keys, `"k%02d": 1, `, i)
	}
	c, err := parseConfig([]byte(`{`+keys.String()+`"mcpServers": {"a": {`+keys.String()+`"args": []}}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"the key \"k00\" means nothing here", "mcpServers.a: the key \"k00\" means nothing here", "so it is with 92 more keys", "mcpServers.a: so it is with 92 more keys"}
	if len(c.Remarks) != 18 || len(c.Faults) != 1 || !slices.Equal([]string{c.Remarks[0], c.Remarks[9], c.Remarks[8], c.Remarks[17]}, want) {
		t.Errorf("%d faults, %d remarks: %q", len(c.Faults), len(c.Remarks), c.Remarks)
	}
}

// TestBadServers: what is wrong is said by server and key, and the other server is there. No secret is in an error.
func TestBadServers(t *testing.T) {
	for server, want := range map[string]string{
		`5`:                                                    "mcpServers.bad: must be an object with command or url",
		`{}`:                                                   "mcpServers.bad: needs command, a program to start, or url, an address",
		`{"command": 5}`:                                       "mcpServers.bad.command: must be a text",
		`{"command": "a\u0000"}`:                               "mcpServers.bad.command: must not have a zero byte in it",
		`{"command": "a", "args": "b"}`:                        "mcpServers.bad.args: must be a list of texts",
		`{"command": "a", "args": [1]}`:                        "mcpServers.bad.args: [0]: must be a text",
		`{"command": "a", "env": {"A": 1}}`:                    `mcpServers.bad.env: "A": must be a text`,
		`{"command": "a", "env": {"A=B": "x"}}`:                `mcpServers.bad.env: "A=B" is no name of a variable or header`,
		`{"command": "a", "env": {"A": "${NO}"}}`:              `mcpServers.bad.env: "A": the environment has no NO`,
		`{"command": "a", "allow": {"x": true}}`:               "mcpServers.bad.allow: must be a list of texts",
		`{"command": "a", "timeout": 30000}`:                   "mcpServers.bad.timeout: must be a number of seconds, above 0 and at most 3600",
		`{"command": "a", "timeout": null}`:                    "mcpServers.bad.timeout: must be a number of seconds, above 0 and at most 3600",
		`{"command": "a", "url": "http://x/mcp"}`:              "mcpServers.bad.url: there is a command too: a server has one of them",
		`{"url": "ftp://${TOKEN}/"}`:                           "mcpServers.bad.url: must be an address that begins with http:// or https://",
		`{"url": "http://a:${TOKEN}@x/"}`:                      "mcpServers.bad.url: must have no user and password: put them into headers, as Authorization",
		`{"url": "http://x/", "headers": {"": ""}}`:            `mcpServers.bad.headers: "" is no name of a variable or header`,
		`{"url": "http://x/", "headers": {"A": "${TOKEN}\n"}}`: "mcpServers.bad.headers: A: the value must be one line",
		`{"url": "http://x/", "type": "sse"}`:                  "mcpServers.bad.type: the older HTTP+SSE transport is not spoken here: give the server's address for streamable HTTP, which often ends in /mcp, and leave type out",
		`{"url": "http://x/", "type": "pigeon"}`:               `mcpServers.bad.type: must be stdio or http, got "pigeon"`,
		`{"url": "http://x/", "type": "stdio"}`:                "mcpServers.bad.command: a server of type stdio needs the program to start",
		`{"command": "x", "type": "http"}`:                     "mcpServers.bad.url: a server of type http needs its address",
		`{"command": "x", "disabled": "yes"}`:                  "mcpServers.bad.disabled: must be true or false",
	} {
		c, err := parseConfig([]byte(`{"mcpServers": {"bad": `+server+`, "good": {"command": "x"}}}`), lookup)
		if err != nil {
			t.Errorf("%s: %v", server, err)
			continue
		}
		if len(c.Servers) != 1 || c.Servers[0].Name != "good" || len(c.Faults) != 1 {
			t.Errorf("%s: servers %+v, faults %v", server, c.Servers, c.Faults)
			continue
		}
		if got := c.Faults[0].Error(); got != want || strings.Contains(got, "s3cret") {
			t.Errorf("%s: %q, want %q", server, got, want)
		}
	}
	c, err := parseConfig([]byte(`{"mcpServers": {"a.b": {"command": "x"}, "a_b": {"command": "x"}, "`+strings.Repeat("n", mostName+1)+`": {"command": "x"}}}`), lookup)
	if err != nil || len(c.Servers) != 1 || len(c.Faults) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestBadConfigs: what is wrong with the whole file.
func TestBadConfigs(t *testing.T) {
	var many []string
	for i := range mostServer + 1 {
		many = append(many, fmt.Sprintf(`"s%d": {"command": "x"}`, i))
	}
	for text, want := range map[string]string{
		``:                                    "must be a JSON object with mcpServers in it",
		`null`:                                "must be a JSON object with mcpServers in it",
		`[]`:                                  "must be a JSON object with mcpServers in it",
		`{}`:                                  "mcpServers: must be an object with a member for each server",
		`{"mcpServers": []}`:                  "mcpServers: must be an object with a member for each server",
		`{"mcpServers": {}, "servers": {}}`:   "has both mcpServers and servers",
		`{"mcpServers": {}, "max_rounds": 0}`: "max_rounds: must be a number from 1 to 1000",
		`{"mcpServers": {}, "max_tool_calls": 1001}`:        "max_tool_calls: must be a number from 1 to 1000",
		`{"mcpServers": {}, "max_result_bytes": 16777217}`:  "max_result_bytes: must be a number from 256 to 16777216",
		`{"mcpServers": {` + strings.Join(many, ",") + `}}`: "mcpServers: has 65 servers, more than 64",
	} {
		if _, err := parseConfig([]byte(text), lookup); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
	}
	if _, err := parseConfig([]byte(`{"mcpServers": {`+strings.Join(many[1:], ",")+`}}`), lookup); err != nil {
		t.Errorf("as many as may be: %v", err)
	}
	file := filepath.Join(t.TempDir(), "mcp.json")
	if _, err := ReadConfig(file, lookup); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for size, fits := range map[int]bool{maxFile: true, maxFile + 1: false} {
		text := `{"mcpServers": {}}` + strings.Repeat(" ", size-len(`{"mcpServers": {}}`))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadConfig(file, lookup); (err == nil) != fits {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"mcpServers": {"a": {"command": "x", "args": ["${A:-b}"], "env": {"A": "b"}, "cwd": "/", "allow": ["*"]}}}`))
	f.Add([]byte(`{"servers": {"b": {"url": "https://h/mcp", "headers": {"X-A": "b"}, "type": "http", "timeout": 0.5, "disabled": false}}, "max_rounds": 2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseConfig(text, lookup)
		if err != nil {
			return
		}
		for _, s := range c.Servers {
			if (s.Command == "") == (s.URL == "") || s.Timeout <= 0 || s.Timeout > longestRun {
				t.Errorf("%+v", s)
			}
		}
	})
}
