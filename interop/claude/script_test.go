package claude

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// line is a line of a script; docs/script.md has its meaning.
type line struct {
	IfLast       string  `json:"if_last,omitempty"`
	IfTool       string  `json:"if_tool,omitempty"`
	Turn         int     `json:"turn,omitempty"`
	Raw          string  `json:"raw"`
	TokensPerSec float64 `json:"tokens_per_s,omitempty"`
	Times        int     `json:"times,omitempty"`
	Fault        *fault  `json:"fault,omitempty"`
}

type fault struct {
	Kind  string `json:"kind"`
	After int    `json:"after_tokens,omitempty"`
}

// toolCall is a call as the demo's template has it.
func toolCall(name, args string) string {
	return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " + args + "}\n</tool_call>"
}

func (s *server) write(t *testing.T, script ...line) (path string) {
	t.Helper()
	var b strings.Builder
	for _, l := range script {
		if err := json.NewEncoder(&b).Encode(l); err != nil {
			t.Fatal(err)
		}
	}
	path = filepath.Join(s.dir, "script.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// event is a line of Claude Code's stream-json output.
type event struct {
	Type, Subtype, Result string
	IsError               bool `json:"is_error"`
	Message               struct {
		Content json.RawMessage
	}
	ParentToolUse string `json:"parent_tool_use_id"`
	ModelUsage    map[string]struct{ ContextWindow int }
	Usage         struct {
		Input   int `json:"input_tokens"`
		Written int `json:"cache_creation_input_tokens"`
		Read    int `json:"cache_read_input_tokens"`
		Output  int `json:"output_tokens"`
	}
}
