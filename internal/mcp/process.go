package mcp

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"hearth/internal/regular"
)

// inherited are the variables that a server gets of this process's environment, where it has them: what programs need to run, and
// no key or token.
var inherited = []string{
	"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
	// Windows
	"APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE",
}

// environment is that of a server's process.
func environment(lookup func(string) (string, bool), own map[string]string) []string {
	all := map[string]string{}
	for _, name := range inherited {
		if v, ok := lookup(name); ok {
			all[name] = v
		}
	}
	maps.Copy(all, own)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, name+"="+all[name])
	}
	return list
}

// process is a server that runs as a program. Reading is of its standard output.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *io.PipeReader
	stderr tail
	ended  chan struct{} // closed when it is gone
	err    error         // how it ended
	stops  sync.Once
}

// grace is how long a program may take to end when its input has ended, and again when it was told to.
const grace = 2 * time.Second

// start starts the program of s, in a process group of its own: what is meant for this program's terminal is not for it.
func (s *server) start() (*process, error) {
	p := &process{cmd: exec.Command(s.Command, s.Args...), ended: make(chan struct{})}
	p.cmd.Env, p.cmd.Dir = environment(s.host.o.Lookup, s.Env), s.Dir
	apart(p.cmd)
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, out := io.Pipe()
	p.stdout, p.cmd.Stdout, p.cmd.Stderr = stdout, out, &p.stderr
	p.cmd.WaitDelay = grace // for others that hold its output
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s (mcpServers.%s.command): %w", regular.Clip(s.Command), s.Name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
		_ = out.Close()
	}()
	return p, nil
}

// Read implements io.Reader.
func (p *process) Read(b []byte) (int, error) { return p.stdout.Read(b) }

// Close implements io.Closer: it ends the program.
func (p *process) Close() error {
	p.stop()
	return nil
}

// stop ends the program: by the end of its input, as the protocol has it, then by signals.
func (p *process) stop() {
	p.stops.Do(func() {
		_ = p.stdin.Close()
		_ = p.stdout.Close() // nobody reads on
		for _, signal := range []func(*exec.Cmd){terminate, kill} {
			t := time.NewTimer(grace)
			select {
			case <-p.ended:
				t.Stop()
				return
			case <-t.C:
				signal(p.cmd)
			}
		}
		<-p.ended
	})
}

// lastWords is what a program that has ended said last on its standard error, or how it ended.
func (p *process) lastWords() string {
	if line := p.stderr.last(); line != "" {
		return line
	}
	if p.err != nil {
		return p.err.Error()
	}
	return ""
}

// maxTail bounds the bytes that are kept of what a program says on its standard error.
const maxTail = 4 << 10

// tail keeps the end of what is written.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	b = b[max(0, n-maxTail):]
	t.text = append(t.text[max(0, len(t.text)+len(b)-maxTail):], b...)
	return n, nil
}

// last is the last line that is not empty.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := bytes.TrimSpace(t.text)
	return strings.TrimSpace(regular.Clip(string(text[bytes.LastIndexByte(text, '\n')+1:])))
}
