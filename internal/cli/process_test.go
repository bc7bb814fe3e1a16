//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// piped is a running hearth serve whose output the test reads, or not.
type piped struct {
	*exec.Cmd
	url            string
	banner         []string // stdout up to "ready"
	stdout, stderr *os.File
	lines          *bufio.Reader // of stderr
}

// startPiped runs serve as a service, through a shell if there is something to be done before, until it is ready.
func startPiped(t *testing.T, before string, args ...string) *piped {
	t.Helper()
	return startOn(t, nil, before, args...)
}

// startOn is startPiped on a terminal.
func startOn(t *testing.T, terminal *os.File, before string, args ...string) *piped {
	t.Helper()
	return startWith(t, terminal, nil, before, args...)
}

// startWith is startOn with files as descriptors from 3.
func startWith(t *testing.T, terminal *os.File, files []*os.File, before string, args ...string) *piped {
	t.Helper()
	cmd := command(t, nil, append([]string{"serve", "--port", "0"}, args...)...)
	if before != "" {
		cmd.Args = append([]string{"sh", "-c", before + `; exec "$@"`, "sh", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
	}
	if terminal != nil {
		cmd.Stdin = terminal
	}
	cmd.ExtraFiles = files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: terminal != nil}
	p := &piped{Cmd: cmd}
	var theirs [2]*os.File
	for i, ours := range []**os.File{&p.stdout, &p.stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		*ours, theirs[i] = r, w
		t.Cleanup(func() { r.Close() })
	}
	p.Stdout, p.Stderr = theirs[0], theirs[1]
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	theirs[0].Close()
	theirs[1].Close()
	t.Cleanup(func() {
		_ = p.Process.Kill() // it may have ended
		_ = p.Wait()
	})
	p.lines = bufio.NewReader(p.stderr)
	for s := bufio.NewScanner(p.stdout); s.Scan(); {
		p.banner = append(p.banner, s.Text())
		if rest, ok := strings.CutPrefix(s.Text(), "listening on "); ok {
			p.url, _, _ = strings.Cut(rest, " ")
		}
		if strings.HasPrefix(s.Text(), "ready in ") {
			return p
		}
	}
	t.Fatal("serve ended before it was ready")
	return nil
}

// says reads stderr up to a line with what.
func (p *piped) says(t *testing.T, what string) (all string) {
	t.Helper()
	for {
		line, err := p.lines.ReadString('\n')
		if all += line; strings.Contains(line, what) {
			return all
		}
		if err != nil {
			t.Fatalf("%v before %q: %.1000s", err, what, all)
		}
	}
}

// ends waits for the process's end.
func (p *piped) ends(t *testing.T, why string) {
	t.Helper()
	if err := p.Wait(); err != nil {
		t.Errorf("%s: %v", why, err)
	}
}

// chatter makes n lines of half a KB in the log: a path, and the error that quotes it.
func (p *piped) chatter(t *testing.T, n int) {
	t.Helper()
	for range n {
		if status, _ := request(t, "GET", p.url+"/"+strings.Repeat("x", 1000), ""); status != http.StatusNotFound {
			t.Fatalf("status %d", status)
		}
	}
}

// A server goes on when who read its output has gone, and ends as if there were somebody.
func TestClosedOutput(t *testing.T) {
	p := startPiped(t, "")
	p.stdout.Close()
	p.stderr.Close()
	for range 3 {
		if status, b := request(t, "POST", p.url+"/v1/messages", hello); status != 200 {
			t.Fatalf("%d %s", status, b)
		}
	}
	_ = p.Process.Signal(syscall.SIGTERM)
	p.ends(t, "without readers")
}

// It goes on when nobody reads though somebody could, says how many lines that cost when they do, and ends if they never do.
func TestStalledOutput(t *testing.T) {
	for _, back := range []bool{true, false} {
		p := startPiped(t, "")
		const lines = 2 * printQueue / 500
		p.chatter(t, lines)
		if status, b := request(t, "POST", p.url+"/v1/messages", hello); status != 200 {
			t.Fatalf("%d %s", status, b)
		}
		if back {
			all := p.says(t, " log lines were dropped: nobody read them")
			if n := strings.Count(all, "msg=request"); n < lines/3 || n > lines*2/3 {
				t.Errorf("%d lines of %d were kept", n, lines)
			}
			p.chatter(t, 1)
			p.says(t, "status=404")
			go func() { _, _ = io.Copy(io.Discard, p.stderr) }()
		}
		_ = p.Process.Signal(syscall.SIGTERM)
		p.ends(t, fmt.Sprintf("a reader that is back %t", back))
	}
}

// Under nohup a hangup changes nothing.
func TestNohup(t *testing.T) {
	p := startPiped(t, "trap '' HUP")
	_ = p.Process.Signal(syscall.SIGHUP)
	if status, b := request(t, "POST", p.url+"/v1/messages", hello); status != 200 {
		t.Errorf("%d %s", status, b)
	}
	_ = p.Process.Signal(syscall.SIGTERM)
	if all := p.says(t, "hearth: stopping"); strings.Count(all, "status=200") != 1 {
		t.Errorf("stderr %s", all)
	}
	p.ends(t, "SIGTERM")
}

// Who stops every process of a service at once does not cut replies: the model's process waits for the server's word.
func TestStopAll(t *testing.T) {
	p := startPiped(t, "", "--model-process", "always")
	_, body := request(t, "GET", p.url+"/v1/status", "")
	var pid int
	if _, after, ok := strings.Cut(string(body), `"model_process":{"pid":`); !ok {
		t.Fatalf("%s", body)
	} else if _, err := fmt.Sscan(strings.NewReplacer(",", " ").Replace(after), &pid); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if err := syscall.Kill(pid, sig); err != nil {
			t.Fatal(err)
		}
	}
	if status, b := request(t, "POST", p.url+"/v1/messages", hello); status != 200 {
		t.Errorf("%d %s", status, b)
	}
	_ = p.Process.Signal(syscall.SIGTERM)
	if all := p.says(t, "hearth: stopping"); strings.Contains(all, "has ended") {
		t.Errorf("stderr %s", all)
	}
	go func() { _, _ = io.Copy(io.Discard, p.stderr) }()
	p.ends(t, "SIGTERM")
}

