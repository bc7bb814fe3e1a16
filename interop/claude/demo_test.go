package claude

import (
	"strings"
	"testing"
)

// TestDemo: the demo has no room for Claude Code's instructions and tools, and Claude Code shows what it says about that.
func TestDemo(t *testing.T) {
	s := serveWith(t, nil)
	cmd, r := s.untoldCommand(t, s.home(t), "-p", "What is the capital of France?")
	err := cmd.Run()
	for _, want := range []string{"This is hearth's demo, a tiny model with a context of 8192 tokens", "for a real model: hf download", "&& hearth serve "} {
		if err == nil || !strings.Contains(r.out.String(), want) {
			t.Errorf("it does not say %q: %v\n%s%s", want, err, r.out, r.notes)
		}
	}
}
