package claude

import (
	"strings"
	"testing"
)

// TestSmallContext: in a context in which the 32,000 tokens that it asks for never fit, Claude Code writes a file.
func TestSmallContext(t *testing.T) {
	s := serveWith(t, []string{"--context-length", "32768"},
		line{Turn: 1, IfTool: "^Write$", Raw: toolCall(`Write`, `{"file_path": "hello.txt", "content": "Hello from hearth.\n"}`)},
		line{Turn: 2, Raw: "It is written."})
	r := s.untold(t, s.home(t), "-p", "Write hello.txt")
	r.says(t, "It is written.")
	r.wrote(t, "hello.txt", "Hello from hearth.\n")
	if got := s.statuses(t); got != "200 200" {
		t.Errorf("statuses %s", got)
	}
}

// TestDemo: the demo has no room for Claude Code's instructions and tools, and Claude Code shows what it says about that.
func TestDemo(t *testing.T) {
	s := serveWith(t, nil)
	cmd, r := s.untoldCommand(t, s.home(t), "-p", "What is the capital of France?")
	err := cmd.Run()
	for _, want := range []string{"This is hearth's demo, a tiny model with a context of 8192 tokens", "for a real model: hearth pull ", "&& hearth serve "} {
		if err == nil || !strings.Contains(r.out.String(), want) {
			t.Errorf("it does not say %q: %v\n%s%s", want, err, r.out, r.notes)
		}
	}
}
