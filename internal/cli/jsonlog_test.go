package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestJSONLog: every line on stderr is an object, whoever writes it.
func TestJSONLog(t *testing.T) {
	var b bytes.Buffer
	for _, line := range []string{"hearth: warning: odd \"one\"\n", "plain\nhearth: error: bad\n", "\n"} {
		if n, err := newJSONLines(&b).Write([]byte(line)); n != len(line) || err != nil {
			t.Error(n, err)
		}
	}
	want := []string{"WARN odd \"one\"", "INFO plain", "ERROR bad"}
	for i, line := range strings.Split(strings.TrimSpace(b.String()), "\n") {
		var r struct{ Time, Level, Msg string }
		if err := json.Unmarshal([]byte(line), &r); err != nil || i >= len(want) || r.Level+" "+r.Msg != want[i] || r.Time == "" {
			t.Errorf("%v: %s", err, line)
		}
	}
	p := start(t, nil, "--log-format", "json", "--log-level", "debug", "--gpu-memory-utilization", "0.5")
	request(t, "POST", p.url+"/v1/messages", `{"max_tokens":3,"messages":[{"role":"user","content":"Hi"}]}`)
	p.end(t)
	seen := map[string]bool{}
	for line := range strings.Lines(p.stderr.String()) {
		var r struct{ Time, Level, Msg string }
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Time == "" || r.Level == "" || r.Msg == "" {
			t.Errorf("%v: %s", err, line)
		}
		seen[r.Msg] = true
	}
	for _, msg := range []string{"asked", "decided", "cache", "perf", "request"} {
		if !seen[msg] {
			t.Errorf("no record %s in %v", msg, seen)
		}
	}
}