// SIGHUP has a service read again what can change, and say what cannot; replies go on, and what is broken changes nothing.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	file, aliases := dir+"/hearth/config.toml", dir+"/hearth/aliases.json"
	if err := os.Mkdir(dir+"/hearth", 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file, "max-queue = 7\n")
	p := startPiped(t, "export XDG_CONFIG_HOME="+dir)
	res, err := http.Post(p.url+"/v1/messages", "application/json",
		strings.NewReader(`{"stream": true, "max_tokens": 40, "messages": [{"role": "user", "content": "Tell me about yourself"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for _, tc := range []struct{ config, aliases, says string }{
		{"max-queue = 7\n", `{"mine": "demo"}`, "what can change is read again"},
		{"max-queue = 8\n", `{"mine": "demo"}`, `settings=max-queue`},
		{"max-queue = 8000000000000\n", `{"mine": "demo"}`, "the settings stay as they are"},
		{"max-queue = 7\n", `{`, "aliases.json"},
		{"max-queue = 7\n", `{"mine": "demo"}`, "what can change is read again"},
	} {
		write(file, tc.config)
		write(aliases, tc.aliases)
		_ = p.Process.Signal(syscall.SIGHUP)
		p.says(t, tc.says)
	}
	if body, err := io.ReadAll(res.Body); err != nil || !bytes.Contains(body, []byte("message_stop")) {
		t.Errorf("the reply was cut: %v: %s", err, body)
	}
	_ = p.Process.Signal(syscall.SIGTERM)
	p.ends(t, "SIGTERM")
}
