package remote

import (
	"bytes"
	"strings"
	"sync"
)

const (
	tailLines = 6
	tailWidth = 1 << 10 // bytes of a line
)

// tail passes on the lines that a worker process writes and remembers the last ones. When the Go runtime reports a crash it
// remembers only the first lines, without the stacks of goroutines.
type tail struct {
	pass func(line string)

	mu    sync.Mutex
	part  []byte // of a line that has no end yet
	lines []string
	dump  bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		t.part = append(t.part, line[:min(len(line), max(tailWidth-len(t.part), 0))]...)
		if rest = after; ended {
			t.line(string(t.part))
			t.part = t.part[:0]
		}
	}
	return len(p), nil
}

// line takes in a whole one. Called with mu held.
func (t *tail) line(s string) {
	s = strings.ToValidUTF8(strings.TrimRight(s, "\r"), "\uFFFD")
	t.pass(s)
	t.dump = t.dump || strings.HasPrefix(s, "goroutine ") || strings.HasPrefix(s, "PC=") || strings.HasPrefix(s, "runtime stack:")
	if t.dump || strings.TrimSpace(s) == "" {
		return
	}
	if len(t.lines) == tailLines {
		t.lines = append(t.lines[:0], t.lines[1:]...)
	}
	t.lines = append(t.lines, s)
}

// last are the lines remembered, "" if there are none.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := t.lines
	if s := strings.TrimSpace(string(t.part)); s != "" && !t.dump {
		lines = append(lines[:len(lines):len(lines)], s)
	}
	return strings.Join(lines, "; ")
}
