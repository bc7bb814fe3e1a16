//go:build linux

package hostile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// server is a running hearth serve with a home of its own.
type server struct {
	cmd    *exec.Cmd
	url    string
	stderr *tail
	ended  chan struct{} // closed when the process is gone
	err    error         // of its end; after ended
	alone  int64         // steps a Hello takes when nobody else is there
}

// tail keeps the last of what a process writes.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, p...)
	l.b = l.b[max(0, len(l.b)-1<<16):]
	return len(p), nil
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b)
}

// command is hearth with nothing of the user's around it.
func command(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command(*hearth, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "XDG_CACHE_HOME=" + dir, "XDG_RUNTIME_DIR=" + dir}
	return cmd
}

// startLimit is how long a server may take until it is ready, on a busy machine.
const startLimit = 30 * time.Second

// serve starts a server, with its standard error where prepare puts it, and without one in a buffer.
func serve(dir string, prepare func(*exec.Cmd), args ...string) (*server, error) {
	s := &server{cmd: command(dir, append([]string{"serve", "--port", "0", "--drain-timeout", "1s"}, args...)...), stderr: &tail{}, ended: make(chan struct{})}
	s.cmd.Stderr = s.stderr
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.cmd.Stdout = in
	if prepare != nil {
		prepare(s.cmd)
	}
	err = s.cmd.Start()
	in.Close()
	if err != nil {
		return nil, err
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	ready := make(chan string, 1)
	go func() {
		url := ""
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if rest, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
				url, _, _ = strings.Cut(rest, " ")
			}
			if strings.HasPrefix(lines.Text(), "ready in ") {
				ready <- url
				break
			}
		}
		if s.cmd.Env[0] != closedOutput {
			_, _ = io.Copy(io.Discard, out)
		}
		out.Close()
	}()
	select {
	case s.url = <-ready:
		return s, nil
	case <-s.ended:
		return nil, fmt.Errorf("the server ended before it was ready: %w: %.500s", s.err, s.stderr)
	case <-time.After(startLimit):
		s.kill()
		return nil, fmt.Errorf("the server was not ready after %v: %.500s", startLimit, s.stderr)
	}
}

// closedOutput in front of the environment asks serve to close its end of standard output once the server is ready.
const closedOutput = "HOSTILE_OUTPUT=closed"

// newServer is serve for a test, which ends the server and complains where SIGTERM does not.
func newServer(t *testing.T, args ...string) *server {
	t.Helper()
	s, err := serve(t.TempDir(), nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	})
	return s
}

// stopLimit is far more than --drain-timeout and what streams get on top of it.
const stopLimit = 15 * time.Second

// stop ends the server by a signal, else by force, which is an error.
func (s *server) stop(sig os.Signal) error {
	select {
	case <-s.ended: // killed by a guard, or by itself, which others complain about
		return nil
	default:
	}
	_ = s.cmd.Process.Signal(sig)
	select {
	case <-s.ended:
		if s.err != nil {
			return fmt.Errorf("%v: the server ended with %w: %.300s", sig, s.err, s.stderr)
		}
		return nil
	case <-time.After(stopLimit):
		s.kill()
		return fmt.Errorf("%v does not end the server in %v", sig, stopLimit)
	}
}

func (s *server) kill() {
	for _, pid := range s.pids() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-s.ended
}

func (s *server) gone() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// pids are those of the server and its children (--model-process).
func (s *server) pids() []int {
	pids := []int{s.cmd.Process.Pid}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pids[0]))
	for _, f := range tasks {
		raw, _ := os.ReadFile(f)
		for _, w := range strings.Fields(string(raw)) {
			if pid, err := strconv.Atoi(w); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// cpu is the processor time the server has used so far, user and system.
func (s *server) cpu() time.Duration {
	var sum time.Duration
	for _, pid := range s.pids() {
		var ts unix.Timespec
		// The clock of another process, see clock_getcpuclockid(3): finer than the ticks of /proc.
		if unix.ClockGettime(int32(^pid<<3|2), &ts) == nil {
			sum += time.Duration(ts.Nano())
		}
	}
	return sum
}

// resetPeak makes peak start from what is resident now.
func (s *server) resetPeak() {
	for _, pid := range s.pids() {
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
	}
}

// memory is a field of /proc/PID/status in bytes: VmRSS or VmHWM.
func (s *server) memory(field string) int64 {
	var sum int64
	for _, pid := range s.pids() {
		raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		_, rest, _ := strings.Cut(string(raw), field+":")
		if f := strings.Fields(rest); len(f) > 0 {
			kb, _ := strconv.ParseInt(f[0], 10, 64)
			sum += kb << 10
		}
	}
	return sum
}

// sockets is how many connections the server has open, its listeners among them.
func (s *server) sockets() (n int) {
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.cmd.Process.Pid))
	for _, f := range names {
		if to, err := os.Readlink(f); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// An idle process uses next to nothing for a few samples; what the runtime does on the side is less than quiet.
const (
	sample = 20 * time.Millisecond
	quiet  = 3 * time.Millisecond
)

// settle waits until the server is idle and gives the processor time at which it became so.
func (s *server) settle(limit time.Duration) (time.Duration, error) {
	last, calm := s.cpu(), 0
	since := last
	for end := time.Now().Add(limit); calm < 3; {
		time.Sleep(sample)
		now := s.cpu()
		if calm++; now-last > quiet {
			calm, since = 0, now
		}
		last = now
		if time.Now().After(end) {
			return now, fmt.Errorf("the server is still busy after %v", limit)
		}
	}
	return since, nil
}

// status is what the harness reads of /v1/status.
type status struct {
	Steps  int64            `json:"steps_executed"`
	Bounds map[string]int64 `json:"bounds_met"`
}

// helloLimit only ends what would never end: a busy machine takes a while for everything.
const helloLimit = 2 * time.Minute

func (s *server) status(ctx context.Context) (st status, err error) {
	res, err := s.do(ctx, http.MethodGet, "/v1/status", "")
	if err != nil {
		return st, err
	}
	defer res.Body.Close()
	return st, json.NewDecoder(res.Body).Decode(&st)
}

func (s *server) do(ctx context.Context, method, path, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	return (&http.Client{Timeout: helloLimit, Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
}

// hello is what another client asks for; it gives the engine's steps from then to its first token.
func (s *server) hello(ctx context.Context) (steps int64, err error) {
	before, err := s.status(ctx)
	if err != nil {
		return 0, fmt.Errorf("status: %w", err)
	}
	const body = `{"max_tokens": 2, "stream": true, "temperature": 0, "messages": [{"role": "user", "content": "Hello"}]}`
	res, err := s.do(ctx, http.MethodPost, "/v1/chat/completions", body)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if !bytes.Contains(lines.Bytes(), []byte(`"delta":{"content":"`)) {
			continue
		}
		after, err := s.status(ctx)
		_, _ = io.Copy(io.Discard, res.Body)
		return after.Steps - before.Steps, err
	}
	return 0, fmt.Errorf("a stream without text, status %s", res.Status)
}

// warm has the server do everything once, and learns what a Hello takes alone.
func (s *server) warm() error {
	s.alone = 1 << 20
	for range 4 {
		n, err := s.hello(context.Background())
		if err != nil {
			return fmt.Errorf("Hello to a fresh server: %w", err)
		}
		s.alone = min(s.alone, n)
	}
	_, err := s.settle(10 * time.Second)
	return err
}
