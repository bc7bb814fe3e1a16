// Package program runs hearth for the tests of the folders beside it.
package program

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Server is a hearth that serves.
type Server struct {
	URL string
	PID int
	// Stop ends it as Ctrl-C does. The end of the test does so too.
	Stop func()
}

// closeLimit is how long a server may take to end after it was told to.
const closeLimit = 20 * time.Second

// Serve runs the binary's serve on a free port and returns when its model is ready. env is the process's whole environment, nil
// for this one's; what it says on stderr goes there. That it does not end well is an error of the test.
func Serve(t testing.TB, binary string, env []string, stderr io.Writer, args ...string) *Server {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, binary, append([]string{"serve", "--port", "0"}, args...)...)
	cmd.Env, cmd.Stderr = env, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = closeLimit
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		t.Fatalf("start %s: %v", binary, err)
	}
	s := &Server{PID: cmd.Process.Pid}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "ready in ") {
		if rest, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			s.URL, _, _ = strings.Cut(rest, " ")
		}
	}
	drained := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, out); close(drained) }()
	s.Stop = func() {
		s.Stop = func() {}
		cancel()
		<-drained
		if err := cmd.Wait(); !cmd.ProcessState.Success() {
			t.Errorf("hearth serve ended with %v: %v", cmd.ProcessState, err)
		}
	}
	t.Cleanup(func() { s.Stop() })
	if s.URL == "" {
		s.Stop()
		t.Fatal("hearth serve printed no address")
	}
	return s
}
